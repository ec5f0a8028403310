// SPDX-License-Identifier: MIT
#include "decode/pt_time.h"

void pt_time__init(struct pt_time *time, const struct rec_pt_config *config)
{
	*time = (struct pt_time){.config = config};
}

static void count_from(struct pt_time *time, uint64_t tsc)
{
	time->ref = tsc;
	time->cycles = 0;
}

void pt_time__on_tsc(struct pt_time *time, uint64_t tsc)
{
	time->tsc = tsc;
	time->have_tma = false;
	time->mtc_tsc = 0;
	count_from(time, tsc);
}

/* Converts ticks of the crystal clock to TSC ticks (CPUID 15H). 0: their ratio is unknown. */
static uint64_t ctc_to_tsc(const struct rec_pt_config *config, uint64_t ctc)
{
	if (!config->tsc_ctc_den)
		return 0;
	return (uint64_t)((unsigned __int128)ctc * config->tsc_ctc_num / config->tsc_ctc_den);
}

void pt_time__on_tma(struct pt_time *time, uint64_t ctc, uint16_t fast_counter)
{
	uint64_t rest = ctc & ((1u << time->config->mtc_freq) - 1);

	if (!time->tsc || !time->config->tsc_ctc_den)
		return;
	time->tma = time->tsc - fast_counter - ctc_to_tsc(time->config, rest);
	time->last_mtc = (uint8_t)(ctc >> time->config->mtc_freq);
	time->periods = 0;
	time->have_tma = true;
}

void pt_time__on_mtc(struct pt_time *time, uint8_t ctc)
{
	uint8_t passed = (uint8_t)(ctc - time->last_mtc);
	uint64_t tsc;

	if (!time->have_tma)
		return;
	time->last_mtc = ctc;
	/* The counter has 8 bits: if its value is the same again, 256 periods have passed. */
	time->periods += passed ? passed : 256;
	tsc = time->tma + ctc_to_tsc(time->config, time->periods << time->config->mtc_freq);
	/*
	 * Computes the ratio from the cycles between two MTCs, for CPUs whose nominal frequency is
	 * unknown.
	 */
	if (time->mtc_tsc && time->mtc_cycles && tsc > time->mtc_tsc && !time->config->nom_freq)
		time->ratio = ((tsc - time->mtc_tsc) << PT_TIME_RATIO_BITS) / time->mtc_cycles;
	time->mtc_tsc = tsc;
	time->mtc_cycles = 0;
	count_from(time, tsc);
	if (tsc > time->tsc)
		time->tsc = tsc;
}

void pt_time__on_cbr(struct pt_time *time, uint8_t ratio)
{
	if (!time->config->nom_freq || !ratio)
		return;
	count_from(time, time->tsc);
	time->ratio = ((uint64_t)time->config->nom_freq << PT_TIME_RATIO_BITS) / ratio;
}

void pt_time__on_packet(struct pt_time *time, const struct packet *packet)
{
	switch (packet->kind) {
	case PACKET_TSC:
		pt_time__on_tsc(time, packet->value);
		break;
	case PACKET_TMA:
		pt_time__on_tma(time, packet->value, packet->fc);
		break;
	case PACKET_MTC:
		pt_time__on_mtc(time, (uint8_t)packet->value);
		break;
	case PACKET_CYC:
		pt_time__on_cyc(time, packet->value);
		break;
	case PACKET_CBR:
		pt_time__on_cbr(time, (uint8_t)packet->value);
		break;
	default:
		break;
	}
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
	/* The TSC runs at nom_freq times the bus clock, a CPU at `ratio` times the bus clock. */
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
