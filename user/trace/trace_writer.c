// SPDX-License-Identifier: MIT
#include "trace/trace_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "kernel/kernel.h"
#include "stack/call_tree.h"
#include "trace/fxt.h"
#include "trace/fxt_format.h"
#include "trace/sink.h"
#include "trace/slice.h"
#include "trace/timeline.h"
#include "util/log.h"
#include "util/meter.h"
#include "util/names.h"
#include "util/text.h"
#include "util/vec.h"

struct hit_track {
	pid_t pid, tid;
	uint64_t end_ns; /* of the slice that ends last */
};

/* A thread whose slices have been written. */
struct hit_thread {
	pid_t pid, tid;
	uint64_t end_ns; /* of its slices, in the file's time */
};

/*
 * Hits have a track of their own in their process. Linux thread ids are at most 2^22
 * (include/linux/threads.h: PID_MAX_LIMIT).
 */
#define HIT_TRACK_TID 0x7fff0000
/* Arrows of hits have ids from here on, those of unwinds from 1 on. */
#define FIRST_FLOW (1ull << 62)

/*
 * Coroutines have tracks beside their thread's, and CPUs have tracks for events that belong to no
 * thread.
 */
#define COROUTINE_TRACK_TID 0x7f000000
#define CPU_TRACK_TID	    0x7ffe0000

/* After this many calls the meter is updated and memory is given back: some megabytes. */
#define FORGET_CALLS 100000

struct trace_writer {
	struct sink *sink;
	struct fxt *fxt;
	struct trace_options options;
	struct trace_totals totals;
	pid_t n_coroutines; /* number of coroutines that have got a track */
	int named_cpu;	    /* 1 + the CPU whose track was named last */
	VEC(struct hit_track) hit_tracks;
	VEC(struct hit_thread) hit_threads;
	uint64_t n_hit_flows;
	uint64_t first_unwind; /* the number of the tree's first unwind, counted from 1 */

	/* The tree that is being written. */
	const struct call_tree *tree;
	const struct call_site *const *sites; /* of its calls; NULL: the tree has them */
	uint64_t now_ns;		      /* time of its last event, as written */
	size_t next_unwind;
	VEC(const struct unwind *) unwinding; /* these have begun, and not landed */
	unsigned int n_open;
	struct open_slice {
		uint64_t end_ns;
		uint32_t depth, index;
	} open[TIMELINE_MAX_DEPTH];
	struct slice_writer slices;
};

static struct hit_track *track_of(struct trace_writer *writer, pid_t pid)
{
	struct hit_track *track = VEC_FIND(&writer->hit_tracks, e, e->pid == pid);
	size_t n = writer->hit_tracks.n;

	if (track)
		return track;
	track = VEC_PUSH(&writer->hit_tracks);
	if (!track)
		return NULL;
	*track = (struct hit_track){.pid = pid, .tid = HIT_TRACK_TID + (pid_t)n};
	fxt__name_track(writer->fxt, pid, track->tid, track->tid, "mtbpf hits");
	return track;
}

/*
 * The begin of the hit's slice: value_ns before its end, but not inside the previous slice, since
 * the importer drops slices that overlap. If hits are out of order, the slice has length 0 and may
 * be inside another.
 */
static uint64_t hit_start(const struct hit_track *track, uint64_t end_ns, uint64_t value_ns)
{
	uint64_t start_ns = end_ns > value_ns ? end_ns - value_ns : 0;

	if (end_ns < track->end_ns)
		return end_ns;
	return start_ns > track->end_ns ? start_ns : track->end_ns;
}

/* Writes the hit's instant on its thread's track, and an arrow to it from the hit's slice. */
static void write_mark(struct trace_writer *writer, const struct fxt_event *slice,
		       const struct hit_thread *thread, uint64_t end_ns)
{
	/*
	 * If the hit ended the thread's last slice, its instant is moved 1 ns before that slice's
	 * end, since it must be within the slice.
	 */
	bool ends_there = end_ns >= thread->end_ns && thread->end_ns > slice->time_ns;
	uint64_t mark_ns = ends_there ? thread->end_ns - 1 : end_ns;
	struct fxt_flow flow = {.time_ns = slice->time_ns,
				.pid = slice->pid,
				.tid = slice->tid,
				.id = FIRST_FLOW + writer->n_hit_flows};

	fxt__event(writer->fxt, FXT_EVENT_INSTANT, 0,
		   &(struct fxt_event){.time_ns = mark_ns,
				       .pid = thread->pid,
				       .tid = thread->tid,
				       .category = "trigger",
				       .name = slice->name});
	/*
	 * Draws an arrow from the slice's begin: at its end, or in a slice of length 0, older
	 * importers find no open slice.
	 */
	if (end_ns <= slice->time_ns)
		return;
	writer->n_hit_flows++;
	fxt__flow(writer->fxt, FXT_EVENT_FLOW_BEGIN, &flow);
	flow.time_ns = mark_ns;
	flow.pid = thread->pid;
	flow.tid = thread->tid;
	fxt__flow(writer->fxt, FXT_EVENT_FLOW_END, &flow);
}

void trace_writer__hit(struct trace_writer *writer, const struct hit_mark *hit)
{
	struct hit_track *track = track_of(writer, hit->pid);
	uint64_t end_ns = timeline__relative(writer->options.base_ns, hit->time_ns);
	char name[LABEL_SIZE + 8]; /* longer than a label, so that its end shows that it was cut */
	char moment[UNITS_MOMENT_SIZE];
	struct slice_args args;
	struct fxt_event event = {.category = "hit", .name = name};

	writer->totals.clamped += hit->time_ns < writer->options.base_ns;
	if (!track) {
		sink__fail(writer->sink, -ENOMEM);
		return;
	}
	if (hit->probe || (hit->function && hit->function->name))
		snprintf(name, sizeof(name), "hit %s", hit->probe ?: hit->function->name);
	else
		snprintf(name, sizeof(name), "hit 0x%" PRIx64, hit->ip);
	slice_args__of_hit(&args, hit, moment);
	event.pid = track->pid;
	event.tid = track->tid;
	event.time_ns = hit_start(track, end_ns, hit->value_ns);
	event.args = args.v;
	event.n_args = args.n;
	fxt__event(writer->fxt, FXT_EVENT_COMPLETE, end_ns, &event);
	VEC_EACH(&writer->hit_threads, thread) {
		if (thread->tid != hit->tid || thread->pid != hit->pid)
			continue;
		write_mark(writer, &event, thread, end_ns);
		break;
	}
	if (end_ns > track->end_ns)
		track->end_ns = end_ns;
}

static void write_instant(struct trace_writer *writer, const struct unwind *unwind,
			  const char *name, uint64_t time_ns)
{
	const struct call_tree *tree = writer->tree;
	const struct call *from = &tree->calls.v[unwind->from];
	/* The function that threw; the slice around the instant is the call by which it threw. */
	const struct call *thrower =
		from->parent == CALL_NO_PARENT ? from : &tree->calls.v[from->parent];
	const struct fxt_arg args[] = {
		{.key = "from", .kind = FXT_STRING, .string = call__name(thrower)},
		{.key = "to", .kind = FXT_STRING, .string = call__name(&tree->calls.v[unwind->to])},
	};

	fxt__event(writer->fxt, FXT_EVENT_INSTANT, 0,
		   &(struct fxt_event){
			   .time_ns = time_ns,
			   .pid = tree->pid,
			   .tid = tree->tid,
			   .category = "leap",
			   .name = name,
			   .args = args,
			   .n_args = sizeof(args) / sizeof(args[0]),
		   });
}

static struct fxt_flow flow_of(const struct trace_writer *writer, const struct unwind *unwind,
			       uint64_t time_ns)
{
	return (struct fxt_flow){
		.time_ns = time_ns,
		.pid = writer->tree->pid,
		.tid = writer->tree->tid,
		.id = writer->first_unwind + (uint64_t)(unwind - writer->tree->unwinds.v),
	};
}

/* True if an exception or longjmp begins with that call. */
static inline bool has_unwind(const struct trace_writer *writer, uint32_t index)
{
	return writer->next_unwind < writer->tree->unwinds.n &&
	       writer->tree->unwinds.v[writer->next_unwind].from <= index;
}

/* Writes the unwinds that begin with the call, whose slice has just begun at time_ns, as written.
 */
static void begin_unwinds(struct trace_writer *writer, uint32_t index, uint64_t time_ns)
{
	const struct call_tree *tree = writer->tree;

	for (; has_unwind(writer, index); writer->next_unwind++) {
		const struct unwind *unwind = &tree->unwinds.v[writer->next_unwind];
		struct fxt_flow flow = flow_of(writer, unwind, time_ns);
		uint32_t caller = index;

		/* Earlier unwinds belong to calls too deep to be written. */
		if (unwind->from != index || tree->calls.v[index].depth + 1 >= TIMELINE_MAX_DEPTH)
			continue;
		/* It lands in a caller; after a gap the two ends may be in different trees. */
		while (caller != CALL_NO_PARENT && caller > unwind->to)
			caller = tree->calls.v[caller].parent;
		if (caller == unwind->to && caller != index) {
			if (VEC_ADD(&writer->unwinding, unwind)) {
				sink__fail(writer->sink, -ENOMEM);
				return;
			}
			/* This precedes the instant; otherwise the arrow would start there. */
			fxt__flow(writer->fxt, FXT_EVENT_FLOW_BEGIN, &flow);
		}
		write_instant(writer, unwind, left_by__name(unwind->left_by) ?: "leap", time_ns);
	}
}

struct trace_writer *trace_writer__open(const char *path, const struct trace_options *options)
{
	static const char *const suffixes[] = {".fxt", ".fxt.gz", ".fxt.zst"};
	struct trace_writer *writer;
	bool is_known = false;

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		is_known |= strcmp(path, suffixes[i]) && text__ends_in(path, suffixes[i]);
	if (!is_known) {
		log__error("cannot write %s: its suffix is not that of a trace format", path);
		log__hint("use NAME.fxt.gz, .fxt or .fxt.zst (which Perfetto cannot read)");
		errno = EINVAL;
		return NULL;
	}
	writer = calloc(1, sizeof(*writer));
	if (!writer)
		goto no_memory;
	writer->options = *options;
	writer->sink = sink__open(path);
	if (!writer->sink) {
		free(writer);
		return NULL;
	}
	writer->fxt = fxt__new(writer->sink);
	writer->slices.fxt = writer->fxt;
	writer->first_unwind = 1;
	if (writer->fxt)
		return writer;
	trace_writer__abort(writer);
no_memory:
	log__error("cannot write %s: %s", path, strerror(ENOMEM));
	log__hint("close other programs, or decode on a machine with more memory");
	errno = ENOMEM;
	return NULL;
}

void trace_writer__process(struct trace_writer *writer, pid_t pid, const char *name)
{
	fxt__name_process(writer->fxt, pid, name);
}

/*
 * Returns the time as written: relative to base_ns, and not before the tree's last event. The
 * importer sorts by time, stably: the file's order decides between equal times, so that a tree
 * walked in order keeps its nesting. One event that ran backwards would break the nesting of all
 * around it.
 */
static uint64_t advance(struct trace_writer *writer, uint64_t time_ns)
{
	uint64_t base_ns = writer->options.base_ns;
	uint64_t now_ns = timeline__relative(base_ns, time_ns);

	if (time_ns < base_ns || now_ns < writer->now_ns)
		writer->totals.clamped++;
	if (now_ns > writer->now_ns)
		writer->now_ns = now_ns;
	return writer->now_ns;
}

/* Writes the landings in the call, which is the innermost open one again. */
static void land_in(struct trace_writer *writer, uint32_t index)
{
	for (size_t i = writer->unwinding.n; i-- > 0;) {
		const struct unwind *unwind = writer->unwinding.v[i];
		/* A jump lands; what was thrown is caught. */
		bool is_caught = unwind->left_by == LEFT_BY_THROW ||
				 unwind->left_by == LEFT_BY_PANIC ||
				 unwind->left_by == LEFT_BY_RAISE;
		struct fxt_flow flow;

		if (unwind->to != index)
			continue;
		flow = flow_of(writer, unwind, advance(writer, unwind->end_ns));
		/*
		 * The arrow ends at the instant. If it ended at the call itself, which began before
		 * the throw, it would run backwards (Perfetto: flow_tracker.cc).
		 */
		write_instant(writer, unwind, is_caught ? "caught" : "landed", flow.time_ns);
		fxt__flow(writer->fxt, FXT_EVENT_FLOW_END, &flow);
		VEC_REMOVE(&writer->unwinding, i);
	}
}

static void write_call(struct trace_writer *writer, uint32_t index)
{
	const struct call_tree *tree = writer->tree;
	const struct call *call = &tree->calls.v[index];
	const struct call_site *site =
		writer->sites ? writer->sites[index] : call__site(call, &tree->sites);
	/*
	 * A call without callees can be one record instead of two, which importers also read
	 * faster. Not if other slices are inside, or if its length is 0: an importer would then
	 * confuse its children with slices that begin when it ends.
	 */
	bool is_whole =
		(index + 1 == tree->calls.n || call[1].depth <= call->depth) &&
		!call->told_at_end && call->end_ns > call->start_ns &&
		timeline__relative(writer->options.base_ns, call->end_ns) > writer->now_ns &&
		!has_unwind(writer, index);
	uint64_t time_ns = advance(writer, call->start_ns);

	slice_writer__write(&writer->slices, tree, call, site, time_ns,
			    is_whole ? advance(writer, call->end_ns) : 0);
	writer->totals.slices++;
	if (is_whole)
		return;
	writer->open[writer->n_open++] = (struct open_slice){call->end_ns, call->depth, index};
	begin_unwinds(writer, index, time_ns);
}

/* Ends what is open at this depth or deeper. */
static void end_down_to(struct trace_writer *writer, uint32_t depth)
{
	const struct call_tree *tree = writer->tree;

	while (writer->n_open && writer->open[writer->n_open - 1].depth >= depth) {
		const struct open_slice *slice = &writer->open[--writer->n_open];

		fxt__end(writer->fxt, tree->pid, tree->tid, advance(writer, slice->end_ns));
		if (writer->unwinding.n && writer->n_open)
			land_in(writer, writer->open[writer->n_open - 1].index);
	}
}

/*
 * is_part: the tree has only some calls of the thread. The first call, and each other one at its
 * depth, may begin before the calls written last, which may be its callees: time goes back there.
 */
static void write_calls(struct trace_writer *writer, const struct call_tree *tree, bool is_part)
{
	/* Trees with unwinds are kept: a landing refers back to much earlier calls. */
	bool forgets = writer->options.forget_calls && !tree->unwinds.n && !is_part;
	uint32_t first = is_part && tree->calls.n ? tree->calls.v[0].depth : CALL_NO_PARENT;
	size_t behind = 0;

	writer->tree = tree;
	writer->now_ns = 0;
	writer->next_unwind = 0;
	writer->unwinding.n = 0;
	for (size_t i = 0; i < tree->calls.n && !sink__error(writer->sink); i++) {
		const struct call *call = &tree->calls.v[i];

		end_down_to(writer, call->depth);
		if (call->depth == first)
			writer->now_ns = 0;
		if (call->depth >= TIMELINE_MAX_DEPTH)
			writer->totals.too_deep++;
		else
			write_call(writer, (uint32_t)i);
		if (i - behind < FORGET_CALLS)
			continue;
		meter__add(writer->options.meter, FORGET_CALLS);
		/*
		 * Starts at the first call each time, so that pages shared by two rounds are given
		 * back, too.
		 */
		if (forgets)
			huge_pages__give_back((void *)tree->calls.v, &tree->calls.v[i]);
		behind = i;
	}
	meter__add(writer->options.meter, tree->calls.n - behind);
	end_down_to(writer, 0);
	writer->first_unwind += tree->unwinds.n;
}

static void put_counter(struct trace_writer *writer, const struct call_tree *tree, const char *name,
			uint64_t time_ns, uint64_t value)
{
	trace_writer__counter(writer, &(struct trace_counter){
					      .name = name,
					      .of = FAULT_COUNTER_OF,
					      .pid = tree->pid,
					      .tid = tree->tid,
					      .id = (uint64_t)tree->tid,
					      .time_ns = time_ns,
					      .value = (double)value,
				      });
}

/*
 * Writes the counters of faults, moves and interrupts: a value whenever one has changed. Call it
 * after the calls are written.
 */
static void write_counters(struct trace_writer *writer, const struct call_tree *tree)
{
	static const char *const names[] = {FAULT_COUNTER, FAULT_COUNTER_MAJOR, MOVE_COUNTER};
	const uint64_t base_ns = writer->options.base_ns;
	uint64_t seen[3] = {0}, taken_ns = 0, last_ns = UINT64_MAX;

	VEC_EACH(&tree->faults, mark) {
		const int kind = mark->is_move ? 2 : mark->is_major;

		seen[kind] += mark->n;
		put_counter(writer, tree, names[kind], mark->time_ns, seen[kind]);
	}
	/*
	 * The counter rises from the begin of each stretch of interrupts to its end, as far as the
	 * stretch is after base_ns.
	 */
	VEC_EACH(&tree->interrupts, mark) {
		uint64_t start_ns = mark->start_ns > base_ns ? mark->start_ns : base_ns;

		if (mark->end_ns <= base_ns)
			continue;
		if (start_ns != last_ns)
			put_counter(writer, tree, INTERRUPT_COUNTER, start_ns, taken_ns);
		taken_ns += mark->ns - interrupts_mark__until(mark, start_ns);
		put_counter(writer, tree, INTERRUPT_COUNTER, mark->end_ns, taken_ns);
		last_ns = mark->end_ns;
	}
}

void trace_writer__thread(struct trace_writer *writer, const struct call_tree *tree)
{
	struct call_tree track = *tree;
	char name[64];
	int n;

	if (tree->comm[0])
		n = snprintf(name, sizeof(name), "%.*s", (int)sizeof(tree->comm), tree->comm);
	else
		n = snprintf(name, sizeof(name), "thread %d", tree->tid);
	if (tree->coroutine) {
		snprintf(name + n, sizeof(name) - (size_t)n, ": %s", tree->coroutine_name);
		track.tid = COROUTINE_TRACK_TID + writer->n_coroutines++;
	}
	fxt__name_track(writer->fxt, tree->pid, track.tid, tree->tid, name);
	write_calls(writer, &track, false);
	write_counters(writer, &track);
	if (tree->calls.n && !tree->coroutine &&
	    VEC_ADD(&writer->hit_threads,
		    (struct hit_thread){tree->pid, tree->tid, writer->now_ns}))
		sink__fail(writer->sink, -ENOMEM);
}

void trace_writer__calls(struct trace_writer *writer, const struct call_tree *calls,
			 const struct call_site *const *sites)
{
	writer->sites = sites;
	write_calls(writer, calls, true);
	writer->sites = NULL;
}

void trace_writer__set_base(struct trace_writer *writer, uint64_t base_ns)
{
	writer->options.base_ns = base_ns;
}

void trace_writer__counter(struct trace_writer *writer, const struct trace_counter *counter)
{
	struct fxt_arg arg = {.key = counter->of, .kind = FXT_DOUBLE, .fraction = counter->value};
	uint64_t time_ns = timeline__relative(writer->options.base_ns, counter->time_ns);
	struct fxt_event event = {
		/* Perfetto of some years ago takes the last value at time 0 for 0, and breaks. */
		.time_ns = time_ns ? time_ns : 1,
		.pid = counter->pid,
		.tid = counter->tid,
		.category = "counter",
		.name = counter->name,
		.args = &arg,
		.n_args = 1};

	fxt__event(writer->fxt, FXT_EVENT_COUNTER, counter->id, &event);
}

void trace_writer__event(struct trace_writer *writer, const struct pt_note *e)
{
	struct fxt_arg args[] = {
		{.key = "value", .kind = FXT_UINT, .number = e->value},
		{.key = "ip", .kind = FXT_POINTER, .number = e->ip},
		{.key = "in", .kind = FXT_STRING, .string = e->in},
	};
	char name[PT_NOTE_TEXT_SIZE];
	struct fxt_event event = {.time_ns =
					  timeline__relative(writer->options.base_ns, e->time_ns),
				  .pid = e->pid,
				  .tid = e->tid ?: CPU_TRACK_TID + e->cpu,
				  .category = pt_note__category((enum pt_note_kind)e->kind),
				  .name = pt_note__format(e, name),
				  .args = args,
				  .n_args = e->in   ? 3
					    : e->ip ? 2
						    : 1};

	if (!e->tid && writer->named_cpu != 1 + e->cpu) {
		char cpu[32];

		snprintf(cpu, sizeof(cpu), "CPU %d", e->cpu);
		fxt__name_track(writer->fxt, e->pid, event.tid, event.tid, cpu);
		writer->named_cpu = 1 + e->cpu;
	}
	fxt__event(writer->fxt, FXT_EVENT_INSTANT, 0, &event);
}

static void destroy(struct trace_writer *writer)
{
	fxt__free(writer->fxt);
	VEC_FINI(&writer->hit_tracks);
	VEC_FINI(&writer->hit_threads);
	VEC_FINI(&writer->unwinding);
	free(writer);
}

int trace_writer__close(struct trace_writer *writer, struct trace_totals *totals)
{
	int err = sink__close(writer->sink, &writer->totals.bytes);

	if (totals)
		*totals = writer->totals;
	destroy(writer);
	return err;
}

void trace_writer__abort(struct trace_writer *writer)
{
	if (!writer)
		return;
	sink__abort(writer->sink);
	destroy(writer);
}
