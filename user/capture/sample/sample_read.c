// SPDX-License-Identifier: MIT
/* From the frozen rings and the sideband to a recording. */
#include <string.h>

#include "capture/code/kernel_copy.h"
#include "capture/sample/sample_record.h"
#include "capture/sample/sample_source.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/units.h"

#define RECORD_MAX 65536

/* Of the ring that looks back the least, or, where none is full, of the fullest. */
struct lookback {
	uint64_t written, span_ns; /* 0: nothing was */
	size_t size;
};

static void lookback__note(struct lookback *least, const struct lookback *ring)
{
	bool is_full = ring->written >= ring->size, was_full = least->written >= ring->size;

	if (is_full && was_full ? ring->span_ns < least->span_ns : ring->written > least->written)
		*least = *ring;
}

/* The oldest was read last. */
static uint64_t oldest_ns(const struct recording *rec, size_t samples, size_t scheds)
{
	uint64_t ns = rec->frozen_ns;

	if (rec->samples.n > samples && rec->samples.v[rec->samples.n - 1].time_ns < ns)
		ns = rec->samples.v[rec->samples.n - 1].time_ns;
	if (rec->scheds.n > scheds && rec->scheds.v[rec->scheds.n - 1].time_ns < ns)
		ns = rec->scheds.v[rec->scheds.n - 1].time_ns;
	return ns;
}

static void say_lookback(const struct lookback *least)
{
	uint64_t full_ns;
	char text[UNITS_TEXT_SIZE];

	if (!least->span_ns)
		return;
	if (least->written >= least->size) {
		log__info("sample: a full ring looks back %s: -snapshot-size says how large it is",
			  units__format_duration(text, least->span_ns));
		return;
	}
	full_ns = (uint64_t)((double)least->span_ns / (double)least->written * (double)least->size);
	log__info("sample: the fullest ring is %.1f %% full; it would look back some %s",
		  100 * (double)least->written / (double)least->size,
		  units__format_duration(text, full_ns));
}

static int read_ring(const struct source *s, const struct sample_ring *ring,
		     struct sample_record_ids *ids, struct recording *rec, struct lookback *least)
{
	uint8_t record[RECORD_MAX] __attribute__((aligned(8)));
	struct back_cursor cursor = back_ring__begin(&ring->ring);
	struct lookback lookback = {.written = back_ring__written(&ring->ring),
				    .size = ring->ring.size};
	size_t samples = rec->samples.n, scheds = rec->scheds.n;
	int n, err = 0;

	if (lookback.written >= lookback.size && ring->ring.size > rec->ring_bytes)
		rec->ring_bytes = ring->ring.size;
	ids->switches = ring->ids[SAMPLE_EVENT_SWITCHES];
	ids->calls = s->ring_config.calls ? ring->ids[SAMPLE_EVENT_CLOCK] : 0;
	ids->minor_faults = ring->ids[SAMPLE_EVENT_MINOR_FAULTS];
	ids->major_faults = ring->ids[SAMPLE_EVENT_MAJOR_FAULTS];
	while (!err && (n = back_ring__next(&ring->ring, &cursor, record, sizeof(record))) != 0)
		if (n > 0)
			err = sample_record__add(ids, rec, record, (size_t)n);
	lookback.span_ns = rec->frozen_ns - oldest_ns(rec, samples, scheds);
	if (sample_source__is_by_cpu(s) && lookback.written >= lookback.size &&
	    rec->frozen_ns - lookback.span_ns > rec->complete_ns)
		rec->complete_ns = rec->frozen_ns - lookback.span_ns;
	lookback__note(least, &lookback);
	return err;
}

/* What came between the trigger and the end of the last event is not part of the snapshot. */
static uint64_t triggered_ns(const struct source *s, const struct recording *rec)
{
	return rec->hits.n > s->config.first_hit ? rec->hits.v[rec->hits.n - 1].time_ns : 0;
}

/* Of a cgroup, processes may have come from elsewhere: nothing has told of those. */
static int note_joined(struct source *s, const struct recording *rec, size_t first)
{
	pid_t last = 0;
	int err = 0;

	for (size_t i = first; i < rec->samples.n && !err && s->config.cgroup; i++) {
		pid_t pid = rec->samples.v[i].pid;

		if (pid != last && !followed__knows(&s->followed, pid))
			err = followed__note_process(&s->followed, pid, s->start_ns);
		last = pid;
	}
	return err;
}

int sample_source__read(struct source *s, struct recording *rec)
{
	struct sample_record_ids ids = {.until_ns = triggered_ns(s, rec)};
	size_t first = rec->samples.n;
	struct lookback least = {0};
	int err = 0;

	rec->sample_period_ns = s->longest_ns;
	rec->complete_ns = s->start_ns;
	rec->frozen_ns = ids.until_ns ? ids.until_ns : clock__now_ns();
	rec->sampled_ns = rec->frozen_ns > s->start_ns ? rec->frozen_ns - s->start_ns : 0;
	for (size_t i = 0; i < s->rings.n && !err; i++)
		err = read_ring(s, &s->rings.v[i], &ids, rec, &least);
	if (!err)
		err = note_joined(s, rec, first);
	if (!err)
		err = followed__add_to(&s->followed, rec);
	if (!err)
		err = followed__add_uprobes_pages(&s->followed, &s->config, s->start_ns, rec);
	log__debug("sample: %zu samples, %zu switches; %zu samples after the hit left out",
		   rec->samples.n, rec->scheds.n, ids.late);
	if (!s->config.is_silent)
		say_lookback(&least);
	followed__count_left_out(&s->followed, &s->config, rec);
	if (!err && s->config.kernel && !rec->kernel.kallsyms)
		return kernel_copy__make("/proc", false, &rec->kernel);
	if (err)
		log__error("cannot read what was recorded: %s", strerror(-err));
	return err;
}
