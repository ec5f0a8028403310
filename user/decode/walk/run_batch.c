// SPDX-License-Identifier: MIT
#include "decode/walk/run_batch.h"

#include <string.h>

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* A CYC, an MTC and a TIP, the longest there are. */
#define MAX_READ 24

/* What of pt_time changes with a CYC. */
struct clock {
	uint64_t ref, ratio, cycles, tsc;
};

struct run_reader {
	const struct packet_reader *reader;
	const uint8_t *to;
	struct clock clock;   /* behind what has been read */
	struct pt_time *time; /* behind the last MTC, in all */
	bool has_mtc;
};

/* There are as many. */
static inline uint64_t load(const uint8_t *at)
{
	uint64_t bytes;

	memcpy(&bytes, at, sizeof(bytes));
	return bytes;
}

static struct clock clock_of(const struct pt_time *time)
{
	/* Without a ref nothing is counted. */
	return (struct clock){time->ref, time->ref ? time->ratio : 0, time->cycles, time->tsc};
}

void pt_time__go_to(struct pt_time *time, uint64_t cycles, uint64_t tsc)
{
	time->mtc_cycles += cycles - time->cycles;
	time->cycles = cycles;
	time->tsc = tsc;
}

static inline void count_cycles(struct clock *clock, uint64_t cycles)
{
	uint64_t now;

	clock->cycles += cycles;
	now = clock->ref + (clock->cycles * clock->ratio >> PT_TIME_RATIO_BITS);
	clock->tsc = now > clock->tsc ? now : clock->tsc;
}

/* Of three bytes or more. Its length; 0: it is none. */
static unsigned int take_long_cyc(struct clock *clock, const uint8_t *at)
{
	uint64_t cycles = *at >> 3;
	unsigned int len = 1;

	do {
		/* The reader of single packets knows what it is. */
		if (len > 6)
			return 0;
		cycles |= (uint64_t)(at[len] >> 1) << (7 * len - 2);
	} while (at[len++] & 1);
	count_cycles(clock, cycles);
	return len;
}

/*
 * A CYC. Whether it has one byte or two is as good as random: nothing is decided by it. Its length;
 * 0: something else is.
 */
static inline unsigned int take_cyc(struct clock *clock, const struct packet_reader *reader,
				    const uint8_t *at, uint64_t bytes)
{
	uint64_t is_long = bytes >> 2 & 1;

	if (UNLIKELY(bytes & (is_long << 8)))
		return take_long_cyc(clock, at);
	/* An OVF may have come in the middle (decode/errata.h). */
	if (UNLIKELY(reader->skd007) && is_long && (bytes >> 8 & 0xffff) == 0xf302)
		return 0;
	count_cycles(clock, (bytes >> 3 & 0x1f) | (bytes >> 4 & (-is_long & 0xfe0)));
	return 1 + (unsigned int)is_long;
}

/* The bytes of a TIP with 2, 4 or 6 bytes of IP; 0: it is something else. */
static inline unsigned int tip_size(uint8_t header)
{
	return (header & 0x9f) == 0x0d && header > 0x0d ? 2u * (header >> 5) + 1 : 0;
}

static inline uint64_t first_bytes(uint64_t bytes, unsigned int n)
{
	return bytes & (UINT64_MAX >> (64 - 8 * n));
}

/*
 * Where nothing tells the time in between: TNT packets and the TIP behind them, as many as lie in
 * eight bytes, found at once. 0: something else is in the way.
 */
static inline unsigned int read_plain_run(uint64_t bytes, uint64_t tsc, struct memo_run *run)
{
	const uint64_t ones = 0x0101010101010101ull;
	uint64_t masked = bytes & ~(2 * ones);
	/* 00 and 02, which are no short TNT; the lowest is found exactly. */
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

/* Behind what tells the time: the packet of a run at `at`. Its size; 0: there is none. */
static inline unsigned int take_packet(struct memo_run *run, unsigned int n, uint64_t bytes)
{
	uint8_t header = (uint8_t)bytes;
	unsigned int size = 1;

	if (!packet__is_short_tnt(header)) {
		size = tip_size(header);
		if (!size || n + size > 8)
			return 0;
		run->tip = header;
	}
	run->bytes |= first_bytes(bytes, size) << (8 * n);
	return size;
}

/* The time as an MTC at `at` tells it; not yet the batch's. */
static void take_mtc(struct pt_time *time, struct clock *clock, const uint8_t *at)
{
	pt_time__go_to(time, clock->cycles, clock->tsc);
	pt_time__on_mtc(time, at[1]);
	*clock = clock_of(time);
}

#define MTC 0x59

/* With times between them. */
static inline void read_timed_run(struct run_reader *r, const uint8_t *at, struct memo_run *run)
{
	struct clock now = r->clock;
	struct pt_time time;
	bool has_mtc = false;
	unsigned int n = 0;

	while (r->to - at >= MAX_READ) {
		uint64_t bytes = load(at);
		unsigned int len = 0;

		if ((bytes & 3) == 3) {
			len = take_cyc(&now, r->reader, at, bytes);
			if (UNLIKELY(!len))
				break;
		} else if (UNLIKELY((bytes & 0xff) == MTC)) {
			if (!has_mtc)
				time = *r->time;
			has_mtc = true;
			take_mtc(&time, &now, at);
			at += 2;
			continue;
		}
		at += len;
		len = take_packet(run, n, load(at));
		if (!len) {
			/* Two that tell the time, one behind the other. */
			if ((*at & 3) == 3 || *at == MTC)
				continue;
			break;
		}
		if (UNLIKELY(has_mtc)) {
			*r->time = time;
			r->has_mtc = true;
		}
		r->clock = now;
		run->times[++run->n_packets] = now.tsc;
		n += len;
		at += len;
		run->end = at;
		if (len > 1 || n == 8)
			break;
	}
}

/* False: there is none. */
static inline bool read_run(struct run_reader *r, const uint8_t *at, struct memo_run *run)
{
	unsigned int n = 0;

	if (r->to - at < MAX_READ)
		return false;
	run->at = at;
	run->bytes = 0;
	run->n_packets = 0;
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

void run_batch__read(struct run_batch *batch, const struct packet_reader *reader,
		     const struct pt_time *time, uint64_t context, const struct memo_entry *entries,
		     const uint8_t *at, const uint8_t *to)
{
	struct run_reader r = {
		.reader = reader, .to = to, .clock = clock_of(time), .time = &batch->time};
	uint64_t last_ip = reader->last_ip;
	unsigned int n = 0;

	batch->time = *time;
	/* What is behind an MTC cannot be told by cycles alone. */
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
	pt_time__go_to(&batch->time, r.clock.cycles, r.clock.tsc);
	batch->context = context;
	batch->n = n;
}
