// SPDX-License-Identifier: MIT
#include "sampled/goroutines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "stack/stack.h"
#include "target/code_map.h"
#include "util/vec.h"

struct goroutine_calls {
	VEC(const struct mt_entry *) all;
};

/* One goroutine's way from its entries to its tree. */
struct goroutine {
	const struct recording *rec;
	uint64_t noted_ns;
	struct call_tree tree;
	struct code_map *map;
	size_t next_map;    /* see images__apply() */
	VEC(uint32_t) open; /* indices of calls, outermost first */
};

/* By process and goroutine, then by time; of two at a time the outer one first. */
static int compare(const void *a, const void *b)
{
	const struct mt_entry *x = *(const struct mt_entry *const *)a;
	const struct mt_entry *y = *(const struct mt_entry *const *)b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	if (x->goroutine != y->goroutine)
		return x->goroutine < y->goroutine ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

static int collect(struct goroutine_calls *calls, const struct recording *rec)
{
	for (size_t i = 0; i < rec->entries.n; i++) {
		const struct mt_entry **out;

		if (!rec->entries.v[i].goroutine)
			continue;
		out = VEC_PUSH(&calls->all);
		if (!out)
			return -ENOMEM;
		*out = &rec->entries.v[i];
	}
	VEC_SORT(&calls->all, compare);
	return 0;
}

/* When the snapshot ended that it is in. */
static uint64_t frozen_after(const struct recording *rec, uint64_t time_ns)
{
	uint64_t end_ns = rec->frozen_ns > time_ns ? rec->frozen_ns : time_ns;

	for (size_t i = 0; i < rec->hits.n; i++)
		if (rec->hits.v[i].time_ns >= time_ns && rec->hits.v[i].time_ns < end_ns)
			end_ns = rec->hits.v[i].time_ns;
	return end_ns;
}

static struct call make_call(const struct goroutine *g, const struct mt_entry *entry)
{
	bool is_known = entry->end_ns >= entry->start_ns;
	struct call call = {.start_ns = entry->start_ns,
			    .end_ns = is_known ? entry->end_ns
					       : frozen_after(g->rec, entry->start_ns),
			    .entry_ip = entry->ip,
			    .kind = CALL_FUNCTION,
			    .flags = CALL_SAMPLED,
			    .parent = CALL_NO_PARENT};
	struct code_place place;

	if (!is_known || entry->kind == MT_ENTRY_LEFT)
		call.flags |= CALL_INFERRED_END;
	if (code_map__find(g->map, entry->ip, &place))
		call.function = place.function;
	return call;
}

static void end_before(struct goroutine *g, uint64_t time_ns)
{
	while (g->open.n && g->tree.calls.v[g->open.v[g->open.n - 1]].end_ns <= time_ns)
		g->open.n--;
}

static int add_call(struct goroutine *g, const struct mt_entry *entry)
{
	struct call call = make_call(g, entry), *out;
	uint32_t *open;

	end_before(g, call.start_ns);
	call.depth = (uint32_t)g->open.n;
	if (g->open.n) {
		const struct call *parent;

		call.parent = g->open.v[g->open.n - 1];
		parent = &g->tree.calls.v[call.parent];
		/* Not beyond what called it: that was left, and it is not known when. */
		if (call.end_ns > parent->end_ns) {
			call.end_ns = parent->end_ns;
			call.flags |= CALL_INFERRED_END;
		}
	}
	out = VEC_PUSH(&g->tree.calls);
	open = out ? VEC_PUSH(&g->open) : NULL;
	if (!open)
		return -ENOMEM;
	*out = call;
	*open = (uint32_t)(g->tree.calls.n - 1);
	return 0;
}

static void name_tree(struct call_tree *tree, const struct recording *rec,
		      const struct mt_entry *first, uint32_t number)
{
	const struct rec_thread *known;

	tree->pid = (pid_t)first->tgid;
	tree->tid = (pid_t)first->tid;
	tree->strand = number;
	snprintf(tree->strand_name, sizeof(tree->strand_name), "goroutine %u", number);
	known = recording__find_thread(rec, tree->pid, tree->tid);
	if (known)
		snprintf(tree->comm, sizeof(tree->comm), "%s", known->comm);
}

/* What is mapped was noted before the rings began; BPF's programs ran already. */
static uint64_t noted_ns(const struct recording *rec)
{
	uint64_t first_ns = rec->frozen_ns;

	for (size_t i = 0; i < rec->samples.n; i++)
		if (rec->samples.v[i].time_ns < first_ns)
			first_ns = rec->samples.v[i].time_ns;
	for (size_t i = 0; i < rec->scheds.n; i++)
		if (rec->scheds.v[i].time_ns < first_ns)
			first_ns = rec->scheds.v[i].time_ns;
	return first_ns;
}

static int follow_maps(struct goroutine *g, struct images *images, uint64_t time_ns)
{
	return images__apply(images, g->tree.pid, time_ns > g->noted_ns ? time_ns : g->noted_ns,
			     &g->next_map, g->map);
}

static int make_tree(struct goroutine *g, struct images *images,
		     const struct mt_entry *const *entries, size_t n)
{
	int err = g->map ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++) {
		err = follow_maps(g, images, entries[i]->start_ns);
		if (!err)
			err = add_call(g, entries[i]);
	}
	return err;
}

static size_t count_same(const struct goroutine_calls *calls, size_t from)
{
	const struct mt_entry *first = calls->all.v[from];
	size_t n = 1;

	while (from + n < calls->all.n && calls->all.v[from + n]->tgid == first->tgid &&
	       calls->all.v[from + n]->goroutine == first->goroutine)
		n++;
	return n;
}

static int make_trees(const struct goroutine_calls *calls, const struct recording *rec,
		      struct images *images, sampled_taker take, void *ctx)
{
	const uint64_t since_ns = noted_ns(rec);
	uint32_t number = 0;
	int err = 0;

	for (size_t i = 0, n; i < calls->all.n && !err; i += n) {
		struct goroutine g = {.rec = rec, .noted_ns = since_ns, .map = code_map__new()};

		n = count_same(calls, i);
		name_tree(&g.tree, rec, calls->all.v[i], ++number);
		err = make_tree(&g, images, &calls->all.v[i], n);
		VEC_FINI(&g.open);
		code_map__free(g.map);
		if (err)
			call_tree__fini(&g.tree);
		else
			err = take(ctx, &g.tree);
	}
	return err;
}

int goroutines__trees(const struct recording *rec, struct images *images, sampled_taker take,
		      void *ctx, struct sampled_totals *totals)
{
	struct goroutine_calls calls = {0};
	int err = collect(&calls, rec);

	for (size_t i = 0; i < calls.all.n && !err; i++)
		if (!totals->first_ns || calls.all.v[i]->start_ns < totals->first_ns)
			totals->first_ns = calls.all.v[i]->start_ns;
	if (!err)
		err = make_trees(&calls, rec, images, take, ctx);
	VEC_FINI(&calls.all);
	return err;
}
