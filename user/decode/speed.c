// SPDX-License-Identifier: MIT
#include "decode/speed.h"

#include <errno.h>

#include "decode/packet.h"
#include "decode/pt_time.h"

struct branch speed__entry(const struct speed *speed)
{
	return (struct branch){.time_ns = speed->end_ns,
			       .from = speed->begin_ns,
			       .to = speed->traced_ns,
			       .n_insns = (uint32_t)speed->insns,
			       .n_branches = (uint32_t)(speed->insns >> 32),
			       .kind = ENTRY_SPEED,
			       .cpu = speed->cpu};
}

struct speed branch__speed(const struct branch *entry)
{
	return (struct speed){.begin_ns = entry->from,
			      .end_ns = entry->time_ns,
			      .traced_ns = entry->to,
			      .insns = entry->n_insns | (uint64_t)entry->n_branches << 32,
			      .cpu = entry->cpu};
}

/* Bytes of PT between two checks, about ten microseconds. Each PSB+ gives the ratio. */
#define LOOK_BYTES (16u << 10)

int clock_rates__add(struct clock_rates *rates, const struct recording *rec,
		     const struct rec_aux *aux)
{
	const uint8_t *end = aux->data + aux->size, *at = packet__find_psb(aux->data, end);
	const struct rec_pt_config *pt = &rec->pt;
	struct packet_reader reader;
	uint64_t tsc_khz;
	int err = 0;

	if (!pt->nom_freq || !pt->time_mult)
		return 0;
	/* The TSC runs at nom_freq times the bus clock, a CPU at its ratio times that. */
	tsc_khz = (1000000ull << pt->time_shift) / pt->time_mult;
	packet_reader__init(&reader, aux->data, aux->size);
	while (at && !err) {
		const struct clock_rate *last =
			rates->all.n ? &rates->all.v[rates->all.n - 1] : NULL;
		struct clock_rate rate;
		uint64_t tsc, ratio;

		packet__read_psb_plus(&reader, at, &tsc, &ratio);
		rate.time_ns = tsc__to_ns(tsc, aux->tsc, pt);
		rate.mhz = (uint32_t)((tsc_khz * ratio / pt->nom_freq + 500) / 1000);
		if (tsc && ratio &&
		    (!last || (last->mhz != rate.mhz && last->time_ns <= rate.time_ns)))
			err = VEC_ADD(&rates->all, rate);
		at = (size_t)(end - at) > LOOK_BYTES ? packet__find_psb(at + LOOK_BYTES, end)
						     : NULL;
	}
	packet_reader__fini(&reader);
	return err;
}

uint32_t clock_rates__at(const struct clock_rates *rates, uint64_t time_ns)
{
	size_t n = VEC_PARTITION_POINT(&rates->all, e, e->time_ns <= time_ns);

	if (!rates->all.n)
		return 0;
	return rates->all.v[n ? n - 1 : 0].mhz;
}
