// SPDX-License-Identifier: MIT
/* The frame of a perf.data file: its events and its sections. */
#include "capture/recording/perf_data_writer.h"

#include <string.h>
#include <sys/utsname.h>
#include <time.h>

const uint64_t perf_event_ids[EVENT_COUNT] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
static const char *const event_names[EVENT_COUNT] = {
	"intel_pt//u", "dummy:u",	   "mtbpf:hit",	   "mtbpf:entry", "mtbpf:sched",
	"cpu-clock",   "context-switches", "minor-faults", "major-faults"};

static bool has_event(const struct perf_writer *w, enum event_index event)
{
	if (event == EVENT_PT)
		return !w->sampled;
	return w->sampled || event < EVENT_ENTRY;
}

static uint32_t count_events(const struct perf_writer *w)
{
	uint32_t n = 0;

	for (int i = 0; i < EVENT_COUNT; i++)
		n += has_event(w, (enum event_index)i);
	return n;
}

/* As sample_ring.c opens them. */
static void fill_sampling(const struct perf_writer *w, enum event_index event,
			  struct perf_event_attr *attr)
{
	static const uint64_t configs[EVENT_COUNT] = {
		[EVENT_CLOCK] = PERF_COUNT_SW_CPU_CLOCK,
		[EVENT_SWITCHES] = PERF_COUNT_SW_CONTEXT_SWITCHES,
		[EVENT_MINOR_FAULTS] = PERF_COUNT_SW_PAGE_FAULTS_MIN,
		[EVENT_MAJOR_FAULTS] = PERF_COUNT_SW_PAGE_FAULTS_MAJ,
	};

	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = configs[event];
	attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (event == EVENT_CLOCK)
		attr->sample_period = w->rec->sample_period_ns;
	if (event == EVENT_MINOR_FAULTS)
		attr->sample_period = REC_FAULT_PERIOD;
	attr->context_switch = event == EVENT_CLOCK;
	attr->exclude_kernel = 0;
	attr->exclude_callchain_kernel = 1;
	if (w->rec->sample_users.n)
		perf_writer__describe_user(attr, MT_COPY_MAX);
}

#define SAMPLE_COMMON (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER)

/* The first PERF_DATA_ATTR_SIZE bytes of a perf_event_attr. */
static void fill_attr(const struct perf_writer *w, enum event_index event,
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
	if (w->by_cpu || w->sampled)
		attr->sample_type |= PERF_SAMPLE_CPU;
	if (w->sampled) {
		attr->use_clockid = 1;
		attr->clockid = CLOCK_MONOTONIC;
	}
	switch (event) {
	case EVENT_PT:
		attr->type = PMU_TYPE_INTEL_PT;
		attr->exclude_kernel = !w->rec->kernel.kallsyms;
		attr->exclude_user = w->rec->kernel_only;
		attr->config = w->rec->pt.config;
		break;
	case EVENT_SIDEBAND:
		attr->type = PERF_TYPE_SOFTWARE;
		attr->config = PERF_COUNT_SW_DUMMY;
		attr->mmap = attr->mmap2 = attr->comm = attr->comm_exec = attr->task = 1;
		attr->context_switch = w->by_cpu;
		break;
	case EVENT_CLOCK:
	case EVENT_SWITCHES:
	case EVENT_MINOR_FAULTS:
	case EVENT_MAJOR_FAULTS:
		fill_sampling(w, event, attr);
		break;
	case EVENT_ENTRY:
	case EVENT_BY:
		attr->type = PERF_TYPE_SOFTWARE;
		attr->config = PERF_COUNT_SW_BPF_OUTPUT;
		attr->config1 = event == EVENT_ENTRY ? PERF_OWN_ENTRY : PERF_OWN_BY;
		attr->sample_type |= PERF_SAMPLE_RAW;
		break;
	default:
		perf_writer__describe_hits(w, attr);
		break;
	}
}

static void put_string(struct perf_writer *w, const char *text)
{
	size_t len = strlen(text) + 1;
	size_t pad = padding(len, 64); /* NAME_ALIGN */

	put_u32(w, (uint32_t)(len + pad));
	put(w, text, len);
	put_zeroes(w, pad);
}

static const char *pt_event_name(const struct recording *rec)
{
	if (rec->kernel_only)
		return "intel_pt//k";
	return rec->kernel.kallsyms ? "intel_pt//" : event_names[EVENT_PT];
}

static void put_event_desc(struct perf_writer *w)
{
	put_u32(w, count_events(w));
	put_u32(w, PERF_DATA_ATTR_SIZE);
	for (int i = 0; i < EVENT_COUNT; i++) {
		struct perf_event_attr attr;

		if (!has_event(w, (enum event_index)i))
			continue;
		fill_attr(w, (enum event_index)i, &attr);
		put(w, &attr, PERF_DATA_ATTR_SIZE);
		put_u32(w, 1);
		put_string(w, i == EVENT_PT ? pt_event_name(w->rec) : event_names[i]);
		put_u64(w, perf_event_ids[i]);
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

static bool has_feature(const struct perf_writer *w, enum perf_feature feature)
{
	if (feature == PERF_FEATURE_CPUID)
		return w->rec->pt.cpu_family;
	return feature != PERF_FEATURE_AUXTRACE || !w->sampled;
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
		if (has_feature(w, all[i]))
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

	put(&w, &header, sizeof(header));
	put_attrs(&w, &header);
	header.data.offset = (uint64_t)ftell(out);
	perf_writer__put_records(&w);
	header.data.size = (uint64_t)ftell(out) - header.data.offset;
	put_features(&w, &header);
	fseek(out, 0, SEEK_SET);
	put(&w, &header, sizeof(header));
	VEC_FINI(&w.aux_offsets);
}
