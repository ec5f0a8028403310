// SPDX-License-Identifier: MIT
/* From the frozen rings and the sideband to a recording. */
#include <string.h>

#include "capture/sample/sample_record.h"
#include "capture/sample/sample_source.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/units.h"

#define RECORD_MAX 65536

static int read_ring(const struct sample_ring *ring, struct sample_record_ids *ids,
		     struct recording *rec)
{
	uint8_t record[RECORD_MAX] __attribute__((aligned(8)));
	struct back_cursor cursor = back_ring__begin(&ring->ring);
	int n, err = 0;

	ids->switches = ring->switches_id;
	while (!err && (n = back_ring__next(&ring->ring, &cursor, record, sizeof(record))) != 0)
		if (n > 0)
			err = sample_record__add(ids, rec, record, (size_t)n);
	return err;
}

static int read_sideband(struct source *s, struct recording *rec)
{
	int err = 0;

	for (size_t i = 0; i < s->pending.threads.n && !err; i++)
		err = recording__add_thread(rec, &s->pending.threads.v[i]);
	for (size_t i = 0; i < s->pending.maps.n && !err; i++)
		err = recording__add_map(rec, &s->pending.maps.v[i]);
	for (size_t i = 0; i < s->pending.losses.n && !err; i++)
		err = recording__add_loss(rec, &s->pending.losses.v[i]);
	return err;
}

/* The kernel's own code in the target: a return probe's trampoline stands in call chains. */
static int add_uprobes_page(const struct source *s, struct recording *rec)
{
	uint8_t own[UPROBES_PAGE_SIZE];
	size_t n = s->config.return_probe ? uprobes_page__read(own, sizeof(own)) : 0;

	if (!s->config.probe)
		return 0;
	return uprobes_page__add(rec, s->config.pid, s->start_ns, own, n, s->config.probed);
}

static void warn_left_out(const struct source *s)
{
	char most[UNITS_TEXT_SIZE];

	if (s->left_out)
		log__warn(
			"%zu thread%s that started later %s not recorded: -max-memory %s was full",
			s->left_out, s->left_out == 1 ? "" : "s", s->left_out == 1 ? "is" : "are",
			units__format_size(most, s->config.max_memory));
}

/* What came between the trigger and the end of the last event is not part of the snapshot. */
static uint64_t triggered_ns(const struct source *s, const struct recording *rec)
{
	return rec->hits.n > s->config.first_hit ? rec->hits.v[rec->hits.n - 1].time_ns : 0;
}

int sample_source__read(struct source *s, struct recording *rec)
{
	struct sample_record_ids ids = {.until_ns = triggered_ns(s, rec)};
	int err = read_sideband(s, rec);

	rec->sample_period_ns = s->ring_config.period_ns;
	rec->frozen_ns = ids.until_ns ? ids.until_ns : clock__now_ns();
	if (!err)
		err = add_uprobes_page(s, rec);
	for (size_t i = 0; i < s->rings.n && !err; i++)
		err = read_ring(&s->rings.v[i], &ids, rec);
	log__debug("sample: %zu samples, %zu switches; %zu samples after the hit left out",
		   rec->samples.n, rec->scheds.n, ids.late);
	warn_left_out(s);
	if (err)
		log__error("cannot read what was recorded: %s", strerror(-err));
	return err;
}
