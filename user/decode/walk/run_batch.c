// SPDX-License-Identifier: MIT
#include "decode/walk/run_batch.h"

#include <string.h>

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define noinline    __attribute__((noinline))

/* Upper limit for the bytes of a CYC, an MTC and a TIP. */
#define MAX_READ 24

/* The members of pt_time that a CYC changes. */
struct clock {
	uint64_t ref, ratio, cycles, tsc;
};

struct run_reader {
	const uint8_t *to;
	bool skd007;
	struct clock clock;   /* after the last run */
	struct pt_time *time; /* complete, after the last MTC */
	bool has_mtc;
};

/* The caller has checked that there are eight bytes. */
static inline uint64_t load(const uint8_t *at)
{
	uint64_t bytes;

	memcpy(&bytes, at, sizeof(bytes));
	return bytes;
}

static struct clock clock_of(const struct pt_time *time)
{
	/* Without a reference, cycles do not change the time. */
	return (struct clock){time->ref, time->ref ? time->ratio : 0, time->cycles, time->tsc};
}

void pt_time__go_to(struct pt_time *time, uint64_t cycles, uint64_t tsc)
{
	time->mtc_cycles += cycles - time->cycles;
	time->cycles = cycles;
	time->tsc = tsc;
}

/* Reads a CYC of three bytes or more. Returns its length; 0: not a valid CYC. */
static noinline unsigned int read_long_cyc(const uint8_t *at, uint64_t *cycles)
{
	unsigned int len = 1;

	*cycles = *at >> 3;
	do {
		/* packet__read() will tell what it is. */
		if (len > 6)
			return 0;
		*cycles |= (uint64_t)(at[len] >> 1) << (7 * len - 2);
	} while (at[len++] & 1);
	return len;
}

/* The bytes of a TIP with 2, 4 or 6 bytes of IP; 0: it is something else. */
static inline unsigned int tip_size(uint8_t header)
{
	static const uint8_t sizes[256] = {[0x2d] = 3, [0x4d] = 5, [0x6d] = 7};

	return sizes[header];
}

static inline uint64_t first_bytes(uint64_t bytes, unsigned int n)
{
	return bytes & (UINT64_MAX >> (64 - 8 * n));
}

/*
 * Reads a run without timing packets, all at once: TNT packets, and a TIP after them, within eight
 * bytes. Returns its length; 0: another packet comes first.
 */
static inline unsigned int read_plain_run(uint64_t bytes, uint64_t tsc, struct memo_run *run)
{
	const uint64_t ones = 0x0101010101010101ull;
	uint64_t masked = bytes & ~(2 * ones);
	/* Bytes 00 and 02, which are not short TNTs. Only the lowest bit set is exact. */
	uint64_t special = (masked - ones) & ~masked & (ones << 7);
	uint64_t other = (bytes & ones) | special;
	unsigned int n = other ? (unsigned int)__builtin_ctzll(other) / 8 : 8;
	uint8_t header = n < 8 ? (uint8_t)(bytes >> (8 * n)) : 0;
	unsigned int size = tip_size(header);

	if (n < 8 && !size)
		return 0;
	run->tip = n + size <= 8 ? header : 0;
	size = run->tip ? size : 0;
	run->n_packets = n + (size != 0);
	n += size;
	run->bytes = first_bytes(bytes, n);
	for (unsigned int i = 1; i <= MEMO_PACKETS; i++)
		run->times[i] = tsc;
	return n;
}

#define MTC 0x59

/* An MTC before a packet of the run. */
struct mtc {
	const uint8_t *at; /* NULL: there has been none */
	struct pt_time time;
};

/* Reads the MTC at `at`. `end`: the end of the run so far. Returns the clock after it. */
static noinline struct clock take_mtc(struct run_reader *r, struct mtc *mtc, const uint8_t *at,
				      const uint8_t *end, const struct clock *clock)
{
	if (!mtc->at)
		mtc->time = *r->time;
	else if (end > mtc->at)
		*r->time = mtc->time;
	r->has_mtc |= mtc->at && end > mtc->at;
	mtc->at = at;
	pt_time__go_to(&mtc->time, clock->cycles, clock->tsc);
	pt_time__on_mtc(&mtc->time, at[1]);
	return clock_of(&mtc->time);
}

/* Erratum SKD007: an OVF may have come in the middle of the CYC that ends at `at`. */
static bool is_cut_cyc(const uint8_t *at)
{
	return at[0] == 0xf3 && at[-1] == 0x02 && (at[-2] & 7) == 7;
}

/* Reads a run with timing packets between its packets. */
static inline void read_timed_run(struct run_reader *r, const uint8_t *at, struct memo_run *run)
{
	/* The clock with, and (cycles, tsc) without, the timing packets after the last packet. */
	struct clock now = r->clock;
	uint64_t cycles = now.cycles, tsc = now.tsc;
	const uint8_t *last = r->to - MAX_READ, *end = at;
	uint64_t run_bytes = 0, *times = run->times;
	unsigned int shift = 0;
	struct mtc mtc;

	mtc.at = NULL;
	while (at <= last) {
		uint64_t bytes = load(at);
		uint8_t header;

		if ((bytes & 3) == 3) {
			/*
			 * One byte or two is unpredictable, so this has no branch. The next bytes
			 * are shifted down instead of loaded again, which is faster.
			 */
			uint64_t is_long = bytes >> 2 & 1, ticks;
			unsigned int len = 1 + (unsigned int)is_long;

			ticks = (bytes >> 3 & 0x1f) | (bytes >> 4 & (-is_long & 0xfe0));
			if (UNLIKELY(bytes & (is_long << 8))) {
				len = read_long_cyc(at, &ticks);
				if (!len)
					break;
				bytes = load(at + len);
			} else {
				bytes >>= 8 * len;
			}
			at += len;
			now.cycles += ticks;
			ticks = now.ref + (now.cycles * now.ratio >> PT_TIME_RATIO_BITS);
			now.tsc = ticks > now.tsc ? ticks : now.tsc;
		} else if (UNLIKELY((bytes & 0xff) == MTC)) {
			now = take_mtc(r, &mtc, at, end, &now);
			at += 2;
			continue;
		}
		header = (uint8_t)bytes;
		if (LIKELY(packet__is_short_tnt(header))) {
			run_bytes |= (uint64_t)header << shift;
			shift += 8;
			at++;
		} else {
			unsigned int size = tip_size(header);

			if (!size || shift + 8 * size > 64) {
				/* Another timing packet follows directly. */
				if (((header & 3) == 3 || header == MTC) &&
				    !(r->skd007 && is_cut_cyc(at)))
					continue;
				break;
			}
			run_bytes |= first_bytes(load(at), size) << shift;
			run->tip = header;
			at += size;
			shift = 64;
		}
		cycles = now.cycles;
		tsc = now.tsc;
		end = at;
		*++times = tsc;
		if (shift == 64)
			break;
	}
	if (UNLIKELY(mtc.at) && end > mtc.at) {
		*r->time = mtc.time;
		r->has_mtc = true;
	}
	/* An MTC ends the batch, so that ref and ratio need not be kept. */
	r->clock.cycles = cycles;
	r->clock.tsc = tsc;
	run->bytes = run_bytes;
	run->n_packets = (uint8_t)(times - run->times);
	run->end = end;
}

/* False: no run begins at `at`. */
static inline bool read_run(struct run_reader *r, const uint8_t *at, struct memo_run *run)
{
	unsigned int n = 0;

	if (r->to - at < MAX_READ)
		return false;
	run->at = at;
	run->tip = 0;
	run->cycles = r->clock.cycles;
	run->tsc = r->clock.tsc;
	if ((*at & 3) != 3)
		n = read_plain_run(load(at), r->clock.tsc, run);
	if (n)
		run->end = at + n;
	else
		read_timed_run(r, at, run);
	return run->n_packets;
}

/* The IP of the run's TIP. */
static inline uint64_t ip_of(uint64_t last_ip, const struct memo_run *run)
{
	struct packet_reader reader = {.last_ip = last_ip};

	return packet_reader__ip(&reader, run->tip >> 5, load(run->end - tip_size(run->tip) + 1));
}

void run_batch__read(struct run_batch *batch, const struct run_point *from, bool skd007,
		     const struct memo_entry *entries, const uint8_t *to)
{
	struct run_point *end = &batch->end;
	struct run_reader r = {
		.to = to, .skd007 = skd007, .clock = clock_of(&from->time), .time = &end->time};
	uint64_t last_ip = from->last_ip, context = from->context;
	const uint8_t *at = from->at;
	unsigned int n = 0;

	end->time = from->time;
	/* After an MTC, cycles alone do not determine the time of a run. */
	for (; n < BATCH_RUNS && !r.has_mtc; n++) {
		struct memo_run *run = &batch->runs[n];

		if (!read_run(&r, at, run))
			break;
		at = run->end;
		run->slot = memo__slot_of(run->bytes, context);
		__builtin_prefetch(&entries[run->slot]);
		__builtin_prefetch(&entries[run->slot ^ 1]);
		last_ip = run->tip ? ip_of(last_ip, run) : last_ip;
		context = run->tip ? last_ip : memo__slot_of(run->bytes, context);
		run->ip = last_ip;
	}
	pt_time__go_to(&end->time, r.clock.cycles, r.clock.tsc);
	end->at = at;
	end->last_ip = last_ip;
	end->context = context;
	batch->n = n;
}
