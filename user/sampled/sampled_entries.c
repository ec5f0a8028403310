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

static struct known_probe *find_probe(struct sampled_thread *t, uint64_t ip)
{
	for (size_t i = 0; i < t->probes.n; i++)
		if (t->probes.v[i].ip == ip)
			return &t->probes.v[i];
	return NULL;
}

int sampled_thread__note_probes(struct sampled_thread *t, const struct event *events, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct mt_entry *entry;
		struct known_probe *probe;

		if (events[i].kind != EVENT_ENTRY)
			continue;
		entry = &t->rec->entries.v[events[i].index];
		probe = find_probe(t, entry->ip);
		if (!probe) {
			probe = VEC_PUSH(&t->probes);
			if (!probe)
				return -ENOMEM;
			*probe = (struct known_probe){.ip = entry->ip, .next_map = SIZE_MAX};
		}
		probe->is_of_calls |= entry->kind != MT_ENTRY_HIT;
	}
	return 0;
}

static const struct function *function_of(struct sampled_thread *t, struct known_probe *probe)
{
	struct code_place place;

	if (probe->next_map == t->next_map)
		return probe->function;
	probe->next_map = t->next_map;
	probe->function = NULL;
	if (code_map__find(t->map, probe->ip, &place)) {
		probe->function = place.function;
		probe->entry = place.entry;
	}
	return probe->function;
}

bool sampled_thread__has_calls(struct sampled_thread *t, const struct function *function)
{
	for (size_t i = 0; i < t->probes.n; i++)
		if (t->probes.v[i].is_of_calls && function_of(t, &t->probes.v[i]) == function)
			return true;
	return false;
}

/* The probe is at most so far behind its function's first instruction. */
#define ENTRY_BYTES 64
/* A probe takes some microseconds, but its thread may lose its CPU meanwhile. */
#define AT_END_NS 1000000

/*
 * A return probe comes before it where it is not on the first instruction; and behind the int3 is
 * where the exception finds the thread.
 */
static bool is_before(struct sampled_thread *t, struct known_probe *probe, const struct seen *seen)
{
	return seen->ip <= probe->ip + 1 && function_of(t, probe) == seen->function &&
	       probe->ip - probe->entry < ENTRY_BYTES;
}

/* The call has ended a moment ago. */
static bool is_behind(struct sampled_thread *t, struct known_probe *probe,
		      const struct function *function, uint64_t time_ns)
{
	return probe->end_ns && probe->end_ns <= time_ns && time_ns - probe->end_ns < AT_END_NS &&
	       function_of(t, probe) == function &&
	       !slices__has_call(&t->slices, function, time_ns);
}

static bool is_at_probe(struct sampled_thread *t, const struct seen *seen, uint64_t time_ns)
{
	for (size_t i = 0; i < t->probes.n && seen->function; i++)
		if (is_before(t, &t->probes.v[i], seen) ||
		    is_behind(t, &t->probes.v[i], seen->function, time_ns))
			return true;
	return false;
}

void sampled_thread__drop_at_probe(struct sampled_thread *t, uint64_t time_ns)
{
	size_t n = seen__user(t->stack.v, t->stack.n);

	if (!n || !is_at_probe(t, &t->stack.v[n - 1], time_ns))
		return;
	memmove(&t->stack.v[n - 1], &t->stack.v[n], (t->stack.n - n) * sizeof(*t->stack.v));
	t->stack.n--;
}

void sampled_thread__on_entry(struct sampled_thread *t, const struct mt_entry *entry)
{
	struct entered call = {.function = sampled_thread__function_at(t, entry->ip),
			       .start_ns = entry->start_ns,
			       .end_ns = entry->end_ns,
			       .end = end_of(entry),
			       .kind = CALL_FUNCTION};
	struct known_probe *probe = find_probe(t, entry->ip);

	/* One that returned before it began is nobody's but a damaged file's. */
	if (call.end_ns < call.start_ns && (call.end == END_KNOWN || call.end == END_AT_MOST))
		call.end = END_UNKNOWN;
	/* A hit tells nothing new of a call that is recorded from its begin to its end. */
	if (!call.function || (entry->kind == MT_ENTRY_HIT && probe->is_of_calls))
		return;
	probe->end_ns = call.end == END_KNOWN ? call.end_ns : 0;
	call.returns_to = return_of(t, entry, call.function);
	slices__enter(&t->slices, &call);
}
