// SPDX-License-Identifier: MIT
#include "block.h"

/* "ret imm16": the opcode behind prefixes that do nothing, then 16 bits. */
static uint16_t popped_by(const uint8_t *code, size_t len)
{
	if (len < 3 || code[len - 3] != 0xc2)
		return 0;
	return (uint16_t)(code[len - 2] | code[len - 1] << 8);
}

int block__init(struct block *b, uint64_t start, uint64_t last, const uint8_t *code, size_t len,
		uint32_t count)
{
	struct insn insn = {0};
	int err = insn__decode(code, len, last, &insn);

	*b = (struct block){
		.start = start,
		.last = last,
		.end = last + len,
		.target = insn.target,
		.count = count,
		.cls = insn.cls,
	};
	if (insn.cls == INSN_RET)
		b->popped = popped_by(code, len);
	return err;
}
