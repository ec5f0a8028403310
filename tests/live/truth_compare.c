// SPDX-License-Identifier: MIT
#include "truth_compare.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <cmocka.h>

#include "../each_branch.h"
#include "../stack_state.h"
#include "capture/recording/recording.h"
#include "decode/decode.h"
#include "stack/stack.h"

/* One call or return as it really was. */
struct true_event {
	pid_t tid;
	bool is_call;
	uint64_t to;
	long depth;
};

struct truth_log {
	VEC(struct true_event) events;
};

/* A thread's decoded calls and returns, compared with its true ones from the last to the first. */
struct seen_event {
	bool is_call;
	uint64_t to;
	long level;
	unsigned int coroutine;
	const struct function *top;
	const struct function *function; /* that holds `to` */
};

struct comparison {
	struct stack *stack;
	struct code_map *map;
	long bare; /* the level of a function without a return address, while it calls; or 0 */
	VEC(struct seen_event) seen;
};

static void read_truth(struct truth_log *log, const char *path)
{
	FILE *f = fopen(path, "r");
	char kind[16], *line = NULL;
	size_t size = 0;
	struct true_event e;

	assert_non_null(f);
	while (getline(&line, &size, f) > 0) {
		struct true_event *out = VEC_PUSH(&log->events);

		assert_int_equal(
			sscanf(line, "%d %*u %15s %" SCNx64 " %ld", &e.tid, kind, &e.to, &e.depth),
			4);
		e.is_call = !strcmp(kind, "call");
		assert_non_null(out);
		*out = e;
	}
	free(line);
	fclose(f);
}

/*
 * Before caml_raise_exn calls caml_stash_backtrace, it takes its own return address off the stack
 * (OCaml 4: runtime/amd64.S), which is what the true depth is counted by: one less than calls.
 */
static long count_level(struct comparison *c, const struct branch *b)
{
	const struct function *top = top_function(c->stack);
	long level = top_level(c->stack);
	struct code_place from;

	if (b->kind == BRANCH_CALL && code_map__find(c->map, b->from, &from) &&
	    !strcmp(from.function->name, "caml_raise_exn"))
		c->bare = level - 1;
	else if (c->bare && (level < c->bare || !top))
		c->bare = 0;
	else if (c->bare && level == c->bare && strcmp(top->name, "caml_raise_exn"))
		c->bare = 0;
	return c->bare ? level - 1 : level;
}

static int on_branch(void *ctx, const struct branch *b)
{
	struct comparison *c = ctx;
	struct seen_event *seen;
	struct code_place place = {0};
	int err = take_one(c->stack, b);

	if (err || (b->kind != BRANCH_CALL && b->kind != BRANCH_RETURN))
		return err;
	if (b->kind == BRANCH_CALL && b->to == b->from + b->len)
		return 0;
	code_map__find(c->map, b->to, &place);
	/* A label of assembly may stand behind the call: what is returned to is what called. */
	if (b->kind == BRANCH_RETURN && place.function != top_function(c->stack))
		code_map__find(c->map, b->to - 1, &place);
	seen = VEC_PUSH(&c->seen);
	if (!seen)
		return -1;
	*seen = (struct seen_event){
		.is_call = b->kind == BRANCH_CALL,
		.to = b->to,
		.level = count_level(c, b),
		.coroutine = running_stack(c->stack),
		.top = top_function(c->stack),
		.function = place.function,
	};
	return 0;
}

TAKE_EACH(on_branches, on_branch)

/* A PLT stub's frame carries the stub's name until it has jumped on. */
static bool is_right(const struct true_event *t, const struct seen_event *s, long offset)
{
	return t->depth == s->level + offset && s->top == s->function;
}

static void print_wrong(const struct true_event *t, const struct seen_event *s, long offset,
			size_t i)
{
	print_message("event %zu: truth %s %#" PRIx64 " depth %ld, decoded %s %#" PRIx64
		      " depth %ld in %s (%s)\n",
		      i, t->is_call ? "call" : "return", t->to, t->depth,
		      s->is_call ? "call" : "return", s->to, s->level + offset,
		      s->top ? s->top->name : "?", s->function ? s->function->name : "?");
}

/* wrong: how many were; NULL: none may be. */
static void compare_one(const struct true_event *t, const struct seen_event *s, long offset,
			size_t i, size_t *wrong)
{
	bool right = is_right(t, s, offset);

	if (t->to != s->to || t->is_call != s->is_call || (!right && !wrong))
		print_wrong(t, s, offset, i);
	assert_int_equal(t->is_call, s->is_call);
	assert_int_equal(t->to, s->to);
	assert_true(right || wrong);
	if (!right)
		++*wrong;
}

/* What a depth is more than the level that was decoded: where a stack began is not known to both.
 */
struct offset {
	bool is_known;
	long value;
};

typedef VEC(struct offset) offset_vec;

static long offset_of(offset_vec *offsets, const struct true_event *t, const struct seen_event *s)
{
	struct offset *offset;

	while (offsets->n <= s->coroutine)
		*VEC_PUSH(offsets) = (struct offset){0};
	offset = &offsets->v[s->coroutine];
	if (!offset->is_known)
		*offset = (struct offset){true, t->depth - s->level};
	return offset->value;
}

static size_t compare(const struct truth_log *log, const struct comparison *c, pid_t tid,
		      size_t *wrong)
{
	VEC(const struct true_event *) mine = {0};
	const struct true_event **v;
	offset_vec offsets = {0};
	size_t n = c->seen.n, skip;

	for (size_t i = 0; i < log->events.n; i++) {
		if (log->events.v[i].tid != tid)
			continue;
		v = VEC_PUSH(&mine);
		*v = &log->events.v[i];
	}
	/* A wrapped ring has lost the oldest; the newest are the same. */
	assert_true(n <= mine.n);
	skip = mine.n - n;
	for (size_t i = 0; i < n; i++) {
		const struct true_event *t = mine.v[skip + i];
		const struct seen_event *s = &c->seen.v[i];

		compare_one(t, s, offset_of(&offsets, t, s), i, wrong);
	}
	VEC_FINI(&mine);
	VEC_FINI(&offsets);
	return n;
}

size_t truth_compare__count(const char *recording, const char *truth, size_t *wrong)
{
	struct truth_log log = {0};
	struct decode_totals totals = {0};
	struct recording rec;
	struct images *images;
	size_t n = 0;

	recording__init(&rec);
	assert_int_equal(recording__read(&rec, recording), 0);
	read_truth(&log, truth);
	images = images__new(&rec);
	for (size_t i = 0; i < rec.aux.n; i++) {
		struct comparison c = {.map = code_map__new()};
		struct call_tree tree;

		c.stack = stack__new(rec.aux.v[i].pid, rec.aux.v[i].tid, "", c.map);
		assert_int_equal(decode__run(&(struct decode_request){.rec = &rec,
								      .aux = &rec.aux.v[i],
								      .images = images,
								      .map = c.map,
								      .take = on_branches,
								      .ctx = &c,
								      .totals = &totals}),
				 0);
		n += compare(&log, &c, rec.aux.v[i].tid, wrong);
		assert_int_equal(stack__finish(c.stack, &tree), 0);
		call_tree__fini(&tree);
		stack__free(c.stack);
		code_map__free(c.map);
		VEC_FINI(&c.seen);
	}
	for (int reason = 0; reason < GAP_REASONS; reason++)
		assert_int_equal(totals.gaps[reason], 0);
	images__free(images);
	recording__fini(&rec);
	VEC_FINI(&log.events);
	return n;
}

size_t truth_compare__recording(const char *recording, const char *truth)
{
	return truth_compare__count(recording, truth, NULL);
}
