// SPDX-License-Identifier: MIT
#include "decode/switches.h"

#include <errno.h>
#include <stdlib.h>

#include "util/vec.h"

/* The switches of one CPU, ascending by time. */
struct cpu {
	int cpu;
	VEC(uint64_t) start_ns; /* start of the ring's contents, by snapshot */
	VEC(const struct rec_switch *) switches;
};

struct switches {
	const struct recording *rec;
	VEC(struct cpu) cpus;
};

static struct cpu *find_cpu(const struct switches *s, int cpu)
{
	return VEC_FIND(&s->cpus, e, e->cpu == cpu);
}

struct switches *switches__new(const struct recording *rec)
{
	struct switches *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->rec = rec;
	VEC_EACH(&rec->switches, sw) {
		struct cpu *cpu = find_cpu(s, sw->cpu);

		if (!cpu) {
			cpu = VEC_PUSH(&s->cpus);
			if (cpu)
				*cpu = (struct cpu){.cpu = sw->cpu};
		}
		if (!cpu || VEC_ADD(&cpu->switches, sw)) {
			switches__free(s);
			return NULL;
		}
	}
	return s;
}

void switches__free(struct switches *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->cpus.n; i++) {
		VEC_FINI(&s->cpus.v[i].switches);
		VEC_FINI(&s->cpus.v[i].start_ns);
	}
	VEC_FINI(&s->cpus);
	free(s);
}

const struct rec_switch *switches__at(const struct switches *s, int cpu_number, uint64_t time_ns)
{
	const struct cpu *cpu = find_cpu(s, cpu_number);
	size_t n = cpu ? VEC_PARTITION_POINT(&cpu->switches, e, (*e)->time_ns <= time_ns) : 0;

	if (!n || !cpu->switches.v[n - 1]->tid)
		return NULL;
	return cpu->switches.v[n - 1];
}

int switches__set_start(struct switches *s, int cpu_number, unsigned int snapshot, uint64_t time_ns)
{
	struct cpu *cpu = find_cpu(s, cpu_number);

	while (cpu && cpu->start_ns.n <= snapshot)
		if (VEC_ADD(&cpu->start_ns, 0))
			return -ENOMEM;
	if (cpu)
		cpu->start_ns.v[snapshot] = time_ns;
	return 0;
}

bool switches__ran_unseen(const struct switches *s, const struct rec_switch *who,
			  unsigned int snapshot, uint64_t from_ns, uint64_t to_ns)
{
	const struct recording *rec = s->rec;
	size_t i = VEC_PARTITION_POINT(&rec->switches, e, e->time_ns <= from_ns);

	for (; i < rec->switches.n && rec->switches.v[i].time_ns < to_ns; i++) {
		const struct rec_switch *sw = &rec->switches.v[i];
		const struct cpu *cpu =
			sw->tid == who->tid && sw != who ? find_cpu(s, sw->cpu) : NULL;

		if (cpu && snapshot < cpu->start_ns.n && sw->time_ns < cpu->start_ns.v[snapshot])
			return true;
	}
	return false;
}
