// SPDX-License-Identifier: MIT
#include "keep/keeper_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "session/labels.h"
#include "session/session.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/printed.h"
#include "util/units.h"

static const struct mt_hit *hit_of(const struct recording *rec)
{
	return rec->hits.n ? &rec->hits.v[rec->hits.n - 1] : NULL;
}

/* The time of the hit; without a hit, now. */
static uint64_t time_of(const struct recording *rec)
{
	const struct mt_hit *hit = hit_of(rec);
	uint64_t now = clock__now_ns();
	uint64_t ago_ns = hit && hit->time_ns < now ? now - hit->time_ns : 0;

	return unix_now_ms() - ago_ns / 1000000;
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

/* ", 60.1 ms of it on the CPU" if the threshold is for that part of the time. */
static void format_part(char *buf, size_t size, const struct recording *rec,
			const struct mt_hit *hit)
{
	bool is_on = rec->cpu_measure == MT_CPU_ON;
	char part[UNITS_TEXT_SIZE];

	*buf = '\0';
	if (rec->cpu_measure && hit->off_cpu_ns <= hit->value_ns)
		snprintf(buf, size, ", %s of it %s the CPU",
			 units__format_duration(part, is_on ? hit->value_ns - hit->off_cpu_ns
							    : hit->off_cpu_ns),
			 is_on ? "on" : "off");
}

/* "pid 4711 tid 4713 delay 61.2 ms (threshold 50.0 ms)" */
static void format_hit(char *buf, size_t size, const struct recording *rec)
{
	const struct mt_hit *hit = hit_of(rec);
	char value[UNITS_TEXT_SIZE], threshold[UNITS_TEXT_SIZE], part[64];

	if (!hit) {
		snprintf(buf, size, "pid %d on request", rec->pid);
		return;
	}
	if (hit->reason == MT_HIT_EVERY || hit->reason == MT_HIT_LAST) {
		snprintf(buf, size, "pid %u tid %u %s", hit->tgid, hit->tid, rec->trigger);
		return;
	}
	format_part(part, sizeof(part), rec, hit);
	snprintf(buf, size, "pid %u tid %u %s %s%s (threshold %s)", hit->tgid, hit->tid,
		 reason_of(hit), units__format_duration(value, hit->value_ns), part,
		 units__format_duration(threshold, hit->reason == MT_HIT_STALL
							   ? rec->stall_thresh_ns
							   : rec->threshold_ns));
}

/* ", str(arg1) \"GET /\"": what -print has read, up to the buffer's end. */
static void format_prints(char *buf, size_t size, const struct recording *rec)
{
	const struct mt_hit *hit = hit_of(rec);
	char text[PRINTED_SIZE];
	size_t n = 0;

	*buf = '\0';
	for (uint32_t i = 0; hit && i < hit->n_prints && i < rec->prints.n && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, ", %s %s", rec->prints.v[i],
				      printed__format(text, &hit->prints[i]));
}

static void say_put(const struct recording *rec, uint64_t unix_ms, uint64_t bytes, const char *path)
{
	char stamp[UNITS_MOMENT_SIZE], hit[128], size[UNITS_TEXT_SIZE];
	char prints[MT_PRINTS * (PRINTED_SIZE + 160)];

	format_hit(hit, sizeof(hit), rec);
	format_prints(prints, sizeof(prints), rec);
	log__info("%s %s%s %s %s", units__format_moment(stamp, unix_ms), hit, prints,
		  units__format_size(size, bytes), path);
}

static void count_lost(struct keeper *k, const struct recording *rec)
{
	for (size_t i = 0; i < rec->losses.n; i++) {
		const struct rec_loss *loss = &rec->losses.v[i];

		k->metrics.lost[LOST_TRACE] += loss->aux_flags != 0;
		k->metrics.lost[LOST_RECORDS] += loss->records;
	}
}

static void refuse(struct keeper *k, int err)
{
	const struct keep_options *o = &k->options->keep;
	char size[UNITS_TEXT_SIZE];

	k->metrics.skipped[err == -EFBIG ? SKIPPED_SIZE : SKIPPED_DISK]++;
	log__error("cannot keep a recording in %s: %s", o->dir,
		   err == -EFBIG ? "it exceeds -max-size" : strerror(-err));
	if (err == -EFBIG)
		log__hint("-max-size is %s; use a smaller -snapshot-size",
			  units__format_size(size, o->max_size));
	else if (err == -ENOSPC || err == -EDQUOT)
		log__hint("the disk is full: use a smaller -max-size or -keep; the partial "
			  "recording is removed, and the next trigger tries again");
	else
		log__hint("the partial recording is removed, and the next trigger tries again");
}

static int put(struct keeper *k, struct recording *rec, uint64_t unix_ms)
{
	struct folder_slot slot;
	uint64_t bytes;
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
	say_put(rec, unix_ms, bytes, slot.path);
	after__add(&k->after, slot.path, &k->metrics);
	return 0;
}

static void count_capture(struct keeper *k, const struct recording *rec, uint64_t unix_ms)
{
	struct metrics_exemplar *exemplar = &k->metrics.capture;
	const struct mt_hit *hit = hit_of(rec);

	k->metrics.captures++;
	if (!hit || !(hit->trace_id[0] | hit->trace_id[1]))
		return;
	snprintf(exemplar->trace_id, sizeof(exemplar->trace_id), "%016" PRIx64 "%016" PRIx64,
		 hit->trace_id[0], hit->trace_id[1]);
	exemplar->unix_ms = unix_ms;
}

void keeper__put(struct keeper *k, struct recording *rec, enum session_end end)
{
	char text[EMPTY_SNAPSHOT_TEXT_SIZE];
	uint64_t unix_ms = time_of(rec);
	int err;

	if (!recording__traced_bytes(rec)) {
		log__info("%s", empty_snapshot__format(text, rec, rec->pid));
		return;
	}
	err = put(k, rec, unix_ms);
	if (err)
		refuse(k, err);
	else if (end == SESSION_ASKED)
		k->metrics.requests++;
	else
		count_capture(k, rec, unix_ms);
	count_lost(k, rec);
	keeper__count_recordings(k);
	metrics_server__set(k->server, &k->metrics);
}

void keeper__count_recordings(struct keeper *k)
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
