// SPDX-License-Identifier: MIT
/* From the frozen rings and the sideband to a recording. */
#include "capture/pt/pt_source.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/kernel_copy.h"
#include "target/process.h"
#include "util/log.h"
#include "util/units.h"

static int add_initial_threads(struct source *s)
{
	int err = 0;

	for (size_t i = 0; i < s->threads.n && !err; i++) {
		struct rec_thread thread = {.pid = s->config.pid,
					    .tid = s->threads.v[i].tid,
					    .start_ns = s->first.perf_ns};

		process__thread_name(thread.pid, thread.tid, thread.comm);
		err = recording__add_thread(&s->pending, &thread);
	}
	return err;
}

/* The mappings of now, after the sideband has begun to tell of later ones. */
static int add_initial_maps(struct source *s)
{
	struct mappings maps;
	int err = mappings__read(&maps, s->config.pid);

	if (err)
		return err;
	for (size_t i = 0; i < maps.n && !err; i++) {
		const struct mapping *m = &maps.v[i];
		struct rec_map map = {.time_ns = s->first.perf_ns,
				      .start = m->start,
				      .len = m->end - m->start,
				      .pgoff = m->pgoff,
				      .ino = m->ino,
				      .maj = m->maj,
				      .min = m->min,
				      .pid = s->config.pid,
				      .tid = s->config.pid,
				      .path = m->path};

		if (m->prot & PROT_EXEC)
			err = recording__add_map(&s->pending, &map);
	}
	mappings__fini(&maps);
	return err;
}

int pt_source__note_initial(struct source *s)
{
	int err = add_initial_threads(s);

	/* Before its execve they are ours, and nothing of that is recorded. */
	return err || s->config.from_exec ? err : add_initial_maps(s);
}

/* It should have run all the time that its thread did: else somebody else has the PMU. */
static void warn_not_running(const struct pt_thread *t, size_t size)
{
	char on[UNITS_TEXT_SIZE], asked[UNITS_TEXT_SIZE];
	uint64_t enabled, running;

	if (pt_thread__times(t, &enabled, &running))
		return;
	log__debug("pt: thread %d: %zu bytes; enabled %llu ns, running %llu ns", t->tid, size,
		   (unsigned long long)enabled, (unsigned long long)running);
	if (enabled - running <= enabled / 20)
		return;
	log__warn("thread %d was recorded for only %s of %s: somebody else uses Intel PT as well",
		  t->tid, units__format_duration(on, running),
		  units__format_duration(asked, enabled));
}

/* The thread whose hit froze it ran since it was armed: something of that must be there. */
static void warn_empty(const struct recording *rec, size_t first_hit, const struct rec_aux *aux)
{
	for (size_t i = first_hit; i < rec->hits.n; i++)
		if (!aux->size && (pid_t)rec->hits.v[i].tid == aux->tid)
			log__warn("nothing was recorded of thread %d, which triggered", aux->tid);
}

static int read_aux(struct source *s, struct recording *rec, uint64_t tsc)
{
	int err = 0;

	for (size_t i = 0; i < s->threads.n && !err; i++) {
		struct rec_aux aux = {.pid = s->config.pid, .tid = s->threads.v[i].tid, .tsc = tsc};

		err = perf_ring__read_aux(&s->threads.v[i].ring, &aux.data, &aux.size,
					  &aux.wrapped);
		if (err)
			break;
		warn_not_running(&s->threads.v[i], aux.size);
		warn_empty(rec, s->config.first_hit, &aux);
		err = recording__add_aux(rec, &aux);
	}
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

/* The kernel's own code in the target, which runs at return probes and single-stepped ones. */
static int add_uprobes_page(struct source *s, struct recording *rec)
{
	uint8_t own[UPROBES_PAGE_SIZE];
	size_t n = s->config.return_probe ? uprobes_page__read(own, sizeof(own)) : 0;

	if (!s->config.probe)
		return 0;
	return uprobes_page__add(rec, s->config.pid, s->first.perf_ns, own, n, s->config.probed);
}

/* BPF's times are CLOCK_MONOTONIC; the trace has perf's clock. */
static void convert_hits(struct recording *rec, size_t first, const struct clock_point *now)
{
	for (size_t i = first; i < rec->hits.n; i++)
		rec->hits.v[i].time_ns += now->perf_ns - now->monotonic_ns;
	rec->frozen_ns = now->perf_ns;
}

int pt_source__read(struct source *s, struct recording *rec)
{
	struct clock_point last;
	int err = perf_clock__now(&last);

	pt_pmu__describe(&s->pmu, s->thread_config.pt_config, &rec->pt);
	if (!err) {
		perf_clock__describe(&rec->pt, s->threads.v[0].ring.page, &s->first, &last);
		convert_hits(rec, s->config.first_hit, &last);
		err = read_sideband(s, rec);
	}
	if (!err)
		err = add_uprobes_page(s, rec);
	if (!err)
		err = read_aux(s, rec, last.tsc);
	/* Our BPF program is still loaded: its code is in the trace too. */
	if (!err && s->config.kernel && !rec->kernel.kallsyms)
		return kernel_copy__make("/proc", &rec->kernel);
	if (err)
		log__error("cannot read what was recorded: %s", strerror(-err));
	return err;
}
