/* SPDX-License-Identifier: MIT */
/* Stacks of moments of a few functions, and the slices that are made of them. */
#ifndef MTBPF_TESTS_SAMPLED_SLICES_FIXTURE_H
#define MTBPF_TESTS_SAMPLED_SLICES_FIXTURE_H

#include "tree_text.h"

#include <string.h>

#include "sampled/slices.h"
#include "stack/stack.h"

#define PERIOD 100

static const struct function main_ = {.name = "main", .module = "x"};
static const struct function iter = {.name = "iter", .module = "x"};
static const struct function find = {.name = "find", .module = "x"};
static const struct function grow = {.name = "grow", .module = "x"};

struct fixture {
	struct call_tree tree;
	struct slices slices;
};

static inline int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->slices = (struct slices){.tree = &f->tree, .period_ns = PERIOD};
	*state = f;
	return 0;
}

static inline int tear_down(void **state)
{
	struct fixture *f = *state;

	slices__fini(&f->slices);
	call_tree__fini(&f->tree);
	free(f);
	return 0;
}

/* Outermost first, to NULL; each calls the next from one place, whatever it is. */
static inline void see(struct fixture *f, uint64_t time_ns, const struct function *const *functions)
{
	struct seen stack[8];
	size_t n = 0;

	for (; functions[n]; n++)
		stack[n] = (struct seen){.function = functions[n],
					 .ip = 0x1000 + n,
					 .return_ip = n ? 0x2000 + n : 0,
					 .kind = CALL_FUNCTION};
	slices__see(&f->slices, time_ns, stack, n);
}

#define SEE(f, time, ...) see(f, time, (const struct function *const[]){__VA_ARGS__, NULL})

static inline void assert_slices(struct fixture *f, uint64_t end_ns, const char *expected)
{
	slices__end(&f->slices, end_ns);
	assert_false(f->slices.failed);
	for (size_t i = 0; i < f->tree.calls.n; i++)
		assert_true(f->tree.calls.v[i].flags & CALL_SAMPLED);
	assert_tree(&f->tree, expected);
}

#define SLICES_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
