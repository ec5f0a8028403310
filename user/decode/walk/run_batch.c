// SPDX-License-Identifier: MIT
#include "decode/walk/run_batch.h"

#include <string.h>

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define noinline    __attribute__((noinline))

/* Upper limit for the bytes of a CYC, an MTC and a TIP. */
#define MAX_READ 24

/* The caller has checked that there are eight bytes. */
static inline uint64_t load(const uint8_t *at)
{
	uint64_t bytes;

	memcpy(&bytes, at, sizeof(bytes));
	return bytes;
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

#define MTC 0x59

/* The members of pt_time that a CYC changes. */
struct clock {
	uint64_t ref, ratio, cycles, tsc;
};

static struct clock clock_of(const struct pt_time *time)
{
	/* Without a reference, cycles do not change the time. */
	return (struct clock){time->ref, time->ref ? time->ratio : 0, time->cycles, time->tsc};
}

/* An MTC before a packet of the run. */
struct mtc {
	const uint8_t *at; /* NULL: there has been none */
	bool is_of_run;	   /* a packet of the run came after one */
	struct pt_time time;
};

/* The time after the MTC belongs to the run if a packet came after it. `end`: of the run so far. */
static void settle_mtc(struct mtc *mtc, struct pt_time *time, const uint8_t *end)
{
	if (end <= mtc->at)
		return;
	*time = mtc->time;
	mtc->is_of_run = true;
}

/* Reads the MTC at `at`. Returns the clock after it. */
static noinline struct clock take_mtc(struct mtc *mtc, struct pt_time *time, const uint8_t *at,
				      const uint8_t *end, const struct clock *clock)
{
	if (mtc->at)
		settle_mtc(mtc, time, end);
	else
		mtc->time = *time;
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

/* The last IP after a TIP of `size` bytes (SDM "FUP/TIP IP Reconstruction"). */
static inline uint64_t ip_after(uint64_t last_ip, uint64_t tip, unsigned int size)
{
	uint64_t value = tip >> 8;

	if (size == 7)
		return (uint64_t)((int64_t)(value << 16) >> 16);
	return (last_ip & UINT64_MAX << 8 * (size - 1)) | value;
}

/* Where the reader is: after the last packet of a run. */
struct run_reader {
	const uint8_t *at, *last; /* no packet is read that begins after `last` */
	bool skd007;
	struct clock clock;
	uint64_t last_ip;
	struct pt_time *time; /* complete, after the last MTC */
	bool has_mtc;
};

/*
 * Reads a run without timing packets, all at once: TNT packets, and a TIP after them, within eight
 * bytes. Returns its length; 0: another packet comes first.
 */
static inline unsigned int read_plain_run(struct run_reader *r, struct memo_run *run)
{
	const uint64_t ones = 0x0101010101010101ull;
	uint64_t bytes = load(r->at), masked = bytes & ~(2 * ones);
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
	run->end = r->at += n;
	if (size)
		r->last_ip = ip_after(r->last_ip, run->bytes >> 8 * (n - size), size);
	for (unsigned int i = 1; i <= MEMO_PACKETS; i++)
		run->times[i] = r->clock.tsc;
	return n;
}

/* Reads a run with timing packets between its packets. */
static inline void read_timed_run(struct run_reader *r, struct memo_run *run)
{
	const uint8_t *at = r->at, *end = at;
	struct clock now = r->clock;
	uint64_t run_bytes = 0, cycles = now.cycles;
	unsigned int shift = 0, n = 0;
	struct mtc mtc;

	mtc.at = NULL;
	mtc.is_of_run = false;
	while (at <= r->last) {
		uint64_t bytes = load(at);
		uint8_t header;
		unsigned int size;

		if ((bytes & 3) == 3) {
			/*
			 * One byte or two is unpredictable, so this has no branch. The next bytes
			 * are shifted down instead of loaded again, which is faster.
			 */
			uint64_t is_long = bytes >> 2 & 1, payload = bytes >> 3 & 0x1fff, ticks;
			unsigned int len = 1 + (unsigned int)is_long;

			if (UNLIKELY(bytes & (is_long << 8))) {
				len = read_long_cyc(at, &ticks);
				if (!len)
					break;
				bytes = load(at + len);
			} else {
				/* Of two bytes: bit 5 is 0, and not part of the number. */
				ticks = payload & 0x1f;
				ticks = is_long ? (payload + ticks) >> 1 : ticks;
				bytes >>= 8 * len;
			}
			at += len;
			now.cycles += ticks;
			ticks = now.ref + (now.cycles * now.ratio >> PT_TIME_RATIO_BITS);
			now.tsc = ticks > now.tsc ? ticks : now.tsc;
		} else if (UNLIKELY((bytes & 0xff) == MTC)) {
			now = take_mtc(&mtc, r->time, at, end,
				       &(struct clock){.cycles = now.cycles, .tsc = now.tsc});
			at += 2;
			continue;
		}
		header = (uint8_t)bytes;
		if (LIKELY(packet__is_short_tnt(header))) {
			run_bytes |= (uint64_t)header << shift;
			shift += 8;
			end = ++at;
			run->times[++n] = now.tsc;
			cycles = now.cycles;
			if (UNLIKELY(shift == 64))
				break;
			continue;
		}
		size = tip_size(header);
		if (size && shift + 8 * size <= 64) {
			bytes = first_bytes(load(at), size);
			run_bytes |= bytes << shift;
			run->tip = header;
			r->last_ip = ip_after(r->last_ip, bytes, size);
			end = at += size;
			run->times[++n] = now.tsc;
			cycles = now.cycles;
			break;
		}
		/* Another timing packet may follow directly. */
		if (((header & 3) != 3 && header != MTC) || (r->skd007 && is_cut_cyc(at)))
			break;
	}
	run->bytes = run_bytes;
	run->n_packets = (uint8_t)n;
	run->end = r->at = end;
	if (UNLIKELY(mtc.at)) {
		settle_mtc(&mtc, r->time, end);
		r->has_mtc = mtc.is_of_run;
	}
	if (UNLIKELY(at != end)) {
		/* Timing packets that no packet of the run follows belong to the next run. */
		now = clock_of(r->time);
		now.tsc = n ? run->times[n] : run->tsc;
	}
	now.cycles = cycles;
	r->clock = now;
}

/* False: no run begins there. */
static inline bool read_run(struct run_reader *r, struct memo_run *run)
{
	unsigned int n = 0;

	if (r->at > r->last)
		return false;
	run->at = r->at;
	run->tip = 0;
	run->cycles = r->clock.cycles;
	run->tsc = r->clock.tsc;
	if ((*r->at & 3) != 3)
		n = read_plain_run(r, run);
	if (!n)
		read_timed_run(r, run);
	return run->n_packets;
}

void run_batch__read(struct run_batch *batch, const struct run_point *from, bool skd007,
		     const struct memo_entry *entries, const uint8_t *to)
{
	struct run_point *end = &batch->end;
	struct run_reader r = {.at = from->at,
			       .last = from->at,
			       .skd007 = skd007,
			       .clock = clock_of(&from->time),
			       .last_ip = from->last_ip,
			       .time = &end->time};
	uint64_t context = from->context;
	unsigned int n = 0;

	batch->n = 0;
	if (to - from->at < MAX_READ)
		return;
	r.last = to - MAX_READ;
	end->time = from->time;
	/* After an MTC, cycles alone do not determine the time of a run. */
	for (; n < BATCH_RUNS && !r.has_mtc; n++) {
		struct memo_run *run = &batch->runs[n];

		if (!read_run(&r, run))
			break;
		run->slot = memo__slot_of(run->bytes, context);
		__builtin_prefetch(&entries[run->slot]);
		__builtin_prefetch(&entries[run->slot ^ 1]);
		context = run->tip ? r.last_ip : run->slot;
		run->ip = r.last_ip;
	}
	pt_time__go_to(&end->time, r.clock.cycles, r.clock.tsc);
	end->at = r.at;
	end->last_ip = r.last_ip;
	end->context = context;
	batch->n = n;
}
