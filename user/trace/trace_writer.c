// SPDX-License-Identifier: MIT
#include "trace/trace_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/huge_pages.h"
#include "trace/fxt.h"
#include "trace/hit_writer.h"
#include "trace/leap_writer.h"
#include "trace/sink/sink.h"
#include "trace/slice_args.h"
#include "trace/slice_writer.h"
#include "trace/fxt_format.h"
#include "trace/timeline.h"
#include "util/log.h"
#include "util/meter.h"

/*
 * Coroutines stand beside their thread. Linux gives no thread an id over 2^22
 * (include/linux/threads.h: PID_MAX_LIMIT).
 */
#define STRAND_TRACK_TID 0x7f000000
#define CPU_TRACK_TID	 0x7ffe0000

/* Some megabytes of them. */
#define FORGET_CALLS 100000

struct trace_writer {
	struct sink *sink;
	struct fxt *fxt;
	struct trace_options options;
	struct trace_totals totals;
	struct leap_writer leaps;
	struct hit_writer hits;
	pid_t n_strands; /* written */
	int named_cpu;	 /* 1 + the last one that was */

	/* Of the tree that is being written. */
	const struct call_tree *tree;
	const struct call_site *const *sites; /* of its calls; NULL: the tree has them */
	uint64_t now_ns;		      /* where its last event stands */
	unsigned int n_open;
	struct open_slice {
		uint64_t end_ns;
		uint32_t depth, index;
	} open[TIMELINE_MAX_DEPTH];
	struct slice_writer slices;
};

static bool has_known_suffix(const char *path)
{
	static const char *const suffixes[] = {".fxt", ".fxt.gz", ".fxt.zst"};
	size_t len = strlen(path);

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t n = strlen(suffixes[i]);

		if (len > n && !strcmp(path + len - n, suffixes[i]))
			return true;
	}
	return false;
}

struct trace_writer *trace_writer__open(const char *path, const struct trace_options *options)
{
	struct trace_writer *writer;

	if (!has_known_suffix(path)) {
		log__error("cannot write %s: its suffix names no trace format", path);
		log__hint("use NAME.fxt.gz, or .fxt, or .fxt.zst (Perfetto does not read that)");
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
	writer->leaps.fxt = writer->slices.fxt = writer->hits.fxt = writer->fxt;
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
 * The importer sorts by time, stably: the file's order decides between equal times, so that a tree
 * walked in order keeps its nesting. One event that ran backwards would break it for all around it.
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

static const struct call_site *site_of(const struct trace_writer *writer, uint32_t index)
{
	return writer->sites ? writer->sites[index]
			     : call__site(&writer->tree->calls.v[index], &writer->tree->sites);
}

static void begin(struct trace_writer *writer, uint32_t index)
{
	const struct call *call = &writer->tree->calls.v[index];
	uint64_t time_ns = advance(writer, call->start_ns);

	slice_writer__write(&writer->slices, writer->tree, call, site_of(writer, index), time_ns,
			    0);
	writer->totals.slices++;
	writer->open[writer->n_open++] = (struct open_slice){call->end_ns, call->depth, index};
	if (leap_writer__has(&writer->leaps, index) &&
	    leap_writer__begin(&writer->leaps, index, time_ns))
		sink__fail(writer->sink, -ENOMEM);
}

/*
 * A slice in one record instead of two, which importers read faster, too. Where others lie in it,
 * or it has no length, an importer would take those that begin when it ends for its siblings, or
 * the other way round.
 */
static bool is_whole(const struct trace_writer *writer, uint32_t index)
{
	const struct call_tree *tree = writer->tree;
	const struct call *call = &tree->calls.v[index];

	return (index + 1 == tree->calls.n || call[1].depth <= call->depth) && !call->told_at_end &&
	       call->end_ns > call->start_ns &&
	       timeline__relative(writer->options.base_ns, call->end_ns) > writer->now_ns &&
	       !leap_writer__has(&writer->leaps, index);
}

static void write_whole(struct trace_writer *writer, uint32_t index)
{
	const struct call *call = &writer->tree->calls.v[index];
	uint64_t time_ns = advance(writer, call->start_ns);

	slice_writer__write(&writer->slices, writer->tree, call, site_of(writer, index), time_ns,
			    advance(writer, call->end_ns));
	writer->totals.slices++;
}

/* Back in the innermost call that is open: leaps may land in it. */
static void land(struct trace_writer *writer)
{
	uint32_t index = writer->open[writer->n_open - 1].index;
	const struct leap *leap;

	while ((leap = leap_writer__landing(&writer->leaps, index)))
		leap_writer__land(&writer->leaps, leap, advance(writer, leap->end_ns));
}

/* Ends what is open at this depth or deeper. */
static void end_down_to(struct trace_writer *writer, uint32_t depth)
{
	const struct call_tree *tree = writer->tree;

	while (writer->n_open && writer->open[writer->n_open - 1].depth >= depth) {
		const struct open_slice *slice = &writer->open[--writer->n_open];

		fxt__end(writer->fxt, tree->pid, tree->tid, advance(writer, slice->end_ns));
		if (writer->leaps.open.n && writer->n_open)
			land(writer);
	}
}

static void name_track(struct trace_writer *writer, const struct call_tree *tree, pid_t tid)
{
	char name[64];
	int n;

	if (tree->comm[0])
		n = snprintf(name, sizeof(name), "%.*s", (int)sizeof(tree->comm), tree->comm);
	else
		n = snprintf(name, sizeof(name), "thread %d", tree->tid);
	if (tree->strand)
		snprintf(name + n, sizeof(name) - (size_t)n, ": %s", tree->strand_name);
	fxt__name_track(writer->fxt, tree->pid, tid, tree->tid, name);
}

/* Now and then: the calls before the n'th. */
static void leave_behind(const struct trace_writer *writer, size_t n, bool forget)
{
	const struct call *calls = writer->tree->calls.v;

	meter__add(writer->options.meter, FORGET_CALLS);
	/* From the first on: pages that two rounds share are among them. */
	if (forget)
		huge_pages__give_back((void *)calls, &calls[n]);
}

/* is_part: each of the depth of the first is told after what it called before, which is not here.
 */
static void write_calls(struct trace_writer *writer, const struct call_tree *tree, bool is_part)
{
	/* A leap looks back at calls of long ago. */
	bool forgets = writer->options.forget_calls && !tree->leaps.n && !is_part;
	uint32_t first = is_part && tree->calls.n ? tree->calls.v[0].depth : CALL_NO_PARENT;
	size_t behind = 0;

	writer->tree = tree;
	writer->now_ns = 0;
	leap_writer__begin_tree(&writer->leaps, tree);
	for (size_t i = 0; i < tree->calls.n && !sink__error(writer->sink); i++) {
		const struct call *call = &tree->calls.v[i];

		end_down_to(writer, call->depth);
		if (call->depth == first)
			writer->now_ns = 0;
		if (call->depth >= TIMELINE_MAX_DEPTH)
			writer->totals.too_deep++;
		else if (is_whole(writer, (uint32_t)i))
			write_whole(writer, (uint32_t)i);
		else
			begin(writer, (uint32_t)i);
		if (i - behind == FORGET_CALLS) {
			leave_behind(writer, i, forgets);
			behind = i;
		}
	}
	meter__add(writer->options.meter, tree->calls.n - behind);
	end_down_to(writer, 0);
}

static void add_hit_thread(struct trace_writer *writer, const struct call_tree *tree)
{
	struct hit_thread thread = {tree->pid, tree->tid, writer->now_ns};

	if (hit_writer__add_thread(&writer->hits, &thread))
		sink__fail(writer->sink, -ENOMEM);
}

static void put_interrupts(struct trace_writer *writer, const struct call_tree *tree,
			   uint64_t time_ns, uint64_t taken_ns)
{
	trace_writer__counter(writer, &(struct trace_counter){
					      .name = INTERRUPT_COUNTER,
					      .of = FAULT_COUNTER_OF,
					      .pid = tree->pid,
					      .tid = tree->tid,
					      .id = (uint64_t)tree->tid,
					      .time_ns = time_ns,
					      .value = (double)taken_ns,
				      });
}

/* It rises from where each stretch begins to its end, as far as that is in the trace. */
static void write_interrupts(struct trace_writer *writer, const struct call_tree *tree)
{
	const uint64_t base_ns = writer->options.base_ns;
	uint64_t taken_ns = 0, last_ns = UINT64_MAX;

	for (size_t i = 0; i < tree->interrupts.n; i++) {
		const struct interrupts_mark *mark = &tree->interrupts.v[i];
		uint64_t start_ns = mark->start_ns > base_ns ? mark->start_ns : base_ns;

		if (mark->end_ns <= base_ns)
			continue;
		if (start_ns != last_ns)
			put_interrupts(writer, tree, start_ns, taken_ns);
		taken_ns += mark->ns - interrupts_mark__until(mark, start_ns);
		put_interrupts(writer, tree, mark->end_ns, taken_ns);
		last_ns = mark->end_ns;
	}
}

/* Behind the calls: a value at each moment at which there were some. */
static void write_counters(struct trace_writer *writer, const struct call_tree *tree)
{
	static const char *const names[] = {FAULT_COUNTER, FAULT_COUNTER_MAJOR, MOVE_COUNTER};
	uint64_t seen[3] = {0};

	for (size_t i = 0; i < tree->faults.n; i++) {
		const struct fault_mark *mark = &tree->faults.v[i];

		const int kind = mark->is_move ? 2 : mark->is_major;

		seen[kind] += mark->n;
		trace_writer__counter(writer, &(struct trace_counter){
						      .name = names[kind],
						      .of = FAULT_COUNTER_OF,
						      .pid = tree->pid,
						      .tid = tree->tid,
						      .id = (uint64_t)tree->tid,
						      .time_ns = mark->time_ns,
						      .value = (double)seen[kind],
					      });
	}
	write_interrupts(writer, tree);
}

void trace_writer__thread(struct trace_writer *writer, const struct call_tree *tree)
{
	struct call_tree track = *tree;

	if (tree->strand)
		track.tid = STRAND_TRACK_TID + writer->n_strands++;
	name_track(writer, tree, track.tid);
	write_calls(writer, &track, false);
	write_counters(writer, &track);
	if (tree->calls.n && !tree->strand)
		add_hit_thread(writer, tree);
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

void trace_writer__hit(struct trace_writer *writer, const struct hit_mark *hit)
{
	writer->totals.clamped += hit->time_ns < writer->options.base_ns;
	if (hit_writer__write(&writer->hits, hit, writer->options.base_ns))
		sink__fail(writer->sink, -ENOMEM);
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

	fxt__counter(writer->fxt, &event, counter->id);
}

static pid_t name_cpu_track(struct trace_writer *writer, const struct pt_note *event)
{
	pid_t tid = CPU_TRACK_TID + event->cpu;
	char name[32];

	snprintf(name, sizeof(name), "CPU %d", event->cpu);
	if (writer->named_cpu != 1 + event->cpu)
		fxt__name_thread(writer->fxt, event->pid, tid, name);
	writer->named_cpu = 1 + event->cpu;
	return tid;
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
				  .tid = e->tid ?: name_cpu_track(writer, e),
				  .category = pt_note__category((enum pt_note_kind)e->kind),
				  .name = pt_note__format(e, name),
				  .args = args,
				  .n_args = e->in   ? 3
					    : e->ip ? 2
						    : 1};

	fxt__instant(writer->fxt, &event);
}

static void destroy(struct trace_writer *writer)
{
	fxt__free(writer->fxt);
	hit_writer__fini(&writer->hits);
	leap_writer__fini(&writer->leaps);
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
