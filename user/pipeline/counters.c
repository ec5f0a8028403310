// SPDX-License-Identifier: MIT
#include "pipeline/counters.h"

#include <errno.h>
#include <string.h>

/* The intel_pt event's format: without one of them the time between two PSBs is not known. */
#define CONFIG_CYC (1ull << 1)
#define CONFIG_MTC (1ull << 9)

void counters__fini(struct counters *counters)
{
	VEC_FINI(&counters->speeds);
}

int counters__add(struct counters *counters, pid_t pid, pid_t tid, const struct speed *speed)
{
	return VEC_ADD(&counters->speeds, (struct thread_speed){pid, tid, *speed});
}

/* The last of those before the filter's begin is that at its begin. */
static bool is_filtered(const struct decode_filter *filter, const struct clock_rates *rates,
			size_t i)
{
	const struct clock_rate *rate = &rates->all.v[i];

	if (!filter)
		return false;
	return rate->time_ns > filter->to_ns ||
	       (i + 1 < rates->all.n && rate[1].time_ns <= filter->from_ns);
}

static void write_rates(struct trace_writer *writer, const struct clock_rates *rates,
			const struct recording *rec, const struct rec_aux *aux,
			const struct decode_filter *filter)
{
	struct trace_counter counter = {.name = "CPU MHz",
					.of = aux->tid ? "thread" : "cpu",
					.pid = aux->tid ? aux->pid : rec->pid,
					.tid = aux->tid ? aux->tid : rec->pid,
					.id = (uint64_t)(aux->tid ? aux->tid : aux->cpu)};

	for (size_t i = 0; i < rates->all.n; i++) {
		if (is_filtered(filter, rates, i))
			continue;
		counter.time_ns = rates->all.v[i].time_ns;
		if (filter && counter.time_ns < filter->from_ns)
			counter.time_ns = filter->from_ns;
		counter.value = rates->all.v[i].mhz;
		trace_writer__counter(writer, &counter);
	}
}

/* True if the stretch was recorded in this ring. */
static bool is_of(const struct thread_speed *p, const struct rec_aux *aux)
{
	return aux->tid ? p->tid == aux->tid : p->speed.cpu == aux->cpu;
}

/*
 * Writes the values of one stretch. If no other stretch follows at once, the counters end after it.
 */
static void write_speed(struct trace_writer *writer, const struct thread_speed *p, uint32_t mhz,
			bool is_last)
{
	double cycles = (double)p->speed.traced_ns * mhz / 1000;
	struct trace_counter counter = {.name = "IPC",
					.of = "thread",
					.pid = p->pid,
					.tid = p->tid,
					.id = (uint64_t)p->tid,
					.time_ns = p->speed.begin_ns,
					.value = (double)p->speed.insns / cycles};

	trace_writer__counter(writer, &counter);
	counter.time_ns = p->speed.end_ns;
	counter.value = 0;
	if (is_last)
		trace_writer__counter(writer, &counter);
}

static void write_speeds(const struct counters *counters, struct trace_writer *writer,
			 const struct clock_rates *rates, const struct rec_aux *aux)
{
	for (size_t i = 0; i < counters->speeds.n; i++) {
		const struct thread_speed *p = &counters->speeds.v[i];
		uint32_t mhz = clock_rates__at(rates, p->speed.begin_ns);

		if (is_of(p, aux) && mhz && p->speed.traced_ns)
			write_speed(writer, p, mhz,
				    i + 1 == counters->speeds.n || p[1].tid != p->tid ||
					    p[1].speed.begin_ns != p->speed.end_ns);
	}
}

static bool is_first_of_ring(const struct recording *rec, size_t i)
{
	const struct rec_aux *aux = rec->aux.v;

	for (size_t k = 0; k < i; k++)
		if (aux[k].tid == aux[i].tid && (aux[i].tid || aux[k].cpu == aux[i].cpu))
			return false;
	return true;
}

/* Writes the counters of all snapshots of one ring. */
static int write_ring(const struct counters *counters, const struct recording *rec, size_t first,
		      const struct decode_filter *filter, struct trace_writer *writer)
{
	const struct rec_aux *aux = &rec->aux.v[first];
	struct clock_rates rates = {0};
	int err = 0;

	for (size_t i = first; i < rec->aux.n && !err; i++)
		if (rec->aux.v[i].tid == aux->tid && (aux->tid || rec->aux.v[i].cpu == aux->cpu))
			err = clock_rates__add(&rates, rec, &rec->aux.v[i]);
	if (!err)
		write_rates(writer, &rates, rec, aux, filter);
	if (!err && rec->pt.config & (CONFIG_CYC | CONFIG_MTC))
		write_speeds(counters, writer, &rates, aux);
	VEC_FINI(&rates.all);
	return err;
}

int counters__write(const struct counters *counters, const struct recording *rec,
		    const struct decode_filter *filter, struct trace_writer *writer)
{
	int err = 0;

	/* The soft source's CBR packets are of a clock that it makes up. */
	if (!rec->pt.nom_freq || (rec->source && !strcmp(rec->source, "soft")))
		return 0;
	for (size_t i = 0; i < rec->aux.n && !err; i++)
		if (is_first_of_ring(rec, i))
			err = write_ring(counters, rec, i, filter, writer);
	return err;
}
