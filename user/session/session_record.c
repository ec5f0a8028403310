// SPDX-License-Identifier: MIT
/* From a session that is ready to the next snapshot in the recording. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/code/live_code.h"
#include "capture/code/vdso_image.h"
#include "session/sampling.h"
#include "session/session_internal.h"
#include "session/taken_time.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/units.h"

static void say_waiting(const struct session *s)
{
	const struct capture_options *o = s->options;
	const char *now = s->start->observer ? "SIGUSR1 takes a snapshot now"
					     : "Ctrl-C takes the snapshot now";
	char text[THRESHOLD_TEXT_SIZE + UNITS_TEXT_SIZE], memory[SOURCE_TEXT_SIZE];

	if (s->ops->memory)
		log__info("%s: %s; %s", s->ops->name, s->ops->about,
			  s->ops->memory(s->source, memory));
	else
		log__info("%s: %s", s->ops->name, s->ops->about);
	session__say_cost(s);
	if (start_stop__any(&s->regions))
		log__info("a thread is recorded from %s to %s", s->regions.starts.name,
			  s->regions.stops.name);
	progress__format_threshold(&s->progress, text);
	if (threshold__is_set(&o->delay_thresh))
		log__info("waiting for two hits of %s at least %s apart; %s", s->probes.name, text,
			  now);
	else if (session__measures_duration(s) && s->regions.stop_triggers)
		log__info("waiting for %s at least %s after %s; %s", s->probes.name, text,
			  s->regions.starts.name, now);
	else if (session__measures_duration(s) && probes__are_library(&s->probes))
		log__info("waiting for a hit of %s at least %s after mtbpf_mark_start(); %s",
			  s->probes.name, text, now);
	else if (session__measures_duration(s))
		log__info("waiting for a call of %s of at least %s; %s", s->probes.name, text, now);
	else if (s->probes.all.n)
		log__info("waiting for a call of %s; %s", s->probes.name, now);
	else if (s->start->spool_dir)
		log__info("recording all of it, to disk; Ctrl-C ends the recording");
	else
		log__info("recording; %s", s->start->observer ? "SIGUSR1 takes a snapshot"
							      : "Ctrl-C takes the snapshot");
	progress__say_needed(&s->progress);
}

static uint32_t reason_of(const struct session *s)
{
	if (threshold__is_set(&s->options->delay_thresh))
		return MT_HIT_DELAY;
	if (s->regions.stop_triggers)
		return MT_HIT_REGION;
	if (!session__measures_duration(s))
		return MT_HIT_EVERY;
	return probes__are_library(&s->probes) ? MT_HIT_MARK : MT_HIT_DURATION;
}

/* What samples says when. */
static int note_stops(const struct session *s)
{
	for (size_t i = 0; i < s->regions.stop_places.n && !s->ops->samples; i++) {
		struct rec_place *place = VEC_PUSH(&s->rec->stops);

		if (!place)
			return -ENOMEM;
		*place = s->regions.stop_places.v[i];
	}
	return 0;
}

static int describe(struct session *s)
{
	const struct process *process = s->has_process ? &s->process : NULL;
	struct recording *rec = s->rec;
	const char *command = process ? process->comm : s->start->exec_path;

	rec->pid = process ? process->pid : s->start->pid;
	rec->source = strdup(s->ops->name);
	rec->trigger = strdup(s->probes.name);
	rec->command = strdup(command);
	rec->probe_ip = s->probes.all.n ? s->probes.all.v[0].ip : 0;
	rec->portable = s->options->portable;
	rec->reason = reason_of(s);
	return rec->source && rec->trigger && rec->command ? note_stops(s) : -ENOMEM;
}

static int let_go(struct session *s)
{
	if (!s->start->exec_path || s->snapshots)
		return 0;
	return write(s->start->go_fd, "g", 1) == 1 ? 0 : -errno;
}

/* What the trigger has missed since the recording began. */
static void count_drops(struct session *s)
{
	const struct mt_stats *begin = &s->at_begin;
	struct mt_stats now;

	if (!s->gate.trigger || trigger__stats(s->gate.trigger, &now))
		return;
	s->rec->drops[DROP_TRIGGERS] = now.dropped - begin->dropped;
	s->rec->drops[DROP_UNMEASURED] = now.unmeasured - begin->unmeasured;
	s->rec->drops[DROP_MISSED] = now.missed - begin->missed;
}

static int read_snapshot(struct session *s)
{
	size_t first_sample = s->rec->samples.n;
	int err;

	s->rec->threshold_ns =
		s->progress.threshold_ns == UINT64_MAX ? 0 : s->progress.threshold_ns;
	/* Of CLOCK_MONOTONIC: a source with another clock takes the difference. */
	s->rec->unix_zero_ns = clock__unix_ns() - clock__now_ns();
	count_drops(s);
	free(s->rec->freeze);
	s->rec->freeze = strdup(s->ops->freeze_name(s->source));
	if (s->recorder)
		recorder__stop(s->recorder);
	err = s->rec->freeze ? s->ops->read(s->source, s->rec) : -ENOMEM;
	if (!err && s->unwind.calls)
		err = sampling__settle_calls(s->rec);
	if (!err)
		err = gate__take_entries(&s->gate, s->rec);
	if (!err)
		err = gate__take_regions(&s->gate, s->rec);
	if (!err)
		err = sampling__take_records(s->recorder, s->rec, first_sample);
	if (!err)
		err = taken_time__note(s->pressure, s->rec);
	if (!s->ops->resume)
		session__close_source(s);
	recording__settle_build_ids(s->rec);
	return err;
}

static int take_code(struct session *s)
{
	const struct pid_set *pids = s->ops->pids ? s->ops->pids(s->source) : NULL;

	return live_code__take(s->rec, pids ? pids : &s->pids, s->cgroup);
}

/*
 * It takes the kernel some tenths of a second to remove a probe, so it stays where another snapshot
 * follows. Where none does, nothing of ours stays in the target while the recording is looked at;
 * and where the source has the probes' events, they go with it.
 */
static void leave_gate(struct session *s, enum session_end end)
{
	bool goes_on = s->start->observer ? end == SESSION_TRIGGERED || end == SESSION_ASKED
					  : session__wants_more(s, end);

	if (s->gate.trigger)
		gate__freeze(&s->gate);
	if (!goes_on || s->ops->probe_event || session__probes_are_copied(s))
		gate__detach(&s->gate);
}

/* To load the programs and open the rings takes long on a busy machine: it is not part of it. */
static void begin_timeout(struct session *s)
{
	if (s->options->timeout_ns && s->deadline_ns == UINT64_MAX)
		s->deadline_ns = clock__now_ns() + s->options->timeout_ns;
}

/* From the armed trigger to the frozen trace of one hit. */
static int record_one(struct session *s, enum session_end *end)
{
	int err = session__open_source(s);

	if (!err && s->gate.trigger)
		gate__begin(&s->gate);
	if (!err)
		err = session__arm(s);
	if (!err)
		err = let_go(s);
	if (err)
		return err;
	begin_timeout(s);
	if (!s->snapshots)
		say_waiting(s);
	err = session__wait(s, end);
	if (!err)
		err = s->ops->freeze(s->source);
	if (s->forward)
		kill(s->start->pid, s->forward);
	s->snapshots++;
	leave_gate(s, *end);
	if (!err)
		err = take_code(s);
	return err ? err : read_snapshot(s);
}

/* What a recording has before its first snapshot. */
static int begin_recording(struct session *s)
{
	const struct process *process = s->has_process ? &s->process : NULL;
	int err = describe(s);

	if (!err && s->gate.trigger)
		err = trigger__stats(s->gate.trigger, &s->at_begin);
	if (!err)
		err = vdso_image__add(s->rec, process);
	if (!err && process)
		err = live_code__take(s->rec, &s->pids, s->cgroup);
	return err;
}

int session__next(struct session *s, struct recording *rec, enum session_end *end)
{
	int err = 0;

	s->rec = rec;
	if (s->gate.attached && session__probes_are_copied(s))
		gate__detach(&s->gate);
	if (!rec->source)
		err = begin_recording(s);
	if (!err)
		err = record_one(s, end);
	return err;
}
