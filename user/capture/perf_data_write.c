// SPDX-License-Identifier: MIT
#include "capture/perf_data.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>
#include <sys/utsname.h>

#include "util/kallsyms.h"

/* No PMU of this number need exist: perf only matches it with AUXTRACE_INFO's. */
#define PMU_TYPE_INTEL_PT 8

enum event_index { EVENT_PT, EVENT_SIDEBAND, EVENT_HIT, EVENT_COUNT };

/* Ids are any numbers that differ. */
static const uint64_t event_ids[EVENT_COUNT] = {1, 2, 3};
static const char *const event_names[EVENT_COUNT] = {"intel_pt//u", "dummy:u", "mtbpf:hit"};

#define SAMPLE_COMMON (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER)

struct perf_writer {
	FILE *out;
	const struct recording *rec;
	VEC(uint64_t) aux_offsets; /* file offsets of the AUXTRACE records */
};

/* The first PERF_DATA_ATTR_SIZE bytes of a perf_event_attr. */
static void fill_attr(const struct recording *rec, enum event_index event,
		      struct perf_event_attr *attr)
{
	*attr = (struct perf_event_attr){
		.size = PERF_DATA_ATTR_SIZE,
		.sample_period = 1,
		.sample_type = SAMPLE_COMMON,
		.read_format = PERF_FORMAT_ID,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.sample_id_all = 1,
	};
	switch (event) {
	case EVENT_PT:
		attr->type = PMU_TYPE_INTEL_PT;
		attr->exclude_kernel = !rec->kernel.kallsyms;
		attr->config = rec->pt.config;
		break;
	case EVENT_SIDEBAND:
		attr->type = PERF_TYPE_SOFTWARE;
		attr->config = PERF_COUNT_SW_DUMMY;
		attr->mmap = attr->mmap2 = attr->comm = attr->comm_exec = attr->task = 1;
		break;
	default:
		attr->type = PERF_TYPE_SOFTWARE;
		attr->config = PERF_COUNT_SW_BPF_OUTPUT;
		attr->sample_type |= PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW;
		break;
	}
}

static void put(struct perf_writer *w, const void *data, size_t len)
{
	fwrite(data, 1, len, w->out);
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

static void put_header(struct perf_writer *w, uint32_t type, uint16_t misc, size_t body)
{
	struct perf_event_header header = {
		.type = type,
		.misc = misc,
		.size = (uint16_t)(sizeof(header) + body),
	};

	put(w, &header, sizeof(header));
}

#define SAMPLE_ID_SIZE 24

/* What follows every record but samples: TID, TIME, IDENTIFIER. */
static void put_sample_id(struct perf_writer *w, pid_t pid, pid_t tid, uint64_t time_ns,
			  enum event_index event)
{
	put_u32(w, (uint32_t)pid);
	put_u32(w, (uint32_t)tid);
	put_u64(w, time_ns);
	put_u64(w, event_ids[event]);
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
		[PT_INFO_SNAPSHOT_MODE] = 1,
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

	put_header(w, PERF_RECORD_COMM, PERF_RECORD_MISC_USER, 8 + len + pad + SAMPLE_ID_SIZE);
	put_u32(w, (uint32_t)t->pid);
	put_u32(w, (uint32_t)t->tid);
	put(w, t->comm, len - 1);
	put_zeroes(w, pad + 1);
	put_sample_id(w, t->pid, t->tid, t->start_ns, EVENT_SIDEBAND);
}

static void put_itrace_start(struct perf_writer *w, const struct rec_thread *t)
{
	put_header(w, PERF_RECORD_ITRACE_START, 0, 8 + SAMPLE_ID_SIZE);
	put_u32(w, (uint32_t)t->pid);
	put_u32(w, (uint32_t)t->tid);
	put_sample_id(w, t->pid, t->tid, t->start_ns, EVENT_PT);
}

static void put_mmap2(struct perf_writer *w, const struct rec_map *m)
{
	size_t len = strlen(m->path) + 1;
	size_t pad = padding(len, 8);

	put_header(w, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, 64 + len + pad + SAMPLE_ID_SIZE);
	put_u32(w, (uint32_t)m->pid);
	put_u32(w, (uint32_t)m->tid);
	put_u64(w, m->start);
	put_u64(w, m->len);
	put_u64(w, m->pgoff);
	put_u32(w, m->maj);
	put_u32(w, m->min);
	put_u64(w, m->ino);
	put_u64(w, 0); /* inode generation */
	put_u32(w, 5); /* PROT_READ | PROT_EXEC */
	put_u32(w, 2); /* MAP_PRIVATE */
	put(w, m->path, len);
	put_zeroes(w, pad);
	put_sample_id(w, m->pid, m->tid, m->time_ns, EVENT_SIDEBAND);
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
		   32 + sizeof(name) + SAMPLE_ID_SIZE);
	put_u32(w, (uint32_t)-1);
	put_u32(w, 0);
	put_u64(w, start);
	put_u64(w, end - start);
	put_u64(w, start); /* pgoff: the symbol's address */
	put(w, name, sizeof(name));
	put_sample_id(w, -1, 0, 0, EVENT_SIDEBAND);
}

static void put_loss(struct perf_writer *w, const struct rec_loss *loss)
{
	bool is_aux = loss->aux_flags != 0;

	put_header(w, is_aux ? PERF_RECORD_AUX : PERF_RECORD_LOST, 0,
		   (is_aux ? 24 : 16) + SAMPLE_ID_SIZE);
	if (is_aux) {
		put_u64(w, 0); /* aux_offset */
		put_u64(w, 0); /* aux_size: what is missing has none */
		put_u64(w, loss->aux_flags);
	} else {
		put_u64(w, event_ids[EVENT_SIDEBAND]);
		put_u64(w, loss->records);
	}
	put_sample_id(w, loss->pid, loss->tid, loss->time_ns, is_aux ? EVENT_PT : EVENT_SIDEBAND);
}

static void put_hit(struct perf_writer *w, const struct mt_hit *hit)
{
	uint32_t depth = hit->stack_depth < MT_STACK_DEPTH ? hit->stack_depth : MT_STACK_DEPTH;
	size_t fixed = offsetof(struct mt_hit, stack);
	size_t raw = 4 + fixed;
	size_t pad = padding(raw, 8);

	put_header(w, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
		   40 + 8 + 8 * (1 + depth) + raw + pad);
	put_u64(w, event_ids[EVENT_HIT]);
	put_u64(w, hit->ip);
	put_u32(w, hit->tgid);
	put_u32(w, hit->tid);
	put_u64(w, hit->time_ns);
	put_u32(w, hit->cpu);
	put_u32(w, 0);
	put_u64(w, 1 + depth);
	put_u64(w, (uint64_t)PERF_CONTEXT_USER);
	put(w, hit->stack, 8 * depth);
	/* The call chain above is the hit's stack. */
	put_u32(w, (uint32_t)(fixed + pad));
	put(w, hit, fixed);
	put_zeroes(w, pad);
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
	put_u32(w, (uint32_t)aux->tid);
	put_u32(w, (uint32_t)-1); /* a thread's, not a CPU's */
	put_u32(w, 0);
	put(w, aux->data, aux->size);
	put_zeroes(w, pad); /* PAD packets */
}

static void put_events(struct perf_writer *w)
{
	const struct recording *rec = w->rec;

	put_auxtrace_info(w);
	put_kernel_mmap(w);
	for (size_t i = 0; i < rec->threads.n; i++)
		put_comm(w, &rec->threads.v[i]);
	for (size_t i = 0; i < rec->maps.n; i++)
		put_mmap2(w, &rec->maps.v[i]);
	for (size_t i = 0; i < rec->threads.n; i++)
		put_itrace_start(w, &rec->threads.v[i]);
	for (size_t i = 0; i < rec->losses.n; i++)
		put_loss(w, &rec->losses.v[i]);
	for (size_t i = 0; i < rec->hits.n; i++)
		put_hit(w, &rec->hits.v[i]);
	for (size_t i = 0; i < rec->aux.n; i++)
		if (rec->aux.v[i].size)
			put_auxtrace(w, &rec->aux.v[i], (uint32_t)i);
	put_header(w, PERF_USER_FINISHED_ROUND, 0, 0);
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
	put_u32(w, EVENT_COUNT);
	put_u32(w, PERF_DATA_ATTR_SIZE);
	for (int i = 0; i < EVENT_COUNT; i++) {
		struct perf_event_attr attr;

		fill_attr(w->rec, (enum event_index)i, &attr);
		put(w, &attr, PERF_DATA_ATTR_SIZE);
		put_u32(w, 1);
		put_string(w, i == EVENT_PT && w->rec->kernel.kallsyms ? "intel_pt//"
								       : event_names[i]);
		put_u64(w, event_ids[i]);
	}
}

static void put_auxtrace_index(struct perf_writer *w)
{
	put_u64(w, w->aux_offsets.n);
	for (size_t i = 0; i < w->aux_offsets.n; i++) {
		put_u64(w, w->aux_offsets.v[i]);
		put_u64(w, 48); /* the record's size, without the data behind it */
	}
}

static void put_cpuid(struct perf_writer *w)
{
	const struct rec_pt_config *pt = &w->rec->pt;
	char text[64];

	snprintf(text, sizeof(text), "GenuineIntel,%u,%u,%u", pt->cpu_family, pt->cpu_model,
		 pt->cpu_stepping);
	put_string(w, text);
}

static void put_feature(struct perf_writer *w, enum perf_feature feature)
{
	struct utsname name;

	switch (feature) {
	case PERF_FEATURE_BUILD_ID:
		perf_data__write_build_ids(w->rec, w->out);
		break;
	case PERF_FEATURE_OSRELEASE:
		put_string(w, uname(&name) ? "" : name.release);
		break;
	case PERF_FEATURE_VERSION:
		put_string(w, "mtbpf " MTBPF_VERSION);
		break;
	case PERF_FEATURE_ARCH:
		put_string(w, "x86_64");
		break;
	case PERF_FEATURE_CPUID:
		put_cpuid(w);
		break;
	case PERF_FEATURE_EVENT_DESC:
		put_event_desc(w);
		break;
	case PERF_FEATURE_AUXTRACE:
		put_auxtrace_index(w);
		break;
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
	struct perf_data_section sections[sizeof(all) / sizeof(all[0])];
	size_t n = 0;
	long table = ftell(w->out);

	memset(sections, 0, sizeof(sections));
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i] != PERF_FEATURE_CPUID || w->rec->pt.cpu_family)
			header->features[0] |= 1ull << all[i];
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		n += header->features[0] >> all[i] & 1;
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

	put(w, event_ids, sizeof(event_ids));
	header->attr_size = PERF_DATA_ATTR_SIZE + sizeof(struct perf_data_section);
	header->attrs.offset = (uint64_t)ftell(w->out);
	header->attrs.size = EVENT_COUNT * header->attr_size;
	for (int i = 0; i < EVENT_COUNT; i++) {
		struct perf_data_section id = {ids + 8 * (uint64_t)i, 8};
		struct perf_event_attr attr;

		fill_attr(w->rec, (enum event_index)i, &attr);
		put(w, &attr, PERF_DATA_ATTR_SIZE);
		put(w, &id, sizeof(id));
	}
}

void perf_data__write(const struct recording *rec, FILE *out)
{
	struct perf_writer w = {.out = out, .rec = rec};
	struct perf_data_header header = {.magic = PERF_DATA_MAGIC, .size = sizeof(header)};

	put(&w, &header, sizeof(header));
	put_attrs(&w, &header);
	header.data.offset = (uint64_t)ftell(out);
	put_events(&w);
	header.data.size = (uint64_t)ftell(out) - header.data.offset;
	put_features(&w, &header);
	fseek(out, 0, SEEK_SET);
	put(&w, &header, sizeof(header));
	VEC_FINI(&w.aux_offsets);
}
