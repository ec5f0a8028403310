/* SPDX-License-Identifier: MIT */
/*
 * One region of a stream to branches: from one PSB to another. What comes out depends on nothing
 * before the first PSB, so that regions may be decoded in any order, and joined (join.h).
 */
#ifndef MTBPF_DECODE_WALK_WALK_H
#define MTBPF_DECODE_WALK_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/recording/recording.h"
#include "decode/branch.h"
#include "decode/decode.h"
#include "decode/errata.h"
#include "decode/packet.h"
#include "decode/pt_time.h"
#include "decode/space.h"
#include "decode/switches.h"

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

/* SDM "Indirect Transfer Compression for Returns". */
#define RETURN_DEPTH 64

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
	bool is_trial;	    /* walk_trial.c */
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
	/* Calls whose return may be compressed, a ring: from floor to top, RETURN_DEPTH at most. */
	unsigned int floor, top;
	unsigned int stale; /* from here to the floor: of before a gap, and in doubt */
	struct block_site *returns[RETURN_DEPTH];
	uint64_t ret_ips[RETURN_DEPTH];	      /* theirs */
	struct block_site kept[RETURN_DEPTH]; /* of blocks that are gone */
};

/*
 * The stream's bytes and the outbox stay the caller's. It takes the space it needs from the
 * request's images, and puts it back. 0 or -ENOMEM; walker__fini() only after 0.
 */
int walker__init(struct walker *w, const struct decode_request *request, struct outbox *out);
void walker__fini(struct walker *w);

/*
 * From the PSB at `from` to the PSB at `to`, or to the end of the bytes. 0, or what stopped it.
 */
int walker__run(struct walker *w, const uint8_t *from, const uint8_t *to);

#endif
