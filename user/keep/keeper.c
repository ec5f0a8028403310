// SPDX-License-Identifier: MIT
#include "keep/keeper.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "keep/after.h"
#include "keep/folder.h"
#include "keep/keep_options.h"
#include "metrics/metrics.h"
#include "session/labels.h"
#include "session/session.h"
#include "session/target.h"
#include "target/process.h"
#include "trigger/trigger.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/names.h"
#include "util/signals.h"
#include "util/units.h"

struct keeper {
	const struct record_options *options;
	struct folder folder;
	struct quota quota;
	struct after after;
	struct metrics metrics;
	struct mt_stats before; /* totals of earlier targets */
	uint64_t unarmed;	/* the current target's mt_stats.unarmed at the last look */
	uint64_t let_pass;	/* triggers that came while -max-per-hour was used up */
	bool held;		/* -max-per-hour is used up */
	struct metrics_server *server;
	struct target target;
	struct session_start start;
	struct session_observer observer;
	int signal_fd;
	bool has_been_there; /* the target has been found once */
	bool has_settled;    /* settle() has just opened a session */
};

static const struct mt_hit *hit_of(const struct recording *rec)
{
	return rec->hits.n ? &rec->hits.v[rec->hits.n - 1] : NULL;
}

static const char *reason_of(const struct mt_hit *hit)
{
	switch (hit->reason) {
	case MT_HIT_DURATION:
		return "duration";
	case MT_HIT_REGION:
		return "region";
	case MT_HIT_STALL:
		return "stall";
	case MT_HIT_MARK:
		return "mark";
	default:
		return "delay";
	}
}

/* "pid 4711 tid 4713 delay 61.2 ms (threshold 50.0 ms)" */
static void format_hit(char *buf, size_t size, const struct recording *rec)
{
	const struct mt_hit *hit = hit_of(rec);
	bool is_on = rec->cpu_measure == MT_CPU_ON;
	char part[64] = "";

	if (!hit) {
		snprintf(buf, size, "pid %d on request", rec->pid);
		return;
	}
	if (hit->reason == MT_HIT_EVERY || hit->reason == MT_HIT_LAST) {
		snprintf(buf, size, "pid %u tid %u %s", hit->tgid, hit->tid, rec->trigger);
		return;
	}
	/* The threshold may be for a part of the time: on or off the CPU. */
	if (rec->cpu_measure && hit->off_cpu_ns <= hit->value_ns)
		snprintf(part, sizeof(part), ", %s of it %s the CPU",
			 DURATION(is_on ? hit->value_ns - hit->off_cpu_ns : hit->off_cpu_ns),
			 is_on ? "on" : "off");
	snprintf(buf, size, "pid %u tid %u %s %s%s (threshold %s)", hit->tgid, hit->tid,
		 reason_of(hit), DURATION(hit->value_ns), part,
		 DURATION(hit->reason == MT_HIT_STALL ? rec->stall_thresh_ns : rec->threshold_ns));
}

static void refuse(struct keeper *k, int err)
{
	const struct keep_options *o = &k->options->keep;

	k->metrics.skipped[err == -EFBIG ? SKIPPED_SIZE : SKIPPED_DISK]++;
	log__error("cannot keep a recording in %s: %s", o->dir,
		   err == -EFBIG ? "the recording exceeds -max-size" : strerror(-err));
	if (err == -EFBIG)
		log__hint("-max-size is %s; use a smaller -snapshot-size", BYTES(o->max_size));
	else if (err == -ENOSPC || err == -EDQUOT)
		log__hint("the disk is full: use a smaller -max-size or -keep; the partial "
			  "recording is removed, and the next trigger tries again");
	else
		log__hint("the partial recording is removed, and the next trigger tries again");
}

static int put(struct keeper *k, struct recording *rec, uint64_t unix_ms)
{
	const struct mt_hit *hit = hit_of(rec);
	char of_hit[128], text[PRINTED_SIZE];
	/* ", str(arg1) \"GET /\"": what -print has read. */
	char prints[MT_PRINTS * (PRINTED_SIZE + 160)] = "";
	struct folder_slot slot;
	uint64_t bytes;
	size_t n = 0;
	int err;

	k->folder.in_work = after__current(&k->after);
	err = folder__begin(&k->folder, rec->command, unix_ms, &slot);
	if (err)
		return err;
	err = labels__add(rec, "", &k->options->capture.labels);
	if (!err)
		err = recording__save(rec, slot.partial);
	if (err)
		folder__abandon(&slot);
	else
		err = folder__finish(&k->folder, &slot, &bytes);
	if (err)
		return err;
	format_hit(of_hit, sizeof(of_hit), rec);
	for (uint32_t i = 0; hit && i < hit->n_prints && i < rec->prints.n && n < sizeof(prints);
	     i++)
		n += (size_t)snprintf(prints + n, sizeof(prints) - n, ", %s %s", rec->prints.v[i],
				      printed__format(text, &hit->prints[i]));
	log__info("%s %s%s %s %s", MOMENT(unix_ms), of_hit, prints, BYTES(bytes), slot.path);
	after__add(&k->after, slot.path, &k->metrics);
	return 0;
}

/* Updates the metrics with the folder's content. */
static void count_recordings(struct keeper *k)
{
	struct folder_content content;

	if (folder__list(&k->folder, &content))
		return;
	k->metrics.recordings = content.items.n;
	k->metrics.recordings_bytes = content.bytes;
	k->metrics.newest_unix_ms =
		content.items.n ? content.items.v[content.items.n - 1].unix_ms : 0;
	folder_content__fini(&content);
}

/* Writes the capture to the folder and says so. Counts it, or prints and counts the error. */
static void put_capture(struct keeper *k, struct recording *rec, enum session_end end)
{
	struct metrics_exemplar *exemplar = &k->metrics.capture;
	const struct mt_hit *hit = hit_of(rec);
	char text[EMPTY_SNAPSHOT_TEXT_SIZE];
	uint64_t now_ns = clock__now_ns(), unix_ms = unix_now_ms();
	int err;

	if (!recording__traced_bytes(rec)) {
		log__info("%s", empty_snapshot__format(text, rec, rec->pid));
		return;
	}
	/* The time of the hit; without a hit, now. */
	if (hit && hit->time_ns < now_ns)
		unix_ms -= (now_ns - hit->time_ns) / 1000000;
	err = put(k, rec, unix_ms);
	if (err)
		refuse(k, err);
	else if (end == SESSION_ASKED)
		k->metrics.requests++;
	else
		k->metrics.captures++;
	if (!err && end != SESSION_ASKED && hit && (hit->trace_id[0] | hit->trace_id[1])) {
		snprintf(exemplar->trace_id, sizeof(exemplar->trace_id),
			 "%016" PRIx64 "%016" PRIx64, hit->trace_id[0], hit->trace_id[1]);
		exemplar->unix_ms = unix_ms;
	}
	VEC_EACH(&rec->losses, loss) {
		k->metrics.lost[LOST_TRACE] += loss->aux_flags != 0;
		k->metrics.lost[LOST_RECORDS] += loss->records;
	}
	count_recordings(k);
	metrics_server__set(k->server, &k->metrics);
}

#define SETTLE_LOOKS	   10
#define SETTLE_INTERVAL_MS 500

/* True if a signal tells mtbpf to end. For SIGUSR1 it says that the target is not running. */
static bool told_to_end(struct keeper *k)
{
	struct signalfd_siginfo info;

	if (read(k->signal_fd, &info, sizeof(info)) != sizeof(info))
		return false;
	if (info.ssi_signo != SIGUSR1)
		return true;
	log__info("no snapshot: the target is not running");
	return false;
}

static int wait_for_target(struct keeper *k)
{
	const enum log_level level = log__level();
	int err = 0;

	do {
		/* The message that mtbpf waits is printed only once. */
		if (err == -ETIME && level > LOG_QUIET)
			log__set_level(LOG_QUIET);
		err = target__wait(&k->target, &k->options->capture.target, k->signal_fd,
				   k->after.n ? clock__now_ns() + SETTLE_INTERVAL_MS * 1000000ull
					      : UINT64_MAX);
		log__set_level(level);
		if (after__look(&k->after, &k->metrics))
			count_recordings(k);
	} while (err == -ETIME || (err == -EINTR && !told_to_end(k)));
	return err;
}

/*
 * Waits until the new process has run execve and mapped its libraries. If that takes too long,
 * opening the session reports what is wrong.
 */
static int settle(struct keeper *k)
{
	struct pollfd fd = {.fd = k->signal_fd, .events = POLLIN};
	const enum log_level level = log__level();
	int err = 0;

	k->has_settled = false;
	for (int i = 0; !err && i < SETTLE_LOOKS; i++) {
		struct session *s;

		log__set_level(LOG_SILENT);
		s = session__open(&k->options->capture, &k->start);
		session__close(s);
		log__set_level(level);
		k->has_settled = s;
		if (k->has_settled)
			return 0;
		if (poll(&fd, 1, SETTLE_INTERVAL_MS) > 0 && told_to_end(k))
			return -EINTR;
		err = wait_for_target(k);
	}
	return err;
}

/*
 * With -name and the like: waits for the target, and sets k->target. With -pid the target is
 * k->target already, and the second call means that its processes have exited: -EINTR after a line
 * that says so. Returns 0; -EINTR also if mtbpf was told to end; or another -errno after a message
 * and a hint.
 */
static int find_target(struct keeper *k)
{
	bool again = k->has_been_there;

	k->has_been_there = true;
	if (target_options__name(&k->options->capture.target)) {
		int err = wait_for_target(k);

		return err ? err : settle(k);
	}
	if (!again)
		return 0;
	if (k->target.pids.n == 1)
		log__info("process %d has exited: nothing more to record", k->target.pids.v[0]);
	else
		log__info("the processes have exited: nothing more to record");
	return -EINTR;
}

int quota__init(struct quota *quota, size_t per_hour)
{
	*quota = (struct quota){.tokens = per_hour};
	if (!per_hour)
		return 0;
	quota->spent_ns = calloc(per_hour, sizeof(*quota->spent_ns));
	return quota->spent_ns ? 0 : -ENOMEM;
}

void quota__fini(struct quota *quota)
{
	free(quota->spent_ns);
	*quota = (struct quota){0};
}

uint64_t quota__next_ns(const struct quota *quota)
{
	uint64_t oldest = quota->tokens ? quota->spent_ns[quota->oldest] : 0;

	return oldest ? oldest + QUOTA_SPAN_NS : 0;
}

void quota__spend(struct quota *quota, uint64_t now_ns)
{
	if (!quota->tokens)
		return;
	quota->spent_ns[quota->oldest] = now_ns;
	quota->oldest = (quota->oldest + 1) % quota->tokens;
}

/* Reports the triggers that came while -max-per-hour was used up. */
static void say_let_pass(struct keeper *k)
{
	if (k->let_pass)
		log__info("-max-per-hour %d: %llu hits that would have triggered were not "
			  "captured",
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
		count_recordings(k);
	metrics_server__set(k->server, &k->metrics);
}

/* Takes one capture. True if the session is over. */
static bool capture_one(struct keeper *k, struct session *s, enum session_end *end, int *err)
{
	uint64_t now = clock__now_ns(), next = quota__next_ns(&k->quota);
	struct recording rec;

	if (next > now) {
		if (!k->held)
			log__info("-max-per-hour %d: the next capture is possible at %s",
				  k->options->keep.max_per_hour,
				  MOMENT(unix_now_ms() + (next - now) / 1000000));
		k->held = true;
		session__hold_fire(s, next);
	}
	recording__init(&rec);
	*err = session__next(s, &rec, end);
	if (!*err && *end == SESSION_TRIGGERED)
		quota__spend(&k->quota, clock__now_ns());
	if (!*err && *end != SESSION_EXITED && *end != SESSION_INTERRUPTED)
		put_capture(k, &rec, *end);
	recording__fini(&rec);
	/*
	 * The heap keeps up to twice the largest block ever freed, and a capture after a pause of
	 * this process needs much more memory than the others: return the free memory to the
	 * kernel.
	 */
#ifdef __GLIBC__
	malloc_trim(0);
#endif
	return *err || (*end != SESSION_TRIGGERED && *end != SESSION_ASKED);
}

#define EXIT_LOOKS	 100
#define EXIT_INTERVAL_MS 10

/* Captures until the target exits, or until a signal ends mtbpf. */
static int follow_target(struct keeper *k, enum session_end *end)
{
	struct session *s = session__open(&k->options->capture, &k->start);
	int err = 0;
	pid_t pid;

	/*
	 * If this session does not open, but settle() has just opened one, the target has exited.
	 */
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
	/*
	 * perf_event_open(2) fails as soon as the process begins to exit, a moment before the exit
	 * is visible: wait up to a second for that.
	 */
	pid = session__pid(s);
	for (int i = 0; err && i < EXIT_LOOKS && process__alive(pid); i++)
		poll(NULL, 0, EXIT_INTERVAL_MS);
	if (err && !process__alive(pid)) {
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
	const struct target_options *target = &k->options->capture.target;
	const struct keep_options *o = &k->options->keep;
	struct process process;
	int err = 0;

	/* The processes of -pid must exist now. */
	if (!target_options__name(target)) {
		err = target__choose(&k->target, target);
		if (!err && k->target.pids.n <= 1) {
			err = process__open(&process, k->target.pids.v[0]);
			if (!err)
				process__close(&process);
		}
	}
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
	count_recordings(k);
	metrics_server__set(k->server, &k->metrics);
	return k->signal_fd < 0 ? k->signal_fd : 0;
}

static int run(struct keeper *k)
{
	enum session_end end = SESSION_EXITED;
	int err = open_keeper(k);

	while (!err && end == SESSION_EXITED) {
		err = find_target(k);
		if (!err)
			err = follow_target(k, &end);
	}
	if (end == SESSION_HITS_OVER)
		log__info("-max-hits %d reached", k->options->capture.limits.max_hits);
	if (k->held)
		say_let_pass(k);
	after__end(&k->after, &k->metrics);
	if (!err || err == -EINTR) {
		unsigned long long made = k->metrics.captures + k->metrics.requests;

		log__info("%llu recording%s made; %s has %llu now", made, made == 1 ? "" : "s",
			  k->folder.dir, (unsigned long long)k->metrics.recordings);
	}
	return err == -EINTR ? 0 : err;
}

int keeper__run(const struct record_options *options)
{
	const struct capture_options *o = &options->capture;
	const uint64_t ns = options->keep.timeout_ns;
	struct keeper k = {
		.options = options,
		.metrics = {.of_durations = threshold__is_set(&o->duration_thresh),
			    .cpu_measure = capture_options__cpu_measure(o)},
		.target = {.cgroup.fd = -1},
		.start = {.target = &k.target, .observer = &k.observer},
		.observer = {.ctx = &k, .on_counters = on_counters},
		.signal_fd = -1,
	};
	/* SIGTERM ends mtbpf after the timeout. */
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGTERM};
	struct itimerspec when = {.it_value = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)}};
	timer_t timer;
	int err = 0;

	after__init(&k.after, &options->keep);
	interrupts__hold();
	interrupts__hold_requests();
	if (ns &&
	    (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &when, NULL)))
		err = -errno;
	if (!err)
		err = run(&k);
	metrics_server__stop(k.server);
	quota__fini(&k.quota);
	target__close(&k.target);
	if (k.signal_fd >= 0)
		close(k.signal_fd);
	interrupts__release();
	return err;
}

/* Refuses options for a single capture. */
static int check_capture(const struct capture_options *capture, const char *command)
{
	if (capture->output) {
		log__error("%s: -o and -dir cannot both be given", command);
		log__hint("leave out -o: recordings in a folder are named after the process and "
			  "the time");
		return -EINVAL;
	}
	if (capture->multi_snapshot != 1) {
		log__error("%s: -multi-snapshot and -dir cannot both be given", command);
		log__hint("leave out -multi-snapshot: with -dir each trigger makes its own "
			  "recording");
		return -EINVAL;
	}
	if (capture->strict) {
		log__error("%s: -strict and -dir cannot both be given", command);
		log__hint("leave out -strict: -metrics counts losses, and 'mtbpf decode -strict' "
			  "checks one recording");
		return -EINVAL;
	}
	return 0;
}

int keep_options__check(struct record_options *options, const char *command)
{
	struct keep_options *keep = &options->keep;

	if (!keep->dir && keep->keep == KEEP_UNSET && keep->max_per_hour == KEEP_UNSET &&
	    !keep->max_size && !keep->metrics && !keep->on_capture && !keep->on_capture_timeout_ns)
		return 0;
	if (!keep->dir) {
		log__error("%s: -keep, -max-size, -max-per-hour, -metrics, -on-capture and "
			   "-on-capture-timeout need -dir",
			   command);
		log__hint("add -dir DIR, which continues after each capture and keeps recordings "
			  "there");
		return -EINVAL;
	}
	if (check_capture(&options->capture, command))
		return -EINVAL;
	if (!keep->keep) {
		log__error("%s: -keep must be at least 1", command);
		log__hint("without -keep the newest %d recordings are kept", KEEP_DEFAULT);
		return -EINVAL;
	}
	if (keep->max_per_hour > KEEP_MAX_PER_HOUR_MAX) {
		log__error("%s: -max-per-hour must be at most %d", command, KEEP_MAX_PER_HOUR_MAX);

		log__hint("-max-per-hour 0 sets no limit");
		return -EINVAL;
	}
	if (keep->keep == KEEP_UNSET)
		keep->keep = KEEP_DEFAULT;
	if (keep->max_per_hour == KEEP_UNSET)
		keep->max_per_hour = KEEP_MAX_PER_HOUR_DEFAULT;
	if (!keep->max_size)
		keep->max_size = KEEP_MAX_SIZE_DEFAULT;
	if (!keep->on_capture_timeout_ns)
		keep->on_capture_timeout_ns = KEEP_ON_CAPTURE_TIMEOUT_DEFAULT_NS;
	if (keep->no_summary)
		keep->summarise = NULL;
	/* -timeout is for all captures together. */
	keep->timeout_ns = options->capture.timeout_ns;
	options->capture.timeout_ns = 0;
	return 0;
}
