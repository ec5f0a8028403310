// SPDX-License-Identifier: MIT
/*
 * With -start and -stop a thread runs freely, until a breakpoint of the CPU's stops it in front of
 * where it starts; from there on it is stepped, and looked whether it has come to where it stops.
 * No byte of the target is changed for that, and no right beyond ptrace's is needed.
 */
#include "capture/soft/stepper_internal.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/ptrace.h>

#include "capture/recording/recording.h"
#include "capture/soft/stepped.h"

/* DR7's bit that enables breakpoint i, of any length, on execution (Intel SDM vol. 3, 18.2.4). */
#define DR7_ENABLE(i) (1ul << (2 * (i)))

static bool find(const struct mapping *m, const struct rec_place *place, uint64_t *ip)
{
	const struct rec_map map = {.start = m->start,
				    .len = m->end - m->start,
				    .pgoff = m->pgoff,
				    .ino = m->ino,
				    .maj = m->maj,
				    .min = m->min};

	return m->prot & PROT_EXEC && rec_map__has(&map, place, ip);
}

static size_t find_all(const struct mappings *maps, const struct rec_place *places, size_t n,
		       uint64_t *ips)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < maps->n && found < SOFT_MAX_PLACES; k++)
			if (find(&maps->v[k], &places[i], &ips[found]))
				found++;
	return found;
}

void stepper__find_places(struct stepper *s)
{
	const struct stepper_config *c = s->config;

	s->n_starts = find_all(&s->maps, c->starts, c->n_starts, s->starts);
	if (s->n_starts > SOFT_MAX_STARTS)
		s->n_starts = SOFT_MAX_STARTS;
	s->n_stops = find_all(&s->maps, c->stops, c->n_stops, s->stops);
}

static void set_register(const struct stepped *t, unsigned int i, uint64_t value)
{
	if (ptrace(PTRACE_POKEUSER, t->tid, offsetof(struct user, u_debugreg) + i * sizeof(long),
		   value) &&
	    errno != ESRCH)
		t->shared->breakpoint_error = errno;
}

void stepper__set_breakpoints(struct stepper *s, struct stepped *t)
{
	unsigned long enabled = 0;

	for (size_t i = 0; i < s->n_starts; i++) {
		set_register(t, (unsigned int)i, s->starts[i]);
		enabled |= DR7_ENABLE(i);
	}
	set_register(t, 7, enabled);
	t->has_breakpoints = enabled;
}

void stepper__clear_breakpoints(struct stepped *t)
{
	if (t->has_breakpoints)
		set_register(t, 7, 0);
	t->has_breakpoints = false;
}

static bool is_one_of(const uint64_t *ips, size_t n, uint64_t ip)
{
	for (size_t i = 0; i < n; i++)
		if (ips[i] == ip)
			return true;
	return false;
}

bool stepper__is_start(const struct stepper *s, uint64_t ip)
{
	return is_one_of(s->starts, s->n_starts, ip);
}

bool stepper__is_stop(const struct stepper *s, uint64_t ip)
{
	return is_one_of(s->stops, s->n_stops, ip);
}
