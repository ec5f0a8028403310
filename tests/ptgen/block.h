/* SPDX-License-Identifier: MIT */
/* A translated block: what its last instruction does to the flow of control. */
#ifndef MTBPF_TESTS_PTGEN_BLOCK_H
#define MTBPF_TESTS_PTGEN_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/insn.h"

struct block {
	uint64_t start;	 /* of the first instruction */
	uint64_t last;	 /* of the last one */
	uint64_t end;	 /* behind it */
	uint64_t target; /* of a direct branch */
	uint32_t count;	 /* instructions */
	uint16_t popped; /* by a return, besides its address */
	uint8_t cls;	 /* enum insn_class of the last instruction */
	/* A signal handler may begin here; set also when the block is there already. */
	volatile bool is_handler;
	struct block *next; /* of all blocks */
};

/*
 * Fills start .. cls of a block of `count` instructions from `start` whose last is the one at
 * code[0..len), address `last`. 0, or -errno as insn__decode(); then cls is INSN_OTHER.
 */
int block__init(struct block *b, uint64_t start, uint64_t last, const uint8_t *code, size_t len,
		uint32_t count);

#endif
