// SPDX-License-Identifier: MIT
#include "trace/read/fxt_trees.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stack/stack.h"
#include "trace/read/fxt_by.h"
#include "trace/read/fxt_call.h"
#include "trace/read/fxt_hit.h"
#include "trace/read/fxt_read.h"
#include "util/label.h"
#include "util/meter.h"

static struct fxt_track *add_track(struct fxt_trees *trees, uint64_t pid, uint64_t tid)
{
	struct call_tree *tree = VEC_PUSH(&trees->trees);
	struct fxt_track *track = tree ? VEC_PUSH(&trees->tracks) : NULL;

	if (tree)
		*tree = (struct call_tree){.pid = (pid_t)pid, .tid = (pid_t)tid};
	if (track)
		*track = (struct fxt_track){.pid = pid, .tid = tid, .open = CALL_NO_PARENT};
	return track;
}

/* Most events are of the track that the last one was of. */
static struct fxt_track *track_of(struct fxt_trees *trees, uint64_t pid, uint64_t tid)
{
	for (size_t i = trees->tracks.n; i--;) {
		struct fxt_track *track = &trees->tracks.v[i];

		if (track->tid == tid && track->pid == pid)
			return track;
	}
	return add_track(trees, pid, tid);
}

static struct call_tree *tree_of(struct fxt_trees *trees, const struct fxt_track *track)
{
	return &trees->trees.v[track - trees->tracks.v];
}

static uint64_t hash_of(const char *name, const char *module)
{
	return hash__bytes(hash__bytes(0, name, strlen(name) + 1), module, strlen(module));
}

/* Its strings lie behind it. */
static struct function *make_function(const char *name, const char *module)
{
	size_t n = strlen(name) + 1, m = strlen(module) + 1;
	struct function *function = calloc(1, sizeof(*function) + n + m);
	char *text = (char *)(function + 1);

	if (!function)
		return NULL;
	function->name = memcpy(text, name, n);
	function->module = memcpy(text + n, module, m);
	return function;
}

static const struct function *function_of(struct fxt_trees *trees, const char *name,
					  const char *module)
{
	uint64_t hash = hash_of(name, module);
	struct function **place, *function;
	uint32_t number;
	size_t at = 0;

	while ((number = hash_index__next(&trees->by_name, hash, &at))) {
		function = trees->functions.v[number - 1];
		if (!strcmp(function->name, name) && !strcmp(function->module, module))
			return function;
	}
	function = make_function(name, module);
	place = function ? VEC_PUSH(&trees->functions) : NULL;
	if (!place || hash_index__add(&trees->by_name, hash, (uint32_t)trees->functions.n)) {
		if (place)
			trees->functions.n--;
		free(function);
		return NULL;
	}
	return *place = function;
}

static bool is_function(const struct call *call)
{
	return call->kind == CALL_FUNCTION || call->kind == CALL_SIGNAL ||
	       call->kind == CALL_INLINED;
}

/* "futex held by helper (123)": the same words as in the recording's report. */
static int add_wait(struct fxt_trees *trees, struct call_tree *tree, const struct fxt_read *read)
{
	const char *text = fxt_read__string(read, "waits_for");
	struct waits_for wait = {.call = (uint32_t)tree->calls.n - 1, .fd = -1}, *place;
	char **copy;

	if (!*text)
		return 0;
	copy = VEC_PUSH(&trees->texts);
	place = copy ? VEC_PUSH(&tree->waits) : NULL;
	if (copy)
		*copy = place ? strdup(text) : NULL;
	if (!place || !*copy)
		return -ENOMEM;
	label__clean_in_place(*copy);
	wait.text = *copy;
	*place = wait;
	return 0;
}

static int begin(struct fxt_trees *trees, struct fxt_track *track, const struct fxt_read *read)
{
	struct call_tree *tree = tree_of(trees, track);
	uint32_t parent = track->open;
	struct call *call = VEC_PUSH(&tree->calls);
	struct fxt_place *place = VEC_PUSH(&track->places);

	if (!call || !place || tree->calls.n == CALL_NO_PARENT)
		return -ENOMEM;
	*call = (struct call){
		.start_ns = read->time_ns,
		.end_ns = read->time_ns,
		.parent = parent,
		.depth = parent == CALL_NO_PARENT ? 0 : tree->calls.v[parent].depth + 1,
		.flags = fxt_call__flags(read),
		.self_insns = fxt_read__number(read, "insns"),
	};
	*place = (struct fxt_place){.begin = track->n_edges++, .end = UINT32_MAX};
	fxt_call__set_kind(call, read);
	track->open = (uint32_t)tree->calls.n - 1;
	trees->is_sampled |= call->flags & CALL_SAMPLED;
	if (!is_function(call))
		return 0;
	call->function = function_of(trees, read->name, fxt_read__string(read, "module"));
	if (call->flags & CALL_SAMPLED && !strcmp(read->category, "kernel"))
		call->kind = CALL_IN_KERNEL;
	return call->function ? 0 : -ENOMEM;
}

static void end(struct fxt_trees *trees, struct fxt_track *track, uint64_t time_ns)
{
	struct call *call;

	if (track->open == CALL_NO_PARENT)
		return;
	call = &tree_of(trees, track)->calls.v[track->open];
	if (time_ns > call->end_ns)
		call->end_ns = time_ns;
	track->places.v[track->open].end = track->n_edges++;
	track->open = call->parent;
}

/*
 * A slice in two records, or in one. Who kept the thread waiting stands where it begins; how long
 * is known where it ends.
 */
static int take_slice(struct fxt_trees *trees, const struct fxt_read *read)
{
	struct fxt_track *track = track_of(trees, read->pid, read->tid);
	bool is_whole = read->event == FXT_EVENT_COMPLETE && read->end_ns > read->time_ns;
	uint64_t end_ns = is_whole ? read->end_ns : read->time_ns;
	int err = 0;

	if (!track)
		return -ENOMEM;
	track->is_unsorted |= read->time_ns < track->last_ns;
	if (end_ns > track->last_ns)
		track->last_ns = end_ns;
	if (read->event != FXT_EVENT_END) {
		err = begin(trees, track, read);
		if (!err)
			err = fxt_by__take(tree_of(trees, track), read, &trees->texts);
		if (!err)
			err = add_wait(trees, tree_of(trees, track), read);
	}
	if (!err && read->event != FXT_EVENT_BEGIN)
		end(trees, track, end_ns);
	return err;
}

/* Functions are known by then: hits come last. */
static const struct function *find_function(const struct fxt_trees *trees, const char *name)
{
	for (size_t i = 0; i < trees->functions.n; i++) {
		if (!strcmp(trees->functions.v[i]->name, name))
			return trees->functions.v[i];
	}
	return NULL;
}

static int take_hit(struct fxt_trees *trees, const struct fxt_read *read)
{
	struct hit_mark *hit = VEC_PUSH(&trees->hits);
	const char *name;

	if (!hit)
		return -ENOMEM;
	name = fxt_hit__read(hit, read);
	if (!name)
		return 0;
	hit->function = find_function(trees, name);
	/* No slice is of it: where a region stops, for one. */
	if (!hit->function && strncmp(name, "0x", 2))
		hit->function = function_of(trees, name, "");
	return 0;
}

/* "service: coroutine 1", on a track that has an id of its own. The thread's name may have a colon.
 */
static void set_strand(struct fxt_trees *trees, struct call_tree *tree, const struct fxt_read *read,
		       uint64_t tid)
{
	const char *name = strrchr(read->name, ':');

	tree->tid = (pid_t)tid;
	tree->strand = ++trees->n_strands;
	if (!name || name[1] != ' ')
		return;
	snprintf(tree->comm, sizeof(tree->comm), "%.*s", (int)(name - read->name), read->name);
	snprintf(tree->strand_name, sizeof(tree->strand_name), "%s", name + 2);
	label__clean_in_place(tree->strand_name);
}

static int take_name(struct fxt_trees *trees, const struct fxt_read *read)
{
	struct fxt_track *track = track_of(trees, read->pid, read->tid);
	uint64_t thread = fxt_read__number(read, "thread");
	struct call_tree *tree;

	if (!track)
		return -ENOMEM;
	tree = tree_of(trees, track);
	snprintf(tree->comm, sizeof(tree->comm), "%s", read->name);
	if (thread)
		set_strand(trees, tree, read, thread);
	label__clean_in_place(tree->comm);
	return 0;
}

/* Behind the calls of its thread. */
static int take_counter(struct fxt_trees *trees, const struct fxt_read *read)
{
	for (size_t i = trees->tracks.n; i--;) {
		struct fxt_track *track = &trees->tracks.v[i];

		if (track->tid == read->tid && track->pid == read->pid)
			return fxt_counters__take(&track->counters, &trees->trees.v[i], read);
	}
	return 0;
}

static int take(struct fxt_trees *trees, const struct fxt_read *read)
{
	if (read->kind == FXT_READ_THREAD)
		return take_name(trees, read);
	if (read->kind != FXT_READ_EVENT)
		return 0;
	switch (read->event) {
	case FXT_EVENT_COMPLETE:
		return strcmp(read->category, "hit") ? take_slice(trees, read)
						     : take_hit(trees, read);
	case FXT_EVENT_BEGIN:
	case FXT_EVENT_END:
		return take_slice(trees, read);
	case FXT_EVENT_COUNTER:
		return take_counter(trees, read);
	default:
		return 0;
	}
}

static int finish_tree(struct fxt_trees *trees, size_t i)
{
	struct call_tree *tree = &trees->trees.v[i];
	struct fxt_track *track = &trees->tracks.v[i];

	while (track->open != CALL_NO_PARENT)
		end(trees, track, track->last_ns);
	if (track->is_unsorted && fxt_order__restore(tree, &track->places))
		return -ENOMEM;
	fxt_by__finish(tree);
	if (!tree->calls.n)
		return 0;
	if (!trees->last_ns || tree->calls.v[0].start_ns < trees->first_ns)
		trees->first_ns = tree->calls.v[0].start_ns;
	if (track->last_ns > trees->last_ns)
		trees->last_ns = track->last_ns;
	return 0;
}

/* With millions of calls that takes seconds. */
static void say_order(const struct fxt_trees *trees, struct meter *meter)
{
	uint64_t n = 0;

	for (size_t i = 0; i < trees->trees.n; i++)
		if (trees->tracks.v[i].is_unsorted)
			n += trees->trees.v[i].calls.n;
	if (n)
		meter__next(meter, &(struct meter_work){"putting in order", METER_CALLS, 0});
	meter__add(meter, n);
}

int fxt_trees__read(struct fxt_trees *trees, int fd, struct meter *meter)
{
	struct fxt_reader *reader = fxt_reader__open(fd);
	struct fxt_read read;
	int err = 0;

	*trees = (struct fxt_trees){0};
	if (!reader)
		return -errno;
	fxt_reader__count(reader, meter);
	while (!err && (err = fxt_reader__next(reader, &read)) == 1)
		err = take(trees, &read);
	fxt_reader__free(reader);
	say_order(trees, meter);
	for (size_t i = 0; i < trees->trees.n; i++)
		if (finish_tree(trees, i))
			err = -ENOMEM;
	return err;
}

void fxt_trees__fini(struct fxt_trees *trees)
{
	for (size_t i = 0; i < trees->trees.n; i++)
		call_tree__fini(&trees->trees.v[i]);
	for (size_t i = 0; i < trees->functions.n; i++)
		free(trees->functions.v[i]);
	for (size_t i = 0; i < trees->tracks.n; i++)
		VEC_FINI(&trees->tracks.v[i].places);
	VEC_FINI(&trees->trees);
	VEC_FINI(&trees->tracks);
	for (size_t i = 0; i < trees->texts.n; i++)
		free(trees->texts.v[i]);
	VEC_FINI(&trees->texts);
	VEC_FINI(&trees->hits);
	VEC_FINI(&trees->functions);
	hash_index__fini(&trees->by_name);
}
