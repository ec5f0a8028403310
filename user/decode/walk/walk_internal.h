/* SPDX-License-Identifier: MIT */
/* Between the walker's files. What the loop over packets needs is inline. */
#ifndef MTBPF_DECODE_WALK_WALK_INTERNAL_H
#define MTBPF_DECODE_WALK_WALK_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/walk/walk.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Blocks that go on without a packet, in a row: code that takes more is not what ran. */
#define MAX_GOES_ON 128

/* A PSB and what follows it, up to PSBEND. */
struct psb_plus {
	struct pt_time time;
	uint64_t last_ip;
	uint64_t ip;
	bool has_ip;   /* the thread is being traced, and about to execute ip */
	bool overflow; /* it ended with an OVF */
	bool other_mode;
	uint8_t end; /* PACKET_PSBEND, PACKET_OVF; PACKET_BAD or PACKET_END where it was damaged */
	const uint8_t *at; /* behind it */
};

/* False: no memory, or nobody takes any more. */
bool outbox__grow(struct outbox *out);

static inline void walker__emit(struct walker *w, uint8_t kind, uint8_t len, uint64_t from,
				uint64_t to, uint64_t tsc)
{
	struct outbox *out = w->out;

	if (UNLIKELY(out->n == out->cap) && !outbox__grow(out))
		return;
	out->v[out->n++] = (struct branch){.time_ns = tsc,
					   .from = from,
					   .to = to,
					   .n_insns = (uint32_t)w->counts,
					   .n_branches = (uint32_t)(w->counts >> 32),
					   .kind = kind,
					   .len = len};
	w->counts = 0;
}

static inline void walker__push(struct walker *w, struct block_site *site)
{
	unsigned int at = w->top++ % RETURN_DEPTH;

	w->returns[at] = site;
	w->ret_ips[at] = site->ret_ip;
	if (w->top - w->floor > RETURN_DEPTH)
		w->floor++;
	if (UNLIKELY(w->top - w->stale > RETURN_DEPTH))
		w->stale++;
}

/* NULL where none is left. */
static inline struct block_site *walker__pop(struct walker *w)
{
	if (w->top == w->floor)
		return NULL;
	return w->returns[--w->top % RETURN_DEPTH];
}

/* The first n direct branches of a block happened. */
static inline void walker__take_steps(struct walker *w, const struct block *block, unsigned int n,
				      uint64_t tsc)
{
	for (unsigned int i = 0; i < n; i++) {
		struct block_step *step = &block->steps[i];

		w->counts += step->counts;
		walker__emit(w, step->kind, step->len, step->from, step->to, tsc);
		if (step->pushes)
			walker__push(w, &step->site);
	}
}

/* The thread comes to the block. */
static inline void walker__enter(struct walker *w, struct block *block)
{
	w->block = block;
	w->block_tsc = w->time.tsc;
}

/* walk_gaps.c */

/* What follows is not known until a packet tells where the thread is. */
void walker__lose(struct walker *w, enum gap_reason reason, uint64_t ip, uint64_t tsc);
/* The same, where the thread has run its block, but for what is not known. */
void walker__lose_behind(struct walker *w, enum gap_reason reason, uint64_t tsc);
/* The same, but the thread goes on where it is, with the same calls pending. */
void walker__break(struct walker *w, enum gap_reason reason);
/* At a block that has no code at its end. True where it has some by now. */
bool walker__renew(struct walker *w);
/* The block cannot lead on: what its end is contradicts the packets, or is not known. */
void walker__cannot(struct walker *w);
/* The thread is at ip: is it in code of another mode (MODE.Exec), which is a gap? */
bool walker__lose_mode(struct walker *w, uint64_t ip);
/*
 * After a gap a packet tells an IP. True if the walk goes on there; after bad bytes it does so only
 * if the packets that follow fit the code.
 */
bool walker__resume(struct walker *w, unsigned int ip_bytes, uint64_t ip);
/* A packet tells of branches. False where nothing is known of where they are. */
bool walker__wake(struct walker *w);

/* Bad bytes were skipped, and no packet has fitted the code since: what looks like a packet may not
 * be one. */
static inline bool walker__doubts(const struct walker *w)
{
	return !w->knows_ip;
}

/* walk_trial.c */

/* A return has taken a call of before the gap, as far as one is known. */
static inline void walker__pop_stale(struct walker *w)
{
	if (w->stale == w->floor)
		return;
	w->floor--;
	w->top = w->floor;
}
/*
 * Takes, for a compressed return after a gap with no call pending, the call from before the gap
 * that fits the packets that follow. NULL if none fits.
 */
struct block_site *walker__find_stale(struct walker *w);
/* Do the packets behind w->next fit a thread that is at the block? If it is a guess, some must. */
bool walker__try(const struct walker *w, struct block *block, bool is_guess);
/*
 * The bytes before `at` do not form a packet. Returns the place nearby where packets begin that fit
 * the code as if the bytes had told of no branch, or NULL.
 */
const uint8_t *walker__step_over(const struct walker *w, const uint8_t *at);

/* walk.c */

/* The packet at `at`, whatever it is. Where the next one is. */
const uint8_t *walker__on_packet(struct walker *w, const uint8_t *at);
/* Empties the outbox. 0, or what stopped it. */
int walker__flush(struct walker *w);

/* walk_runs.c */

/* All packets from `at` up to `to`. 0, or what stopped it. */
int walker__on_packets(struct walker *w, const uint8_t *at, const uint8_t *to);
/* One of them. Where the next one is. */
const uint8_t *walker__walk_packet(struct walker *w, const uint8_t *at);

/* walk_branches.c */

/* The bits that are left, along blocks. */
void walker__take_bits(struct walker *w);
/* n bits, the oldest in bit 63. */
void walker__on_tnt(struct walker *w, uint64_t bits, unsigned int n);
void walker__on_tip(struct walker *w, unsigned int ip_bytes, uint64_t ip);

/* The block at ip; NULL after walker__fail(). */
struct block *walker__find(struct walker *w, uint64_t ip);
/* To the block that follows without a packet. False: no memory. */
bool walker__go_on(struct walker *w);
/* No memory: the walk stops. Returns false. */
bool walker__fail(struct walker *w);

/* walk_events.c: packets that tell of more than branches. */
void walker__on_far_tip(struct walker *w, uint64_t ip);
void walker__on_async_tip(struct walker *w, uint64_t ip);
void walker__on_pge(struct walker *w, unsigned int ip_bytes, uint64_t ip);
/* At walker.left, if there is one. ip: where tracing goes on; 0: that is not known. */
void walker__settle_left(struct walker *w, uint64_t ip);
/* has_ip: the branch left the code that is traced, for `ip`. */
void walker__on_pgd(struct walker *w, bool has_ip, uint64_t ip);
void walker__on_fup(struct walker *w, unsigned int ip_bytes, uint64_t ip);
void walker__on_overflow(struct walker *w);
/* The thread came to ip without a packet. False: it cannot have, and the walk is lost. */
bool walker__arrive(struct walker *w, uint64_t ip);
/* Where tracing goes on, or begins. */
void walker__begin(struct walker *w, uint64_t ip);
/* walk_errata.c */

/* Before walker__arrive() at an asynchronous branch's FUP. */
void walker__mend_abort(struct walker *w);
bool walker__is_vm_entry(struct walker *w, uint64_t ip);
/* Tracing ended without an IP: through the branch that left what is traced, where it is known. */
bool walker__find_exit(struct walker *w, struct block_reach *reach);

/* walk_who.c */

/* The code as it is now, of the thread that runs now; where that is another one, says so. */
void walker__update_space(struct walker *w);
/* True if the thread on the CPU has changed since the last packet (rings per CPU only). */
bool walker__is_other_thread(const struct walker *w);

/* walk_psb.c */

/* What a PSB says of what came before it. */
void walker__finish(struct walker *w, const struct psb_plus *psb);
/* What it says of what follows. */
void walker__begin_region(struct walker *w, const struct psb_plus *psb);
void walker__read_psb(struct walker *w, const uint8_t *at, struct psb_plus *psb);
/* No packet is left. */
void walker__end_of_stream(struct walker *w);

#endif
