/* SPDX-License-Identifier: MIT */
/*
 * The part of perf's interface for filters that mtbpf uses: perf-dlfilter(1),
 * <perf/perf_dlfilter.h>. Newer versions append fields to structures, which contain their size.
 */
#ifndef MTBPF_DLFILTER_DLFILTER_ABI_H
#define MTBPF_DLFILTER_DLFILTER_ABI_H

#include <stddef.h>
#include <stdint.h>

struct dlfilter_sample {
	uint32_t size;
	uint16_t unused_16[2];
	uint64_t ip;
	int32_t pid, tid;
	uint64_t time;
	uint64_t addr;
	uint64_t unused_64[5];
	uint64_t insn_cnt; /* since the last sample that counts them; 0: not known */
	uint64_t cyc_cnt;
	int32_t cpu;
	uint32_t flags; /* enum perf_flag */
	uint64_t unused_more[5];
	uint8_t cpumode;
	uint8_t addr_correlates_sym; /* resolve_addr() may be called */
	uint16_t unused_misc;
	uint32_t unused_raw_size;
	uint64_t unused_pointers[5];
	const char *event; /* "branches:u" */
};

/* A place, resolved. */
struct dlfilter_place {
	uint32_t size;
	uint32_t symoff;
	const char *sym; /* NULL: unnamed */
	uint64_t addr, sym_start, sym_end;
	const char *dso; /* NULL: nothing is mapped there */
	uint8_t sym_binding, is_64_bit, is_kernel_ip;
	uint32_t buildid_size;
	uint8_t *buildid;
	uint8_t filtered;
	const char *comm; /* from resolve_ip() only */
};

/* perf fills this in. What it hands out is good until the filter returns. */
struct dlfilter_fns {
	const struct dlfilter_place *(*resolve_ip)(void *ctx);
	const struct dlfilter_place *(*resolve_addr)(void *ctx);
	char **(*args)(void *ctx, int *count);
	int32_t (*resolve_address)(void *ctx, uint64_t address, struct dlfilter_place *place);
	const uint8_t *(*insn)(void *ctx, uint32_t *len);
	void *unused[123];
};

_Static_assert(offsetof(struct dlfilter_sample, time) == 24, "as perf has it");
_Static_assert(offsetof(struct dlfilter_sample, insn_cnt) == 80, "as perf has it");
_Static_assert(offsetof(struct dlfilter_sample, flags) == 100, "as perf has it");
_Static_assert(offsetof(struct dlfilter_sample, addr_correlates_sym) == 145, "as perf has it");
_Static_assert(offsetof(struct dlfilter_sample, event) == 192, "as perf has it");
_Static_assert(offsetof(struct dlfilter_place, dso) == 40, "as perf has it");
_Static_assert(offsetof(struct dlfilter_place, comm) == 72, "as perf has it");
_Static_assert(sizeof(struct dlfilter_fns) == 128 * sizeof(void *), "as perf has it");

/* True if perf's structure is new enough to have the field. */
#define DLFILTER_HAS(object, field)                                                                \
	((object)->size >= offsetof(__typeof__(*(object)), field) + sizeof((object)->field))

#endif
