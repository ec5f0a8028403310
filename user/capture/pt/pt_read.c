// SPDX-License-Identifier: MIT
/* From the frozen rings and the sideband to a recording. */
#include "capture/pt/pt_source.h"

#include <errno.h>
#include <string.h>

#include "capture/code/kernel_copy.h"
#include "util/log.h"
#include "util/units.h"

/* Less than a turn of the scheduler's: a thread may have spent it all in the kernel. */
#define SOON_NS 20000000

/* It should have run all the time that its threads did: else somebody else has the PMU. */
static void warn_not_running(const struct pt_ring *r, size_t size)
{
	const char *what = pt_ring__is_of_thread(r) ? "thread" : "CPU";
	int number = pt_ring__is_of_thread(r) ? r->place.pid : r->place.cpu;
	char on[UNITS_TEXT_SIZE], asked[UNITS_TEXT_SIZE];
	uint64_t enabled, running;

	if (pt_ring__times(r, &enabled, &running))
		return;
	log__debug("pt: %s %d: %zu bytes; enabled %llu ns, running %llu ns", what, number, size,
		   (unsigned long long)enabled, (unsigned long long)running);
	if (enabled - running <= enabled / 20)
		return;
	log__warn("%s %d was recorded for only %s of %s: somebody else uses Intel PT as well", what,
		  number, units__format_duration(on, running),
		  units__format_duration(asked, enabled));
}

/*
 * The thread whose hit froze it ran since it was armed: something of that must be there, unless it
 * was in the probe's handler already, in the kernel, and ran no instruction of its own behind that.
 */
static void warn_empty(const struct recording *rec, size_t first_hit, const struct rec_aux *aux,
		       const struct pt_ring *r)
{
	char ran[UNITS_TEXT_SIZE];
	uint64_t enabled, running;

	if (aux->size || pt_ring__times(r, &enabled, &running))
		return;
	for (size_t i = first_hit; i < rec->hits.n; i++) {
		const struct mt_hit *hit = &rec->hits.v[i];

		if (aux->tid ? (pid_t)hit->tid != aux->tid : (int)hit->cpu != aux->cpu)
			continue;
		log__warn("nothing was recorded of thread %u, which triggered: Intel PT had run "
			  "for %s there",
			  hit->tid, units__format_duration(ran, running));
		if (running < SOON_NS)
			log__hint("it hit as soon as recording began; capture again");
	}
}

static struct rec_aux aux_of(const struct source *s, const struct pt_ring *ring, uint64_t tsc)
{
	if (!pt_ring__is_of_thread(ring))
		return (struct rec_aux){.cpu = ring->place.cpu, .tsc = tsc};
	return (struct rec_aux){.pid = ring->pid, .tid = ring->place.pid, .tsc = tsc};
}

int pt_source__keep_spool(struct source *s, struct pt_ring *ring)
{
	struct ended_spool *ended = VEC_PUSH(&s->spools);

	if (!ended)
		return -ENOMEM;
	pt_ring__drain(ring, false);
	*ended = (struct ended_spool){ring->pid, ring->place.pid, ring->spool};
	ring->spool = (struct spool)SPOOL_NONE;
	return 0;
}

/* All is on the disk by now. */
static int read_spools(struct source *s, struct recording *rec, uint64_t tsc)
{
	int err = 0;

	for (size_t i = 0; i < s->spools.n && !err; i++) {
		struct ended_spool *ended = &s->spools.v[i];
		struct rec_aux aux = {.pid = ended->pid, .tid = ended->tid, .tsc = tsc};

		err = spool__finish(&ended->spool, &aux, rec);
	}
	for (size_t i = 0; i < s->rings.n && !err; i++) {
		struct rec_aux aux = aux_of(s, &s->rings.v[i], tsc);

		err = spool__finish(&s->rings.v[i].spool, &aux, rec);
		warn_not_running(&s->rings.v[i], aux.size);
	}
	return err;
}

static int read_aux(struct source *s, struct recording *rec, uint64_t tsc)
{
	int err = 0;

	for (size_t i = 0; i < s->rings.n && !err; i++) {
		struct pt_ring *ring = &s->rings.v[i];
		struct rec_aux aux = aux_of(s, ring, tsc);

		err = perf_ring__read_aux(&ring->ring, &aux.data, &aux.size, &aux.wrapped);
		if (err)
			break;
		warn_not_running(ring, aux.size);
		warn_empty(rec, s->config.first_hit, &aux, ring);
		err = recording__add_aux(rec, &aux);
	}
	return err;
}

/* Behind an earlier snapshot: who ran at its end need not at the beginning of this one. */
static int forget_who_ran(const struct source *s, struct recording *rec)
{
	int err = 0;

	for (size_t i = 0; i < s->rings.n && !err; i++) {
		struct rec_switch nobody = {.time_ns = s->first.perf_ns,
					    .cpu = s->rings.v[i].place.cpu};

		err = recording__add_switch(rec, &nobody);
	}
	return err;
}

static int read_sideband(struct source *s, struct recording *rec)
{
	int err = followed__add_to(&s->followed, rec);

	if (!err && rec->switches.n)
		err = forget_who_ran(s, rec);
	return err ? err : switch_log__add_to(&s->followed.sideband.log, rec);
}

/* BPF's times are CLOCK_MONOTONIC; the trace has perf's clock. */
static void convert_hits(struct recording *rec, size_t first, const struct clock_point *now)
{
	for (size_t i = first; i < rec->hits.n; i++)
		rec->hits.v[i].time_ns += now->perf_ns - now->monotonic_ns;
	rec->frozen_ns = now->perf_ns;
	rec->unix_zero_ns += now->monotonic_ns - now->perf_ns;
}

int pt_source__read(struct source *s, struct recording *rec)
{
	struct clock_point last;
	int err = perf_clock__now(&last);

	pt_pmu__describe(&s->pmu, s->ring_config.pt_config, &rec->pt);
	rec->kernel_only = s->config.kernel_only;
	if (!err) {
		perf_clock__describe(&rec->pt, s->rings.v[0].ring.page, &s->first, &last);
		convert_hits(rec, s->config.first_hit, &last);
		err = read_sideband(s, rec);
	}
	if (!err)
		err = followed__add_uprobes_pages(&s->followed, &s->config, s->first.perf_ns, rec);
	if (!err)
		err = s->config.spool_dir ? read_spools(s, rec, last.tsc)
					  : read_aux(s, rec, last.tsc);
	followed__count_left_out(&s->followed, &s->config, rec);
	/* Our BPF program is still loaded: its code is in the trace too. */
	if (!err && s->config.kernel && !rec->kernel.kallsyms)
		return kernel_copy__make("/proc", true, &rec->kernel);
	if (err)
		log__error("cannot read what was recorded: %s", strerror(-err));
	return err;
}
