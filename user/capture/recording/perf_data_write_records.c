// SPDX-License-Identifier: MIT
/* The records of a perf.data file, from a recording. */
#include "capture/recording/perf_data_writer.h"

#include <string.h>
#include <sys/mman.h>

#include "kernel/kallsyms.h"

/* Where records say of which CPU they are. */
#define NO_CPU (-1)

size_t perf_writer__sample_id_size(const struct perf_writer *w)
{
	return w->by_cpu || w->sampled ? 32 : 24;
}

void perf_writer__put_sample_id(struct perf_writer *w, const struct sample_id_fields *id)
{
	put_u32(w, (uint32_t)id->pid);
	put_u32(w, (uint32_t)id->tid);
	put_u64(w, id->time_ns);
	if (w->by_cpu || w->sampled) {
		put_u32(w, (uint32_t)id->cpu);
		put_u32(w, 0);
	}
	put_u64(w, perf_event_ids[id->event]);
}

static void put_auxtrace_info(struct perf_writer *w)
{
	const struct rec_pt_config *pt = &w->rec->pt;
	uint64_t info[PT_INFO_COUNT] = {
		[PT_INFO_PMU_TYPE] = PMU_TYPE_INTEL_PT,
		[PT_INFO_TIME_SHIFT] = pt->time_shift,
		[PT_INFO_TIME_MULT] = pt->time_mult,
		[PT_INFO_TIME_ZERO] = pt->time_zero,
		[PT_INFO_CAP_USER_TIME_ZERO] = 1,
		[PT_INFO_TSC_BIT] = 1u << 10,
		[PT_INFO_NORETCOMP_BIT] = 1u << 11,
		/* 3: by SWITCH_CPU_WIDE (tools/perf/util/intel-pt.c: intel_pt_context_switch). */
		[PT_INFO_HAVE_SCHED_SWITCH] = w->by_cpu ? 3 : 0,
		[PT_INFO_SNAPSHOT_MODE] = 1,
		[PT_INFO_PER_CPU_MMAPS] = w->by_cpu,
		[PT_INFO_MTC_BIT] = 1u << 9,
		[PT_INFO_MTC_FREQ_BITS] = 0xfu << 14,
		[PT_INFO_TSC_CTC_N] = pt->tsc_ctc_num,
		[PT_INFO_TSC_CTC_D] = pt->tsc_ctc_den,
		[PT_INFO_CYC_BIT] = 1u << 1,
		[PT_INFO_MAX_NONTURBO] = pt->nom_freq,
	};

	put_header(w, PERF_USER_AUXTRACE_INFO, 0, 8 + sizeof(info));
	put_u32(w, AUXTRACE_TYPE_INTEL_PT);
	put_u32(w, 0);
	put(w, info, sizeof(info));
}

static void put_comm(struct perf_writer *w, const struct rec_thread *t)
{
	size_t len = strnlen(t->comm, sizeof(t->comm) - 1) + 1;
	size_t pad = padding(len, 8);

	put_header(w, PERF_RECORD_COMM, PERF_RECORD_MISC_USER,
		   8 + len + pad + perf_writer__sample_id_size(w));
	put_u32(w, (uint32_t)t->pid);
	put_u32(w, (uint32_t)t->tid);
	put(w, t->comm, len - 1);
	put_zeroes(w, pad + 1);
	perf_writer__put_sample_id(
		w, &(struct sample_id_fields){t->pid, t->tid, t->start_ns, NO_CPU, EVENT_SIDEBAND});
}

static void put_itrace_start(struct perf_writer *w, const struct sample_id_fields *id)
{
	put_header(w, PERF_RECORD_ITRACE_START, 0, 8 + perf_writer__sample_id_size(w));
	put_u32(w, (uint32_t)id->pid);
	put_u32(w, (uint32_t)id->tid);
	perf_writer__put_sample_id(w, id);
}

/* Who was there when a CPU's trace began has a record of another kind, as the kernel writes it. */
static void put_switch(struct perf_writer *w, const struct rec_switch *sw,
		       const struct rec_switch *before)
{
	bool out = !sw->tid;
	struct sample_id_fields id = {.pid = out && before ? before->pid : sw->pid,
				      .tid = out && before ? before->tid : sw->tid,
				      .time_ns = sw->time_ns,
				      .cpu = sw->cpu,
				      .event = EVENT_SIDEBAND};

	if (!out && !before) {
		id.event = EVENT_PT;
		put_itrace_start(w, &id);
		return;
	}
	put_header(w, PERF_RECORD_SWITCH_CPU_WIDE, out ? PERF_RECORD_MISC_SWITCH_OUT : 0,
		   8 + perf_writer__sample_id_size(w));
	put_u32(w, out || !before ? 0 : (uint32_t)before->pid);
	put_u32(w, out || !before ? 0 : (uint32_t)before->tid);
	perf_writer__put_sample_id(w, &id);
}

static void put_mmap2(struct perf_writer *w, const struct rec_map *m, bool is_data)
{
	size_t len = strlen(m->path) + 1;
	size_t pad = padding(len, 8);

	put_header(w, PERF_RECORD_MMAP2,
		   PERF_RECORD_MISC_USER | (is_data ? PERF_RECORD_MISC_MMAP_DATA : 0),
		   64 + len + pad + perf_writer__sample_id_size(w));
	put_u32(w, (uint32_t)m->pid);
	put_u32(w, (uint32_t)m->tid);
	put_u64(w, m->start);
	put_u64(w, m->len);
	put_u64(w, m->pgoff);
	put_u32(w, m->maj);
	put_u32(w, m->min);
	put_u64(w, m->ino);
	put_u64(w, 0); /* inode generation */
	put_u32(w, is_data ? PROT_READ : PROT_READ | PROT_EXEC);
	put_u32(w, 2); /* MAP_PRIVATE */
	put(w, m->path, len);
	put_zeroes(w, pad);
	perf_writer__put_sample_id(
		w, &(struct sample_id_fields){m->pid, m->tid, m->time_ns, NO_CPU, EVENT_SIDEBAND});
}

/*
 * The kernel's own text: perf finds code and symbols of all else in kcore_dir, once the address of
 * this symbol shows that it is of the same boot (tools/perf/util/event.c:
 * perf_event__synthesize_kernel_mmap()).
 */
static void put_kernel_mmap(struct perf_writer *w)
{
	static const char name[32] = "[kernel.kallsyms]_stext";
	uint64_t start, end;

	if (!w->rec->kernel.kallsyms ||
	    !kallsyms__find(w->rec->kernel.kallsyms, "_stext", &start) ||
	    !kallsyms__find(w->rec->kernel.kallsyms, "_etext", &end))
		return;
	put_header(w, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL,
		   32 + sizeof(name) + perf_writer__sample_id_size(w));
	put_u32(w, (uint32_t)-1);
	put_u32(w, 0);
	put_u64(w, start);
	put_u64(w, end - start);
	put_u64(w, start); /* pgoff: the symbol's address */
	put(w, name, sizeof(name));
	perf_writer__put_sample_id(w, &(struct sample_id_fields){-1, 0, 0, NO_CPU, EVENT_SIDEBAND});
}

static void put_loss(struct perf_writer *w, const struct rec_loss *loss)
{
	bool is_aux = loss->aux_flags != 0;

	put_header(w, is_aux ? PERF_RECORD_AUX : PERF_RECORD_LOST, 0,
		   (is_aux ? 24 : 16) + perf_writer__sample_id_size(w));
	if (is_aux) {
		put_u64(w, 0); /* aux_offset */
		put_u64(w, 0); /* aux_size: what is missing has none */
		put_u64(w, loss->aux_flags);
	} else {
		put_u64(w, perf_event_ids[EVENT_SIDEBAND]);
		put_u64(w, loss->records);
	}
	perf_writer__put_sample_id(
		w, &(struct sample_id_fields){loss->pid, loss->tid, loss->time_ns, NO_CPU,
					      is_aux ? EVENT_PT : EVENT_SIDEBAND});
}

static void put_auxtrace(struct perf_writer *w, const struct rec_aux *aux, uint32_t index)
{
	size_t pad = padding(aux->size, 8);
	uint64_t *offset = VEC_PUSH(&w->aux_offsets);

	if (offset)
		*offset = (uint64_t)ftell(w->out);
	put_header(w, PERF_USER_AUXTRACE, 0, 40);
	put_u64(w, aux->size + pad);
	put_u64(w, 0); /* offset in the AUX area */
	put_u64(w, aux->tsc);
	put_u32(w, index);
	put_u32(w, aux->tid ? (uint32_t)aux->tid : (uint32_t)-1);
	put_u32(w, aux->tid ? (uint32_t)-1 : (uint32_t)aux->cpu);
	put_u32(w, 0);
	put(w, aux->data, aux->size);
	put_zeroes(w, pad); /* PAD packets */
}

static void put_starts(struct perf_writer *w)
{
	for (size_t i = 0; i < w->rec->threads.n && !w->by_cpu && !w->sampled; i++) {
		const struct rec_thread *t = &w->rec->threads.v[i];

		put_itrace_start(w, &(struct sample_id_fields){t->pid, t->tid, t->start_ns, NO_CPU,
							       EVENT_PT});
	}
}

/* The last switch of each CPU so far. */
typedef VEC(const struct rec_switch *) last_switches;

static const struct rec_switch **last_of(last_switches *last, int cpu)
{
	const struct rec_switch **slot;

	for (size_t i = 0; i < last->n; i++)
		if (last->v[i]->cpu == cpu)
			return &last->v[i];
	slot = VEC_PUSH(last);
	if (slot)
		*slot = NULL;
	return slot;
}

static void put_switches(struct perf_writer *w)
{
	last_switches all = {0};

	for (size_t i = 0; i < w->rec->switches.n; i++) {
		const struct rec_switch *sw = &w->rec->switches.v[i];
		const struct rec_switch **last = last_of(&all, sw->cpu);

		if (!last)
			break;
		put_switch(w, sw, *last);
		*last = sw;
	}
	VEC_FINI(&all);
}

void perf_writer__put_records(struct perf_writer *w)
{
	const struct recording *rec = w->rec;

	if (!w->sampled)
		put_auxtrace_info(w);
	put_kernel_mmap(w);
	for (size_t i = 0; i < rec->threads.n; i++)
		put_comm(w, &rec->threads.v[i]);
	for (size_t i = 0; i < rec->maps.n; i++)
		put_mmap2(w, &rec->maps.v[i], false);
	for (size_t i = 0; i < rec->data_maps.n; i++)
		put_mmap2(w, &rec->data_maps.v[i], true);
	put_starts(w);
	put_switches(w);
	for (size_t i = 0; i < rec->losses.n; i++)
		put_loss(w, &rec->losses.v[i]);
	for (size_t i = 0; i < rec->hits.n; i++)
		perf_writer__put_hit(w, &rec->hits.v[i]);
	perf_writer__put_samples(w);
	for (size_t i = 0; i < rec->aux.n; i++)
		put_auxtrace(w, &rec->aux.v[i], (uint32_t)i);
	put_header(w, PERF_USER_FINISHED_ROUND, 0, 0);
}
