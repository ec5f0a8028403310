// SPDX-License-Identifier: MIT
#include "stack/departure.h"

#include <string.h>

#include "stack/unwinders.h"

static const struct unwinder *unwinder_of(const struct frame *frame)
{
	const struct function *function = frame ? frame->call.function : NULL;

	return function && function->name ? unwinder__find(function->name) : NULL;
}

bool departure__is_near(const struct frames *frames)
{
	const struct frame *frame = frames__top(frames);

	while (frame && frame->call.function && frame->call.function->kind == FUNCTION_UNKNOWN)
		frame = frames__parent(frames, frame);
	return unwinder_of(frame);
}

struct departure departure__find(const struct frames *frames, const struct frame *stop)
{
	struct frame *frame = frames__top(frames);
	struct departure found = {0};

	for (; frame && frame != stop; frame = frames__parent(frames, frame)) {
		const struct unwinder *unwinder = unwinder_of(frame);

		if (!unwinder)
			continue;
		/* An unwinding that is forced ends by a longjmp() out of it. */
		if (unwinder->resumes && (!found.frame || found.left_by == LEFT_BY_LONGJMP))
			found.resuming = frame;
		found.left_by = unwinder->left_by;
		found.resumes = unwinder->resumes;
		found.frame = frame;
	}
	return found;
}

static enum left_by by_language(struct elf_image *image)
{
	return elf_image__holds_rust(image) ? LEFT_BY_PANIC : LEFT_BY_THROW;
}

/*
 * No name at all: of a program that is linked statically, and stripped. The top frame is the
 * unwinder, which has gone to the landing pad. Its caller began it, unless that is a clean-up that
 * an exception had come to before, from which the unwinder goes on.
 */
static struct departure find_unnamed(const struct frames *frames, const struct frame *stop,
				     enum left_by left_by)
{
	struct frame *top = frames__top(frames);
	struct frame *caller = top && top != stop ? frames__parent(frames, top) : NULL;

	if (!top || top == stop)
		return (struct departure){.left_by = left_by};
	if (caller && frames__leap_into(frames, caller))
		return (struct departure){
			.frame = top, .left_by = left_by, .resumes = true, .resuming = top};
	return (struct departure){.frame = caller && caller != stop ? caller : top,
				  .left_by = left_by};
}

/* The unwinder's library has names, but the runtime that has called it has none: whose is it? */
static bool is_runtime_unnamed(const struct frames *frames, const struct departure *found)
{
	const struct frame *caller = frames__parent(frames, found->frame);

	return !strncmp(found->frame->call.function->name, "_Unwind_", strlen("_Unwind_")) &&
	       caller && caller->call.function && caller->call.function->kind == FUNCTION_UNKNOWN;
}

struct departure departure__of_exception(const struct frames *frames, const struct frame *stop,
					 struct elf_image *pad_image)
{
	struct departure found = departure__find(frames, stop);

	if (!found.frame)
		return find_unnamed(frames, stop, by_language(pad_image));
	if (is_runtime_unnamed(frames, &found))
		found.left_by =
			by_language(frames__parent(frames, found.frame)->call.function->image);
	return found;
}
