// SPDX-License-Identifier: MIT
#include "sampled/sampled.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/branch.h"
#include "sampled/goroutines.h"
#include "sampled/sample_stack.h"
#include "sampled/sampled_internal.h"
#include "sampled/hit_stack.h"
#include "stack/stack.h"
#include "target/code_map.h"
#include "util/meter.h"

/* A return address may be the first of the next function: the call lies before it. */
static struct seen look_up(struct sampled_thread *t, uint64_t ip, bool is_return)
{
	struct seen seen = {.ip = ip, .kind = CALL_FUNCTION};
	struct code_place place;

	if (code_map__find(t->map, ip - is_return, &place))
		seen.function = place.function;
	return seen;
}

static int add_seen(struct sampled_thread *t, const struct seen *seen)
{
	struct seen *out = VEC_PUSH(&t->stack);

	if (!out)
		return -ENOMEM;
	*out = *seen;
	return 0;
}

/* Whether it is known what it ran there: where the kernel's symbols are not, addresses say nothing.
 */
static bool has_kernel_stack(const struct sampled_thread *t, const struct rec_sample *sample)
{
	return sample->n_kernel && images__has_kernel(t->images);
}

/* Behind what had called it. Without its stack it is only known that a switch happens in it. */
static int add_kernel(struct sampled_thread *t, const struct rec_sample *sample, uint64_t return_ip)
{
	bool is_known = has_kernel_stack(t, sample);
	int err = 0;

	if (is_known || (sample->in_kernel && !sample->at_switch))
		err = add_seen(t, &(struct seen){.kind = CALL_IN_KERNEL});
	for (uint32_t i = is_known ? sample->n_kernel : 0; i-- > 0 && !err;) {
		uint64_t ip = t->rec->sample_ips.v[sample->first_kernel + i];
		struct seen seen = look_up(t, ip, i != 0);

		seen.kind = CALL_IN_KERNEL;
		seen.return_ip = return_ip;
		return_ip = ip;
		if (seen.function)
			err = add_seen(t, &seen);
	}
	return err;
}

/*
 * Adds the caller of an innermost function without a frame (most of libc), which frame pointers
 * miss. It is the function that is called in front of the address that they lead to, or unknown. A
 * stack by the clock may come from the CPU (LBR), which misses no caller: the called function is
 * the innermost one itself then, and nothing is added.
 */
static int add_missed(struct sampled_thread *t, const struct rec_sample *sample, uint64_t ip,
		      uint64_t *return_ip)
{
	struct seen seen = {.return_ip = *return_ip, .kind = CALL_FUNCTION};
	struct code_place caller;

	if (!*return_ip || !unwind__misses_caller(t->map, ip, *return_ip, &caller) ||
	    (!caller.function && !sample->at_switch))
		return 0;
	/* Calls of it are exact: one that goes on has its place, and one that is over jumped on. */
	if (caller.function && sampled_thread__has_calls(t, caller.function))
		return 0;
	seen.function = caller.function;
	seen.ip = caller.entry;
	*return_ip = 0;
	return add_seen(t, &seen);
}

/* False for recordings that perf made: how it found their stacks is not known. */
static bool is_own(const struct recording *rec)
{
	return rec->source && !strcmp(rec->source, "sample");
}

/* Outermost first; a return probe's trampoline is nobody's frame. */
static int add_stack(struct sampled_thread *t, const struct rec_sample *sample, const uint64_t *ips,
		     size_t n, bool is_cut)
{
	bool by_frame_pointers = !sample->user && n > 1 && is_own(t->rec) &&
				 !sampled_thread__is_trampoline(t, ips[1]);
	uint64_t return_ip = 0;
	int err;

	t->stack.n = 0;
	err = is_cut ? add_seen(t, &SEEN_NO_CALLERS) : 0;
	for (size_t i = n; i-- > 0 && !err;) {
		struct seen seen = look_up(t, ips[i], i != 0);

		if (sampled_thread__is_trampoline(t, ips[i]))
			continue;
		if (!i && by_frame_pointers)
			err = add_missed(t, sample, ips[i], &return_ip);
		seen.return_ip = return_ip;
		return_ip = ips[i];
		if (!err)
			err = add_seen(t, &seen);
	}
	return err ? err : add_kernel(t, sample, return_ip);
}

/*
 * False if frame pointers tell no callers at all. Either the innermost function has something else
 * in %rbp, and what that leads to is no return address; or they do not suffice in this process,
 * whose code is unwound by rules, and the copy of the stack could not be made.
 */
static bool leads_to_callers(struct sampled_thread *t, const struct rec_sample *sample,
			     const uint64_t *ips, size_t n)
{
	if (!n || !is_own(t->rec))
		return true;
	if (sample->at_switch && t->rec->sample_users.n)
		return !unwind__has_rules(t->map, ips[0]);
	return !unwind__reuses_frame_pointer(t->map, ips[0]) ||
	       (n > 1 && (sampled_thread__is_trampoline(t, ips[1]) ||
			  unwind__is_behind_call(t->map, ips[1])));
}

static int add_chain(struct sampled_thread *t, const struct rec_sample *sample)
{
	const uint64_t *ips = sample->n_ips ? &t->rec->sample_ips.v[sample->first_ip] : NULL;

	return leads_to_callers(t, sample, ips, sample->n_ips)
		       ? add_stack(t, sample, ips, sample->n_ips, false)
		       : add_stack(t, sample, ips, 1, true);
}

/* By the copy of the stack where there is one, else what frame pointers showed. */
static int take_stack(struct sampled_thread *t, const struct rec_sample *sample)
{
	struct unwound unwound;
	int err;

	if (!sample->user)
		return add_chain(t, sample);
	err = sample_stack__unwind(t->rec, sample, t->map, &unwound);
	if (!err)
		err = add_stack(t, sample, unwound.ips.v, unwound.ips.n, !unwound.is_whole);
	unwound__fini(&unwound);
	return err;
}

/* Of the function that was innermost then. */
static int add_faults(struct sampled_thread *t, const struct rec_sample *sample)
{
	struct fault_mark *mark = sample->faults ? VEC_PUSH(&t->tree.faults) : NULL;

	if (!mark)
		return sample->faults ? -ENOMEM : 0;
	*mark = (struct fault_mark){
		.time_ns = sample->time_ns, .n = sample->faults, .is_major = sample->is_major};
	for (size_t i = t->stack.n; i-- > 0 && !mark->function;)
		mark->function = t->stack.v[i].function;
	return 0;
}

/* True if it shows no function: it was taken in the trampoline of a return probe, or at a probe. */
static bool tells_nothing(const struct sampled_thread *t)
{
	return t->stack.n && t->stack.v[0].kind == CALL_NO_CALLERS &&
	       seen__user(t->stack.v, t->stack.n) == 1;
}

/*
 * Page faults come in the middle of a function's time in the kernel and out of it: as stacks they
 * would say that it was out of it, far too often.
 */
static int on_sample(struct sampled_thread *t, const struct rec_sample *sample)
{
	int err = take_stack(t, sample);

	if (err || sample->faults)
		return err ? err : add_faults(t, sample);
	sampled_thread__take_throttled(t, sample->time_ns);
	sampled_thread__drop_at_probe(t, sample->time_ns);
	if (!tells_nothing(t))
		slices__see(&t->slices, sample->time_ns, t->stack.v, t->stack.n);
	return 0;
}

/* At its return the function is over, even where the instruction that returns has been probed. */
static void leave_probed(struct sampled_thread *t, const struct mt_hit *hit)
{
	if (hit->reason == MT_HIT_DURATION && t->stack.n && t->probed &&
	    t->stack.v[t->stack.n - 1].function == t->probed)
		t->stack.n--;
}

/* As the samples have theirs: another way to find callers finds others at the root. */
static int take_hit_stack(struct sampled_thread *t, const struct mt_hit *hit)
{
	struct rec_sample moment = {.time_ns = hit->time_ns};
	struct unwound unwound = {0};
	int err;

	if (t->rec->samples.n && !t->rec->sample_users.n)
		return add_stack(t, &moment, hit->stack, hit->stack_depth, false);
	err = hit_stack__find(t->rec, hit, t->images, &unwound);
	if (!err)
		err = add_stack(t, &moment, unwound.ips.v, unwound.ips.n,
				!unwound.is_whole && unwound.ips.n > 1);
	unwound__fini(&unwound);
	return err;
}

/* The stack that came with it ends the snapshot: without any sample, too. */
static int on_hit(struct sampled_thread *t, const struct mt_hit *hit)
{
	int err = hit->stack_depth ? take_hit_stack(t, hit) : 0;

	if (err || !hit->stack_depth)
		return err;
	leave_probed(t, hit);
	if (!tells_nothing(t))
		slices__see(&t->slices, hit->time_ns, t->stack.v, t->stack.n);
	return 0;
}

static void on_region(struct sampled_thread *t, const struct mt_sched *region)
{
	uint64_t end_ns = t->region.end_ns;

	if (end_ns && end_ns < region->time_ns) {
		slices__end(&t->slices, end_ns);
		slices__gap(&t->slices, end_ns, region->time_ns, GAP_OUTSIDE);
	}
	slices__begin(&t->slices, region->time_ns);
	span__take(&t->region, region);
}

static uint64_t within_region(const struct sampled_thread *t, uint64_t time_ns)
{
	return t->region.end_ns && t->region.end_ns < time_ns ? t->region.end_ns : time_ns;
}

static int on_event(struct sampled_thread *t, const struct event *event)
{
	int err = 0;

	switch (event->kind) {
	case EVENT_ENTRY:
		sampled_thread__on_entry(t, &t->rec->entries.v[event->index]);
		break;
	case EVENT_BY:
		if (event__region(t->rec, event))
			on_region(t, &t->rec->sched_bys.v[event->index]);
		sampled_thread__on_by(t, &t->rec->sched_bys.v[event->index]);
		break;
	case EVENT_SCHED:
		sampled_thread__on_sched(t, &t->rec->scheds.v[event->index]);
		break;
	case EVENT_TAKEN:
		sampled_thread__on_taken(t, &t->rec->taken.v[event->index]);
		break;
	case EVENT_SAMPLE:
		err = on_sample(t, &t->rec->samples.v[event->index]);
		break;
	case EVENT_HIT:
		err = on_hit(t, &t->rec->hits.v[event->index]);
		break;
	}
	return err ? err : t->slices.failed ? -ENOMEM : 0;
}

/* Each snapshot ends with its hit, but the last one, which may have none. */
static void end_snapshots(struct sampled_thread *t, uint64_t time_ns)
{
	const struct recording *rec = t->rec;
	uint64_t end_ns = 0;

	for (; t->next_hit < rec->hits.n && rec->hits.v[t->next_hit].time_ns < time_ns;
	     t->next_hit++)
		if (rec->hits.v[t->next_hit].time_ns > end_ns)
			end_ns = rec->hits.v[t->next_hit].time_ns;
	if (!end_ns || !t->tree.calls.n)
		return;
	slices__end(&t->slices, within_region(t, end_ns));
	slices__gap(&t->slices, end_ns, time_ns, GAP_BETWEEN);
	if (t->region.end_ns < time_ns)
		t->region = (struct span){0};
}

/* The trigger's, as the process has it mapped: of several the one that hit. */
static const struct function *probed_function(struct sampled_thread *t)
{
	const struct recording *rec = t->rec;

	return sampled_thread__function_at(
		t, rec->hits.n ? recording__probe_of(rec, &rec->hits.v[rec->hits.n - 1])
			       : rec->probe_ip);
}

static int follow_maps(struct sampled_thread *t, uint64_t time_ns)
{
	size_t before = t->next_map;
	int err = images__apply(t->images, t->pid, time_ns, &t->next_map, t->map);

	if (!err && (t->next_map != before || !t->probed))
		t->probed = probed_function(t);
	return err;
}

/* What is mapped was noted before the rings began; BPF's programs ran already. */
static uint64_t noted_ns(const struct event *events, size_t n)
{
	size_t i = 0;

	while (i + 1 < n && (events[i].kind == EVENT_ENTRY || events[i].kind == EVENT_BY))
		i++;
	return events[i].time_ns;
}

static uint64_t last_time(const struct recording *rec, const struct event *events, size_t n)
{
	uint64_t last_ns = events[n - 1].time_ns;

	return rec->frozen_ns > last_ns ? rec->frozen_ns : last_ns;
}

static int read_events(struct sampled_thread *t, const struct event *events, size_t n)
{
	int err = sampled_thread__note_probes(t, events, n);

	if (!err)
		err = follow_maps(t, noted_ns(events, n));

	for (size_t i = 0; i < n && !err; i++) {
		meter__add(t->meter, events[i].kind == EVENT_SAMPLE);
		end_snapshots(t, events[i].time_ns);
		err = follow_maps(t, events[i].time_ns);
		if (!err)
			err = on_event(t, &events[i]);
	}
	if (!err)
		slices__end(&t->slices, within_region(t, last_time(t->rec, events, n)));
	return err ? err : t->slices.failed ? -ENOMEM : 0;
}

static void name_tree(const struct sampled_thread *t, struct call_tree *tree)
{
	const struct rec_thread *known = recording__find_thread(t->rec, t->pid, t->tid);

	tree->pid = t->pid;
	tree->tid = t->tid;
	if (known)
		snprintf(tree->comm, sizeof(tree->comm), "%s", known->comm);
}

static int make_tree(const struct sampled_thread *blank, const struct event *events, size_t n,
		     struct call_tree *tree)
{
	const struct recording *rec = blank->rec;
	struct sampled_thread t = {.rec = rec,
				   .images = blank->images,
				   .meter = blank->meter,
				   .map = code_map__new(),
				   .cpu = -1,
				   .pid = events->pid,
				   .tid = events->tid};
	int err = t.map ? 0 : -ENOMEM;

	t.slices = (struct slices){
		.tree = &t.tree,
		.period_ns = rec->sample_period_ns,
	};
	t.returns_to = sample_stack__returns_to(rec, t.tid, events->time_ns);
	name_tree(&t, &t.tree);
	if (!err)
		err = read_events(&t, events, n);
	*tree = t.tree;
	slices__fini(&t.slices);
	VEC_FINI(&t.stack);
	VEC_FINI(&t.probes);
	code_map__free(t.map);
	return err;
}

/* Who woke it, and who ran in its place, is known from before there is anything to tell it of. */
static void add_totals(struct sampled_totals *totals, const struct recording *rec,
		       const struct call_tree *tree, const struct event *events, size_t n)
{
	uint64_t last_ns = last_time(rec, events, n);
	uint64_t first_ns = tree->calls.n ? tree->calls.v[0].start_ns : last_ns;

	if (!totals->first_ns || first_ns < totals->first_ns)
		totals->first_ns = first_ns;
	if (last_ns > totals->last_ns)
		totals->last_ns = last_ns;
}

static int make_trees(const struct recording *rec, struct images *images,
		      const struct events *events, sampled_taker take, void *ctx,
		      struct sampled_totals *totals, struct thread_trees *threads)
{
	const struct sampled_thread blank = {.rec = rec, .images = images, .meter = totals->meter};
	int err = 0;

	for (size_t i = 0, n; i < events->all.n && !err; i += n) {
		const struct event *first = &events->all.v[i];
		struct call_tree tree = {0}, *place;

		for (n = 1; i + n < events->all.n && first[n].tid == first->tid; n++)
			;
		err = make_tree(&blank, first, n, &tree);
		if (err) {
			call_tree__fini(&tree);
			break;
		}
		add_totals(totals, rec, &tree, first, n);
		place = VEC_PUSH(threads);
		if (!place) {
			call_tree__fini(&tree);
			return -ENOMEM;
		}
		*place = tree;
		err = take(ctx, &tree);
	}
	return err;
}

int sampled__trees(const struct recording *rec, struct images *images, sampled_taker take,
		   void *ctx, struct sampled_totals *totals)
{
	struct thread_trees threads = {0};
	struct events events = {0};
	int err = events__collect(&events, rec);

	totals->samples += rec->samples.n;
	totals->switches += rec->scheds.n;
	if (!err)
		err = make_trees(rec, images, &events, take, ctx, totals, &threads);
	if (!err)
		err = goroutines__trees(rec, images, &threads, take, ctx, totals);
	VEC_FINI(&threads);
	events__fini(&events);
	return err;
}
