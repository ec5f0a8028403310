/* SPDX-License-Identifier: MIT */
/* Hand-made call trees to report on. */
#ifndef MTBPF_TESTS_REPORT_FIXTURE_H
#define MTBPF_TESTS_REPORT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "decode/branch.h"
#include "mtbpf_shared.h"
#include "view/report.h"

#define TID 43
#define MS  1000000ull

static const struct function program = {.name = "main", .module = "service"},
			     iter = {.name = "iter", .module = "service"},
			     work = {.name = "work", .module = "service"},
			     stall = {.name = "stall", .module = "service"};

struct fixture {
	struct call_tree trees[2]; /* of another thread, and of the one that triggered */
	struct hit_mark hit;
	char *text;
	size_t size;
};

static inline int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->trees[0].tid = TID + 1;
	f->trees[1].tid = TID;
	f->hit = (struct hit_mark){
		.reason = MT_HIT_DELAY, .tid = TID, .function = &iter, .time_ns = 7 * MS};
	*state = f;
	return 0;
}

static inline int tear_down(void **state)
{
	struct fixture *f = *state;

	VEC_FINI(&f->trees[0].calls);
	VEC_FINI(&f->trees[1].calls);
	VEC_FINI(&f->trees[1].done_by);
	VEC_FINI(&f->trees[1].waits);
	VEC_FINI(&f->trees[1].faults);
	VEC_FINI(&f->trees[1].interrupts);
	free(f->text);
	free(f);
	return 0;
}

static inline struct call *add_to(struct call_tree *tree, uint32_t depth, uint64_t start_ns,
				  uint64_t end_ns, const struct function *function)
{
	struct call *call = VEC_PUSH(&tree->calls);

	assert_non_null(call);
	*call = (struct call){.start_ns = start_ns,
			      .end_ns = end_ns,
			      .function = function,
			      .parent = CALL_NO_PARENT,
			      .depth = depth};
	for (uint32_t i = 0; i + 1 < tree->calls.n; i++)
		if (tree->calls.v[i].depth + 1 == depth)
			call->parent = i;
	return call;
}

/* In pre-order. */
static inline struct call *add(struct fixture *f, uint32_t depth, uint64_t start_ns,
			       uint64_t end_ns, const struct function *function)
{
	return add_to(&f->trees[1], depth, start_ns, end_ns, function);
}

static inline int print_input(struct fixture *f, bool sampled, size_t top)
{
	struct report *r = report__new(&(struct report_input){
		.trees = f->trees, .n_trees = 2, .hit = &f->hit, .sampled = sampled});
	int err = r ? 0 : -errno;
	FILE *out;

	free(f->text);
	out = open_memstream(&f->text, &f->size);
	if (r)
		report__print(out, r, top);
	report__free(r);
	fclose(out);
	return err;
}

static inline int print(struct fixture *f, size_t top)
{
	return print_input(f, false, top);
}

static inline void assert_report(struct fixture *f, size_t top, const char *expected)
{
	assert_int_equal(print(f, top), 0);
	assert_string_equal(f->text, expected);
}

static inline void assert_report_begins(struct fixture *f, const char *expected)
{
	assert_int_equal(print(f, 0), 0);
	f->text[strlen(expected)] = '\0';
	assert_string_equal(f->text, expected);
}

static inline void assert_no_report(struct fixture *f)
{
	assert_int_equal(print(f, 10), -ENODATA);
	assert_string_equal(f->text, "");
}

/* main calls iter at 1, 2, 3 and 7 ms; stall takes 3 ms of the last iteration. */
static inline void add_iterations(struct fixture *f)
{
	add(f, 0, 0, 8 * MS, &program)->flags = CALL_INFERRED_START | CALL_INFERRED_END;
	for (uint64_t at = MS; at <= 3 * MS; at += MS) {
		add(f, 1, at, at + 200000, &iter);
		add(f, 2, at + 100000, at + 150000, &work);
	}
	add(f, 1, 3 * MS + 200000, 6 * MS + 200000, &stall);
	add(f, 2, 4 * MS, 5 * MS, NULL)->kind = CALL_SYSCALL;
	add(f, 1, 7 * MS, 8 * MS, &iter)->flags = CALL_INFERRED_END;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
