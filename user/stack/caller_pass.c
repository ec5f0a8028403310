// SPDX-License-Identifier: MIT
/*
 * The stack at a trigger is known whole, while its branches may go back to no further than the
 * frames that returned: what called the outermost of those is taken from it.
 */
#include "stack/stack_internal.h"

#include <errno.h>
#include <string.h>

#include "target/elf/elf_callers.h"

int stack__anchor(struct stack *s, uint64_t time_ns, const uint64_t *ips, size_t n)
{
	const struct anchor anchor = {.time_ns = time_ns, .first = s->anchor_ips.n, .n = n};

	for (size_t i = 0; i < n; i++)
		if (VEC_ADD(&s->anchor_ips, ips[i]))
			return -ENOMEM;
	return VEC_ADD(&s->anchors, anchor);
}

/* A return address may be the first behind the function that called. */
static const struct function *function_of(struct stack *s, const uint64_t *ips, size_t i)
{
	bool is_entry;

	return stack__function_at(s, i ? ips[i] - 1 : ips[i], &is_entry);
}

/* Up to the first address that is no code: behind it nothing is to be trusted. */
static size_t count_known(struct stack *s, const uint64_t *ips, size_t n)
{
	size_t i = 0;

	while (i < n && ips[i] && function_of(s, ips, i))
		i++;
	return i;
}

static void use(struct stack *s, const uint64_t *ips, size_t n)
{
	struct held *held;

	n = count_known(s, ips, n);
	held = calloc(n + 1, sizeof(*held));
	if (!held) {
		s->frames->failed = true;
		return;
	}
	for (size_t i = 0; i < n; i++)
		held[n - 1 - i] = (struct held){
			.function = function_of(s, ips, i),
			.return_ip = i + 1 < n ? ips[i + 1] : 0,
			.entry_ip = ips[i],
		};
	frames__take_stack(s->frames, (struct held_stack){held, n});
	free(held);
}

void stack__use_anchors(struct stack *s, const struct segment_end *end)
{
	while (s->next_anchor < s->anchors.n &&
	       s->anchors.v[s->next_anchor].time_ns < end->before_ns) {
		const struct anchor *anchor = &s->anchors.v[s->next_anchor++];

		use(s, &s->anchor_ips.v[anchor->first], anchor->n);
	}
}

/*
 * What runs to the end behind a gap, on frames that were called in it and do not return, shows by
 * no branch what it lies on. The code may tell: of a function that nothing but calls names, these
 * are all that can have called it, and so on, down to a frame that ran before the gap. The way that
 * needs the fewest calls is taken, if there is but one. main() is called by its address: libc's
 * code tells where.
 */

#define MAX_FRAMES 32

/* A function, with where it called the one above it; those above come first. */
struct callers {
	struct held frames[MAX_FRAMES];
	size_t above[MAX_FRAMES], depth[MAX_FRAMES];
	size_t n;
	size_t n_found, found; /* ways to what ran before the gap, of as few calls; the last */
};

/* It ran before the gap, and may go on. */
static bool has_waited(const struct stitcher *stitcher, const struct function *function)
{
	for (size_t i = 0; i + 1 < stitcher->n_ends; i++)
		for (size_t k = 0; k < stitcher->ends[i].stack.n; k++)
			if (stitcher->ends[i].stack.v[k].function == function)
				return true;
	return false;
}

static size_t find(const struct callers *callers, const struct function *function)
{
	size_t i = 0;

	while (i < callers->n && callers->frames[i].function != function)
		i++;
	return i;
}

static void add_caller(struct stack *s, struct callers *callers, size_t above, uint64_t behind)
{
	bool is_entry;
	const struct function *function = stack__function_at(s, behind - 1, &is_entry);
	size_t at = function ? find(callers, function) : MAX_FRAMES;

	if (at == MAX_FRAMES)
		return;
	if (at < callers->n) {
		callers->n_found +=
			callers->n_found && at == callers->found && callers->above[at] != above;
		return;
	}
	callers->frames[at] = (struct held){.function = function, .entry_ip = behind};
	callers->above[at] = above;
	callers->depth[at] = callers->depth[above] + 1;
	callers->n++;
	if (!has_waited(&s->frames->stitcher, function))
		return;
	callers->found = at;
	callers->n_found++;
}

/* With debug symbols it has its name from libc's own code. */
static bool starts_main(const struct function *function)
{
	return function__is_named(function, "__libc_start_main") ||
	       function__is_named(function, "__libc_start_main_impl");
}

static const struct held *find_start_main(const struct stitcher *stitcher)
{
	for (size_t i = stitcher->n_ends - 1; i-- > 0;)
		for (size_t k = 0; k < stitcher->ends[i].stack.n; k++)
			if (starts_main(stitcher->ends[i].stack.v[k].function))
				return &stitcher->ends[i].stack.v[k];
	return NULL;
}

static void add_caller_of_main(struct stack *s, struct callers *callers, size_t above)
{
	const struct held *start = find_start_main(&s->frames->stitcher);
	uint64_t behind = start ? elf_main__behind_call(start->function) : 0;
	struct code_place place;

	if (behind && code_map__find(s->map, start->entry_ip, &place))
		add_caller(s, callers, above, start->entry_ip - place.vaddr + behind);
}

static void add_callers(struct stack *s, struct callers *callers, size_t above)
{
	uint64_t ip = callers->frames[above].entry_ip;
	struct elf_callers calls;
	struct code_place place;

	if (!code_map__find(s->map, ip, &place))
		return;
	calls = elf_callers__of(place.function);
	for (size_t i = 0; i < calls.n; i++)
		add_caller(s, callers, above, ip - place.vaddr + calls.behind[i]);
	if (function__is_named(place.function, "main"))
		add_caller_of_main(s, callers, above);
}

/*
 * Where a frame is called is where the one below it goes on. The uppermost may have become another
 * function's since, by a jump.
 */
static void take(struct stack *s, const struct callers *callers, const struct function *became)
{
	struct held stack[MAX_FRAMES];
	size_t at = callers->found, n = callers->depth[at] + 1;

	for (size_t i = 0; i < n; i++, at = callers->above[at]) {
		stack[i] = callers->frames[at];
		stack[i].return_ip = i ? stack[i - 1].entry_ip : 0;
	}
	stack[n - 1].function = became;
	frames__take_stack(s->frames, (struct held_stack){stack, n});
}

void stack__find_callers(struct stack *s, const struct segment_end *end)
{
	struct stitcher *stitcher = &s->frames->stitcher;
	struct callers callers = {.n = 1};
	const struct held *lowest;

	lowest = end->is_last ? stitcher__lowest(stitcher) : NULL;
	if (stitcher->n_ends < 2 || !lowest || !lowest->function)
		return;
	callers.frames[0] = *lowest;
	for (size_t i = 0; i < callers.n; i++) {
		if (callers.n_found && callers.depth[i] == callers.depth[callers.found])
			break;
		add_callers(s, &callers, i);
	}
	if (callers.n_found == 1)
		take(s, &callers, stitcher->ends[stitcher->n_ends - 1].stack.v->function);
}
