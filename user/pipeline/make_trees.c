// SPDX-License-Identifier: MIT
#include "pipeline/make_trees.h"

#include <errno.h>
#include <stdlib.h>

#include "decode/decode.h"
#include "decode/spread.h"
#include "kernel/kernel.h"
#include "sampled/sample_stack.h"
#include "stack/stack.h"
#include "stack/tree_passes.h"
#include "util/vec.h"

const char *decoded__thread_name(const struct recording *rec, pid_t tid)
{
	for (size_t i = 0; i < rec->threads.n; i++)
		if (rec->threads.v[i].tid == tid)
			return rec->threads.v[i].comm;
	return "";
}

/* The branches that ran after the hit, before the ring was frozen. */
struct behind_hit {
	uint64_t probe_ip, hit_ns; /* hit_ns 0: not the thread that triggered */
	uint64_t seen_ns, last_ns; /* the hit, and the last branch, as the trace has them */
	int64_t branches;	   /* -1: the hit has not been seen */
	bool may_be_in_kernel; /* probe_ip may be where the thread goes on after a system call */
};

#define SYSCALL_LEN 2

/*
 * The int3 of the probe is an interrupt in front of the probed instruction. A hit in the kernel
 * comes after the instruction of a system call; one in an interrupt or a fault is not found.
 */
static bool is_hit(const struct behind_hit *behind, const struct branch *b)
{
	if (b->time_ns > behind->hit_ns)
		return false;
	if (behind->may_be_in_kernel && b->kind == BRANCH_END_SYSCALL)
		return b->from + SYSCALL_LEN == behind->probe_ip;
	return (b->kind == BRANCH_END_ASYNC || b->kind == BRANCH_ENTER) &&
	       b->from == behind->probe_ip;
}

static void look_behind_hit(struct behind_hit *behind, const struct branch_batch *batch)
{
	VEC_EACH(batch, b) {
		if (branch__is_entry(b))
			continue;
		if (is_hit(behind, b)) {
			behind->branches = 0;
			behind->seen_ns = behind->last_ns = b->time_ns;
		} else if (b->n_branches && behind->branches >= 0 && !address__is_kernel(b->from)) {
			behind->branches += b->n_branches;
			behind->last_ns = b->time_ns;
		}
	}
}

/* Makes the trees of one thread after another. */
struct tree_maker {
	struct decoded *decoded;
	const struct recording *rec;
	const struct tree_options *options;
	pid_t pid, tid; /* of the thread that is taken now */
	struct code_map *map;
	/* Gives the thread's branches their times, by which the filter then chooses. */
	struct spread spread;
	struct selection *selection; /* NULL: no filter */
	struct behind_hit behind;
	struct stack *stack;
	/* A PT_NOTE_CFE that waits for settle_event(). kind 0: there is no such event. */
	struct pt_note event;
	uint64_t fault_address; /* of the next one */
	VEC(uint64_t) hits;	/* its hits' times, ascending */
};

static int take_early(struct tree_maker *m, pid_t pid, pid_t tid, struct code_map *map)
{
	struct decoded *decoded = m->decoded;
	struct early_calls *early = early_calls__new(decoded->queue, pid, tid, map);
	struct early_calls **slot = early ? VEC_PUSH(&decoded->early) : NULL;

	if (!slot) {
		early_calls__free(early);
		return -ENOMEM;
	}
	*slot = early;
	/* With a single thread, totals.first_ns is known before its first call is written. */
	early->base_ns = decoded->base_ns ? &decoded->base_ns : &decoded->totals.first_ns;
	early->no_inline = m->options->no_inline;
	stack__set_consumer(m->stack, &early->consumer);
	return 0;
}

static int anchor_hit(struct stack *stack, const struct recording *rec, const struct mt_hit *hit,
		      struct images *images)
{
	struct unwound unwound;
	int err = hit_stack__find(rec, hit, images, &unwound);

	if (!err)
		err = stack__anchor(stack, hit->time_ns, unwound.ips.v, unwound.ips.n);
	unwound__fini(&unwound);
	return err;
}

/* Adds the stacks that were taken at the thread's hits. */
static int anchor(struct stack *stack, const struct recording *rec, pid_t tid,
		  struct images *images)
{
	int err = 0;

	/* The stacks are of user code. */
	for (size_t i = 0; i < rec->hits.n && !err && !rec->kernel_only; i++)
		if ((pid_t)rec->hits.v[i].tid == tid)
			err = anchor_hit(stack, rec, &rec->hits.v[i], images);
	return err;
}

ORDER(compare_times, uint64_t, COMPARE(*x, *y))

static int collect_hits(struct tree_maker *m, pid_t tid)
{
	m->hits.n = 0;
	VEC_EACH(&m->rec->hits, hit)
		if ((pid_t)hit->tid == tid && VEC_ADD(&m->hits, hit->time_ns))
			return -ENOMEM;
	VEC_SORT(&m->hits, compare_times);
	return 0;
}

static int begin_tree(void *ctx, pid_t pid, pid_t tid, struct code_map *map)
{
	struct tree_maker *m = ctx;
	const struct recording *rec = m->rec;
	const struct mt_hit *hit = rec->hits.n ? &rec->hits.v[rec->hits.n - 1] : NULL;

	m->pid = pid;
	m->tid = tid;
	m->map = map;
	m->behind = (struct behind_hit){.branches = -1};
	if (hit)
		m->behind.probe_ip = recording__probe_of(rec, hit);
	for (int kind = KERNEL_PROBE_SYSCALL; kind <= KERNEL_PROBE_EXIT && hit; kind++)
		m->behind.may_be_in_kernel |=
			rec->trigger && kernel_probe_kind__is_in(kind, rec->trigger);
	m->behind.hit_ns = hit && (pid_t)hit->tid == tid ? hit->time_ns : 0;
	m->stack = stack__new(pid, tid, decoded__thread_name(rec, tid), map);
	if (!m->stack || collect_hits(m, tid))
		return -ENOMEM;
	/* The report of a hit reads all calls of its thread. */
	if (m->decoded->writer && !m->hits.n && take_early(m, pid, tid, map))
		return -ENOMEM;
	stack__set_traps(m->stack, m->options->ocaml_traps);
	spread__init(&m->spread, m->hits.v, m->hits.n);
	if (m->selection)
		selection__begin_thread(m->selection, map);
	return anchor(m->stack, rec, tid, m->decoded->images);
}

static int take_speed(struct tree_maker *m, const struct speed *speed)
{
	if (m->selection &&
	    !decode_filter__has(&m->decoded->part.decode, speed->begin_ns, speed->end_ns))
		return 0;
	return counters__add(&m->decoded->counters, m->pid, m->tid, speed);
}

/* Filters by time only, so that values of PTWRITE between regions of calls stay. */
static int take_note(struct tree_maker *m, const struct pt_note *note)
{
	if (m->selection && !decode_filter__has_time(m->selection->filter, note->time_ns))
		return 0;
	return VEC_ADD(&m->decoded->events, *note);
}

static int take_notes(void *ctx, const struct pt_note *v, size_t n)
{
	int err = 0;

	/* Addresses and exits between threads are left out: nothing shows them. */
	for (size_t i = 0; i < n && !err; i++)
		if (v[i].kind < PT_NOTE_PFA ||
		    (v[i].kind == PT_NOTE_CFE && pt_event__of(v[i].value)))
			err = take_note(ctx, &v[i]);
	return err;
}

/*
 * Adds the pending event as an instant, unless `next` makes it a slice: it does if it leaves the
 * traced code where the event was. Direct branches may come between the two, because packets tell
 * of them later. An IRET adds nothing.
 */
static int settle_event(struct tree_maker *m, const struct branch *next)
{
	struct pt_note event = m->event;
	bool is_slice = next && next->kind >= BRANCH_END_SYSCALL && next->kind <= BRANCH_END &&
			next->from == event.ip;

	if (next && next->kind < BRANCH_ENTER)
		return 0;
	m->event.kind = PT_NOTE_NONE;
	return is_slice || !event.kind || !pt_event__of(event.value) ? 0 : take_note(m, &event);
}

/* The function that ip is in, as the code is now. */
static const char *function_at(const struct tree_maker *m, uint64_t ip)
{
	struct code_place place;

	if (!ip || !code_map__find(m->map, ip, &place) || !place.function)
		return NULL;
	return place.function->name;
}

static int take_own_note(struct tree_maker *m, struct pt_note *note)
{
	int err = settle_event(m, NULL);

	note->in = function_at(m, note->ip);
	if (note->kind == PT_NOTE_PFA) {
		m->fault_address = note->value;
	} else if (note->kind == PT_NOTE_CFE) {
		if (pt_event__of(note->value) == PT_EVENT_PAGE_FAULT)
			note->address = m->fault_address;
		m->event = *note;
		m->fault_address = 0;
	} else if (!err) {
		err = take_note(m, note);
	}
	return err;
}

static int take_entry(struct tree_maker *m, const struct branch *entry)
{
	struct pt_note note = branch__note(entry, m->pid, m->tid);
	struct speed speed = branch__speed(entry);

	if (entry->kind == ENTRY_NOTE)
		return take_own_note(m, &note);
	return entry->kind == ENTRY_SPEED ? take_speed(m, &speed) : 0;
}

/* The branches' times are known: passes those of the part to the stack. */
static int take_timed(struct tree_maker *m, struct branch_batch batch)
{
	int err = 0;

	if (m->selection)
		err = selection__take(m->selection, batch.v, batch.n, &batch);
	if (m->behind.hit_ns)
		look_behind_hit(&m->behind, &batch);
	for (size_t i = 0; i < batch.n && !err; i++)
		if (branch__is_entry(&batch.v[i]))
			err = take_entry(m, &batch.v[i]);
		else if (m->event.kind)
			err = settle_event(m, &batch.v[i]);
	return err ? err : stack__take(m->stack, batch.v, batch.n);
}

static int take_branches(void *ctx, struct branch *v, size_t n)
{
	struct tree_maker *m = ctx;
	struct branch_batch timed[SPREAD_BATCHES];
	int err = spread__take(&m->spread, v, n, timed);

	for (size_t i = 0; i < SPREAD_BATCHES && !err; i++)
		err = take_timed(m, timed[i]);
	return err;
}

/* Adds the trees of the thread's own stack and of its coroutines. */
static int add_trees(struct tree_maker *m)
{
	struct stack *stack = m->stack;
	struct call_tree tree;
	int err = stack__finish(stack, &tree), more = !err;

	while (more > 0) {
		struct call_tree *added = VEC_PUSH(&m->decoded->trees);

		if (!added) {
			call_tree__fini(&tree);
			return -ENOMEM;
		}
		*added = tree;
		err = call_sites__find_all(&added->sites, added, m->map);
		more = err ? err : stack__finish_next(stack, &tree);
	}
	return err ? err : more;
}

static int end_tree(void *ctx)
{
	struct tree_maker *m = ctx;
	const struct behind_hit *behind = &m->behind;
	struct branch_batch rest;
	int err;

	spread__finish(&m->spread, &rest);
	err = take_timed(m, rest);
	if (!err)
		err = settle_event(m, NULL);
	if (!err && !(m->selection && m->selection->is_empty))
		err = add_trees(m);
	stack__free(m->stack);
	m->stack = NULL;
	spread__fini(&m->spread);
	if (behind->hit_ns) {
		m->decoded->behind_hit = behind->branches;
		m->decoded->behind_hit_ns = behind->last_ns - behind->seen_ns;
	}
	return err;
}

/* Drops trees of coroutines whose calls were all moved to another thread. */
static void drop_empty(struct decoded *decoded)
{
	size_t n = 0;

	for (size_t i = 0; i < decoded->trees.n; i++) {
		struct call_tree tree = decoded->trees.v[i];

		if (tree.coroutine && !tree.calls.n)
			call_tree__fini(&tree);
		else
			decoded->trees.v[n++] = tree;
	}
	decoded->trees.n = n;
}

int decoded__settle_trees(struct decoded *decoded, bool no_inline)
{
	int err = migration_pass__run(decoded->trees.v, decoded->trees.n);

	if (!err)
		drop_empty(decoded);
	return err || no_inline ? err : inline_pass__run(decoded->trees.v, decoded->trees.n);
}

int decoded__make_trees(struct decoded *decoded, const struct recording *rec,
			const struct tree_options *options)
{
	struct tree_maker maker = {.decoded = decoded, .rec = rec, .options = options};
	struct branch_receiver receiver = {.begin = begin_tree,
					   .take = take_branches,
					   .take_notes = take_notes,
					   .end = end_tree,
					   .ctx = &maker,
					   .meter = decoded->meter,
					   .wants_source = true};
	struct decode_totals all = {0};
	struct selection selection;
	struct filter_totals found = {0};
	int err;

	selection__init(&selection, &decoded->part.decode, &decoded->totals, &found);
	if (decoded->is_filtered)
		maker.selection = &selection;
	err = decode__threads(rec, decoded->images, false, &receiver,
			      decoded->is_filtered ? &all : &decoded->totals);
	decoded->totals.unknown_insns += all.unknown_insns;
	if (!err && decoded->is_filtered)
		err = filter_part__check(&decoded->part, &found);
	if (!err)
		err = decoded__settle_trees(decoded, options->no_inline);
	selection__fini(&selection);
	stack__free(maker.stack);
	spread__fini(&maker.spread);
	VEC_FINI(&maker.hits);
	return err;
}

/* ---- samples */

static int take_tree(void *ctx, struct call_tree *tree)
{
	struct decoded *decoded = ctx;
	struct call_tree *out = VEC_PUSH(&decoded->trees);

	if (!out) {
		call_tree__fini(tree);
		return -ENOMEM;
	}
	*out = *tree;
	return 0;
}

/* Samples are few: all are read, so that what lasts longer than the part is known. */
static int cut(struct decoded *decoded, struct recording *rec, const struct trace_filter *filter)
{
	struct decode_bounds bounds = {decoded->sampled.first_ns, decoded->sampled.last_ns};
	struct decode_totals *totals = &decoded->totals;
	struct filter_part *part = &decoded->part;
	struct filter_totals left = {0};
	int err = trace_filter__resolve(filter, rec, &bounds, part);

	for (size_t i = 0; i < decoded->trees.n && !err; i++) {
		err = filter_part__cut_tree(part, &decoded->trees.v[i]);
		left.branches += decoded->trees.v[i].calls.n;
	}
	if (err)
		return err;
	filter_part__drop_hits(part, rec);
	if (part->decode.from_ns > totals->first_ns)
		totals->first_ns = part->decode.from_ns;
	if (part->decode.to_ns < totals->last_ns)
		totals->last_ns = part->decode.to_ns;
	return filter_part__check(part, &left);
}

int decoded__make_sampled_trees(struct decoded *decoded, struct recording *rec,
				const struct trace_filter *filter)
{
	int err;

	decoded->sampled.meter = decoded->meter;
	decoded->ring_bytes = rec->ring_bytes;
	err = sampled__trees(rec, decoded->images, take_tree, decoded, &decoded->sampled);

	decoded->totals.first_ns = decoded->sampled.first_ns;
	decoded->totals.last_ns = decoded->sampled.last_ns;
	return err || !decoded->is_filtered ? err : cut(decoded, rec, filter);
}
