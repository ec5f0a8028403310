/* SPDX-License-Identifier: MIT */
/*
 * The part of the perf.data file format that a recording needs. Sources: the kernel's
 * tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h.
 */
#ifndef MTBPF_CAPTURE_RECORDING_PERF_DATA_H
#define MTBPF_CAPTURE_RECORDING_PERF_DATA_H

#include <asm/perf_regs.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>

#include "capture/recording/recording.h"

#define PERF_DATA_MAGIC	    0x32454c4946524550ull /* "PERFILE2" */
#define PERF_DATA_ATTR_SIZE 112			  /* PERF_ATTR_SIZE_VER5 */

/* Feature sections, by bit number (tools/perf/util/header.h). */
enum perf_feature {
	PERF_FEATURE_BUILD_ID = 2,
	PERF_FEATURE_OSRELEASE = 4,
	PERF_FEATURE_VERSION = 5,
	PERF_FEATURE_ARCH = 6,
	PERF_FEATURE_CPUID = 9,
	PERF_FEATURE_EVENT_DESC = 12,
	PERF_FEATURE_AUXTRACE = 18,
};

/* Record types of the perf tool itself (tools/lib/perf/include/perf/event.h). */
enum perf_user_record {
	PERF_USER_FINISHED_ROUND = 68,
	PERF_USER_AUXTRACE_INFO = 70,
	PERF_USER_AUXTRACE = 71,
};

#define AUXTRACE_TYPE_INTEL_PT 1

/* AUXTRACE_INFO's words for Intel PT (tools/perf/util/intel-pt.h: INTEL_PT_PMU_TYPE ff.). */
enum perf_intel_pt_info {
	PT_INFO_PMU_TYPE,
	PT_INFO_TIME_SHIFT,
	PT_INFO_TIME_MULT,
	PT_INFO_TIME_ZERO,
	PT_INFO_CAP_USER_TIME_ZERO,
	PT_INFO_TSC_BIT,
	PT_INFO_NORETCOMP_BIT,
	PT_INFO_HAVE_SCHED_SWITCH,
	PT_INFO_SNAPSHOT_MODE,
	PT_INFO_PER_CPU_MMAPS,
	PT_INFO_MTC_BIT,
	PT_INFO_MTC_FREQ_BITS,
	PT_INFO_TSC_CTC_N,
	PT_INFO_TSC_CTC_D,
	PT_INFO_CYC_BIT,
	PT_INFO_MAX_NONTURBO,
	PT_INFO_FILTER_STR_LEN,
	PT_INFO_COUNT,
};

/*
 * Registers of hits and of samples with a copy of the stack, in the order of their bits
 * (asm/perf_regs.h).
 */
#define PERF_HIT_REGS                                                                              \
	(1ull << PERF_REG_X86_BX | 1ull << PERF_REG_X86_BP | 1ull << PERF_REG_X86_SP |             \
	 1ull << PERF_REG_X86_IP | 1ull << PERF_REG_X86_R12 | 1ull << PERF_REG_X86_R13 |           \
	 1ull << PERF_REG_X86_R14 | 1ull << PERF_REG_X86_R15)

/* The raw data of our own samples (PERF_COUNT_SW_BPF_OUTPUT): attr.config1. */
enum perf_own_data {
	PERF_OWN_HIT,	/* struct mt_hit up to its stack, then its arguments: see put_args() */
	PERF_OWN_ENTRY, /* struct mt_entry */
	PERF_OWN_BY,	/* struct mt_sched */
};

struct perf_data_section {
	uint64_t offset, size;
};

struct perf_data_header {
	uint64_t magic;
	uint64_t size;
	uint64_t attr_size; /* of one entry of attrs: the attr and its ids' section */
	struct perf_data_section attrs, data, event_types;
	uint64_t features[4];
};
_Static_assert(sizeof(struct perf_data_header) == 104, "perf_data_header");

/* struct perf_record_header_build_id, tools/lib/perf/include/perf/event.h; the name follows. */
struct build_id_record {
	struct perf_event_header header;
	int32_t pid;
	uint8_t id[20], size, pad[3];
};
#define MISC_BUILD_ID_SIZE (1u << 15) /* in header.misc: the record has the id's size */

/*
 * Writes rec as a perf.data file. Errors stay in the stream (ferror); the caller checks them and
 * closes it.
 */
void perf_data__write(const struct recording *rec, FILE *out);

/* Reads the build id section. Each build id is set in all maps of its path that lack one. */
void perf_data__read_build_ids(struct recording *rec, const uint8_t *bytes, size_t size);
/*
 * Writes the build id section: one record per path of rec->files, since perf knows one build id per
 * path.
 */
void perf_data__write_build_ids(const struct recording *rec, FILE *out);

/*
 * Reads a perf.data file's bytes into rec: maps, threads, PT or samples, hits, decoder settings. 0,
 * or -errno with *why set to a constant sentence: -EINVAL: not perf.data, damaged, or written to a
 * pipe; -ENODATA: neither Intel PT nor call chains; -ENOMEM. The bytes are copied, except PT in
 * rec->mapped.
 */
int perf_data__read(struct recording *rec, const uint8_t *data, size_t size, const char **why);

#endif
