/* SPDX-License-Identifier: MIT */
/* What an instruction moves, for those who look for a compiler's idioms. Wraps Zydis. */
#ifndef MTBPF_UTIL_INSN_MOVE_H
#define MTBPF_UTIL_INSN_MOVE_H

#include <stddef.h>
#include <stdint.h>

/* Of 64 bits each, unless said otherwise. */
enum insn_move_kind {
	MOVE_OTHER,
	MOVE_ADDRESS,	 /* reg = address: lea address(%rip),reg; mov $address,reg */
	MOVE_REG,	 /* mov base,reg */
	MOVE_LOAD,	 /* mov disp(base),reg */
	MOVE_LOAD_ENTRY, /* movslq disp(base,index,4),reg: 32 bits */
	MOVE_STORE,	 /* mov reg,disp(base) */
	MOVE_ADD,	 /* add other,reg */
	MOVE_PUSH,	 /* push reg */
	MOVE_PUSH_MEM,	 /* push disp(base) */
	MOVE_POP,	 /* pop reg */
	MOVE_POP_MEM,	 /* pop disp(base) */
	MOVE_JUMP,	 /* jmp *reg */
};

/* General registers by the numbers that instructions have them by. */
#define INSN_RAX 0
#define INSN_RSP 4
#define INSN_R14 14

struct insn_move {
	uint8_t kind; /* enum insn_move_kind */
	uint8_t reg, base;
	int32_t disp;
	uint64_t address;
};

/* What the valid instruction at bytes[0..len), which lies at ip, moves. */
struct insn_move insn__move(const uint8_t *bytes, size_t len, uint64_t ip);

#endif
