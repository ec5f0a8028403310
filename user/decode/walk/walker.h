/* SPDX-License-Identifier: MIT */
/*
 * Where a thread is while its packets are walked, and what has been found out on the way: branches,
 * and gaps where that is not known.
 */
#ifndef MTBPF_DECODE_WALK_WALKER_H
#define MTBPF_DECODE_WALK_WALKER_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/recording/recording.h"
#include "decode/branch.h"
#include "decode/errata.h"
#include "decode/packet.h"
#include "decode/pt_time.h"
#include "decode/returns.h"
#include "decode/space.h"
#include "decode/switches.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Blocks that go on without a packet, in a row: code that takes more is not what ran. */
#define MAX_GOES_ON 128

/* Branches on their way to join.h. Their time_ns is in TSC ticks, 56 bits of them; 0: not known. */
struct outbox {
	struct branch *v;
	size_t n, cap;
	/* Takes v[0..n), and may take over v. Non-zero stops the walk. */
	int (*flush)(void *ctx, struct outbox *out);
	void *ctx;
	int err; /* what flush returned, or -ENOMEM: nothing is added any more */
};

/* Beside enum branch_kind and ENTRY_NOTE. */
enum outbox_kind {
	OUTBOX_START = ENTRY_KINDS, /* a PSB says: at `to`; no branch, if that was known */
	OUTBOX_REST,		    /* the counts belong to the next branch */
	OUTBOX_WHO, /* a CPU's ring: `from` points to the rec_switch it goes on behind, or 0 */
};

enum walk_state {
	WALK_OFF,   /* no code of the thread is being traced */
	WALK_START, /* like WALK_ON, but nothing has happened there yet, and no branch says it */
	WALK_ON,
	WALK_LOST, /* behind a gap */
};

struct walker {
	struct packet_reader reader;
	struct pt_time time;
	struct errata errata;
	struct space *space;
	struct outbox *out;
	uint64_t tsc_base; /* rec_aux.tsc */
	/* Of a CPU's ring: whose code it is changes. NULL: of one thread. */
	const struct switches *switches;
	int cpu;
	bool knows_who; /* since its region began */
	const struct rec_switch *who;
	uint64_t context; /* of the next run: memo__slot_of() */
	/* Where the thread is: at its first instruction. NULL unless WALK_ON. */
	struct block *block;
	uint64_t block_tsc;  /* when it came there */
	block_counts counts; /* since the last branch handed on */
	/* TNT bits behind a branch whose TIP comes later (SDM "Deferred TIPs"), the next in bit 63.
	 */
	uint64_t tnt;
	unsigned int tnt_left;
	uint8_t state;	    /* enum walk_state */
	uint8_t start_kind; /* WALK_START: BRANCH_BEGIN or OUTBOX_START */
	uint64_t start_ip, start_tsc;
	bool has_fup;	    /* the last packet but time was a FUP, of fup_ip */
	bool ignores_fup;   /* the next one tells nothing */
	bool is_abort;	    /* the next one is that of a transaction's abort */
	bool after_ovf;	    /* the next one tells where tracing goes on */
	bool knows_ip;	    /* an IP packet can be trusted although it is not full */
	bool lost_calls;    /* behind a gap: calls that are not known may have pushed a return */
	bool is_trial;	    /* as walker__try() does */
	bool is_other_mode; /* not 64-bit code */
	uint64_t fup_ip;
	uint64_t sure_ip; /* while !knows_ip: the last IP of before the bad bytes */
	/* Waits for the FUP that tells its ip; PT_NOTE_NONE: none does. */
	struct {
		uint8_t kind;
		uint64_t value, tsc;
	} event;
	/* Left without a packet that says where: somewhere in this block, at left_tsc; or NULL. */
	struct block *left;
	uint64_t left_tsc;
	const uint8_t *next; /* behind the packet that is walked, as far as that may be lost */
	const uint8_t *sync; /* behind bytes that were no packet: the next PSB, or the end */
	struct returns calls;
	struct block_site kept[RETURN_DEPTH]; /* of calls whose blocks are gone */
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

/* The first n direct branches of a block happened. */
static inline void walker__take_steps(struct walker *w, const struct block *block, unsigned int n,
				      uint64_t tsc)
{
	for (unsigned int i = 0; i < n; i++) {
		struct block_step *step = &block->steps[i];

		w->counts += step->counts;
		walker__emit(w, step->kind, step->len, step->from, step->to, tsc);
		if (step->pushes)
			returns__push(&w->calls, &step->site);
	}
}

/* The thread comes to the block. */
static inline void walker__enter(struct walker *w, struct block *block)
{
	w->block = block;
	w->block_tsc = w->time.tsc;
}

/* Whether the end of the block may send the thread there. */
static inline bool block__may_lead_to(const struct block *block, uint64_t ip)
{
	if (block->end == BLOCK_COND)
		return ip == block->target || ip == block->last_ip + block->last_len;
	return block->end <= BLOCK_FAR;
}

/* No memory: the walk stops. Returns false. */
bool walker__fail(struct walker *w);
/* The block at ip; NULL after walker__fail(). */
struct block *walker__find(struct walker *w, uint64_t ip);

/* next[which] of the block. NULL after walker__fail(). */
static inline struct block *walker__follow(struct walker *w, struct block *block,
					   unsigned int which)
{
	struct block *next = block->next[which];

	if (UNLIKELY(!next))
		next = blocks__link(w->space->blocks, block, which);
	if (UNLIKELY(!next))
		walker__fail(w);
	return next;
}

/* To the block that follows without a packet. False: no memory. */
bool walker__go_on(struct walker *w);
/* The thread came to ip without a packet. False: it cannot have, and the walk is lost. */
bool walker__arrive(struct walker *w, uint64_t ip);
/* Through the first instructions of its block. */
void walker__take_reach(struct walker *w, const struct block_reach *reach);

/* Where tracing goes on, or begins. */
void walker__begin(struct walker *w, uint64_t ip);
/* Tracing ends at `from`, whose instruction has `len` bytes; 0: it did not run. */
void walker__end_at(struct walker *w, uint8_t kind, uint64_t from, uint8_t len, uint64_t tsc);
/* The same at the end of the block, all of which ran. */
void walker__end_with_block(struct walker *w, uint8_t kind, uint64_t tsc);
/* At walker.left, if there is one. ip: where tracing goes on; 0: that is not known. */
void walker__settle_left(struct walker *w, uint64_t ip);

/* The code as it is now, of the thread that runs now; where that is another one, says so. */
void walker__update_space(struct walker *w);
/* True if the thread on the CPU has changed since the last packet (rings per CPU only). */
bool walker__is_other_thread(const struct walker *w);

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
/* A packet tells of branches. False where nothing is known of where they are. */
bool walker__wake(struct walker *w);

/* Bad bytes were skipped, and no packet has fitted the code since: what looks like a packet may not
 * be one. */
static inline bool walker__doubts(const struct walker *w)
{
	return !w->knows_ip;
}

#endif
