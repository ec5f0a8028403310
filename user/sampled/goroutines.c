// SPDX-License-Identifier: MIT
#include "sampled/goroutines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampled/goroutines_internal.h"
#include "target/go_runtime.h"
#include "util/vec.h"

/*
 * Orders by process and goroutine, then by time; of two at the same time the outer one comes first.
 */
ORDER(compare, struct mt_entry *,
      COMPARE((*x)->tgid, (*y)->tgid)
	      ?: COMPARE((*x)->goroutine, (*y)->goroutine)
	      ?: COMPARE((*x)->start_ns, (*y)->start_ns)
	      ?: COMPARE((*y)->end_ns, (*x)->end_ns))

/* Orders by thread, then by time. */
ORDER(compare_stacks, struct rec_sample *,
      COMPARE((*x)->tid, (*y)->tid) ?: COMPARE((*x)->time_ns, (*y)->time_ns))

static int collect(struct goroutine_calls *calls, const struct recording *rec)
{
	VEC_EACH(&rec->entries, entry) {
		if (!entry->goroutine)
			continue;
		if (entry->kind == MT_ENTRY_READY ? VEC_ADD(&calls->ready, entry)
						  : VEC_ADD(&calls->all, entry))
			return -ENOMEM;
	}
	for (size_t i = 0; i < rec->samples.n && calls->all.n; i++)
		if (rec->samples.v[i].at_park ? VEC_ADD(&calls->parks, &rec->samples.v[i])
					      : VEC_ADD(&calls->stacks, &rec->samples.v[i]))
			return -ENOMEM;
	VEC_SORT(&calls->all, compare);
	VEC_SORT(&calls->ready, compare);
	VEC_SORT(&calls->stacks, compare_stacks);
	VEC_SORT(&calls->parks, compare_stacks);
	return 0;
}

#define STOP_WORLD  "runtime.stopTheWorldWithSema"
#define START_WORLD "runtime.startTheWorldWithSema"

ORDER(compare_stops, struct world_stop,
      COMPARE(x->tgid, y->tgid) ?: COMPARE(x->start_ns, y->start_ns))

/*
 * The process's calls that stop and start the world run on the scheduler's stack: they
 * are removed from calls->all, since they belong to no goroutine.
 */
static int take_stops(struct goroutine_calls *calls, size_t from, size_t n, struct code_map *map,
		      uint64_t frozen_ns)
{
	VEC(const struct mt_entry *) starts = {0};
	size_t kept = from;
	int err = 0;

	for (size_t i = from; i < from + n && !err; i++) {
		const struct mt_entry *e = calls->all.v[i];
		const struct world_stop stop = {.tgid = e->tgid,
						.start_ns = e->start_ns,
						.still_ns = e->end_ns ? e->end_ns : frozen_ns,
						.end_ns = frozen_ns};
		struct code_place place;
		const char *name = code_map__find(map, e->ip, &place) ? place.function->name : "";

		if (!strcmp(name, STOP_WORLD))
			err = VEC_ADD(&calls->stops, stop);
		else if (!strcmp(name, START_WORLD))
			err = VEC_ADD(&starts, e);
		else
			calls->all.v[kept++] = e;
	}
	if (calls->stops.n)
		VEC_SORT(&calls->stops, compare_stops);
	/* Each start of the world ends the process's latest stop before it. */
	for (size_t i = 0; i < starts.n; i++) {
		uint64_t start_ns = starts.v[i]->start_ns;
		const struct world_stop key = {.tgid = starts.v[i]->tgid, .start_ns = start_ns};
		size_t at = VEC_PARTITION_POINT(&calls->stops, s, compare_stops(s, &key) <= 0);
		struct world_stop *stop = at ? &calls->stops.v[at - 1] : NULL;

		if (stop && stop->tgid == key.tgid && start_ns < stop->end_ns)
			stop->end_ns = start_ns;
	}
	VEC_FINI(&starts);
	memmove(&calls->all.v[kept], &calls->all.v[from + n],
		(calls->all.n - from - n) * sizeof(*calls->all.v));
	calls->all.n -= from + n - kept;
	return err ? -ENOMEM : 0;
}

static int find_stops(struct goroutine_calls *calls, const struct recording *rec,
		      struct images *images)
{
	int err = 0;

	for (size_t i = 0, n; i < calls->all.n && !err; i = n) {
		uint32_t tgid = calls->all.v[i]->tgid;
		struct code_map *map = code_map__new();
		size_t next_map = 0, all = calls->all.n;

		for (n = i; n < calls->all.n && calls->all.v[n]->tgid == tgid; n++)
			;
		err = map ? images__apply(images, (pid_t)tgid, UINT64_MAX, &next_map, map)
			  : -ENOMEM;
		if (!err)
			err = take_stops(calls, i, n - i, map, rec->frozen_ns);
		n -= all - calls->all.n;
		code_map__free(map);
	}
	return err;
}

/*
 * Makes the call of the log's entry. Calls that have not returned end with the snapshot that they
 * began in.
 */
static struct call make_call(const struct goroutine *g, const struct mt_entry *entry)
{
	struct call call = {.start_ns = entry->start_ns,
			    .end_ns = entry->end_ns,
			    .entry_ip = entry->ip,
			    .kind = CALL_FUNCTION,
			    .flags = CALL_SAMPLED,
			    .parent = CALL_NO_PARENT};
	const struct recording *rec = g->rec;
	bool has_returned = entry->end_ns >= entry->start_ns && entry->end_ns;
	struct code_place place;

	if (!has_returned || entry->kind == MT_ENTRY_LEFT)
		call.flags |= CALL_INFERRED_END;
	if (!has_returned) {
		call.end_ns = rec->frozen_ns > call.start_ns ? rec->frozen_ns : call.start_ns;
		VEC_EACH(&rec->hits, hit)
			if (hit->time_ns >= call.start_ns && hit->time_ns < call.end_ns)
				call.end_ns = hit->time_ns;
	}
	if (code_map__find(g->map, entry->ip, &place))
		call.function = place.function;
	return call;
}

static int add_call(struct goroutine *g, const struct mt_entry *entry)
{
	struct call call = make_call(g, entry);
	pid_t first = (pid_t)(entry->returns_to >> 8);
	const struct ran_in ran_in = {first ? first : (pid_t)entry->tid, (pid_t)entry->tid};
	const char *reason = NULL;
	int err;

	while (g->open.n && g->exact.v[g->open.v[g->open.n - 1]].end_ns <= call.start_ns)
		g->open.n--;
	call.depth = (uint32_t)g->open.n;
	if (g->open.n) {
		const struct call *parent;

		call.parent = g->open.v[g->open.n - 1];
		parent = &g->exact.v[call.parent];
		/* A call cannot outlast its caller; when it was left is not known. */
		if (call.end_ns > parent->end_ns) {
			call.end_ns = parent->end_ns;
			call.flags |= CALL_INFERRED_END;
		}
	}
	if (is_park(&call))
		reason = go_runtime__wait_reason(elf_image__go_minor(call.function->image),
						 entry->returns_to & 0xff);
	err = VEC_ADD(&g->exact, call);
	if (!err)
		err = VEC_ADD(&g->ran_in, ran_in);
	if (!err)
		err = VEC_ADD(&g->reasons, reason);
	return err ? err : VEC_ADD(&g->open, (uint32_t)(g->exact.n - 1));
}

int goroutine__emit(struct goroutine *g, const struct call *call, uint32_t depth)
{
	struct call *out = VEC_PUSH(&g->tree.calls);
	uint32_t *at;

	g->at.n = depth;
	at = out ? VEC_PUSH(&g->at) : NULL;
	if (!at)
		return -ENOMEM;
	*out = *call;
	out->depth = depth;
	out->parent = depth ? g->at.v[depth - 1] : CALL_NO_PARENT;
	*at = (uint32_t)(g->tree.calls.n - 1);
	return 0;
}

int goroutine__emit_wait(struct goroutine *g, const char *text)
{
	uint32_t call = (uint32_t)(g->tree.calls.n - 1);

	if (!text)
		return 0;
	return VEC_ADD(&g->tree.waits, (struct waits_for){.call = call, .fd = -1, .text = text});
}

/* The last time that the goroutine was made ready during the park; NULL: none is known. */
static const struct mt_entry *find_ready(const struct goroutine *g, const struct call *park)
{
	const struct mt_entry end = {
		.tgid = (uint32_t)g->tree.pid, .goroutine = g->number, .start_ns = park->end_ns};
	const struct mt_entry *at = &end, *found;
	size_t n = VEC_PARTITION_POINT(&g->calls->ready, r, compare(r, &at) <= 0);

	found = n ? g->calls->ready.v[n - 1] : NULL;
	return found && found->tgid == end.tgid && found->goroutine == end.goroutine &&
			       found->start_ns >= park->start_ns
		       ? found
		       : NULL;
}

/* Packages whose functions make goroutines ready on behalf of their callers. */
static bool is_helper(const struct function *function)
{
	/* Go 1.27: "_.goready.func1", a closure of an inlined function, without its package. */
	return !strncmp(function->name, "_.", strlen("_.")) ||
	       !strncmp(function->name, "runtime.", strlen("runtime.")) ||
	       !strncmp(function->name, "sync.", strlen("sync.")) ||
	       !strncmp(function->name, "internal/", strlen("internal/"));
}

/* The stack that the thread had at exactly that time; NULL: it was not recorded. */
static const struct rec_sample *find_stack(const struct rec_sample *const *stacks, size_t n,
					   pid_t tid, uint64_t time_ns)
{
	const struct rec_sample key = {.tid = tid, .time_ns = time_ns}, *at = &key;
	size_t i = PARTITION_POINT(stacks, n, e, compare_stacks(e, &at) < 0);

	return i < n && !compare_stacks(&stacks[i], &at) ? stacks[i] : NULL;
}

/*
 * The function that made the goroutine ready, by the stack of that moment: the innermost one
 * outside of the runtime and its helpers. For a goroutine of the runtime, its outermost function.
 * NULL: not known.
 */
static const char *waker_function(const struct goroutine *g, const struct mt_entry *ready)
{
	const struct rec_sample *s = find_stack(g->calls->stacks.v, g->calls->stacks.n,
						(pid_t)ready->tid, ready->start_ns);
	const struct function *outermost = NULL;

	for (uint32_t i = 0; s && i < s->n_ips; i++) {
		uint64_t ip = g->rec->sample_ips.v[s->first_ip + i];
		struct code_place place;

		if (!code_map__find(g->map, i ? ip - 1 : ip, &place))
			break;
		if (!is_helper(place.function))
			return place.function->name;
		/* The frames after the scheduler's are of the goroutine that ran before. */
		if (go_function__is_scheduler(place.function))
			return NULL;
		if (!go_function__is(place.function, "runtime.goexit") &&
		    !go_function__is(place.function, "runtime.systemstack"))
			outermost = place.function;
	}
	return ready->goid && outermost ? outermost->name : NULL;
}

static int emit_waker(struct goroutine *g, const struct mt_entry *ready, uint64_t ns)
{
	struct done_by *by = ready->goid == MT_GOID_UNKNOWN ? NULL : VEC_PUSH(&g->tree.done_by);

	if (!by)
		return ready->goid == MT_GOID_UNKNOWN ? 0 : -ENOMEM;
	*by = (struct done_by){.call = (uint32_t)(g->tree.calls.n - 1),
			       .pid = (pid_t)ready->tgid,
			       .tid = (pid_t)ready->tid,
			       .is_goroutine = true,
			       .in = waker_function(g, ready),
			       .ns = ns};
	if (ready->goid)
		snprintf(by->comm, sizeof(by->comm), "goroutine %" PRIu64, ready->goid);
	else
		snprintf(by->comm, sizeof(by->comm), "Go's runtime");
	return 0;
}

/* The functions between a measured call and its wait, without those of the runtime next to it. */
struct park_path {
	const struct function *all[MT_GO_STACK_DEPTH]; /* innermost first */
	uint64_t entry_ips[MT_GO_STACK_DEPTH];
	uint32_t n;
};

/* True for functions of the runtime: its reason for the wait says what they do. */
static bool is_of_runtime(const struct function *function)
{
	return !strncmp(function->name, "runtime.", strlen("runtime.")) ||
	       !strncmp(function->name, "sync.runtime_", strlen("sync.runtime_")) ||
	       !strncmp(function->name, "internal/", strlen("internal/"));
}

/*
 * Finds the functions from the containing call to the park. Leaves *path empty if the stack is not
 * recorded, or does not lead to that call.
 */
static void find_park_path(const struct goroutine *g, size_t i, struct park_path *path)
{
	const struct call *park = &g->exact.v[i];
	const struct rec_sample *s = find_stack(g->calls->parks.v, g->calls->parks.n,
						g->ran_in.v[i].first, park->start_ns);

	path->n = 0;
	if (park->parent == CALL_NO_PARENT || !s)
		return;
	/* The innermost is runtime.gopark() itself. */
	for (uint32_t k = 1; k < s->n_ips && k < MT_GO_STACK_DEPTH; k++) {
		struct code_place place;

		if (!code_map__find(g->map, g->rec->sample_ips.v[s->first_ip + k] - 1, &place))
			break;
		if (place.function == g->exact.v[park->parent].function)
			return;
		if (!path->n && is_of_runtime(place.function))
			continue;
		path->entry_ips[path->n] = place.entry;
		path->all[path->n++] = place.function;
	}
	path->n = 0;
}

/* Extends the last call at this depth, if it has the same function and `call` follows directly. */
static bool extend_last(struct goroutine *g, const struct call *call, uint32_t depth)
{
	struct call *last = depth < g->at.n ? &g->tree.calls.v[g->at.v[depth]] : NULL;

	if (!last || last->kind != CALL_FUNCTION || last->function != call->function ||
	    last->end_ns != call->start_ns || !(last->flags & CALL_INFERRED_END))
		return false;
	last->end_ns = call->end_ns;
	g->at.n = depth + 1;
	return true;
}

/* Adds the calls inside the containing one in which the goroutine waits; *n: how many. */
static int emit_park_path(struct goroutine *g, size_t i, uint32_t *n)
{
	const struct call *park = &g->exact.v[i];
	struct park_path path;
	int err = 0;

	find_park_path(g, i, &path);
	for (uint32_t k = 0; k < path.n && !err; k++) {
		const struct call call = {.start_ns = park->start_ns,
					  .end_ns = park->end_ns,
					  .entry_ip = path.entry_ips[path.n - 1 - k],
					  .function = path.all[path.n - 1 - k],
					  .kind = CALL_FUNCTION,
					  .flags = CALL_SAMPLED | CALL_INFERRED_START |
						   CALL_INFERRED_END};

		if (!extend_last(g, &call, park->depth + k))
			err = goroutine__emit(g, &call, park->depth + k);
	}
	*n = path.n;
	return err;
}

/* Adds the wait until the goroutine is made ready, then its wait for a thread. */
static int emit_park(struct goroutine *g, size_t i)
{
	struct call call = g->exact.v[i];
	const struct mt_entry *ready = find_ready(g, &call);
	uint64_t end_ns = call.end_ns;
	uint32_t n_inside;
	uint8_t flags = call.flags;
	int err;

	call.kind = CALL_OFF_CPU;
	call.reason = OFF_BLOCKED;
	call.function = NULL;
	call.entry_ip = 0;
	if (ready) {
		call.end_ns = ready->start_ns;
		call.flags &= (uint8_t)~CALL_INFERRED_END;
	}
	err = emit_park_path(g, i, &n_inside);
	call.depth += n_inside;
	if (!err)
		err = goroutine__emit(g, &call, call.depth);
	if (!err)
		err = goroutine__emit_wait(g, g->reasons.v[i]);
	if (!err && ready)
		err = emit_waker(g, ready, call.end_ns - call.start_ns);
	if (err || call.end_ns == end_ns)
		return err;
	call.start_ns = call.end_ns;
	call.end_ns = end_ns;
	call.reason = OFF_RUNNABLE;
	call.flags = flags;
	err = goroutine__emit(g, &call, call.depth);
	return err ? err : goroutine__emit_wait(g, "a thread of Go's runtime");
}

/* Adds the measured calls, and fills the time between them. */
static int finish_tree(struct goroutine *g)
{
	uint64_t now_ns = 0;
	pid_t tid = 0;
	int err = 0;

	g->open.n = 0;
	for (size_t i = 0; i <= g->exact.n && !err; i++) {
		const struct call *next = i < g->exact.n ? &g->exact.v[i] : NULL;

		while (g->open.n && !err && (!next || next->depth < g->open.n)) {
			uint32_t last = g->open.v[--g->open.n];

			err = goroutine__fill_gap(g, last,
						  (struct ran_in){tid, g->ran_in.v[last].last},
						  now_ns, g->exact.v[last].end_ns);
			now_ns = g->exact.v[last].end_ns;
			tid = g->ran_in.v[last].last;
		}
		if (err || !next)
			break;
		if (g->open.n)
			err = goroutine__fill_gap(g, g->open.v[g->open.n - 1],
						  (struct ran_in){tid, g->ran_in.v[i].first},
						  now_ns, next->start_ns);
		if (!err)
			err = is_park(next) ? emit_park(g, i)
					    : goroutine__emit(g, next, next->depth);
		if (!err)
			err = VEC_ADD(&g->open, (uint32_t)i);
		now_ns = next->start_ns;
		tid = is_park(next) ? g->ran_in.v[i].last : g->ran_in.v[i].first;
	}
	return err;
}

/*
 * Names the track by Go's numbers, as far as they are known: after a goroutine has ended, the
 * runtime uses its memory, and so the track, for another one.
 */
static void name_tree(struct call_tree *tree, const struct recording *rec,
		      const struct mt_entry *const *entries, size_t n, uint32_t number)
{
	const struct rec_thread *known;
	uint64_t first = 0, last = 0;

	tree->pid = (pid_t)entries[0]->tgid;
	tree->tid = (pid_t)entries[0]->tid;
	tree->coroutine = number;
	for (size_t i = 0; i < n; i++) {
		first = first ? first : entries[i]->goid;
		last = entries[i]->goid ? entries[i]->goid : last;
	}
	if (first != last)
		snprintf(tree->coroutine_name, sizeof(tree->coroutine_name),
			 "goroutines %" PRIu64 " to %" PRIu64, first, last);
	else
		snprintf(tree->coroutine_name, sizeof(tree->coroutine_name), "goroutine %" PRIu64,
			 first ? first : tree->coroutine);
	known = recording__find_thread(rec, tree->pid, tree->tid);
	if (known)
		snprintf(tree->comm, sizeof(tree->comm), "%s", known->comm);
}

/*
 * The time of the first sample or switch: mappings were noted when the rings started, after the BPF
 * programs had begun.
 */
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

static int make_tree(struct goroutine *g, struct images *images,
		     const struct mt_entry *const *entries, size_t n)
{
	int err = g->map ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++) {
		uint64_t start_ns = entries[i]->start_ns;

		err = images__apply(images, g->tree.pid,
				    start_ns > g->noted_ns ? start_ns : g->noted_ns, &g->next_map,
				    g->map);
		if (!err)
			err = add_call(g, entries[i]);
	}
	return err ? err : finish_tree(g);
}

static int make_trees(struct goroutine_calls *calls, const struct recording *rec,
		      struct images *images, const struct thread_trees *threads,
		      int (*take)(void *ctx, struct call_tree *tree), void *ctx)
{
	const uint64_t since_ns = noted_ns(rec);
	uint32_t number = 0;
	int err = 0;

	for (size_t i = 0, n; i < calls->all.n && !err; i += n) {
		const struct mt_entry *const *first = &calls->all.v[i];
		struct goroutine g = {.rec = rec,
				      .calls = calls,
				      .threads = threads,
				      .number = first[0]->goroutine,
				      .noted_ns = since_ns,
				      .map = code_map__new()};

		for (n = 1; i + n < calls->all.n && first[n]->tgid == first[0]->tgid &&
			    first[n]->goroutine == first[0]->goroutine;
		     n++)
			;
		name_tree(&g.tree, rec, first, n, ++number);
		err = make_tree(&g, images, first, n);
		VEC_FINI(&g.open);
		VEC_FINI(&g.exact);
		VEC_FINI(&g.ran_in);
		VEC_FINI(&g.reasons);
		VEC_FINI(&g.at);
		code_map__free(g.map);
		if (err)
			call_tree__fini(&g.tree);
		else
			err = take(ctx, &g.tree);
	}
	return err;
}

int goroutines__trees(const struct recording *rec, struct images *images,
		      const struct thread_trees *threads,
		      int (*take)(void *ctx, struct call_tree *tree), void *ctx, uint64_t *first_ns)
{
	struct goroutine_calls calls = {0};
	int err = collect(&calls, rec);

	if (!err)
		err = find_stops(&calls, rec, images);
	for (size_t i = 0; i < calls.all.n && !err; i++)
		if (!*first_ns || calls.all.v[i]->start_ns < *first_ns)
			*first_ns = calls.all.v[i]->start_ns;
	if (!err)
		err = make_trees(&calls, rec, images, threads, take, ctx);
	VEC_FINI(&calls.all);
	VEC_FINI(&calls.ready);
	VEC_FINI(&calls.stacks);
	VEC_FINI(&calls.parks);
	VEC_FINI(&calls.stops);
	VEC_FINI(&calls.shown.all);
	return err;
}
