/* SPDX-License-Identifier: MIT */
/* A recording with something of everything in it. */
#ifndef MTBPF_TESTS_RECORDING_FIXTURE_H
#define MTBPF_TESTS_RECORDING_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/recording/recording.h"

#define MTC_PERIOD 3

static inline void fill_hits(struct recording *rec)
{
	static const uint32_t depths[] = {0, 1, 5, MT_STACK_DEPTH};

	for (uint32_t i = 0; i < 4; i++) {
		struct mt_hit hit = {.time_ns = 5000 + i,
				     .value_ns = 1ull << 60,
				     .sequence = 7 + i,
				     .ip = 0x401000,
				     .probe_ip = 0x402000 + i,
				     .sp = 0x7ffe00000000,
				     .bp = 0x7ffe00000010,
				     .tid = 100 + i,
				     .tgid = 100,
				     .cpu = i,
				     .reason = MT_HIT_DELAY,
				     .n_branches = i * MT_BRANCHES_MAX / 3,
				     .stack_depth = depths[i],
				     .trace_id = {i % 2, i}};

		for (uint32_t j = 0; j < hit.n_branches; j++)
			hit.branches[j] = (struct mt_branch){0x401000 + j, 0x402000 + j, j};
		for (uint32_t j = 0; j < depths[i]; j++)
			hit.stack[j] = 0x401000 + 16 * (uint64_t)j;
		assert_int_equal(VEC_ADD(&rec->hits, hit), 0);
	}
}

/* A hit in a recording whose hits have stacks: registers, and so many bytes from its sp on. */
static inline void add_hit_with_stack(struct recording *rec, uint32_t depth, size_t size)
{
	struct mt_hit hit = {.ip = 0x401000,
			     .probe_ip = 0x402000,
			     .sp = 0x7ffe00000000,
			     .bp = 5,
			     .bx = 6,
			     .r12 = 12,
			     .r13 = 13,
			     .r14 = 1ull << 63,
			     .r15 = 15,
			     .tid = 100,
			     .tgid = 100,
			     .copied = (uint32_t)size,
			     .stack_depth = depth};
	uint8_t *stack = malloc(size ? size : 1);

	for (uint32_t i = 0; i < depth; i++)
		hit.stack[i] = 0x401000 + i;
	for (size_t i = 0; i < size; i++)
		stack[i] = (uint8_t)(i * 7 + i / 256);
	assert_int_equal(VEC_ADD(&rec->hits, hit), 0);
	if (size)
		assert_int_equal(recording__add_stack(rec, stack, size), 0);
	free(stack);
}

static inline void fill_threads(struct recording *rec, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct rec_thread thread = {.pid = 100, .tid = (pid_t)(100 + i), .start_ns = i};
		/* Some with nothing, some not whole words. */
		struct rec_aux aux = {.pid = 100,
				      .tid = thread.tid,
				      .tsc = 0xffffffffff000000 + i,
				      .size = i % 7 ? 3 * (size_t)i : 0};

		snprintf(thread.comm, sizeof(thread.comm), i % 2 ? "t%u" : "a_long_name_%u", i);
		if (i == 4)
			thread.comm[0] = '\0';
		aux.data = malloc(aux.size ? aux.size : 1);
		for (size_t j = 0; j < aux.size; j++)
			aux.data[j] = (uint8_t)(i + 31 * j);
		assert_int_equal(recording__add_thread(rec, &thread), 0);
		assert_int_equal(recording__add_aux(rec, &aux), 0);
	}
}

static inline void fill_maps(struct recording *rec)
{
	char long_path[3000];
	struct rec_map map = {.start = 0x400000, .len = 0x3000, .pid = 100, .tid = 100};
	char *const paths[] = {"/usr/bin/x", "[vdso]", "", "/a b\xc3\xa9\n", long_path};

	memset(long_path, 'p', sizeof(long_path) - 1);
	long_path[0] = '/';
	long_path[sizeof(long_path) - 1] = '\0';
	for (uint32_t i = 0; i < 5; i++) {
		map.time_ns = 10 * i;
		map.start += 0x10000;
		map.pgoff = 0x1000 * i;
		map.ino = 1ull << (8 * i);
		map.maj = i;
		map.min = i + 1;
		map.path = paths[i];
		assert_int_equal(recording__add_map(rec, &map), 0);
	}
}

static inline void fill_losses(struct recording *rec)
{
	/* In front of it, though added later. */
	struct rec_loss losses[] = {
		{.time_ns = 40, .pid = 100, .tid = 101, .aux_flags = 4 /* PARTIAL */},
		{.time_ns = 30, .pid = 100, .tid = 100, .records = 1ull << 40},
	};

	assert_int_equal(recording__add_loss(rec, &losses[0]), 0);
	assert_int_equal(recording__add_loss(rec, &losses[1]), 0);
	assert_int_equal(rec->losses.v[0].time_ns, 30);
}

static inline void recording__fill(struct recording *rec, uint32_t n_threads)
{
	uint8_t bytes[] = {0x90, 0, 0xc3};
	struct rec_image images[] = {
		{.path = "[vdso]", .start = 1ull << 63, .data = bytes, .size = 3, .is_elf = true},
		{.path = "[uprobes] \"quoted\"", .start = 0x7000, .data = bytes, .size = 0},
	};

	recording__init(rec);
	rec->source = strdup("soft");
	rec->trigger = strdup("ns::one_iter(int)");
	rec->command = strdup("a \"command\"\xc3\xa9");
	rec->freeze = strdup("at the probe");
	rec->pid = 100;
	rec->threshold_ns = UINT64_MAX;
	rec->reason = MT_HIT_DURATION;
	rec->frozen_ns = 6001;
	rec->unix_zero_ns = 1763700000123456789;
	rec->probe_ip = 0x401000;
	assert_non_null(VEC_PUSH(&rec->stops));
	rec->stops.v[0] = (struct rec_place){
		.ino = 0x8000000000000001, .offset = 0x1040, .maj = 0xfffff, .min = 3};
	rec->pt = (struct rec_pt_config){.time_shift = 31,
					 .time_mult = 0xfffffff0,
					 .time_zero = 1ull << 62,
					 .config = 1u << 10 | (uint64_t)MTC_PERIOD << 14,
					 .mtc_freq = MTC_PERIOD,
					 .nom_freq = 24,
					 .tsc_ctc_num = 200,
					 .tsc_ctc_den = 2,
					 .cpu_family = 6,
					 .cpu_model = 142,
					 .cpu_stepping = 10};
	fill_threads(rec, n_threads);
	fill_maps(rec);
	fill_hits(rec);
	fill_losses(rec);
	assert_int_equal(recording__add_image(rec, &images[0]), 0);
	assert_int_equal(recording__add_image(rec, &images[1]), 0);
}

static inline void add_cpu_aux(struct recording *rec, int cpu, size_t size)
{
	struct rec_aux aux = {.cpu = cpu, .tsc = 77, .size = size, .data = malloc(size)};

	for (size_t i = 0; i < size; i++)
		aux.data[i] = (uint8_t)(cpu + 3 * i);
	assert_int_equal(recording__add_aux(rec, &aux), 0);
}

/* The same by CPU: who ran where, and two snapshots of one of the CPUs. */
static inline void recording__fill_by_cpu(struct recording *rec)
{
	static const struct rec_switch switches[] = {
		{50, 0, 100, 101}, {51, 7, 0, 0},	{60, 7, 200, 203},
		{60, 0, 0, 0},	   {61, 0, 100, 100},	{70, 0, 200, 203},
		{70, 7, 0, 0},	   {71, 255, 300, 300}, {72, 0, 0, 0},
	};

	recording__fill(rec, 0);
	for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
		assert_int_equal(recording__add_switch(rec, &switches[i]), 0);
	add_cpu_aux(rec, 0, 16);
	add_cpu_aux(rec, 7, 24);
	add_cpu_aux(rec, 255, 8);
	add_cpu_aux(rec, 0, 32);
}

#endif
