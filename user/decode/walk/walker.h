/* SPDX-License-Identifier: MIT */
/*
 * The packet walk: where the thread is in its code, and the branches and gaps that have been found
 * so far. It follows TNT and TIP packets along blocks; after a gap, it finds where packets fit the
 * code.
 */
#ifndef MTBPF_DECODE_WALK_WALKER_H
#define MTBPF_DECODE_WALK_WALKER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "capture/recording/recording.h"
#include "decode/branch.h"
#include "decode/packet.h"
#include "decode/pt_time.h"
#include "decode/space.h"
#include "decode/switches.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* The branches of a walk, for decode.c. Their time_ns is in TSC ticks (56 bits); 0: unknown. */
struct branch_buffer {
	struct branch *v;
	size_t n, cap;
	/* Takes v[0..n), and may take over v. Non-zero stops the walk. */
	int (*flush)(void *ctx, struct branch_buffer *out);
	void *ctx;
	int err; /* what flush returned, or -ENOMEM; after an error no branch is added */
};

/* Kinds of entries besides enum branch_kind and ENTRY_NOTE. */
enum raw_kind {
	RAW_START = ENTRY_KINDS, /* a PSB says that the thread is at `to`: a BEGIN, unless that was
				    known */
	RAW_REST,		 /* the counts belong to the next branch */
	RAW_WHO, /* in a CPU's ring, another thread continues: `from` points to its rec_switch, or
		    is 0 */
};

enum walk_state {
	WALK_OFF,   /* no code of the thread is being traced */
	WALK_START, /* the thread is at start_ip; a branch that says so is emitted when something
		       happens there */
	WALK_ON,
	WALK_LOST, /* after a gap: no packet has told where the thread is */
};

#define RETURN_DEPTH 64

/*
 * The CPU's stack of calls whose return may be compressed (SDM "Indirect Transfer Compression for
 * Returns"), as far as the walk knows it.
 */
struct returns {
	/* A ring of the entries from floor to top, at most RETURN_DEPTH. */
	unsigned int floor, top;
	unsigned int stale; /* entries from here to floor are from before a gap, and may be wrong */
	struct block_site *sites[RETURN_DEPTH];
	uint64_t ips[RETURN_DEPTH]; /* their return addresses */
};

static inline void returns__push(struct returns *r, struct block_site *site)
{
	unsigned int at = r->top++ % RETURN_DEPTH;

	r->sites[at] = site;
	r->ips[at] = site->ret_ip;
	if (r->top - r->floor > RETURN_DEPTH)
		r->floor++;
	if (__builtin_expect(r->top - r->stale > RETURN_DEPTH, 0))
		r->stale++;
}

/* NULL: the stack is empty. */
static inline struct block_site *returns__pop(struct returns *r)
{
	if (r->top == r->floor)
		return NULL;
	return r->sites[--r->top % RETURN_DEPTH];
}

/* A return used an entry from before the gap: removes the newest of these, if there is one. */
static inline void returns__pop_stale(struct returns *r)
{
	if (r->stale == r->floor)
		return;
	r->floor--;
	r->top = r->floor;
}

struct walker {
	struct packet_reader reader;
	struct pt_time time;
	struct errata errata;
	struct space *space;
	struct branch_buffer *out;
	uint64_t tsc_base; /* rec_aux.tsc */
	/* The context switches of the ring's CPU; NULL if the ring belongs to one thread. */
	const struct switches *switches;
	int cpu;
	bool knows_who; /* a RAW_WHO has been emitted since the region began */
	const struct rec_switch *who;
	uint64_t context; /* of the next run: what preceded it (walk.c) */
	/* The thread is at the first instruction of this block. NULL unless WALK_ON. */
	struct block *block;
	uint64_t block_tsc;  /* when it came there */
	block_counts counts; /* since the last branch handed on */
	/* Bits that wait for the TIP of an earlier branch (SDM "Deferred TIPs"); bit 63 is next. */
	uint64_t tnt;
	unsigned int tnt_left;
	uint8_t state;	    /* enum walk_state */
	uint8_t start_kind; /* WALK_START: BRANCH_BEGIN or RAW_START */
	uint64_t start_ip, start_tsc;
	bool has_fup;	    /* the last packet, timing packets aside, was a FUP with fup_ip */
	bool ignores_fup;   /* the next FUP tells nothing */
	bool is_abort;	    /* the next FUP is that of a transaction's abort */
	bool after_ovf;	    /* the next FUP tells where tracing goes on */
	bool knows_ip;	    /* an IP packet can be trusted although it is not full */
	bool lost_calls;    /* after a gap: unknown calls may have pushed a return address */
	bool is_trial;	    /* this is a copy on trial: walker.c */
	bool is_other_mode; /* not 64-bit code */
	bool has_events;    /* recorded with Event Trace */
	uint64_t fup_ip;
	uint64_t sure_ip; /* while !knows_ip: the last IP before the bad bytes */
	/* An event that waits for the FUP with its IP; PT_NOTE_NONE: there is no such event. */
	struct {
		uint8_t kind;
		uint64_t value, tsc;
	} event;
	/* The block that the thread left at left_tsc, if no packet tells at which instruction; or
	 * NULL. */
	struct block *left;
	uint64_t left_tsc;
	const uint8_t *next; /* the end of the current packet, if the walk may be lost in it */
	const uint8_t *sync; /* after bytes that did not form a packet: the next PSB, or the end */
	struct returns calls;
	struct block_site kept[RETURN_DEPTH]; /* copies for calls whose blocks have been freed */
};

/* False: out of memory, or flush has returned an error. */
bool branch_buffer__grow(struct branch_buffer *out);

static inline void walker__emit(struct walker *w, uint8_t kind, uint8_t len, uint64_t from,
				uint64_t to, uint64_t tsc)
{
	struct branch_buffer *out = w->out;

	if (UNLIKELY(out->n == out->cap) && !branch_buffer__grow(out))
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

/* True if the block's last instruction may go to ip. */
static inline bool block__may_lead_to(const struct block *block, uint64_t ip)
{
	if (block->end == BLOCK_COND)
		return ip == block->target || ip == block->last_ip + block->last_len;
	return block->end <= BLOCK_FAR;
}

/* The thread came to ip without a packet. False: the code does not allow that; the walk is lost. */
bool walker__arrive(struct walker *w, uint64_t ip);
/* The thread ran the first instructions of its block. */
void walker__take_reach(struct walker *w, const struct block_reach *reach);

/* Tracing begins, or goes on, at ip. */
void walker__begin(struct walker *w, uint64_t ip);
/* Tracing ends at `from`. len: bytes of the instruction there; 0 if it did not run. */
void walker__end_at(struct walker *w, uint8_t kind, uint64_t from, uint8_t len, uint64_t tsc);
/* Tracing ends after the last instruction of the block. */
void walker__end_with_block(struct walker *w, uint8_t kind, uint64_t tsc);
/* Ends tracing in walker.left, if that is set. ip: where tracing goes on; 0: unknown. */
void walker__settle_left(struct walker *w, uint64_t ip);

/* Switches to the code of the thread that runs now, and tells decode.c if that is another one. */
void walker__update_space(struct walker *w);
/*
 * True if the CPU runs another thread than at the last walker__update_space(), or an unknown one
 * (rings per CPU only).
 */
bool walker__is_other_thread(const struct walker *w);

/* Sets a state without a current block, and forgets what pending packets told. */
void walker__forget(struct walker *w, enum walk_state state);
/* Begins a gap: nothing is known until a packet tells where the thread is. */
void walker__lose(struct walker *w, enum gap_reason reason, uint64_t ip, uint64_t tsc);
/* Like walker__lose(), after the thread has run the known part of its block. */
void walker__lose_behind(struct walker *w, enum gap_reason reason, uint64_t tsc);
/* Adds a gap after which the thread goes on where it is, with the same calls pending. */
void walker__break(struct walker *w, enum gap_reason reason);
/*
 * Decodes the block, whose end was not mapped, again if code has been added since. True if it did.
 */
bool walker__renew(struct walker *w);
/* Begins a gap because the end of the block contradicts the packets, or is unknown. */
void walker__cannot(struct walker *w);
/* True, and a gap, if the thread at ip runs in a mode that is not decoded (MODE.Exec). */
bool walker__lose_mode(struct walker *w, uint64_t ip);
/*
 * Call this when a packet shows that the thread runs: makes WALK_START WALK_ON, and begins a gap
 * after WALK_OFF. False: it is unknown where the thread is.
 */
bool walker__wake(struct walker *w);

/* True after bad bytes, until a packet fits the code: what looks like a packet may be garbage. */
static inline bool walker__doubts(const struct walker *w)
{
	return !w->knows_ip;
}

/* n bits, the oldest in bit 63. */
void walker__on_tnt(struct walker *w, uint64_t bits, unsigned int n);
void walker__on_tip(struct walker *w, unsigned int ip_bytes, uint64_t ip);
/* The stream ends within a TIP, which still tells that the thread came to an indirect branch. */
void walker__on_cut_tip(struct walker *w);

/* The longest packet that walker__on_branches() reads without checking for the end. */
#define MAX_TIP 9

/*
 * Handles a short TNT or a TIP at `at`, and returns the address of the next packet. NULL: it is
 * another packet.
 */
static inline const uint8_t *walker__on_branches(struct walker *w, const uint8_t *at)
{
	uint8_t byte = *at;
	unsigned int n, ip_bytes = byte >> 5;
	uint64_t value;

	if (packet__is_short_tnt(byte)) {
		value = packet__short_tnt(byte, &n);
		w->next = at + 1;
		walker__on_tnt(w, value, n);
		return at + 1;
	}
	if ((byte & 0x1f) != 0x0d || w->reader.end - at < MAX_TIP ||
	    packet__ip_size(ip_bytes) - 1 >= 8)
		return NULL;
	memcpy(&value, at + 1, sizeof(value));
	w->next = at + 1 + packet__ip_size(ip_bytes);
	walker__on_tip(w, ip_bytes, packet_reader__ip(&w->reader, ip_bytes, value));
	return at + 1 + packet__ip_size(ip_bytes);
}

/*
 * After a gap a packet tells an IP. True if the walk goes on there; after bad bytes it does so only
 * if the packets that follow fit the code.
 */
bool walker__resume(struct walker *w, unsigned int ip_bytes, uint64_t ip);
/*
 * The bytes before `at` do not form a packet. Returns the place nearby where packets begin that fit
 * the code as if the bytes had told of no branch, or NULL.
 */
const uint8_t *walker__step_over(const struct walker *w, const uint8_t *at);

#endif
