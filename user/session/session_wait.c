// SPDX-License-Identifier: MIT
#include "session/session_internal.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "util/clock.h"

#define STATUS_INTERVAL_NS 1000000000ull

static void tell_observer(const struct session *s)
{
	const struct session_observer *observer = s->start->observer;
	struct mt_stats stats;

	if (observer && s->gate.trigger && !trigger__stats(s->gate.trigger, &stats))
		observer->on_counters(observer->ctx, &stats, s->progress.threshold_ns, s->armed);
}

/* Passed the threshold since the last arming, and no snapshot of them was taken. */
static void count_busy(struct session *s)
{
	struct mt_stats stats;

	if (trigger__stats(s->gate.trigger, &stats))
		return;
	if (s->snapshots)
		s->rec->drops[DROP_BUSY] += stats.unarmed - s->at_arm.unarmed;
	s->at_arm = stats;
}

int session__arm(struct session *s)
{
	int err;

	if (!s->gate.trigger || s->armed || clock__now_ns() < s->hold_ns)
		return 0;
	tell_observer(s);
	count_busy(s);
	err = trigger__arm(s->gate.trigger);
	s->armed = !err;
	s->hold_ns = 0;
	return err;
}

static uint32_t last_reason(const struct recording *rec)
{
	return rec->hits.v[rec->hits.n - 1].reason;
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
		*end = last_reason(s->rec) == MT_HIT_LAST ? SESSION_HITS_OVER : SESSION_TRIGGERED;
		return 0;
	}
	if (s->ops->state(s->source) == SOURCE_EXITED || s->replaced)
		*end = SESSION_EXITED;
	else if (read(s->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		*end = info.ssi_signo == SIGUSR1 ? SESSION_ASKED : SESSION_INTERRUPTED;
		/* A terminal sends it to the program too, kill(1) only to us. */
		if (s->start->exec_path && info.ssi_code == SI_USER)
			s->forward = (int)info.ssi_signo;
	} else if (clock__now_ns() >= s->deadline_ns)
		*end = SESSION_TIMED_OUT;
	else
		*over = false;
	return 0;
}

/* Once a second the counters are looked at. When to wake up next. */
static int tick(struct session *s, uint64_t *next)
{
	uint64_t now = clock__now_ns();
	char cost[OVERHEAD_TEXT_SIZE];
	int err = 0;

	*next = s->progress.last_ns + STATUS_INTERVAL_NS;
	if (now >= *next) {
		err = session__keep_cost(s, cost);
		progress__look(&s->progress, session__trigger(s), now, cost);
		tell_observer(s);
		s->replaced = session__is_replaced(s);
		session__check_lookback(s);
		*next = now + STATUS_INTERVAL_NS;
	}
	if (s->hold_ns && s->hold_ns < *next)
		*next = s->hold_ns;
	if (s->deadline_ns < *next)
		*next = s->deadline_ns;
	return err;
}

static int sleep_until(struct session *s, uint64_t until_ns)
{
	uint64_t now = clock__now_ns();
	int timeout_ms = until_ns > now ? (int)((until_ns - now) / 1000000) + 1 : 0;
	struct epoll_event events[4];

	return epoll_wait(s->epoll_fd, events, 4, timeout_ms) < 0 && errno != EINTR ? -errno : 0;
}

int session__wait(struct session *s, enum session_end *end)
{
	bool over = false;
	uint64_t next;
	int err;

	*end = SESSION_INTERRUPTED;
	err = look(s, end, &over);
	while (!err && !over) {
		err = tick(s, &next);
		if (!err)
			err = sleep_until(s, next);
		if (!err)
			err = session__arm(s);
		if (!err)
			err = look(s, end, &over);
	}
	status__end();
	overhead__say(&s->overhead, &s->options->sample);
	tell_observer(s);
	s->armed = false;
	return err;
}
