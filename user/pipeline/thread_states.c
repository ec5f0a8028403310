// SPDX-License-Identifier: MIT
/* The threads that a recording has of a stall, with the names of their functions. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kernel/kernel.h"
#include "pipeline/pipeline.h"

static const char *name_of(struct code_map *map, uint64_t ip)
{
	struct code_place place;

	return code_map__find(map, ip, &place) ? place.function->name : "?";
}

/* A return address follows the call; the byte before it belongs to the call. */
static int add_names(struct thread_places *places, const struct recording *rec,
		     const struct rec_thread_state *state, struct code_map *map)
{
	int err = 0;

	for (uint32_t i = 0; i < state->n_ips && !err; i++) {
		uint64_t ip = rec->state_ips.v[state->first_ip + i];

		err = VEC_ADD(&places->names, name_of(map, i ? ip - 1 : ip));
	}
	return err;
}

static void set_waits_for(struct thread_place *place, const struct recording *rec,
			  const struct rec_thread_state *state)
{
	const char *name = syscall__name((int)state->syscall), *path = NULL;
	char number[32];

	if (state->syscall == MT_NO_SYSCALL)
		return;
	snprintf(number, sizeof(number), "system call %u", state->syscall);
	if (syscall__is_of_file((int)state->syscall))
		path = recording__find_open_file(rec, state->pid, (int)state->arg);
	if (path)
		snprintf(place->waits_for, sizeof(place->waits_for), "%s of %s (fd %d)",
			 name ?: number, path, (int)state->arg);
	else
		snprintf(place->waits_for, sizeof(place->waits_for), "%s", name ?: number);
}

static int add_place(struct thread_places *places, const struct recording *rec,
		     const struct rec_thread_state *state, struct code_map *map)
{
	const struct mt_hit *hit = &rec->hits.v[state->hit];
	struct thread_place *place = VEC_PUSH(&places->all);

	if (!place)
		return -ENOMEM;
	*place = (struct thread_place){.tid = state->tid,
				       .comm = state->comm,
				       .doing = state->is_stopped  ? THREAD_STOPPED
						: state->is_on_cpu ? THREAD_RUNS
						: state->is_ready  ? THREAD_READY
								   : THREAD_WAITS,
				       .is_stalled = state->tid == (pid_t)hit->tid,
				       .owner = state->owner,
				       .first_name = places->names.n,
				       .n_names = state->n_ips,
				       .is_whole = state->is_whole};
	set_waits_for(place, rec, state);
	return add_names(places, rec, state, map);
}

static int add_all(struct thread_places *places, const struct decoded *decoded,
		   const struct recording *rec, size_t hit, struct code_map *map)
{
	const struct mt_hit *of = &rec->hits.v[hit];
	size_t next = 0;
	int err = images__apply(decoded->images, (pid_t)of->tgid, of->time_ns, &next, map);

	for (size_t i = 0; i < rec->thread_states.n && !err; i++)
		if (rec->thread_states.v[i].hit == hit)
			err = add_place(places, rec, &rec->thread_states.v[i], map);
	return err;
}

int decoded__thread_places(const struct decoded *decoded, const struct recording *rec, size_t hit,
			   struct thread_places *places)
{
	struct code_map *map;
	int err;

	*places = (struct thread_places){0};
	if (!rec->thread_states.n || !decoded->images || hit >= rec->hits.n)
		return 0;
	map = code_map__new();
	err = map ? add_all(places, decoded, rec, hit, map) : -ENOMEM;
	code_map__free(map);
	return err;
}
