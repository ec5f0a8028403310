// SPDX-License-Identifier: MIT
#include "keep/keeper.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "keep/keeper_internal.h"
#include "target/process.h"
#include "trigger/trigger.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/signals.h"
#include "util/units.h"

/* Reports the triggers that came while -max-per-hour was used up. */
static void say_let_pass(struct keeper *k)
{
	if (k->let_pass)
		log__info("-max-per-hour %d: %llu hits over the threshold were not captured",
			  k->options->keep.max_per_hour, (unsigned long long)k->let_pass);
	k->held = false;
	k->let_pass = 0;
}

static void on_counters(void *ctx, const struct mt_stats *stats, uint64_t threshold_ns, bool armed)
{
	struct keeper *k = ctx;
	uint64_t unarmed = stats->unarmed - k->unarmed;

	if (k->held && !armed) {
		k->metrics.skipped[SKIPPED_RATE] += unarmed;
		k->let_pass += unarmed;
	} else {
		k->metrics.skipped[SKIPPED_BUSY] += unarmed;
	}
	if (k->held && armed)
		say_let_pass(k);
	k->unarmed = stats->unarmed;
	k->metrics.threshold_ns = threshold_ns;
	k->metrics.stats = k->before;
	mt_stats__add(&k->metrics.stats, stats);
	k->metrics.skipped[SKIPPED_LIMITS] = k->metrics.stats.let_pass;
	k->metrics.lost[LOST_TRIGGERS] = k->metrics.stats.dropped;
	/* A new summary changes the size of the recordings. */
	if (after__look(&k->after, &k->metrics))
		keeper__count_recordings(k);
	metrics_server__set(k->server, &k->metrics);
}

static void hold_fire(struct keeper *k, struct session *s)
{
	uint64_t now = clock__now_ns(), next = quota__next_ns(&k->quota);
	char text[UNITS_MOMENT_SIZE];

	if (next <= now)
		return;
	if (!k->held)
		log__info("-max-per-hour %d: the next capture is possible at %s",
			  k->options->keep.max_per_hour,
			  units__format_moment(text, unix_now_ms() + (next - now) / 1000000));
	k->held = true;
	session__hold_fire(s, next);
}

/*
 * Returns freed memory to the kernel: the heap keeps up to twice the largest block ever freed, and
 * a capture after a pause of this process needs much more than the others.
 */
static void give_memory_back(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

/* Takes one capture. True if the session is over. */
static bool capture_one(struct keeper *k, struct session *s, enum session_end *end, int *err)
{
	struct recording rec;

	hold_fire(k, s);
	recording__init(&rec);
	*err = session__next(s, &rec, end);
	if (!*err && *end == SESSION_TRIGGERED)
		quota__spend(&k->quota, clock__now_ns());
	if (!*err && *end != SESSION_EXITED && *end != SESSION_INTERRUPTED)
		keeper__put(k, &rec, *end);
	recording__fini(&rec);
	give_memory_back();
	return *err || (*end != SESSION_TRIGGERED && *end != SESSION_ASKED);
}

#define EXIT_LOOKS	 100
#define EXIT_INTERVAL_MS 10

/*
 * True if the process has exited. Waits up to a second for that: perf_event_open(2) fails as soon
 * as the process begins to exit, a moment before the exit is visible.
 */
static bool has_gone(pid_t pid)
{
	for (int i = 0; i < EXIT_LOOKS && process__alive(pid); i++)
		poll(NULL, 0, EXIT_INTERVAL_MS);
	return !process__alive(pid);
}

/* Captures until the target exits, or until a signal ends mtbpf. */
static int follow_target(struct keeper *k, enum session_end *end)
{
	struct session *s = session__open(&k->options->capture, &k->start);
	int err = 0;

	/* The target has exited since it was found. */
	if (!s && k->has_settled) {
		*end = SESSION_EXITED;
		return 0;
	}
	if (!s)
		return -errno;
	k->unarmed = 0;
	k->metrics.attached = true;
	k->metrics.attaches++;
	while (!capture_one(k, s, end, &err))
		;
	if (err && has_gone(session__pid(s))) {
		*end = SESSION_EXITED;
		err = 0;
	}
	session__close(s);
	k->before = k->metrics.stats;
	k->metrics.attached = false;
	metrics_server__set(k->server, &k->metrics);
	return err;
}

/* Captures of the last hour by an earlier mtbpf count for -max-per-hour. */
static int spend_earlier(struct keeper *k)
{
	uint64_t now_ns = clock__now_ns(), now_ms = unix_now_ms();
	struct folder_content content;
	int err = folder__list(&k->folder, &content);

	if (err)
		return err;
	for (size_t i = 0; i < content.items.n; i++) {
		uint64_t ms = content.items.v[i].unix_ms;
		uint64_t age_ns = ms < now_ms ? (now_ms - ms) * 1000000 : 0;

		if (age_ns < QUOTA_SPAN_NS && age_ns < now_ns)
			quota__spend(&k->quota, now_ns - age_ns);
	}
	folder_content__fini(&content);
	return 0;
}

static int open_keeper(struct keeper *k)
{
	const struct keep_options *o = &k->options->keep;
	int err = keeper__check_target(k);

	if (!err)
		err = folder__open(&k->folder, o->dir, (size_t)o->keep, o->max_size);
	if (!err)
		err = quota__init(&k->quota, (size_t)o->max_per_hour);
	if (!err)
		err = spend_earlier(k);
	if (!err && o->metrics) {
		k->server = metrics_server__start(o->metrics);
		err = k->server ? 0 : -errno;
	}
	if (err)
		return err;
	k->signal_fd = interrupts__open_with_requests();
	keeper__count_recordings(k);
	metrics_server__set(k->server, &k->metrics);
	return k->signal_fd < 0 ? k->signal_fd : 0;
}

static void close_keeper(struct keeper *k)
{
	metrics_server__stop(k->server);
	quota__fini(&k->quota);
	target__close(&k->target);
	if (k->signal_fd >= 0)
		close(k->signal_fd);
}

/* Sends SIGTERM to mtbpf after this time. */
static int end_after(uint64_t ns)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGTERM};
	struct itimerspec when = {.it_value = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)}};
	timer_t timer;

	return timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &when, NULL)
		       ? -errno
		       : 0;
}

static int run(struct keeper *k)
{
	enum session_end end = SESSION_EXITED;
	int err = open_keeper(k);

	while (!err && end == SESSION_EXITED) {
		err = keeper__find_target(k);
		if (!err)
			err = follow_target(k, &end);
	}
	if (end == SESSION_HITS_OVER)
		log__info("-max-hits %d reached", k->options->capture.limits.max_hits);
	if (k->held)
		say_let_pass(k);
	after__end(&k->after, &k->metrics);
	if (!err || err == -EINTR)
		log__info("%llu recordings made, %llu in %s",
			  (unsigned long long)(k->metrics.captures + k->metrics.requests),
			  (unsigned long long)k->metrics.recordings, k->folder.dir);
	return err == -EINTR ? 0 : err;
}

int keeper__run(const struct record_options *options)
{
	const struct capture_options *o = &options->capture;
	struct keeper k = {
		.options = options,
		.metrics = {.of_durations = threshold__is_set(&o->duration_thresh),
			    .cpu_measure = capture_options__cpu_measure(o)},
		.target = {.cgroup.fd = -1},
		.start = {.target = &k.target, .observer = &k.observer},
		.observer = {.ctx = &k, .on_counters = on_counters},
		.signal_fd = -1,
	};
	int err = 0;

	after__init(&k.after, &options->keep);
	interrupts__hold();
	interrupts__hold_requests();
	if (options->keep.timeout_ns)
		err = end_after(options->keep.timeout_ns);
	if (!err)
		err = run(&k);
	close_keeper(&k);
	interrupts__release();
	return err;
}
