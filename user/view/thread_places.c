// SPDX-License-Identifier: MIT
#include "view/thread_places.h"

#include <errno.h>
#include <stdlib.h>

#include "util/cleanup.h"
#include "util/json.h"
#include "view/report_internal.h"
#include "util/names.h"

void thread_places__fini(struct thread_places *places)
{
	VEC_FINI(&places->all);
	VEC_FINI(&places->names);
}

static const struct thread_place *find(const struct thread_places *places, pid_t tid)
{
	return tid ? VEC_FIND(&places->all, place, place->tid == tid) : NULL;
}

/*
 * Follows the owners of mutexes from thread `from`: after as many steps as there are threads, the
 * search is in a ring, or has ended. Stores the ring and returns its length; 0: none.
 */
static size_t follow(const struct thread_places *places, size_t from, size_t *ring)
{
	const struct thread_place *at = &places->all.v[from], *first;
	size_t n = 0;

	for (size_t i = 0; i < places->all.n && at; i++)
		at = find(places, at->owner);
	if (!at)
		return 0;
	/* The ring begins with thread `from`, if that is part of it. */
	first = at;
	do {
		if (at == &places->all.v[from])
			first = at;
		at = find(places, at->owner);
	} while (at != first && n++ < places->all.n);
	n = 0;
	at = first;
	do {
		ring[n++] = (size_t)(at - places->all.v);
		at = find(places, at->owner);
	} while (at && at != first && n < places->all.n);
	return at == first ? n : 0;
}

size_t thread_places__deadlock(const struct thread_places *places, size_t *ring)
{
	size_t n = 0;

	/* Prefer the ring that the stalled thread is in, or waits for. */
	for (size_t i = 0; i < places->all.n && !n; i++)
		if (places->all.v[i].is_stalled)
			n = follow(places, i, ring);
	for (size_t i = 0; i < places->all.n && !n; i++)
		n = follow(places, i, ring);
	return n;
}

static bool is_same(const struct thread_places *places, const struct thread_place *a,
		    const struct thread_place *b)
{
	if (a->doing != b->doing || a->owner != b->owner || a->n_names != b->n_names ||
	    a->is_whole != b->is_whole || strcmp(a->waits_for, b->waits_for))
		return false;
	for (size_t i = 0; i < a->n_names; i++)
		if (strcmp(places->names.v[a->first_name + i], places->names.v[b->first_name + i]))
			return false;
	return true;
}

/* Threads in the same place, such as a pool's idle ones, share a line, which names this many. */
#define TIDS_MOST 8

static void print_place(FILE *out, const struct thread_places *places, size_t at)
{
	static const char *const doings[] = {
		[THREAD_WAITS] = "waits in the kernel",
		[THREAD_RUNS] = "runs",
		[THREAD_READY] = "can run, but no CPU runs it yet",
		[THREAD_STOPPED] = "is stopped",
	};
	const struct thread_place *place = &places->all.v[at];
	const struct thread_place *owner = find(places, place->owner);
	size_t n = 0;

	for (size_t i = 0; i < at && !place->is_stalled; i++)
		if (!places->all.v[i].is_stalled && is_same(places, place, &places->all.v[i]))
			return;
	fprintf(out, "  %c %d (%s)", place->is_stalled ? '*' : ' ', place->tid, place->comm);
	for (size_t i = at + 1; i < places->all.n && !place->is_stalled; i++) {
		const struct thread_place *other = &places->all.v[i];

		if (other->is_stalled || !is_same(places, place, other))
			continue;
		if (++n < TIDS_MOST)
			fprintf(out, ", %d (%s)", other->tid, other->comm);
	}
	if (n >= TIDS_MOST)
		fprintf(out, ", and %zu more,", n - TIDS_MOST + 1);
	fprintf(out, n ? " each " : " ");
	if (owner)
		fprintf(out, "waits for a mutex held by thread %d (%s)", owner->tid, owner->comm);
	else if (place->doing == THREAD_WAITS && place->waits_for[0])
		fprintf(out, "waits in %s", place->waits_for);
	else
		fprintf(out, "%s", doings[place->doing]);
	for (size_t i = 0; i < place->n_names; i++)
		fprintf(out, "%s%s", i ? " < " : ": ",
			SHORT_NAME(places->names.v[place->first_name + i]));
	if (!place->is_whole && place->n_names && place->doing == THREAD_WAITS)
		fprintf(out, " < ...");
	fputc('\n', out);
}

/* A thread that computes, or that is ready to run on a busy machine, is not blocked. */
static void print_stalled(FILE *out, const struct thread_place *place)
{
	if (place->doing == THREAD_RUNS || place->doing == THREAD_READY)
		fprintf(out, "thread %d waits for nothing: it %s, so it is busy, and not blocked\n",
			place->tid,
			place->doing == THREAD_RUNS ? "was running"
						    : "was ready to run, or ran again by then");
	else if (place->doing == THREAD_WAITS && !place->owner &&
		 !strncmp(place->waits_for, "futex", strlen("futex")))
		fprintf(out,
			"it is not known who holds what thread %d waits for: only mutexes of glibc "
			"name their owner\n",
			place->tid);
}

void thread_places__print(FILE *out, const struct thread_places *places)
{
	_cleanup_free_ size_t *ring = calloc(places->all.n + 1, sizeof(*ring));
	size_t n = ring ? thread_places__deadlock(places, ring) : 0;

	if (!places->all.n)
		return;
	fprintf(out, "where the threads of the process were (*: the one that triggered):\n");
	for (size_t i = 0; i < places->all.n; i++)
		print_place(out, places, i);
	if (n)
		fprintf(out, "deadlock: thread %d waits for a mutex held by thread %d",
			places->all.v[ring[0]].tid, places->all.v[ring[0]].owner);
	if (n == 1)
		fprintf(out, ", which is itself");
	for (size_t i = 1; i < n; i++)
		fprintf(out, ", which waits for one held by thread %d",
			places->all.v[ring[i]].owner);
	if (n)
		fputc('\n', out);
	for (size_t i = 0; i < places->all.n; i++)
		if (places->all.v[i].is_stalled)
			print_stalled(out, &places->all.v[i]);
}

void thread_places__add_json(cJSON *object, const struct thread_places *places)
{
	static const char *const doings[] = {
		[THREAD_WAITS] = "waits",
		[THREAD_RUNS] = "runs",
		[THREAD_READY] = "ready",
		[THREAD_STOPPED] = "stopped",
	};
	_cleanup_free_ size_t *ring = calloc(places->all.n + 1, sizeof(*ring));
	size_t n = ring ? thread_places__deadlock(places, ring) : 0;
	cJSON *list, *item, *names;

	if (!places->all.n)
		return;
	list = cJSON_AddArrayToObject(object, "threads");
	VEC_EACH(&places->all, place) {
		item = json__append_object(list);
		cJSON_AddNumberToObject(item, "tid", place->tid);
		cJSON_AddStringToObject(item, "comm", place->comm);
		cJSON_AddStringToObject(item, "state", doings[place->doing]);
		if (place->is_stalled)
			cJSON_AddTrueToObject(item, "stalled");
		if (place->waits_for[0])
			cJSON_AddStringToObject(item, "waits_for", place->waits_for);
		if (place->owner)
			cJSON_AddNumberToObject(item, "mutex_of", place->owner);
		names = cJSON_AddArrayToObject(item, "stack");
		for (size_t i = 0; i < place->n_names; i++)
			json__append_text(names, places->names.v[place->first_name + i]);
		cJSON_AddBoolToObject(item, "stack_is_whole", place->is_whole);
	}
	if (!n)
		return;
	list = cJSON_AddArrayToObject(object, "deadlock");
	for (size_t i = 0; i < n; i++)
		cJSON_AddItemToArray(list, cJSON_CreateNumber(places->all.v[ring[i]].tid));
}

int thread_places__print_json(FILE *out, const struct thread_places *places,
			      const struct hit_mark *hit)
{
	cJSON *root = cJSON_CreateObject();

	report__add_hit(root, hit);
	thread_places__add_json(root, places);
	return json__print_line(out, root);
}
