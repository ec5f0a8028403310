// SPDX-License-Identifier: MIT
#include "view/report.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "decode/branch.h"
#include "mtbpf_shared.h"
#include "util/units.h"
#include "util/vec.h"
#include "view/blame.h"

/* One iteration. The last is the slow one. */
struct period {
	uint64_t start_ns, end_ns;
};

/* What one function (or kind of time outside of functions) did. */
struct row {
	const void *key; /* the function, or the name of what is none */
	const char *name, *suffix;
	struct blame blame;	       /* who kept the slow iteration waiting there */
	const struct function *inside; /* of what is no function: where it was; NULL: not told */
	uint64_t slow_ns, slow_calls;
	uint64_t ordinary_ns, ordinary_calls; /* sums */
	int64_t extra_ns;		      /* slow beyond the ordinary mean */
};

struct report {
	const struct call_tree *tree;
	VEC(struct period) periods;
	VEC(struct row) rows; /* in hash order while filling; see slot() */
	size_t *slots;
	size_t n_slots;
	size_t period; /* that holds, or follows, the sweep's time */
	bool failed;
};

static bool is_slow(const struct report *r, size_t period)
{
	return period + 1 == r->periods.n;
}

static size_t hash_row(const void *key, const struct function *inside)
{
	return (((uintptr_t)key ^ (uintptr_t)inside >> 4) * 0x9e3779b97f4a7c15ull) >> 32;
}

static int rehash(struct report *r)
{
	size_t n = r->n_slots ? 2 * r->n_slots : 256;
	size_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < r->rows.n; i++) {
		size_t at = hash_row(r->rows.v[i].key, r->rows.v[i].inside) & (n - 1);

		while (slots[at])
			at = (at + 1) & (n - 1);
		slots[at] = i + 1;
	}
	free(r->slots);
	r->slots = slots;
	r->n_slots = n;
	return 0;
}

/* Why a thread did not get on says little without where. */
static const struct function *inside_of(const struct report *r, const struct call *call)
{
	if ((call->kind != CALL_OFF_CPU && call->kind != CALL_IN_KERNEL) ||
	    call->parent == CALL_NO_PARENT)
		return NULL;
	return r->tree->calls.v[call->parent].function;
}

static struct row *find_row(struct report *r, const struct call *call)
{
	const char *name = call__name(call);
	const void *key = call->function ? (const void *)call->function : name;
	const struct function *inside = inside_of(r, call);
	struct row *row;
	size_t at;

	if (2 * r->rows.n >= r->n_slots && rehash(r))
		goto failed;
	at = hash_row(key, inside) & (r->n_slots - 1);
	for (; r->slots[at]; at = (at + 1) & (r->n_slots - 1)) {
		row = &r->rows.v[r->slots[at] - 1];
		if (row->key == key && row->inside == inside)
			return row;
	}
	row = VEC_PUSH(&r->rows);
	if (!row)
		goto failed;
	*row = (struct row){.key = key,
			    .name = name,
			    .suffix = call->kind == CALL_INLINED ? " [inlined]" : "",
			    .inside = inside};
	r->slots[at] = r->rows.n;
	return row;
failed:
	r->failed = true;
	return NULL;
}

/* [from, to) was spent in the call itself. Sweeps go forward in time. */
static void spend(struct report *r, const struct call *call, uint64_t from, uint64_t to)
{
	while (from < to && r->period < r->periods.n) {
		const struct period *p = &r->periods.v[r->period];
		uint64_t start = from > p->start_ns ? from : p->start_ns;
		uint64_t end = to < p->end_ns ? to : p->end_ns;
		struct row *row;

		if (start < end && (row = find_row(r, call))) {
			if (is_slow(r, r->period)) {
				row->slow_ns += end - start;
				blame__add(&row->blame, r->tree, call);
			} else {
				row->ordinary_ns += end - start;
			}
		}
		if (to < p->end_ns)
			return;
		from = p->end_ns > from ? p->end_ns : from;
		r->period++;
	}
}

static void count_call(struct report *r, const struct call *call)
{
	struct row *row;

	for (size_t i = r->period; i < r->periods.n; i++) {
		if (call->start_ns < r->periods.v[i].start_ns)
			return;
		if (call->start_ns >= r->periods.v[i].end_ns)
			continue;
		row = call->flags & CALL_INFERRED_START ? NULL : find_row(r, call);
		if (row && is_slow(r, i))
			row->slow_calls++;
		else if (row)
			row->ordinary_calls++;
		return;
	}
}

/* Calls stand in pre-order: one pass, with the open ones found through their parents. */
static void sweep(struct report *r)
{
	const struct call *calls = r->tree->calls.v;
	uint32_t open = CALL_NO_PARENT;
	uint64_t now = 0;

	for (size_t i = 0; i <= r->tree->calls.n; i++) {
		uint32_t parent = i < r->tree->calls.n ? calls[i].parent : CALL_NO_PARENT;

		for (; open != CALL_NO_PARENT && open != parent; open = calls[open].parent) {
			spend(r, &calls[open], now, calls[open].end_ns);
			now = calls[open].end_ns;
		}
		if (i == r->tree->calls.n)
			return;
		if (open != CALL_NO_PARENT)
			spend(r, &calls[open], now, calls[i].start_ns);
		now = calls[i].start_ns;
		count_call(r, &calls[i]);
		open = (uint32_t)i;
	}
}

static int add_period(struct report *r, uint64_t start_ns, uint64_t end_ns)
{
	struct period *p = VEC_PUSH(&r->periods);

	if (!p)
		return -ENOMEM;
	*p = (struct period){start_ns, end_ns};
	return 0;
}

/* A call of the trigger's function whose begin was seen, at or before the hit. */
static bool is_entry(const struct call *call, const struct hit_mark *hit)
{
	return call->function && call->function == hit->function &&
	       !(call->flags & CALL_INFERRED_START) && call->start_ns <= hit->time_ns;
}

/* A recursive call of it is part of an iteration, not the next one. */
static bool is_nested(const struct call_tree *tree, const struct call *call)
{
	for (uint32_t i = call->parent; i != CALL_NO_PARENT; i = tree->calls.v[i].parent)
		if (tree->calls.v[i].function == call->function)
			return true;
	return false;
}

/*
 * When the activation that began with calls[i] returned: tail calls have taken its place. A return
 * probe's trampoline, which comes last, is not the program's.
 */
static uint64_t returned_ns(const struct call_tree *tree, size_t i)
{
	const struct call *call = &tree->calls.v[i], *next;
	uint64_t end = call->end_ns;

	for (i++; i < tree->calls.n && tree->calls.v[i].depth >= call->depth; i++) {
		next = &tree->calls.v[i];
		if (next->depth > call->depth)
			continue;
		if (!(next->flags & CALL_BY_JUMP) || !next->function ||
		    !strcmp(next->function->module, "[uprobes]"))
			break;
		end = next->end_ns;
	}
	return end;
}

/*
 * The slow one goes from the program's mark to the hit (last_ns, 0: not seen). Nobody knows where
 * the others' marks were: they go from one hit to the next.
 */
static int start_at_mark(struct report *r, const struct hit_mark *hit, uint64_t last_ns)
{
	struct period *slow = r->periods.n ? &r->periods.v[r->periods.n - 1] : NULL;
	uint64_t mark = last_ns > hit->value_ns ? last_ns - hit->value_ns : 0;

	if (slow && slow->start_ns < mark)
		slow->start_ns = mark;
	if (slow || !mark || !r->tree->calls.n || mark < r->tree->calls.v[0].start_ns)
		return 0;
	return add_period(r, mark, last_ns);
}

static int find_periods(struct report *r, const struct hit_mark *hit)
{
	bool by_call = hit->reason == MT_HIT_DURATION;
	uint64_t last = 0;
	int err = 0;

	for (size_t i = 0; i < r->tree->calls.n && !err; i++) {
		const struct call *call = &r->tree->calls.v[i];

		/* Another snapshot's iterations are not compared, nor one that spans two. */
		if (call->kind == CALL_GAP && call->reason == GAP_BETWEEN &&
		    call->end_ns <= hit->time_ns) {
			r->periods.n = 0;
			last = 0;
		}
		if (!is_entry(call, hit) || is_nested(r->tree, call))
			continue;
		if (by_call)
			err = add_period(r, call->start_ns, returned_ns(r->tree, i));
		else if (last)
			err = add_period(r, last, call->start_ns);
		last = call->start_ns;
	}
	if (!err && hit->reason == MT_HIT_MARK)
		err = start_at_mark(r, hit, last);
	return err;
}

static int by_excess(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (x->extra_ns != y->extra_ns)
		return x->extra_ns < y->extra_ns ? 1 : -1;
	return order ? order : strcmp(x->suffix, y->suffix);
}

static uint64_t mean(uint64_t sum, size_t n)
{
	return n ? sum / n : 0;
}

static void sort_rows(struct report *r)
{
	for (size_t i = 0; i < r->rows.n; i++) {
		struct row *row = &r->rows.v[i];

		row->extra_ns = (int64_t)(row->slow_ns - mean(row->ordinary_ns, r->periods.n - 1));
	}
	qsort(r->rows.v, r->rows.n, sizeof(*r->rows.v), by_excess);
}

static void print_name(FILE *out, const struct row *row)
{
	fprintf(out, "%s%s", row->name, row->suffix);
	if (row->inside)
		fprintf(out, " in %s", row->inside->name);
	blame__print(out, &row->blame);
	fputc('\n', out);
}

static void print_rows(FILE *out, const struct report *r, const struct report_input *input)
{
	size_t ordinary = r->periods.n - 1;
	char slow[UNITS_TEXT_SIZE], usual[UNITS_TEXT_SIZE], extra[UNITS_TEXT_SIZE];

	fprintf(out, "  %10s %10s %10s  ", "extra", "slow", "ordinary");
	if (!input->sampled)
		fprintf(out, "%17s  ", "calls (ordinary)");
	fprintf(out, "function\n");
	for (size_t i = 0; i < r->rows.n && i < input->top; i++) {
		const struct row *row = &r->rows.v[i];
		double calls = ordinary ? (double)row->ordinary_calls / (double)ordinary : 0;

		if (row->extra_ns <= 0)
			break;
		fprintf(out, "  %10s %10s %10s  ",
			units__format_duration(extra, (uint64_t)row->extra_ns),
			units__format_duration(slow, row->slow_ns),
			units__format_duration(usual, mean(row->ordinary_ns, ordinary)));
		if (!input->sampled)
			fprintf(out, "%7llu %9.1f  ", (unsigned long long)row->slow_calls, calls);
		print_name(out, row);
	}
}

static void print_head(FILE *out, const struct report *r, const struct report_input *input)
{
	const struct period *slow = &r->periods.v[r->periods.n - 1];
	size_t ordinary = r->periods.n - 1;
	char a[UNITS_TEXT_SIZE], b[UNITS_TEXT_SIZE];
	uint64_t sum = 0;

	for (size_t i = 0; i < ordinary; i++)
		sum += r->periods.v[i].end_ns - r->periods.v[i].start_ns;
	fprintf(out, "the slow iteration of %s took %s", input->hit->function->name,
		units__format_duration(a, slow->end_ns - slow->start_ns));
	if (ordinary)
		fprintf(out, ", an ordinary one %s (mean of %zu in the same lookback)",
			units__format_duration(b, mean(sum, ordinary)), ordinary);
	fprintf(out, "; where the time went:\n");
}

static bool has_entry(const struct call_tree *tree, const struct hit_mark *hit)
{
	for (size_t i = 0; i < tree->calls.n; i++)
		if (is_entry(&tree->calls.v[i], hit))
			return true;
	return false;
}

/* Of the trees of the thread that triggered, the stack that the function is called on. */
static const struct call_tree *find_tree(const struct report_input *input)
{
	const struct call_tree *found = NULL;

	for (size_t i = 0; i < input->n_trees; i++) {
		const struct call_tree *tree = &input->trees[i];

		if (tree->tid != input->hit->tid)
			continue;
		if (has_entry(tree, input->hit))
			return tree;
		if (!found)
			found = tree;
	}
	return found;
}

int report__print(FILE *out, const struct report_input *input)
{
	struct report r = {.tree = find_tree(input)};
	int err;

	if (!r.tree || !input->hit->function)
		return -ENODATA;
	err = find_periods(&r, input->hit);
	if (!err && !r.periods.n)
		err = -ENODATA;
	if (!err) {
		sweep(&r);
		err = r.failed ? -ENOMEM : 0;
	}
	if (!err) {
		sort_rows(&r);
		print_head(out, &r, input);
		print_rows(out, &r, input);
	}
	VEC_FINI(&r.periods);
	VEC_FINI(&r.rows);
	free(r.slots);
	return err;
}
