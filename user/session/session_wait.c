// SPDX-License-Identifier: MIT
#include "session/session_internal.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "session/hit_status.h"
#include "util/clock.h"
#include "util/log.h"

#define STATUS_INTERVAL_NS 1000000000ull

static void show_status(struct session *s, uint64_t now)
{
	struct mt_stats stats;
	struct status_view view;

	if (!s->gate.trigger || trigger__stats(s->gate.trigger, &stats))
		return;
	view = hit_status__view(&stats, stats.hits - s->last_stats.hits, now - s->last_status_ns);
	view.threshold_ns = s->options->delay_thresh_ns + s->options->duration_thresh_ns;
	status__show(&view);
	s->last_stats = stats;
	s->last_status_ns = now;
}

void session__say_hits(const struct session *s)
{
	struct status_view view;
	struct mt_stats stats;
	char text[STATUS_TEXT_SIZE];

	if (!s->gate.trigger || trigger__stats(s->gate.trigger, &stats))
		return;
	view = hit_status__view(&stats, stats.hits, clock__now_ns() - s->began_ns);
	view.threshold_ns = s->options->delay_thresh_ns + s->options->duration_thresh_ns;
	if (stats.hits)
		log__info("%s: %s", s->probe.name, status__format(text, &view));
	else
		log__info("%s was not called at all: 'mtbpf watch' shows whether it ever is",
			  s->probe.name);
}

/* True where the session is over: *end says why. */
static int look(struct session *s, enum session_end *end, bool *over)
{
	struct signalfd_siginfo info;
	int got = s->gate.trigger ? gate__take_hit(&s->gate, s->rec) : 0;

	*over = true;
	if (got < 0)
		return got;
	if (got) {
		*end = SESSION_TRIGGERED;
		return 0;
	}
	if (s->ops->state(s->source) == SOURCE_EXITED)
		*end = SESSION_EXITED;
	else if (read(s->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		*end = SESSION_INTERRUPTED;
		/* A terminal sends it to the program too, kill(1) only to us. */
		if (s->start->exec_path && info.ssi_code == SI_USER)
			s->forward = (int)info.ssi_signo;
	} else if (clock__now_ns() >= s->deadline_ns)
		*end = SESSION_TIMED_OUT;
	else
		*over = false;
	return 0;
}

int session__wait(struct session *s, enum session_end *end)
{
	bool over = false;
	int err = look(s, end, &over);

	while (!err && !over) {
		uint64_t now = clock__now_ns(), next = s->last_status_ns + STATUS_INTERVAL_NS;
		struct epoll_event events[4];
		int timeout;

		if (now >= next) {
			show_status(s, now);
			next = now + STATUS_INTERVAL_NS;
			s->last_status_ns = now;
		}
		if (s->deadline_ns < next)
			next = s->deadline_ns;
		timeout = next > now ? (int)((next - now) / 1000000) + 1 : 0;
		if (epoll_wait(s->epoll_fd, events, 4, timeout) < 0 && errno != EINTR)
			err = -errno;
		else
			err = look(s, end, &over);
	}
	status__end();
	return err;
}
