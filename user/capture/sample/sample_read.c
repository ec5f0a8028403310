// SPDX-License-Identifier: MIT
/* From the frozen rings and the sideband to a recording. */
#include <string.h>

#include "capture/sample/sample_record.h"
#include "capture/sample/sample_source.h"
#include "util/clock.h"
#include "util/log.h"

#define RECORD_MAX 65536

static int read_ring(const struct source *s, const struct sample_ring *ring,
		     struct sample_record_ids *ids, struct recording *rec)
{
	uint8_t record[RECORD_MAX] __attribute__((aligned(8)));
	struct back_cursor cursor = back_ring__begin(&ring->ring);
	int n, err = 0;

	ids->switches = ring->ids[SAMPLE_EVENT_SWITCHES];
	ids->calls = s->ring_config.calls ? ring->ids[SAMPLE_EVENT_CLOCK] : 0;
	ids->minor_faults = ring->ids[SAMPLE_EVENT_MINOR_FAULTS];
	ids->major_faults = ring->ids[SAMPLE_EVENT_MAJOR_FAULTS];
	while (!err && (n = back_ring__next(&ring->ring, &cursor, record, sizeof(record))) != 0)
		if (n > 0)
			err = sample_record__add(ids, rec, record, (size_t)n);
	return err;
}

/* What came between the trigger and the end of the last event is not part of the snapshot. */
static uint64_t triggered_ns(const struct source *s, const struct recording *rec)
{
	return rec->hits.n > s->config.first_hit ? rec->hits.v[rec->hits.n - 1].time_ns : 0;
}

int sample_source__read(struct source *s, struct recording *rec)
{
	struct sample_record_ids ids = {.until_ns = triggered_ns(s, rec)};
	int err = followed__add_to(&s->followed, rec);

	rec->sample_period_ns = s->ring_config.period_ns;
	rec->frozen_ns = ids.until_ns ? ids.until_ns : clock__now_ns();
	rec->sampled_ns = rec->frozen_ns > s->start_ns ? rec->frozen_ns - s->start_ns : 0;
	if (!err)
		err = followed__add_uprobes_pages(&s->followed, &s->config, s->start_ns, rec);
	for (size_t i = 0; i < s->rings.n && !err; i++)
		err = read_ring(s, &s->rings.v[i], &ids, rec);
	log__debug("sample: %zu samples, %zu switches; %zu samples after the hit left out",
		   rec->samples.n, rec->scheds.n, ids.late);
	followed__count_left_out(&s->followed, &s->config, rec);
	if (err)
		log__error("cannot read what was recorded: %s", strerror(-err));
	return err;
}
