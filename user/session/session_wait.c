// SPDX-License-Identifier: MIT
#include "session/session_internal.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "util/clock.h"

#define STATUS_INTERVAL_NS 1000000000ull

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
		uint64_t now = clock__now_ns(), next = s->progress.last_ns + STATUS_INTERVAL_NS;
		struct epoll_event events[4];
		int timeout;

		if (now >= next) {
			progress__look(&s->progress, s->gate.trigger, now);
			next = now + STATUS_INTERVAL_NS;
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
