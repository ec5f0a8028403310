// SPDX-License-Identifier: MIT
/* Calls that were probed: which function's, and how far their ends are known. */
#include "sampled/sampled_internal.h"

#include <errno.h>
#include <string.h>

#include "target/code_map.h"

const struct function *sampled_thread__function_at(struct sampled_thread *t, uint64_t ip)
{
	struct code_place place;

	return ip && code_map__find(t->map, ip, &place) ? place.function : NULL;
}

/* A return probe puts its address in the place of the caller's: the first of the kernel's page. */
bool sampled_thread__is_trampoline(struct sampled_thread *t, uint64_t ip)
{
	struct code_place place;

	return !(ip % 4096) && code_map__find(t->map, ip, &place) &&
	       !strcmp(place.function->module, "[uprobes]");
}

static enum exact_end end_of(const struct mt_entry *entry)
{
	if (entry->end_ns)
		return entry->kind == MT_ENTRY_LEFT ? END_AT_MOST : END_KNOWN;
	return entry->kind == MT_ENTRY_CALL ? END_OPEN : END_UNKNOWN;
}

/* Of the trigger's function the hit tells where it returns to. */
static uint64_t return_of(struct sampled_thread *t, const struct mt_entry *entry,
			  const struct function *function)
{
	if (entry->returns_to && !sampled_thread__is_trampoline(t, entry->returns_to))
		return entry->returns_to;
	return function == t->probed ? t->returns_to : 0;
}

static bool is_of_calls(const struct sampled_thread *t, uint64_t ip)
{
	for (size_t i = 0; i < t->calls.n; i++)
		if (t->calls.v[i] == ip)
			return true;
	return false;
}

/* The functions of which each call is recorded. */
int sampled_thread__note_calls(struct sampled_thread *t, const struct event *events, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct mt_entry *entry = &t->rec->entries.v[events[i].index];
		uint64_t *out;

		if (events[i].kind != EVENT_ENTRY || entry->kind == MT_ENTRY_HIT ||
		    is_of_calls(t, entry->ip))
			continue;
		out = VEC_PUSH(&t->calls);
		if (!out)
			return -ENOMEM;
		*out = entry->ip;
	}
	return 0;
}

void sampled_thread__on_entry(struct sampled_thread *t, const struct mt_entry *entry)
{
	struct entered call = {.function = sampled_thread__function_at(t, entry->ip),
			       .start_ns = entry->start_ns,
			       .end_ns = entry->end_ns,
			       .end = end_of(entry),
			       .kind = CALL_FUNCTION};

	/* One that returned before it began is nobody's but a damaged file's. */
	if (call.end_ns < call.start_ns && (call.end == END_KNOWN || call.end == END_AT_MOST))
		call.end = END_UNKNOWN;
	/* A hit tells nothing new of a call that is recorded from its begin to its end. */
	if (!call.function || (entry->kind == MT_ENTRY_HIT && is_of_calls(t, entry->ip)))
		return;
	call.returns_to = return_of(t, entry, call.function);
	slices__enter(&t->slices, &call);
}
