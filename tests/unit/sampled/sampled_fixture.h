/* SPDX-License-Identifier: MIT */
/* A recording of samples by hand, and the trees that it makes. */
#ifndef MTBPF_TESTS_SAMPLED_FIXTURE_H
#define MTBPF_TESTS_SAMPLED_FIXTURE_H

#include "tree_text.h"

#include <string.h>

#include "sampled/sampled.h"
#include "stack/stack.h"

#define PID    42
#define TID    43
#define LEN    0x100
#define MAIN   0x10000ull
#define ITER   0x20000ull
#define FIND   0x30000ull
#define PLUGIN 0x50000ull
#define PAGE   0x40000ull /* the kernel's in the process: a return probe's trampoline */

struct fixture {
	struct recording rec;
	struct images *images;
	struct call_tree trees[4];
	size_t n_trees;
	struct sampled_totals totals;
};

static inline void map_code(struct recording *rec, uint64_t time_ns, uint64_t start,
			    const char *path)
{
	uint8_t code[LEN] = {0};
	struct rec_map map = {.time_ns = time_ns,
			      .start = start,
			      .len = LEN,
			      .pid = PID,
			      .tid = PID,
			      .path = (char *)path};
	struct rec_image image = {
		.path = (char *)path, .start = start, .data = code, .size = sizeof(code)};

	memset(code, 0x90, sizeof(code));
	assert_int_equal(recording__add_map(rec, &map), 0);
	assert_int_equal(recording__add_image(rec, &image), 0);
}

static inline int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	recording__init(&f->rec);
	f->rec.sample_period_ns = 100;
	f->rec.probe_ip = ITER;
	map_code(&f->rec, 0, MAIN, "[main]");
	map_code(&f->rec, 0, ITER, "[iter]");
	map_code(&f->rec, 0, FIND, "[find]");
	map_code(&f->rec, 0, PAGE, "[uprobes]");
	*state = f;
	return 0;
}

static inline int tear_down(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < f->n_trees; i++)
		call_tree__fini(&f->trees[i]);
	images__free(f->images);
	recording__fini(&f->rec);
	free(f);
	return 0;
}

/* Innermost first, to 0. */
static inline struct rec_sample *sample(struct fixture *f, pid_t tid, uint64_t time_ns,
					const uint64_t *ips)
{
	struct rec_sample sample = {.time_ns = time_ns, .pid = PID, .tid = tid};

	while (ips[sample.n_ips])
		sample.n_ips++;
	assert_int_equal(recording__add_sample(&f->rec, &sample, ips), 0);
	return &f->rec.samples.v[f->rec.samples.n - 1];
}

#define SAMPLE(f, tid, time, ...) sample(f, tid, time, (const uint64_t[]){__VA_ARGS__, 0})

static inline void sched(struct fixture *f, uint64_t time_ns, enum rec_sched_what what)
{
	struct rec_sched sched = {.time_ns = time_ns, .pid = PID, .tid = TID, .what = what};

	assert_int_equal(VEC_ADD(&f->rec.scheds, sched), 0);
}

static inline void interrupts(struct fixture *f, pid_t tid, uint64_t start_ns, uint64_t end_ns,
			      uint64_t ns)
{
	struct mt_sched sched = {.time_ns = start_ns,
				 .tid = (uint32_t)tid,
				 .tgid = PID,
				 .kind = MT_SCHED_INTERRUPTS,
				 .took = {.arg = ns, .end_ns = end_ns}};

	assert_int_equal(recording__add_sched_by(&f->rec, &sched), 0);
}

static inline void hit(struct fixture *f, uint64_t time_ns)
{
	struct mt_hit hit = {.time_ns = time_ns, .tid = TID, .tgid = PID};

	assert_int_equal(VEC_ADD(&f->rec.hits, hit), 0);
}

static inline struct mt_entry entry_of(uint64_t ip, uint64_t start_ns, uint64_t end_ns)
{
	return (struct mt_entry){
		.start_ns = start_ns, .end_ns = end_ns, .tid = TID, .tgid = PID, .ip = ip};
}

static inline int take(void *ctx, struct call_tree *tree)
{
	struct fixture *f = ctx;

	assert_true(f->n_trees < 4);
	f->trees[f->n_trees++] = *tree;
	return 0;
}

static inline void make_trees(struct fixture *f, size_t expected)
{
	f->images = images__new(&f->rec);
	assert_int_equal(sampled__trees(&f->rec, f->images, take, f, &f->totals), 0);
	assert_int_equal(f->n_trees, expected);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
