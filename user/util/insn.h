/* SPDX-License-Identifier: MIT */
/* One x86-64 instruction: its length, and what it does to the flow of control. Wraps Zydis. */
#ifndef MTBPF_UTIL_INSN_H
#define MTBPF_UTIL_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSN_MAX_LEN 15

enum insn_class {
	INSN_OTHER,	    /* the instruction after it is next */
	INSN_CALL,	    /* direct near call */
	INSN_CALL_INDIRECT, /* near call through a register or memory */
	INSN_RET,	    /* near return */
	INSN_JUMP,	    /* direct unconditional jump */
	INSN_JUMP_INDIRECT, /* unconditional jump through a register or memory */
	INSN_COND,	    /* jcc, loop, jrcxz */
	INSN_SYSCALL,	    /* syscall, sysenter, int n */
	INSN_INT3,
	INSN_FAR, /* iret, sysret, far call, far jump, far return */
};

struct insn {
	uint8_t len;
	uint8_t cls;		/* enum insn_class */
	uint64_t target;	/* of a direct call, jump or cond; else 0 */
	bool is_endbr;		/* endbr64, endbr32 */
	bool is_push_reg;	/* push of a 64-bit register */
	bool is_nop1;		/* 0x90, with or without legacy prefixes */
	bool is_multi_byte_nop; /* 0f 1f /0 */
};

/*
 * Decodes the instruction at bytes[0..len), at address ip in 64-bit mode. Returns 0, -EILSEQ if it
 * is invalid, or -ENODATA if it is longer than len.
 */
int insn__decode(const uint8_t *bytes, size_t len, uint64_t ip, struct insn *out);

/*
 * True if the code, which begins JUMP_TO_POPPED_BEFORE bytes before a jump, is "pop %r; jmp *%r"
 * with a register from %r8 on: OCaml's way to raise an exception.
 */
#define JUMP_TO_POPPED_BEFORE 2
#define JUMP_TO_POPPED_LEN    5
bool insn__jumps_to_popped(const uint8_t code[static JUMP_TO_POPPED_LEN]);

/*
 * True for "mov $15, %rax; syscall", or with %eax: rt_sigreturn. Every libc's restorer consists of
 * these instructions, and unwinders recognise it by them (gdb: amd64-linux-tdep.c).
 */
#define RESTORER_MAX_LEN 9
bool insn__is_restorer(const uint8_t code[static RESTORER_MAX_LEN]);

/* The mnemonic of the instruction at bytes[0..len), for messages: "push". 0 or -EILSEQ. */
int insn__mnemonic(const uint8_t *bytes, size_t len, char *buf, size_t size);

/* True if it writes the stack pointer, as push does, or if it is invalid. */
bool insn__changes_sp(const uint8_t *bytes, size_t len);

/*
 * The registers of integer arguments that it writes, or parts of which: bit i is the i-th of psABI
 * 3.2.3 (rdi, rsi, rdx, rcx, r8, r9). All of them if it is invalid.
 */
#define INSN_ARGUMENTS 6
uint8_t insn__changed_arguments(const uint8_t *bytes, size_t len);

/*
 * True if it sets the stack pointer from memory outside the frame, or from another register than
 * %rbp: mov, xchg.
 */
bool insn__loads_sp(const uint8_t *bytes, size_t len);

/*
 * For a conditional jump at bytes[0..len): INSN_CONDITION and the low four bits of its opcode; the
 * last bit negates (Intel SDM vol. 1, appendix B). 0 if it does not test the flags.
 */
#define INSN_CONDITION 0x10
uint8_t insn__condition(const uint8_t *bytes, size_t len);

/* True if its memory operand has an index register: then a jump goes through a table. */
bool insn__has_index(const uint8_t *bytes, size_t len);
/* True if it loads a register from memory with an index times 4 or 8: from a table. */
bool insn__loads_indexed(const uint8_t *bytes, size_t len);

/* The version that Zydis reports. */
void insn__library_version(char *text, size_t size);

/* The data that an instruction moves, for code that looks for a compiler's idioms. */

/* Operands have 64 bits unless noted. */
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

/* Numbers of general registers, as in the encoding of instructions. */
#define INSN_RAX 0
#define INSN_RSP 4
#define INSN_R14 14

struct insn_move {
	uint8_t kind; /* enum insn_move_kind */
	uint8_t reg, base;
	int32_t disp;
	uint64_t address;
};

/* Describes the move of the valid instruction at bytes[0..len), at address ip. */
struct insn_move insn__move(const uint8_t *bytes, size_t len, uint64_t ip);

#endif
