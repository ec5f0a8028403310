/* SPDX-License-Identifier: MIT */
/* Two threads of a Go program, and the goroutines of both. */
#ifndef MTBPF_TESTS_MIGRATION_FIXTURE_H
#define MTBPF_TESTS_MIGRATION_FIXTURE_H

#include "stack_go_fixture.h"

#include "stack/tree_passes.h"

enum { FIRST, SECOND, N_THREADS };

/* Threads of a process: the one that runs is t->stack. */
struct process {
	struct thread *t;
	struct stack *stacks[N_THREADS];
	VEC(struct call_tree) trees;
	size_t n_seen;
};

static inline int start_process(void **state)
{
	struct process *p = calloc(1, sizeof(*p));

	start((void **)&p->t);
	p->stacks[FIRST] = p->t->stack;
	p->stacks[SECOND] = stack__new(42, 44, "helper", p->t->map);
	*state = p;
	return 0;
}

static inline int end_process(void **state)
{
	struct process *p = *state;

	for (size_t i = 0; i < p->trees.n; i++)
		call_tree__fini(&p->trees.v[i]);
	VEC_FINI(&p->trees);
	stack__free(p->stacks[SECOND]);
	p->t->stack = p->stacks[FIRST];
	end_thread((void **)&p->t);
	free(p);
	return 0;
}

static inline struct thread *run(struct process *p, int which)
{
	p->t->stack = p->stacks[which];
	return p->t;
}

static inline void take_trees(struct process *p, struct stack *stack)
{
	struct call_tree tree;
	int more = stack__finish(stack, &tree) ? -1 : 1;

	for (; more > 0; more = stack__finish_next(stack, &tree)) {
		struct call_tree *added = VEC_PUSH(&p->trees);

		assert_non_null(added);
		*added = tree;
	}
	assert_int_equal(more, 0);
}

static inline void join(struct process *p)
{
	take_trees(p, p->stacks[FIRST]);
	take_trees(p, p->stacks[SECOND]);
	assert_int_equal(migration_pass__run(p->trees.v, p->trees.n), 0);
}

/* The next goroutine's. */
static inline void assert_goroutine(struct process *p, pid_t tid, const char *expected)
{
	const struct call_tree *tree;

	do {
		assert_true(p->n_seen < p->trees.n);
		tree = &p->trees.v[p->n_seen++];
	} while (strncmp(tree->coroutine_name, "goroutine", strlen("goroutine")));
	assert_int_equal(tree->tid, tid);
	assert_tree(tree, expected);
}

/* a() has called b(), which waits behind B + 0x15. */
static inline void park_on_first(struct process *p)
{
	struct thread *t = run(p, FIRST);

	start_first(t, A);		  /* 10-50 */
	call(t, A + 0x10, HANDLER_2);	  /* 60 */
	schedule(t, HANDLER_2 + 0x10, C); /* 70-100 */
}

static inline void wake_on_second(struct process *p)
{
	start_first(run(p, SECOND), HANDLER_2 + 0x15); /* 110-150 */
}

/*
 * It returns to a(), and ends. Behind a gap the thread goes on with another one, on the same track,
 * which begins at `next`.
 */
static inline struct thread *end_on_second(struct process *p, uint64_t next)
{
	struct thread *t = run(p, SECOND);

	ret(t, HANDLER_2 + 0x20, A + 0x15); /* 160 */
	call(t, A + 0x20, GOEXIT);
	call(t, GOEXIT + 0x10, MCALL);
	call(t, MCALL + 0x10, GOEXIT_0); /* 190 */
	gap(t, GAP_OVERFLOW);
	begin(t, SCHEDULE + 0x10);
	call(t, SCHEDULE + 0x20, GOGO);
	jump(t, GOGO + 3, next); /* 230 */
	return t;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_process, end_process)

#endif
