// SPDX-License-Identifier: MIT
#include "trace/hit_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "util/label.h"
#include "trace/slice_args.h"
#include "trace/timeline.h"

/*
 * Hits stand on a thread of their own in their process. Linux gives no thread an id over 2^22
 * (include/linux/threads.h: PID_MAX_LIMIT).
 */
#define HIT_TRACK_TID 0x7fff0000
/* Leaps count from 1 on. */
#define FIRST_FLOW (1ull << 62)

void hit_writer__fini(struct hit_writer *writer)
{
	VEC_FINI(&writer->tracks);
	VEC_FINI(&writer->threads);
}

int hit_writer__add_thread(struct hit_writer *writer, const struct hit_thread *thread)
{
	struct hit_thread *slot = VEC_PUSH(&writer->threads);

	if (!slot)
		return -ENOMEM;
	*slot = *thread;
	return 0;
}

static struct hit_track *track_of(struct hit_writer *writer, pid_t pid)
{
	struct hit_track *track;
	size_t n = writer->tracks.n;

	for (size_t i = 0; i < n; i++) {
		if (writer->tracks.v[i].pid == pid)
			return &writer->tracks.v[i];
	}
	track = VEC_PUSH(&writer->tracks);
	if (!track)
		return NULL;
	*track = (struct hit_track){.pid = pid, .tid = HIT_TRACK_TID + (pid_t)n};
	fxt__name_thread(writer->fxt, pid, track->tid, "mtbpf hits");
	return track;
}

/*
 * When the hit's slice begins: value_ns before it, but not within the slice before it, since the
 * importer drops slices that overlap. A hit that comes out of order is a slice without length,
 * which can lie in another one.
 */
static uint64_t hit_start(const struct hit_track *track, uint64_t end_ns, uint64_t value_ns)
{
	uint64_t start_ns = end_ns > value_ns ? end_ns - value_ns : 0;

	if (end_ns < track->end_ns)
		return end_ns;
	return start_ns > track->end_ns ? start_ns : track->end_ns;
}

static void format_name(char *buf, size_t size, const struct hit_mark *hit)
{
	if (hit->probe)
		snprintf(buf, size, "hit %s", hit->probe);
	else if (hit->function && hit->function->name)
		snprintf(buf, size, "hit %s", hit->function->name);
	else
		snprintf(buf, size, "hit 0x%" PRIx64, hit->ip);
}

static const struct hit_thread *thread_of(const struct hit_writer *writer,
					  const struct hit_mark *hit)
{
	for (size_t i = 0; i < writer->threads.n; i++) {
		const struct hit_thread *thread = &writer->threads.v[i];

		if (thread->tid == hit->tid && thread->pid == hit->pid)
			return thread;
	}
	return NULL;
}

/* What the hit stopped was written a moment before it: the instant lies in there still. */
static uint64_t mark_time(const struct hit_thread *thread, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns < thread->end_ns || thread->end_ns <= start_ns)
		return end_ns;
	return thread->end_ns - 1;
}

/*
 * From the slice's begin: at its end, and in one without length, importers of some years ago find
 * no slice that is open.
 */
static void write_arrow(struct hit_writer *writer, const struct fxt_event *slice,
			const struct hit_thread *thread, uint64_t mark_ns)
{
	struct fxt_flow flow = {.time_ns = slice->time_ns,
				.pid = slice->pid,
				.tid = slice->tid,
				.id = FIRST_FLOW + writer->n_flows++};

	fxt__flow_begin(writer->fxt, &flow);
	flow.time_ns = mark_ns;
	flow.pid = thread->pid;
	flow.tid = thread->tid;
	fxt__flow_end(writer->fxt, &flow);
}

static void write_mark(struct hit_writer *writer, const struct fxt_event *slice,
		       const struct hit_thread *thread, uint64_t end_ns)
{
	uint64_t mark_ns = mark_time(thread, slice->time_ns, end_ns);

	fxt__instant(writer->fxt, &(struct fxt_event){.time_ns = mark_ns,
						      .pid = thread->pid,
						      .tid = thread->tid,
						      .category = "trigger",
						      .name = slice->name});
	if (end_ns > slice->time_ns)
		write_arrow(writer, slice, thread, mark_ns);
}

int hit_writer__write(struct hit_writer *writer, const struct hit_mark *hit, uint64_t base_ns)
{
	struct hit_track *track = track_of(writer, hit->pid);
	const struct hit_thread *thread = thread_of(writer, hit);
	uint64_t end_ns = timeline__relative(base_ns, hit->time_ns);
	char name[LABEL_SIZE + 8]; /* longer than a label, so that its end shows that it was cut */
	char moment[UNITS_MOMENT_SIZE];
	struct slice_args args;
	struct fxt_event event = {.category = "hit", .name = name};

	if (!track)
		return -ENOMEM;
	format_name(name, sizeof(name), hit);
	slice_args__of_hit(&args, hit, moment);
	event.pid = track->pid;
	event.tid = track->tid;
	event.time_ns = hit_start(track, end_ns, hit->value_ns);
	event.args = args.v;
	event.n_args = args.n;
	fxt__complete(writer->fxt, &event, end_ns);
	if (thread)
		write_mark(writer, &event, thread, end_ns);
	if (end_ns > track->end_ns)
		track->end_ns = end_ns;
	return 0;
}
