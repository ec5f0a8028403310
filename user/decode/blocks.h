/* SPDX-License-Identifier: MIT */
/*
 * Decoded code of one address space. A block extends from one instruction to the first whose
 * outcome only a packet tells; direct jumps and calls are followed, so that a block continues
 * through them. Each block is decoded once, and its successors are linked to it when they are first
 * taken.
 */
#ifndef MTBPF_DECODE_BLOCKS_H
#define MTBPF_DECODE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/code_map.h"

/* Memory that is freed all at once; zero-initialise. */
struct arena {
	struct arena_chunk *last;
	unsigned int n_chunks;
};

/*
 * Allocates `size` bytes, rounded up to a multiple of `align`: a power of two, 64 at most, and the
 * same in all calls for an arena. The size is 64 KiB at most. NULL: out of memory.
 */
void *arena__alloc(struct arena *arena, size_t size, size_t align);
void arena__free(struct arena *arena);

enum block_end {
	BLOCK_COND,
	BLOCK_RETURN,
	BLOCK_CALL,	/* indirect */
	BLOCK_JUMP,	/* indirect */
	BLOCK_FAR,	/* syscall, int n, iret, ...: see enum block_flags */
	BLOCK_GOES_ON,	/* no branch: the block reached its maximum length */
	BLOCK_UNMAPPED, /* no code is known at last_ip */
	BLOCK_NO_CODE,	/* the bytes at last_ip are not a valid instruction */
};

enum block_flags {
	BLOCK_TELLS_TAKEN = 1 << 0, /* COND: if the jump is taken, it is handed on as a branch */
	BLOCK_TELLS_JUMP = 1 << 1,  /* JUMP: the jump is handed on, whatever its target */
	BLOCK_ENTERS = 1 << 2,	    /* FAR: into the kernel */
	BLOCK_TRAPS = 1 << 3,	    /* FAR: int3, which debuggers insert and remove */
	BLOCK_RESTORES = 1 << 4,    /* FAR: may continue anywhere, as iret and rt_sigreturn do */
};

/* Instructions in the low half, taken near branches in the high half: one addition adds both. */
typedef uint64_t block_counts;
#define BLOCK_TAKEN (1ull << 32)

/* A return address. */
struct block_site {
	uint64_t ret_ip;
	struct block *after; /* the block at ret_ip; NULL until it is looked up */
};

/* A direct branch within a block that is handed on. */
struct block_step {
	uint64_t from, to;
	block_counts counts; /* since the step before, this one included */
	struct block_site site;
	uint8_t kind; /* enum branch_kind */
	uint8_t len;
	bool pushes; /* it is a call, whose return may be compressed */
};

struct block {
	block_counts counts;   /* after the last step, the last instruction included */
	struct block *next[2]; /* COND: [0] not taken, [1] taken; else [0]; NULL until looked up */
	uint8_t end;	       /* enum block_end */
	uint8_t flags;
	uint8_t last_len; /* of the last instruction; 0 if no instruction ends it */
	uint8_t n_steps;
	uint16_t n_before; /* instructions before the one that ends it */
	uint64_t ip;
	const struct function *function;     /* at ip */
	const struct function *end_function; /* at last_ip */
	struct block_step *steps;
	struct block_site site; /* of a BLOCK_CALL: its return address */
	uint64_t last_ip;	/* of the last instruction */
	uint64_t target;	/* of a BLOCK_COND: where the jump goes if taken */
	/*
	 * The target function of the last branch that is handed on: where the receiver of the
	 * branches takes the thread to be after this block.
	 */
	const struct function *known_function;
	uint64_t stamp; /* blocks.stamp when it was built */
};

struct blocks;

/*
 * tell_all: branches within a function are handed on as well. The map stays the caller's. NULL: out
 * of memory.
 */
struct blocks *blocks__new(struct code_map *map, bool tell_all);
void blocks__free(struct blocks *blocks);

/* Call this after code was added to the map, if existing code is unchanged. */
void blocks__code_added(struct blocks *blocks);
/* Call this after code of the map was replaced: frees all blocks. */
void blocks__clear(struct blocks *blocks);

/* The block at ip; NULL: out of memory. */
struct block *blocks__find(struct blocks *blocks, uint64_t ip);
/*
 * Returns next[which], looked up at the first call: the block to which the condition leads, or that
 * follows. NULL: out of memory.
 */
struct block *blocks__link(struct blocks *blocks, struct block *block, unsigned int which);
/*
 * Decodes again a block that ended because code was missing, if code has been added since. 0 or
 * -ENOMEM.
 */
int blocks__renew(struct blocks *blocks, struct block *block);

/* The executed part of a block. */
struct block_reach {
	unsigned int n_steps; /* steps that happened */
	block_counts counts;  /* since the last of them */
	uint64_t from;	      /* the last instruction that ran */
	uint8_t len;
};

/* *reach: the part before the instruction at ip. False: ip is not in the block. */
bool blocks__reach(struct blocks *blocks, const struct block *block, uint64_t ip,
		   struct block_reach *reach);
/*
 * *reach: the part up to and including the first direct branch to ip, which does not count as a
 * step. False: there is no such branch.
 */
bool blocks__reach_branch_to(struct blocks *blocks, const struct block *block, uint64_t ip,
			     struct block_reach *reach);
/* *reach: the part up to and including the direct branch. False unless there is exactly one. */
bool blocks__reach_only_branch(struct blocks *blocks, const struct block *block,
			       struct block_reach *reach);

#endif
