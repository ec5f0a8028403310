// SPDX-License-Identifier: MIT
#include "trace/leap_writer.h"

#include <errno.h>

#include "trace/timeline.h"

void leap_writer__fini(struct leap_writer *writer)
{
	VEC_FINI(&writer->open);
}

void leap_writer__begin_tree(struct leap_writer *writer, const struct call_tree *tree)
{
	writer->id_base += writer->n_leaps;
	writer->n_leaps = tree->leaps.n;
	writer->tree = tree;
	writer->next = 0;
	writer->open.n = 0;
}

/* The function that threw: what it called to do so is the slice around the instant. */
static const char *thrower(const struct call_tree *tree, const struct leap *leap)
{
	const struct call *from = &tree->calls.v[leap->from];

	return call__name(from->parent == CALL_NO_PARENT ? from : &tree->calls.v[from->parent]);
}

static void write_instant(struct leap_writer *writer, const struct leap *leap, const char *name,
			  uint64_t time_ns)
{
	const struct call_tree *tree = writer->tree;
	const struct fxt_arg args[] = {
		{.key = "from", .kind = FXT_STRING, .string = thrower(tree, leap)},
		{.key = "to", .kind = FXT_STRING, .string = call__name(&tree->calls.v[leap->to])},
	};

	fxt__instant(writer->fxt, &(struct fxt_event){
					  .time_ns = time_ns,
					  .pid = tree->pid,
					  .tid = tree->tid,
					  .category = "leap",
					  .name = name,
					  .args = args,
					  .n_args = sizeof(args) / sizeof(args[0]),
				  });
}

/* The leap's place in the tree, from 1 on, makes its id. */
static struct fxt_flow flow_of(const struct leap_writer *writer, const struct leap *leap,
			       uint64_t time_ns)
{
	return (struct fxt_flow){
		.time_ns = time_ns,
		.pid = writer->tree->pid,
		.tid = writer->tree->tid,
		.id = writer->id_base + (uint64_t)(leap - writer->tree->leaps.v) + 1,
	};
}

/* Around a gap the two may lie in different trees of calls. */
static bool will_land(const struct call_tree *tree, const struct leap *leap)
{
	uint32_t caller = leap->from;

	while (caller != CALL_NO_PARENT && caller > leap->to)
		caller = tree->calls.v[caller].parent;
	return caller == leap->to && caller != leap->from;
}

static int begin(struct leap_writer *writer, const struct leap *leap, uint64_t time_ns)
{
	struct fxt_flow flow = flow_of(writer, leap, time_ns);
	const char *name = left_by__name(leap->left_by);

	if (will_land(writer->tree, leap)) {
		const struct leap **slot = VEC_PUSH(&writer->open);

		if (!slot)
			return -ENOMEM;
		*slot = leap;
		/* Before the instant: the arrow would come from that, else. */
		fxt__flow_begin(writer->fxt, &flow);
	}
	write_instant(writer, leap, name ? name : "leap", time_ns);
	return 0;
}

int leap_writer__begin(struct leap_writer *writer, uint32_t index, uint64_t time_ns)
{
	const struct call_tree *tree = writer->tree;
	int err = 0;

	for (; writer->next < tree->leaps.n && !err; writer->next++) {
		const struct leap *leap = &tree->leaps.v[writer->next];

		if (leap->from > index)
			return 0;
		/* Those before it are of calls that lay too deep to be written. */
		if (leap->from == index && tree->calls.v[index].depth + 1 < TIMELINE_MAX_DEPTH)
			err = begin(writer, leap, time_ns);
	}
	return err;
}

const struct leap *leap_writer__landing(const struct leap_writer *writer, uint32_t index)
{
	for (size_t i = writer->open.n; i-- > 0;)
		if (writer->open.v[i]->to == index)
			return writer->open.v[i];
	return NULL;
}

static void close(struct leap_writer *writer, const struct leap *leap)
{
	size_t out = 0;

	for (size_t i = 0; i < writer->open.n; i++)
		if (writer->open.v[i] != leap)
			writer->open.v[out++] = writer->open.v[i];
	writer->open.n = out;
}

/* A jump lands; what was thrown is caught. */
static const char *landing_name(enum left_by left_by)
{
	switch (left_by) {
	case LEFT_BY_THROW:
	case LEFT_BY_PANIC:
	case LEFT_BY_RAISE:
		return "caught";
	default:
		return "landed";
	}
}

/*
 * The arrow goes to the instant. It would run backwards to the call itself, which began before it
 * (Perfetto: flow_tracker.cc).
 */
void leap_writer__land(struct leap_writer *writer, const struct leap *leap, uint64_t time_ns)
{
	struct fxt_flow flow = flow_of(writer, leap, time_ns);

	write_instant(writer, leap, landing_name(leap->left_by), time_ns);
	fxt__flow_end(writer->fxt, &flow);
	close(writer, leap);
}
