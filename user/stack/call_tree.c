// SPDX-License-Identifier: MIT
#include "stack/call_tree.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "decode/branch.h"
#include "decode/pt_note.h"
#include "kernel/kernel.h"
#include "target/code_map.h"

/* Whole names, since call__name() hands out strings that nobody frees. */
static const char *const gap_names[] = {
	[GAP_NONE] = "[gap]",
	[GAP_OVERFLOW] = "[gap: overflow]",
	[GAP_BAD_PACKET] = "[gap: bad packet]",
	[GAP_UNMAPPED] = "[gap: unmapped]",
	[GAP_MISMATCH] = "[gap: mismatch]",
	[GAP_LOST] = "[gap: lost]",
	[GAP_32_BIT] = "[gap: 32-bit code]",
	[GAP_CALLER] = "[gap: caller unknown]",
	[GAP_BETWEEN] = "[gap]",
	[GAP_OUTSIDE] = "[gap: outside -start and -stop]",
	[GAP_FILTERED] = "[gap: outside -filter]",
};
static const char *const off_names[] = {
	[OFF_BLOCKED] = "[blocked]",   [OFF_PREEMPTED] = "[preempted]",
	[OFF_RUNNABLE] = "[runnable]", [OFF_THROTTLED] = "[throttled]",
	[OFF_STOLEN] = "[stolen]",
};
static const char *const left_by_names[] = {
	[LEFT_BY_THROW] = "throw",	     [LEFT_BY_PANIC] = "panic",
	[LEFT_BY_RAISE] = "raise",	     [LEFT_BY_LONGJMP] = "longjmp",
	[LEFT_BY_SIGLONGJMP] = "siglongjmp", [LEFT_BY_GOEXIT] = "goexit",
};

/* Trace files may have numbers that this version does not know. */
#define NAME_OF(names, i, unknown)                                                                 \
	((i) < sizeof(names) / sizeof((names)[0]) ? (names)[i] : (unknown))

const char *call__name(const struct call *call)
{
	switch (call->kind) {
	case CALL_SYSCALL:
		return call->reason == SYSCALL_RECLAIM ? "[memory reclaim]" : "[syscall]";
	case CALL_UNTRACED:
		return pt_event__name(call->reason) ?: "[untraced]";
	case CALL_SWITCHED:
		return "[switched out]";
	case CALL_GAP:
		return NAME_OF(gap_names, call->reason, "[gap]");
	case CALL_NOT_RECORDED:
		return "[not recorded]";
	case CALL_NO_CALLERS:
		return "[callers not recorded]";
	case CALL_OFF_CPU:
		return NAME_OF(off_names, call->reason, "[off CPU]");
	case CALL_IN_KERNEL:
		if (!call->function)
			return "[kernel]";
		break;
	default:
		break;
	}
	if (!call->function || !call->function->name || !*call->function->name)
		return "[unknown]";
	return call->function->name;
}

const char *call__full_name(const struct call *call, char text[static CALL_NAME_SIZE])
{
	if (!call__has_own_name(call) || !pt_event__name(call->reason))
		return call__name(call);
	return pt_event__format(call->reason, call->entry_ip, text);
}

const char *left_by__name(enum left_by left_by)
{
	return NAME_OF(left_by_names, left_by, NULL);
}

const struct call *call_tree__reclaim(const struct call_tree *tree, const struct call *call)
{
	for (;; call = &tree->calls.v[call->parent]) {
		if (call->kind == CALL_SYSCALL && call->reason == SYSCALL_RECLAIM)
			return call;
		/* Memory reclaim calls no user code. */
		if ((call->function && call->kind != CALL_IN_KERNEL) ||
		    call->parent == CALL_NO_PARENT)
			return NULL;
	}
}

const struct done_by *call_tree__done_by(const struct call_tree *tree, const struct call *call)
{
	uint32_t index = (uint32_t)(call - tree->calls.v);
	size_t n = VEC_PARTITION_POINT(&tree->done_by, e, e->call < index);

	return n < tree->done_by.n && tree->done_by.v[n].call == index ? &tree->done_by.v[n] : NULL;
}

uint64_t interrupts_mark__until(const struct interrupts_mark *mark, uint64_t time_ns)
{
	if (time_ns <= mark->start_ns)
		return 0;
	if (time_ns >= mark->end_ns)
		return mark->ns;
	return (uint64_t)((unsigned __int128)mark->ns * (time_ns - mark->start_ns) /
			  (mark->end_ns - mark->start_ns));
}

int call_tree__add_interrupts(struct call_tree *tree, const struct interrupts_mark *mark)
{
	const size_t n = tree->interrupts.n;
	const uint64_t done_ns = n ? tree->interrupts.v[n - 1].end_ns : 0;
	struct interrupts_mark *out, rest = *mark;

	if (rest.end_ns <= rest.start_ns || rest.ns > rest.end_ns - rest.start_ns)
		return 0;
	if (rest.start_ns < done_ns)
		rest.start_ns = done_ns < rest.end_ns ? done_ns : rest.end_ns;
	rest.ns -= interrupts_mark__until(mark, rest.start_ns);
	if (rest.start_ns == rest.end_ns)
		return 0;
	out = VEC_PUSH(&tree->interrupts);
	if (!out)
		return -ENOMEM;
	*out = rest;
	return 0;
}

ORDER(by_origin, struct unwind, COMPARE(x->from, y->from) ?: COMPARE(x->end_ns, y->end_ns))

void call_tree__sort_unwinds(struct call_tree *tree)
{
	VEC_SORT(&tree->unwinds, by_origin);
}

/* The object or event that a blocked thread waits for, in a call tree and in words. */

const struct waits_for *call_tree__waits_for(const struct call_tree *tree, const struct call *call)
{
	uint32_t index = (uint32_t)(call - tree->calls.v);
	size_t n = VEC_PARTITION_POINT(&tree->waits, e, e->call < index);

	return n < tree->waits.n && tree->waits.v[n].call == index ? &tree->waits.v[n] : NULL;
}

const char *waits_for__format(const struct waits_for *wait, char text[static WAITS_FOR_SIZE])
{
	const char *name = syscall__name(wait->syscall);
	char number[32];

	if (wait->text) {
		snprintf(text, WAITS_FOR_SIZE, "%s", wait->text);
		return text;
	}
	snprintf(number, sizeof(number), "system call %d", wait->syscall);
	if ((uint32_t)wait->syscall == MT_STOPPED_BY_SIGNAL)
		name = "stopped by a signal";
	else if ((uint32_t)wait->syscall == MT_STOPPED_BY_TRACER)
		name = "stopped by a debugger or strace";
	else if ((uint32_t)wait->syscall == MT_FROZEN)
		name = "frozen with its cgroup";
	else if (!name)
		name = number;
	if (wait->owner)
		snprintf(text, WAITS_FOR_SIZE, "%s held by %s (%d)", name, wait->owner_comm,
			 (int)wait->owner);
	else if (wait->file)
		snprintf(text, WAITS_FOR_SIZE, "%s of %.128s (fd %d)", name, wait->file, wait->fd);
	else if (wait->fd >= 0)
		snprintf(text, WAITS_FOR_SIZE, "%s of fd %d", name, wait->fd);
	else
		snprintf(text, WAITS_FOR_SIZE, "%s", name);
	return text;
}

/* The instructions that made the calls. */

#define FIRST_PLACES 1024

/* NULL where nothing is known, or memory ran out. */
static struct call_site *look_up(uint64_t ip, struct code_map *map)
{
	struct call_site found = {0}, *site;
	struct code_place place;

	if (!code_map__find(map, ip, &place))
		return NULL;
	found.function = place.function;
	found.inlined = elf_image__inlined_at(place.image, place.vaddr);
	if (!elf_image__source_at(place.image, place.vaddr, &found.source))
		found.source.file = NULL;
	site = found.inlined || found.source.file ? malloc(sizeof(*site)) : NULL;
	if (site)
		*site = found;
	return site;
}

/* The place of ip, or a free one; NULL: no memory. */
static struct site_place *find_place(struct call_sites *sites, uint64_t ip)
{
	struct call_sites bigger = *sites;

	if (2 * sites->n < sites->n_places)
		return call_sites__place(sites, ip);
	bigger.n_places = sites->n_places ? 2 * sites->n_places : FIRST_PLACES;
	bigger.places = calloc(bigger.n_places, sizeof(*bigger.places));
	if (!bigger.places)
		return NULL;
	for (size_t i = 0; i < sites->n_places; i++)
		if (sites->places[i].ip)
			*call_sites__place(&bigger, sites->places[i].ip) = sites->places[i];
	free(sites->places);
	*sites = bigger;
	return call_sites__place(sites, ip);
}

static void take_place(struct call_sites *sites, struct site_place *place, uint64_t ip,
		       struct call_site *site)
{
	*place = (struct site_place){ip, site};
	sites->n++;
	sites->n_known += site != NULL;
	sites->n_inlined += site && site->inlined;
}

static struct site_place *add_place(struct call_sites *sites, uint64_t ip, struct code_map *map)
{
	struct site_place *place = find_place(sites, ip);

	if (place && !place->ip)
		take_place(sites, place, ip, look_up(ip, map));
	return place;
}

int call_sites__add_all(struct call_sites *sites, const struct call_sites *from)
{
	for (size_t i = 0; i < from->n_places; i++) {
		const struct site_place *known = &from->places[i];
		struct site_place *place = known->ip ? find_place(sites, known->ip) : NULL;
		struct call_site *site = NULL;

		if (!known->ip || (place && place->ip))
			continue;
		if (place && known->site)
			site = malloc(sizeof(*site));
		if (!place || (known->site && !site))
			return -ENOMEM;
		if (site)
			*site = *known->site;
		take_place(sites, place, known->ip, site);
	}
	return 0;
}

const struct call_site *call_sites__find_in(struct call_sites *sites, uint64_t ip,
					    struct code_map *map)
{
	struct site_place *place = ip ? add_place(sites, ip, map) : NULL;

	return place ? place->site : NULL;
}

int call_sites__find_all(struct call_sites *sites, const struct call_tree *tree,
			 struct code_map *map)
{
	VEC_EACH(&tree->calls, call) {
		struct site_place *place;
		bool is_known;

		if (!call->call_ip)
			continue;
		place = add_place(sites, call->call_ip, map);
		if (!place)
			return -ENOMEM;
		if (!place->site || !code_map__replaced(map))
			continue;
		/*
		 * Code was replaced: the site may not be of the code that made this call. For a
		 * tail call this cannot be checked: the function that made it is not among the
		 * parents.
		 */
		is_known = !(call->flags & CALL_BY_JUMP) && call->parent != CALL_NO_PARENT;
		if (!is_known || tree->calls.v[call->parent].function == place->site->function)
			continue;
		sites->n_known--;
		sites->n_inlined -= place->site->inlined != NULL;
		free(place->site);
		place->site = NULL;
	}
	return 0;
}

void call_sites__fini(struct call_sites *sites)
{
	for (size_t i = 0; i < sites->n_places; i++)
		free(sites->places[i].site);
	free(sites->places);
	*sites = (struct call_sites){0};
}
