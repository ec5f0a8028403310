// SPDX-License-Identifier: MIT
/* A recording as a perf.data file. */
#include "capture/recording/perf_data.h"

#include <limits.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>

#include "kernel/kernel.h"
#include "util/vec.h"

/* Any number: perf compares it only with the PMU type in AUXTRACE_INFO, not with a real PMU. */
#define PMU_TYPE_INTEL_PT 8

enum event_index {
	EVENT_PT,
	EVENT_SIDEBAND,
	EVENT_HIT,
	EVENT_ENTRY,	/* this and the following: only of a source that samples */
	EVENT_BY,	/* who woke, and who replaced, a thread */
	EVENT_CLOCK,	/* stacks by the clock; and switches, as records */
	EVENT_SWITCHES, /* stacks at switches */
	EVENT_MINOR_FAULTS,
	EVENT_MAJOR_FAULTS,
	EVENT_PARKS, /* stacks of goroutines that begin to wait */
	EVENT_COUNT,
};

/* Ids are any numbers that differ. */
static const uint64_t perf_event_ids[EVENT_COUNT] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

struct perf_writer {
	FILE *out;
	const struct recording *rec;
	bool by_cpu;		   /* rings are per CPU, and records carry its number */
	bool has_parks;		   /* some samples are at_park */
	bool sampled;		   /* samples instead of Intel PT */
	VEC(uint64_t) aux_offsets; /* file offsets of the AUXTRACE records */
	/*
	 * The record that is being written. It is kept here until its size is known, which its
	 * header has.
	 */
	bool in_record;
	uint8_t record[UINT16_MAX + 1] __attribute__((aligned(8)));
	size_t n;
};

static void put(struct perf_writer *w, const void *data, size_t len)
{
	if (!w->in_record) {
		fwrite(data, 1, len, w->out);
		return;
	}
	if (len && w->n + len <= sizeof(w->record))
		memcpy(w->record + w->n, data, len);
	w->n += len;
}

static void put_u32(struct perf_writer *w, uint32_t value)
{
	put(w, &value, sizeof(value));
}

static void put_u64(struct perf_writer *w, uint64_t value)
{
	put(w, &value, sizeof(value));
}

static void put_zeroes(struct perf_writer *w, size_t n)
{
	static const char zeroes[64];

	put(w, zeroes, n);
}

static size_t padding(size_t len, size_t to)
{
	return (to - len % to) % to;
}

/* Writes the data, padded with zeroes to a multiple of 8. */
static void put_padded(struct perf_writer *w, const void *data, size_t len)
{
	put(w, data, len);
	put_zeroes(w, padding(len, 8));
}

static void begin_record(struct perf_writer *w, uint32_t type, uint16_t misc)
{
	struct perf_event_header header = {.type = type, .misc = misc};

	w->in_record = true;
	w->n = 0;
	put(w, &header, sizeof(header));
}

/* Ends a record. A record that is larger than its header can express is left out. */
static void end_record(struct perf_writer *w)
{
	((struct perf_event_header *)(void *)w->record)->size = (uint16_t)w->n;
	w->in_record = false;
	if (w->n <= UINT16_MAX)
		put(w, w->record, w->n);
}

/* A sample's thread, time, CPU and event. */
struct sample_id_fields {
	pid_t pid, tid;
	uint64_t time_ns;
	int cpu;
	enum event_index event;
};

/*
 * The number of registers in PERF_HIT_REGS. The functions below write a sample's parts in the order
 * of kernel/events/core.c, perf_output_sample().
 */
#define HIT_REGS 8

/*
 * Every record of the kernel except samples ends with these fields: TID, TIME, CPU (not if Intel PT
 * was recorded per thread), IDENTIFIER.
 */
static void end_with_id(struct perf_writer *w, const struct sample_id_fields *id)
{
	put_u32(w, (uint32_t)id->pid);
	put_u32(w, (uint32_t)id->tid);
	put_u64(w, id->time_ns);
	if (w->by_cpu || w->sampled) {
		put_u32(w, (uint32_t)id->cpu);
		put_u32(w, 0);
	}
	put_u64(w, perf_event_ids[id->event]);
	end_record(w);
}

/* IDENTIFIER, IP, TID, TIME, CPU: what every sample begins with. */
static void put_head(struct perf_writer *w, const struct sample_id_fields *id, uint64_t ip)
{
	put_u64(w, perf_event_ids[id->event]);
	put_u64(w, ip);
	put_u32(w, (uint32_t)id->pid);
	put_u32(w, (uint32_t)id->tid);
	put_u64(w, id->time_ns);
	put_u32(w, (uint32_t)id->cpu);
	put_u32(w, 0);
}

/*
 * Writes the sample's end: the registers, with which struct rec_user begins, and the copy of the
 * stack: its padded size, its bytes, and how many of them are valid.
 */
static void put_user(struct perf_writer *w, const struct rec_user *user)
{
	put_u64(w, PERF_SAMPLE_REGS_ABI_64);
	put(w, user, 8 * HIT_REGS);
	put_u64(w, user->size + padding(user->size, 8));
	if (!user->size)
		return;
	put_padded(w, user->stack, user->size);
	put_u64(w, user->size);
}

/* Reserves the size of raw data, which end_raw() fills in. Returns where the data begins. */
static size_t begin_raw(struct perf_writer *w)
{
	put_u32(w, 0);
	return w->n;
}

static void end_raw(struct perf_writer *w, size_t begin)
{
	uint32_t size;

	put_zeroes(w, padding(w->n, 8));
	size = (uint32_t)(w->n - begin);
	memcpy(w->record + begin - sizeof(size), &size, sizeof(size));
}

/*
 * Writes the key, the thread in which the request began and the number of values of -print; for
 * each of these a number, then its length, kind and two flags in one word, and its bytes.
 */
static void put_prints(struct perf_writer *w, const struct mt_hit *hit)
{
	uint32_t n = hit->n_prints < MT_PRINTS ? hit->n_prints : MT_PRINTS;

	put_u64(w, hit->key);
	put_u64(w, hit->since_tid | (uint64_t)n << 32);
	for (uint32_t i = 0; i < n; i++) {
		const struct mt_printed *print = &hit->prints[i];
		uint16_t length = print->length < MT_TEXT_MAX ? print->length : MT_TEXT_MAX;

		put_u64(w, print->number);
		put_u64(w, length | (uint64_t)print->kind << 16 | (uint64_t)print->is_signed << 24 |
				   (uint64_t)print->is_cut << 32);
		put_padded(w, print->text, length);
	}
}

/*
 * Writes the arguments and what newer versions have added, after the fields that the oldest
 * versions read.
 */
static void put_args(struct perf_writer *w, const struct mt_hit *hit)
{
	uint32_t n = hit->n_args < MT_ARGS_MAX ? hit->n_args : MT_ARGS_MAX;
	uint64_t branches = hit->n_branches < MT_BRANCHES_MAX ? hit->n_branches : MT_BRANCHES_MAX;
	bool has_prints = w->rec->prints.n || w->rec->key;
	/* The reader expects the prints after a trace id, so they are never written without one. */
	bool has_trace_id = hit->trace_id[0] || hit->trace_id[1] || has_prints;
	bool has_more = branches || w->rec->cpu_measure || has_trace_id;

	if (!hit->n_args && !hit->syscall && !has_more)
		return;
	/*
	 * The number of arguments, the system call, then a bit for each argument that was read, and
	 * for each that is signed.
	 */
	put_u64(w, hit->n_args | (uint64_t)hit->syscall << 16 | (uint64_t)hit->args_read << 32 |
			   (uint64_t)hit->args_signed << 48);
	put(w, hit->args, 8 * n);
	if (!has_more)
		return;
	put_u64(w, branches);
	put(w, hit->branches, 24 * branches);
	if (w->rec->cpu_measure || has_trace_id)
		put_u64(w, hit->off_cpu_ns);
	if (has_trace_id)
		put(w, hit->trace_id, sizeof(hit->trace_id));
	if (has_prints)
		put_prints(w, hit);
}

/*
 * A hit: a sample like those of `perf record --call-graph dwarf`, so that perf unwinds it as well.
 * It carries struct mt_hit and, if one was taken, the copy of the stack. perf shows the call chain
 * and then the frames that it unwinds: if it can unwind, the frame-pointer chain goes into raw
 * data.
 */
static void put_hit(struct perf_writer *w, const struct mt_hit *hit)
{
	struct rec_user user = recording__hit_user(w->rec, hit);
	uint32_t depth = hit->stack_depth < MT_STACK_DEPTH ? hit->stack_depth : MT_STACK_DEPTH;
	uint32_t chain = user.stack ? 0 : depth;
	size_t raw;
	struct sample_id_fields id = {(pid_t)hit->tgid, (pid_t)hit->tid, hit->time_ns,
				      (int)hit->cpu, EVENT_HIT};

	begin_record(w, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	/* The sample's IP is the probe's address; the ip of a return is stack[0]. */
	put_head(w, &id, hit->probe_ip ? hit->probe_ip : hit->ip);
	put_u64(w, 1 + chain);
	put_u64(w, (uint64_t)PERF_CONTEXT_USER);
	put(w, hit->stack, 8 * chain);
	raw = begin_raw(w);
	put(w, hit, offsetof(struct mt_hit, stack) + 8 * (depth - chain));
	put_args(w, hit);
	end_raw(w, raw);
	if (w->rec->stacks.n)
		put_user(w, &user);
	end_record(w);
}

/* The records of a source that samples: as the kernel writes them, and entries as raw data. */

/*
 * Leaves out the frame-pointer chain if there is a copy of the stack: perf would show the chain
 * before the frames that it unwinds.
 */
static void put_sample(struct perf_writer *w, const struct rec_sample *s)
{
	static const struct rec_user none = {0};
	const struct rec_user *user = s->user ? &w->rec->sample_users.v[s->user - 1] : &none;
	const uint64_t *ips = s->n_ips ? &w->rec->sample_ips.v[s->first_ip] : NULL;
	const uint64_t *kernel = s->n_kernel ? &w->rec->sample_ips.v[s->first_kernel] : NULL;
	uint32_t n_kernel = s->n_kernel ? 1 + s->n_kernel : 0;
	uint32_t chain = s->user ? 0 : s->n_ips;
	struct sample_id_fields id = {s->pid, s->tid, s->time_ns, s->cpu, EVENT_CLOCK};

	if (s->faults)
		id.event = s->is_major ? EVENT_MAJOR_FAULTS : EVENT_MINOR_FAULTS;
	else if (s->at_park)
		id.event = EVENT_PARKS;
	else if (s->at_switch)
		id.event = EVENT_SWITCHES;
	begin_record(w, PERF_RECORD_SAMPLE,
		     s->in_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);
	put_head(w, &id, s->in_kernel && kernel ? kernel[0] : s->n_ips ? ips[0] : 0);
	put_u64(w, 1 + (uint64_t)chain + n_kernel);
	if (kernel) {
		put_u64(w, (uint64_t)PERF_CONTEXT_KERNEL);
		put(w, kernel, 8 * (size_t)s->n_kernel);
	}
	put_u64(w, (uint64_t)PERF_CONTEXT_USER);
	if (chain)
		put(w, ips, 8 * (size_t)chain);
	if (w->rec->sample_users.n)
		put_user(w, user);
	end_record(w);
}

static void put_raw(struct perf_writer *w, const struct sample_id_fields *id, uint64_t ip,
		    const void *data, size_t size)
{
	size_t raw;

	begin_record(w, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	put_head(w, id, ip);
	raw = begin_raw(w);
	put(w, data, size);
	end_raw(w, raw);
	end_record(w);
}

/* Samples, switches and entries of a source that samples. */
static void put_samples(struct perf_writer *w)
{
	const struct recording *rec = w->rec;

	for (size_t i = 0; i < rec->samples.n; i++)
		put_sample(w, &rec->samples.v[i]);
	for (size_t i = 0; i < rec->scheds.n; i++) {
		uint16_t misc =
			rec->scheds.v[i].what == REC_SCHED_IN ? 0 : PERF_RECORD_MISC_SWITCH_OUT;

		if (rec->scheds.v[i].what == REC_SCHED_PREEMPTED)
			misc |= PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
		begin_record(w, PERF_RECORD_SWITCH, misc);
		end_with_id(w,
			    &(struct sample_id_fields){rec->scheds.v[i].pid, rec->scheds.v[i].tid,
						       rec->scheds.v[i].time_ns,
						       rec->scheds.v[i].cpu, EVENT_CLOCK});
	}
	VEC_EACH(&rec->entries, e) {
		/* The sample's IP is the entry's ip. */
		put_raw(w,
			&(struct sample_id_fields){(pid_t)e->tgid, (pid_t)e->tid, e->start_ns, 0,
						   EVENT_ENTRY},
			e->ip, e, offsetof(struct mt_entry, ip));
	}
	VEC_EACH(&rec->sched_bys, by)
		put_raw(w,
			&(struct sample_id_fields){(pid_t)by->tgid, (pid_t)by->tid, by->time_ns, 0,
						   EVENT_BY},
			0, by, sizeof(*by));
}

/* For records that belong to no CPU. */
#define NO_CPU (-1)

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

	begin_record(w, PERF_USER_AUXTRACE_INFO, 0);
	put_u32(w, AUXTRACE_TYPE_INTEL_PT);
	put_u32(w, 0);
	put(w, info, sizeof(info));
	end_record(w);
}

static void put_comm(struct perf_writer *w, const struct rec_thread *t)
{
	char comm[sizeof(t->comm) + 1] = "";

	memcpy(comm, t->comm, sizeof(t->comm) - 1);
	begin_record(w, PERF_RECORD_COMM, PERF_RECORD_MISC_USER);
	put_u32(w, (uint32_t)t->pid);
	put_u32(w, (uint32_t)t->tid);
	put_padded(w, comm, strlen(comm) + 1);
	end_with_id(
		w, &(struct sample_id_fields){t->pid, t->tid, t->start_ns, NO_CPU, EVENT_SIDEBAND});
}

static void put_itrace_start(struct perf_writer *w, const struct sample_id_fields *id)
{
	begin_record(w, PERF_RECORD_ITRACE_START, 0);
	put_u32(w, (uint32_t)id->pid);
	put_u32(w, (uint32_t)id->tid);
	end_with_id(w, id);
}

static void put_mmap2(struct perf_writer *w, const struct rec_map *m, bool is_data)
{
	begin_record(w, PERF_RECORD_MMAP2,
		     PERF_RECORD_MISC_USER | (is_data ? PERF_RECORD_MISC_MMAP_DATA : 0));
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
	put_padded(w, m->path, strlen(m->path) + 1);
	end_with_id(w,
		    &(struct sample_id_fields){m->pid, m->tid, m->time_ns, NO_CPU, EVENT_SIDEBAND});
}

/*
 * The kernel's own text: perf finds the rest of the code, and symbols, in kcore_dir, once this
 * symbol's address shows that kcore_dir is of the same boot (tools/perf/util/event.c:
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
	begin_record(w, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL);
	put_u32(w, (uint32_t)-1);
	put_u32(w, 0);
	put_u64(w, start);
	put_u64(w, end - start);
	put_u64(w, start); /* pgoff: the symbol's address */
	put(w, name, sizeof(name));
	end_with_id(w, &(struct sample_id_fields){-1, 0, 0, NO_CPU, EVENT_SIDEBAND});
}

static void put_loss(struct perf_writer *w, const struct rec_loss *loss)
{
	bool is_aux = loss->aux_flags != 0;

	begin_record(w, is_aux ? PERF_RECORD_AUX : PERF_RECORD_LOST, 0);
	if (is_aux) {
		put_u64(w, 0); /* aux_offset */
		put_u64(w, 0); /* aux_size: lost bytes are not in the file */
		put_u64(w, loss->aux_flags);
	} else {
		put_u64(w, perf_event_ids[EVENT_SIDEBAND]);
		put_u64(w, loss->records);
	}
	end_with_id(w, &(struct sample_id_fields){loss->pid, loss->tid, loss->time_ns, NO_CPU,
						  is_aux ? EVENT_PT : EVENT_SIDEBAND});
}

static void put_auxtrace(struct perf_writer *w, const struct rec_aux *aux, uint32_t index)
{
	uint64_t *offset = VEC_PUSH(&w->aux_offsets);

	if (offset)
		*offset = (uint64_t)ftell(w->out);
	begin_record(w, PERF_USER_AUXTRACE, 0);
	put_u64(w, aux->size + padding(aux->size, 8));
	put_u64(w, 0); /* offset in the AUX area */
	put_u64(w, aux->tsc);
	put_u32(w, index);
	put_u32(w, aux->tid ? (uint32_t)aux->tid : (uint32_t)-1);
	put_u32(w, aux->tid ? (uint32_t)-1 : (uint32_t)aux->cpu);
	put_u32(w, 0);
	end_record(w);
	put_padded(w, aux->data, aux->size); /* zeroes are PAD packets */
}

/*
 * Writes the context switches. If the first one of a CPU is to a thread, it becomes an ITRACE_START
 * record, which the kernel writes for the thread that runs when a CPU's trace begins.
 */
static void put_switches(struct perf_writer *w)
{
	VEC(const struct rec_switch *) last = {0}; /* of each CPU so far */

	VEC_EACH(&w->rec->switches, sw) {
		const struct rec_switch *before = NULL;
		struct sample_id_fields id = {.time_ns = sw->time_ns, .cpu = sw->cpu};
		bool out = !sw->tid;
		size_t i = 0;

		while (i < last.n && last.v[i]->cpu != sw->cpu)
			i++;
		if (i < last.n)
			before = last.v[i];
		else if (VEC_ADD(&last, sw))
			break;
		last.v[i] = sw;
		id.pid = out && before ? before->pid : sw->pid;
		id.tid = out && before ? before->tid : sw->tid;
		id.event = out || before ? EVENT_SIDEBAND : EVENT_PT;
		if (!out && !before) {
			put_itrace_start(w, &id);
			continue;
		}
		begin_record(w, PERF_RECORD_SWITCH_CPU_WIDE, out ? PERF_RECORD_MISC_SWITCH_OUT : 0);
		put_u32(w, out || !before ? 0 : (uint32_t)before->pid);
		put_u32(w, out || !before ? 0 : (uint32_t)before->tid);
		end_with_id(w, &id);
	}
	VEC_FINI(&last);
}

/* All records: the data section. */
static void put_records(struct perf_writer *w)
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
	VEC_EACH_WHILE(&w->rec->threads, t, !w->by_cpu && !w->sampled)
		put_itrace_start(w, &(struct sample_id_fields){t->pid, t->tid, t->start_ns, NO_CPU,
							       EVENT_PT});
	put_switches(w);
	for (size_t i = 0; i < rec->losses.n; i++)
		put_loss(w, &rec->losses.v[i]);
	for (size_t i = 0; i < rec->hits.n; i++)
		put_hit(w, &rec->hits.v[i]);
	put_samples(w);
	for (size_t i = 0; i < rec->aux.n; i++)
		put_auxtrace(w, &rec->aux.v[i], (uint32_t)i);
	begin_record(w, PERF_USER_FINISHED_ROUND, 0);
	end_record(w);
}

static const struct {
	const char *name;
	uint64_t config; /* of PERF_TYPE_SOFTWARE */
	uint64_t own;	 /* attr.config1: enum perf_own_data */
	uint64_t sample_type;
} events[EVENT_COUNT] = {
	[EVENT_PT] = {"intel_pt//u"}, /* named by put_event_desc(), set by fill_attr() */
	[EVENT_SIDEBAND] = {"dummy:u", PERF_COUNT_SW_DUMMY},
	[EVENT_HIT] = {"mtbpf:hit", PERF_COUNT_SW_BPF_OUTPUT, PERF_OWN_HIT,
		       PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW},
	[EVENT_ENTRY] = {"mtbpf:entry", PERF_COUNT_SW_BPF_OUTPUT, PERF_OWN_ENTRY, PERF_SAMPLE_RAW},
	[EVENT_BY] = {"mtbpf:sched", PERF_COUNT_SW_BPF_OUTPUT, PERF_OWN_BY, PERF_SAMPLE_RAW},
	[EVENT_CLOCK] = {"cpu-clock", PERF_COUNT_SW_CPU_CLOCK, 0, PERF_SAMPLE_CALLCHAIN},
	[EVENT_SWITCHES] = {"context-switches", PERF_COUNT_SW_CONTEXT_SWITCHES, 0,
			    PERF_SAMPLE_CALLCHAIN},
	[EVENT_MINOR_FAULTS] = {"minor-faults", PERF_COUNT_SW_PAGE_FAULTS_MIN, 0,
				PERF_SAMPLE_CALLCHAIN},
	[EVENT_MAJOR_FAULTS] = {"major-faults", PERF_COUNT_SW_PAGE_FAULTS_MAJ, 0,
				PERF_SAMPLE_CALLCHAIN},
	[EVENT_PARKS] = {"goroutine-waits", PERF_COUNT_SW_DUMMY, 0, PERF_SAMPLE_CALLCHAIN},
};

static bool has_event(const struct perf_writer *w, enum event_index event)
{
	if (event == EVENT_PT)
		return !w->sampled;
	if (event == EVENT_PARKS)
		return w->has_parks;
	return w->sampled || event < EVENT_ENTRY;
}

static uint32_t count_events(const struct perf_writer *w)
{
	uint32_t n = 0;

	for (int i = 0; i < EVENT_COUNT; i++)
		n += has_event(w, (enum event_index)i);
	return n;
}

#define SAMPLE_COMMON (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER)

/* The first PERF_DATA_ATTR_SIZE bytes of a perf_event_attr. */
static void fill_attr(const struct perf_writer *w, enum event_index event,
		      struct perf_event_attr *attr)
{
	/* True for the events of a source that samples: sample_ring.c opens them like this. */
	bool is_sampling = event >= EVENT_CLOCK;
	size_t stacks = is_sampling ? w->rec->sample_users.n : w->rec->stacks.n;

	*attr = (struct perf_event_attr){
		.size = PERF_DATA_ATTR_SIZE,
		.type = PERF_TYPE_SOFTWARE,
		.config = events[event].config,
		.config1 = events[event].own,
		.sample_period = event == EVENT_CLOCK	       ? w->rec->sample_period_ns
				 : event == EVENT_MINOR_FAULTS ? REC_FAULT_PERIOD
							       : 1,
		.sample_type = SAMPLE_COMMON | events[event].sample_type,
		.read_format = PERF_FORMAT_ID,
		.disabled = 1,
		.exclude_kernel = !is_sampling,
		.exclude_callchain_kernel = is_sampling,
		.exclude_hv = 1,
		.context_switch = event == EVENT_CLOCK || (event == EVENT_SIDEBAND && w->by_cpu),
		.sample_id_all = 1,
		.use_clockid = w->sampled,
		.clockid = w->sampled ? CLOCK_MONOTONIC : 0,
	};
	if (w->by_cpu || w->sampled)
		attr->sample_type |= PERF_SAMPLE_CPU;
	if (stacks && (is_sampling || event == EVENT_HIT)) {
		attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr->sample_regs_user = PERF_HIT_REGS;
		attr->sample_stack_user = MT_COPY_MAX;
		attr->exclude_callchain_user = 1;
	}
	if (event == EVENT_SIDEBAND)
		attr->mmap = attr->mmap2 = attr->comm = attr->comm_exec = attr->task = 1;
	if (event != EVENT_PT)
		return;
	attr->type = PMU_TYPE_INTEL_PT;
	attr->config = w->rec->pt.config;
	attr->exclude_kernel = !w->rec->kernel.kallsyms;
	attr->exclude_user = w->rec->kernel_only;
}

static void put_string(struct perf_writer *w, const char *text)
{
	size_t len = strlen(text) + 1;
	size_t pad = padding(len, 64); /* NAME_ALIGN */

	put_u32(w, (uint32_t)(len + pad));
	put(w, text, len);
	put_zeroes(w, pad);
}

static void put_event_desc(struct perf_writer *w)
{
	const char *pt_name = w->rec->kernel_only	? "intel_pt//k"
			      : w->rec->kernel.kallsyms ? "intel_pt//"
							: "intel_pt//u";

	put_u32(w, count_events(w));
	put_u32(w, PERF_DATA_ATTR_SIZE);
	for (int i = 0; i < EVENT_COUNT; i++) {
		struct perf_event_attr attr;

		if (!has_event(w, (enum event_index)i))
			continue;
		fill_attr(w, (enum event_index)i, &attr);
		put(w, &attr, PERF_DATA_ATTR_SIZE);
		put_u32(w, 1);
		put_string(w, i == EVENT_PT ? pt_name : events[i].name);
		put_u64(w, perf_event_ids[i]);
	}
}

void perf_data__write_build_ids(const struct recording *rec, FILE *out)
{
	VEC_EACH(&rec->files, file) {
		/* tools/perf/util/build-id.c: write_buildid(), NAME_ALIGN */
		size_t len = (strlen(file->path) + 1 + 63) & ~(size_t)63;
		struct build_id_record record = {
			.header = {.misc = PERF_RECORD_MISC_USER | MISC_BUILD_ID_SIZE}, .pid = -1};
		char name[PATH_MAX + 64] = {0};
		const struct rec_file *first = rec->files.v;
		unsigned int byte;

		while (strcmp(first->path, file->path))
			first++;
		if (!file->build_id[0] || first != file || len > sizeof(name))
			continue;
		while (record.size < sizeof(record.id) &&
		       sscanf(file->build_id + 2 * record.size, "%2x", &byte) == 1)
			record.id[record.size++] = (uint8_t)byte;
		record.header.size = (uint16_t)(sizeof(record) + len);
		strcpy(name, file->path);
		fwrite(&record, sizeof(record), 1, out);
		fwrite(name, len, 1, out);
	}
}

static void put_feature(struct perf_writer *w, enum perf_feature feature)
{
	const struct rec_pt_config *pt = &w->rec->pt;
	struct utsname name;
	char text[64];

	switch (feature) {
	case PERF_FEATURE_BUILD_ID:
		perf_data__write_build_ids(w->rec, w->out);
		break;
	case PERF_FEATURE_OSRELEASE:
		if (w->rec->os_release)
			put_string(w, w->rec->os_release);
		else
			put_string(w, uname(&name) ? "" : name.release);
		break;
	case PERF_FEATURE_VERSION:
		put_string(w, "mtbpf " MTBPF_VERSION);
		break;
	case PERF_FEATURE_ARCH:
		put_string(w, "x86_64");
		break;
	case PERF_FEATURE_CPUID:
		snprintf(text, sizeof(text), "GenuineIntel,%u,%u,%u", pt->cpu_family, pt->cpu_model,
			 pt->cpu_stepping);
		put_string(w, text);
		break;
	case PERF_FEATURE_EVENT_DESC:
		put_event_desc(w);
		break;
	case PERF_FEATURE_AUXTRACE: {
		put_u64(w, w->aux_offsets.n);
		for (size_t i = 0; i < w->aux_offsets.n; i++) {
			put_u64(w, w->aux_offsets.v[i]);
			put_u64(w, 48); /* the record's size, without the data that follows */
		}
	} break;
	}
}

/* A table of sections, in the order of their bits, then the sections. */
static void put_features(struct perf_writer *w, struct perf_data_header *header)
{
	/*
	 * No DIR_FORMAT: perf then takes the directory as one with a single file
	 * (PERF_DIR_SINGLE_FILE).
	 */
	static const enum perf_feature all[] = {
		PERF_FEATURE_BUILD_ID, PERF_FEATURE_OSRELEASE, PERF_FEATURE_VERSION,
		PERF_FEATURE_ARCH,     PERF_FEATURE_CPUID,     PERF_FEATURE_EVENT_DESC,
		PERF_FEATURE_AUXTRACE,
	};
	struct perf_data_section sections[sizeof(all) / sizeof(all[0])] = {0};
	long table = ftell(w->out);
	size_t n = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i] == PERF_FEATURE_CPUID && !w->rec->pt.cpu_family)
			continue;
		if (all[i] == PERF_FEATURE_AUXTRACE && w->sampled)
			continue;
		header->features[0] |= 1ull << all[i];
		n++;
	}
	put(w, sections, n * sizeof(sections[0]));
	n = 0;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!(header->features[0] >> all[i] & 1))
			continue;
		sections[n].offset = (uint64_t)ftell(w->out);
		put_feature(w, all[i]);
		sections[n].size = (uint64_t)ftell(w->out) - sections[n].offset;
		n++;
	}
	fseek(w->out, table, SEEK_SET);
	put(w, sections, n * sizeof(sections[0]));
}

static void put_attrs(struct perf_writer *w, struct perf_data_header *header)
{
	uint64_t ids = (uint64_t)ftell(w->out);

	put(w, perf_event_ids, sizeof(perf_event_ids));
	header->attr_size = PERF_DATA_ATTR_SIZE + sizeof(struct perf_data_section);
	header->attrs.offset = (uint64_t)ftell(w->out);
	header->attrs.size = count_events(w) * header->attr_size;
	for (int i = 0; i < EVENT_COUNT; i++) {
		struct perf_data_section id = {ids + 8 * (uint64_t)i, 8};
		struct perf_event_attr attr;

		if (!has_event(w, (enum event_index)i))
			continue;
		fill_attr(w, (enum event_index)i, &attr);
		put(w, &attr, PERF_DATA_ATTR_SIZE);
		put(w, &id, sizeof(id));
	}
}

void perf_data__write(const struct recording *rec, FILE *out)
{
	struct perf_writer w = {.out = out,
				.rec = rec,
				.by_cpu = recording__is_by_cpu(rec),
				.sampled = recording__is_sampled(rec)};
	struct perf_data_header header = {.magic = PERF_DATA_MAGIC, .size = sizeof(header)};

	VEC_EACH(&rec->samples, sample)
		w.has_parks |= sample->at_park;
	put(&w, &header, sizeof(header));
	put_attrs(&w, &header);
	header.data.offset = (uint64_t)ftell(out);
	put_records(&w);
	header.data.size = (uint64_t)ftell(out) - header.data.offset;
	put_features(&w, &header);
	fseek(out, 0, SEEK_SET);
	put(&w, &header, sizeof(header));
	VEC_FINI(&w.aux_offsets);
}
