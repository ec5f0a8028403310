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
	const struct rec_thread *thread = VEC_FIND(&rec->threads, e, e->tid == tid);

	return thread ? thread->comm : "";
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
static void look_behind_hit(struct behind_hit *behind, const struct branch_batch *batch)
{
	VEC_EACH(batch, b) {
		bool is_hit = b->kind == BRANCH_END_ASYNC || b->kind == BRANCH_ENTER;
		uint64_t hit_ip = b->from;

		if (branch__is_entry(b))
			continue;
		if (behind->may_be_in_kernel && b->kind == BRANCH_END_SYSCALL) {
			is_hit = true;
			hit_ip += SYSCALL_LEN;
		}
		if (is_hit && hit_ip == behind->probe_ip && b->time_ns <= behind->hit_ns) {
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
	uint64_t fault_address; /* of the next page fault's event */
	VEC(uint64_t) hits;	/* times of the thread's hits, ascending */
};

/* The thread's calls are written while it is decoded. */
static int take_early(struct tree_maker *m)
{
	struct decoded *decoded = m->decoded;
	struct early_calls *early = early_calls__new(decoded->queue, m->pid, m->tid, m->map);

	if (!early || VEC_ADD(&decoded->early, early)) {
		early_calls__free(early);
		return -ENOMEM;
	}
	/* With a single thread, totals.first_ns is known before its first call is written. */
	early->base_ns = decoded->base_ns ? &decoded->base_ns : &decoded->totals.first_ns;
	early->no_inline = m->options->no_inline;
	stack__set_consumer(m->stack, &early->consumer);
	return 0;
}

static int begin_tree(void *ctx, pid_t pid, pid_t tid, struct code_map *map)
{
	struct tree_maker *m = ctx;
	const struct recording *rec = m->rec;
	const struct mt_hit *last = rec->hits.n ? &rec->hits.v[rec->hits.n - 1] : NULL;
	int err = 0;

	m->pid = pid;
	m->tid = tid;
	m->map = map;
	m->behind = (struct behind_hit){.branches = -1};
	if (last)
		m->behind.probe_ip = recording__probe_of(rec, last);
	for (int kind = KERNEL_PROBE_SYSCALL; kind <= KERNEL_PROBE_EXIT && last; kind++)
		m->behind.may_be_in_kernel |=
			rec->trigger && kernel_probe_kind__is_in(kind, rec->trigger);
	m->behind.hit_ns = last && (pid_t)last->tid == tid ? last->time_ns : 0;
	m->stack = stack__new(pid, tid, decoded__thread_name(rec, tid), map);
	if (!m->stack)
		return -ENOMEM;
	m->hits.n = 0;
	VEC_EACH(&rec->hits, hit)
		if ((pid_t)hit->tid == tid && VEC_ADD(&m->hits, hit->time_ns))
			return -ENOMEM;
	VEC_SORT_U64(&m->hits);
	/* The report of a hit reads all calls of its thread. */
	if (m->decoded->writer && !m->hits.n && take_early(m))
		return -ENOMEM;
	stack__set_traps(m->stack, m->options->ocaml_traps);
	spread__init(&m->spread, m->hits.v, m->hits.n);
	if (m->selection)
		selection__begin_thread(m->selection, map);
	/* Adds the stacks that were taken at the thread's hits. They are of user code. */
	VEC_EACH_WHILE(&rec->hits, hit, !err && !rec->kernel_only) {
		struct unwound unwound;

		if ((pid_t)hit->tid != tid)
			continue;
		err = hit_stack__find(rec, hit, m->decoded->images, &unwound);
		if (!err)
			err = stack__anchor(m->stack, hit->time_ns, unwound.ips.v, unwound.ips.n);
		unwound__fini(&unwound);
	}
	return err;
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

	/* Addresses of page faults and data of VM exits are left out: nothing shows them. */
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

/* Takes an entry among the thread's branches. */
static int take_entry(struct tree_maker *m, const struct branch *entry)
{
	struct decoded *decoded = m->decoded;
	struct pt_note note = branch__note(entry, m->pid, m->tid);
	struct code_place place;
	int err;

	if (entry->kind == ENTRY_SPEED) {
		struct speed speed = branch__speed(entry);

		if (m->selection &&
		    !decode_filter__has(&decoded->part.decode, speed.begin_ns, speed.end_ns))
			return 0;
		return VEC_ADD(&decoded->speeds, (struct thread_speed){m->pid, m->tid, speed});
	}
	if (entry->kind != ENTRY_NOTE)
		return 0;
	err = settle_event(m, NULL);
	if (note.ip && code_map__find(m->map, note.ip, &place) && place.function)
		note.in = place.function->name;
	if (note.kind == PT_NOTE_PFA) {
		m->fault_address = note.value;
	} else if (note.kind == PT_NOTE_CFE) {
		if (pt_event__of(note.value) == PT_EVENT_PAGE_FAULT)
			note.address = m->fault_address;
		m->event = note;
		m->fault_address = 0;
	} else if (!err) {
		err = take_note(m, &note);
	}
	return err;
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

/* Takes ownership of the tree's content. 0 or -ENOMEM. */
static int take_tree(void *ctx, struct call_tree *tree)
{
	struct decoded *decoded = ctx;

	if (!VEC_ADD(&decoded->trees, *tree))
		return 0;
	call_tree__fini(tree);
	return -ENOMEM;
}

static int end_tree(void *ctx)
{
	struct tree_maker *m = ctx;
	const struct behind_hit *behind = &m->behind;
	struct branch_batch rest;
	struct call_tree tree;
	int err, more = 0;

	spread__finish(&m->spread, &rest);
	err = take_timed(m, rest);
	if (!err)
		err = settle_event(m, NULL);
	/* The trees of the thread's own stack, and of its coroutines. */
	if (!err && !(m->selection && m->selection->is_empty)) {
		err = stack__finish(m->stack, &tree);
		more = !err;
	}
	while (more > 0) {
		err = take_tree(m->decoded, &tree);
		if (!err) {
			struct call_tree *added = &m->decoded->trees.v[m->decoded->trees.n - 1];

			err = call_sites__find_all(&added->sites, added, m->map);
		}
		more = err ? err : stack__finish_next(m->stack, &tree);
	}
	stack__free(m->stack);
	m->stack = NULL;
	spread__fini(&m->spread);
	if (behind->hit_ns) {
		m->decoded->behind_hit = behind->branches;
		m->decoded->behind_hit_ns = behind->last_ns - behind->seen_ns;
	}
	return err ? err : more;
}

int decoded__settle_trees(struct decoded *decoded, bool no_inline)
{
	int err = migration_pass__run(decoded->trees.v, decoded->trees.n);

	if (err)
		return err;
	/* Drops trees of coroutines whose calls were all moved to another thread. */
	VEC_DROP_EACH(&decoded->trees, tree, tree->coroutine && !tree->calls.n,
		      call_tree__fini(tree));
	return no_inline ? 0 : inline_pass__run(decoded->trees.v, decoded->trees.n);
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

int decoded__make_sampled_trees(struct decoded *decoded, struct recording *rec,
				const struct trace_filter *filter)
{
	struct decode_totals *totals = &decoded->totals;
	struct filter_part *part = &decoded->part;
	struct filter_totals left = {0};
	struct decode_bounds bounds;
	int err;

	decoded->sampled.meter = decoded->meter;
	decoded->ring_bytes = rec->ring_bytes;
	/* Samples are few: all are read, so that what lasts longer than the part is known. */
	err = sampled__trees(rec, decoded->images, take_tree, decoded, &decoded->sampled);
	totals->first_ns = bounds.first_ns = decoded->sampled.first_ns;
	totals->last_ns = bounds.last_ns = decoded->sampled.last_ns;
	if (err || !decoded->is_filtered)
		return err;
	err = trace_filter__resolve(filter, rec, &bounds, part);
	VEC_EACH_WHILE(&decoded->trees, tree, !err) {
		err = filter_part__cut_tree(part, tree);
		left.branches += tree->calls.n;
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
