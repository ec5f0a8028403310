// SPDX-License-Identifier: GPL-2.0-only
#include "softpt.h"

#include <linux/uaccess.h>

#define MAX_INSN_LEN 15

/* Prefixes in 64-bit mode: Intel SDM vol. 2, 2.1.1 and 2.2.1. */
static unsigned int count_prefixes(const u8 *code)
{
	unsigned int n = 0;

	while (n < MAX_INSN_LEN - 1) {
		switch (code[n]) {
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x40 ... 0x4f: /* REX */
		case 0x64 ... 0x67:
		case 0xf0:
		case 0xf2:
		case 0xf3:
			n++;
			continue;
		}
		break;
	}
	return n;
}

/* Of ModRM, SIB and displacement: Intel SDM vol. 2, tables 2-2 and 2-3. */
static unsigned int modrm_length(const u8 *modrm)
{
	unsigned int mod = modrm[0] >> 6, rm = modrm[0] & 7;
	unsigned int sib = mod != 3 && rm == 4;

	switch (mod) {
	case 0:
		if (rm == 5 || (sib && (modrm[1] & 7) == 5))
			return 1 + sib + 4;
		return 1 + sib;
	case 1:
		return 1 + sib + 1;
	case 2:
		return 1 + sib + 4;
	}
	return 1;
}

/* As the encodings of ModRM and SIB number them. */
static u64 read_register(const struct pt_regs *regs, unsigned int number)
{
	const unsigned long all[] = {regs->ax,	regs->cx,  regs->dx,  regs->bx,
				     regs->sp,	regs->bp,  regs->si,  regs->di,
				     regs->r8,	regs->r9,  regs->r10, regs->r11,
				     regs->r12, regs->r13, regs->r14, regs->r15};

	return all[number & 15];
}

/* Of a memory operand: Intel SDM vol. 2, tables 2-2 and 2-3. next: of the instruction behind it. */
static u64 address_of(const u8 *modrm, unsigned int rex, const struct pt_regs *regs, u64 next)
{
	unsigned int mod = modrm[0] >> 6, rm = modrm[0] & 7, base = rm, index = 4;
	const u8 *displacement = modrm + 1;
	u64 address = 0;
	s32 wide;

	if (rm == 4) {
		base = displacement[0] & 7;
		index = (displacement[0] >> 3 & 7) | (rex & 2) << 2;
		if (index != 4)
			address = read_register(regs, index) << (displacement[0] >> 6);
		displacement++;
	}
	memcpy(&wide, displacement, sizeof(wide));
	if (mod == 0 && base == 5)
		return address + wide + (rm == 4 ? 0 : next);
	address += read_register(regs, base | (rex & 1) << 3);
	return address + (mod == 1 ? (s8)*displacement : mod == 2 ? wide : 0);
}

/* F3 0F AE /4, with REX.W or without: Intel SDM vol. 2, "PTWRITE". */
bool softpt_branch__is_ptwrite(const u8 *code, const struct pt_regs *regs,
			       struct softpt_ptwrite *out)
{
	unsigned int n = count_prefixes(code), rex = 0, size;
	const u8 *modrm = code + n + 2;
	u64 address;

	if (code[0] != 0xf3 || n > 2 || code[n] != 0x0f || code[n + 1] != 0xae ||
	    (modrm[0] >> 3 & 7) != 4)
		return false;
	if (n == 2)
		rex = code[1] & 0x0f;
	if (n == 2 && (code[1] & 0xf0) != 0x40)
		return false;
	*out = (struct softpt_ptwrite){.is_wide = rex & 8, .len = n + 2 + modrm_length(modrm)};
	size = out->is_wide ? 8 : 4;
	if (modrm[0] >> 6 == 3) {
		u64 value = read_register(regs, (modrm[0] & 7) | (rex & 1) << 3);

		memcpy(&out->value, &value, size);
		return true;
	}
	address = address_of(modrm, rex, regs, regs->ip + out->len);
	return !copy_from_user_nofault(&out->value, (void __user *)address, size);
}

static bool encode_cond(struct pt_stream *stream, u64 next, s64 offset, u64 to)
{
	if (to != next && to != next + offset)
		return false;
	pt_stream__cond(stream, to != next, to);
	return true;
}

static s64 rel8(const u8 *code)
{
	return (s8)code[0];
}

static s64 rel32(const u8 *code)
{
	s32 offset;

	memcpy(&offset, code, sizeof(offset));
	return offset;
}

/* ff /n: Intel SDM vol. 2, table A-6, group 5. */
static bool encode_group5(struct pt_stream *stream, const u8 *modrm, u64 next, u64 to)
{
	switch (modrm[0] >> 3 & 7) {
	case 2:
		pt_stream__call_indirect(stream, next, to);
		return true;
	case 3:
	case 4:
	case 5:
		pt_stream__jump_indirect(stream, to);
		return true;
	}
	return to == next;
}

static bool encode_two_byte(struct pt_stream *stream, const u8 *code, u64 from, u64 at, u64 to)
{
	/* 66 does not shorten the offset on Intel's CPUs: SDM vol. 2, "Jcc". */
	if ((code[0] & 0xf0) == 0x80)
		return encode_cond(stream, at + 5, rel32(code + 1), to);
	/* A repeated string instruction stops on itself once an iteration. */
	return to - from <= MAX_INSN_LEN;
}

bool softpt_branch__encode(struct pt_stream *stream, const u8 *code, u64 from, u64 to)
{
	unsigned int n = count_prefixes(code);
	u64 at = from + n;

	code += n;
	switch (code[0]) {
	case 0x0f:
		return encode_two_byte(stream, code + 1, from, at + 1, to);
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3: /* loopne, loope, loop, jrcxz */
		return encode_cond(stream, at + 2, rel8(code + 1), to);
	case 0xe8:
		if (to != at + 5 + rel32(code + 1))
			return false;
		pt_stream__call(stream, at + 5, to);
		return true;
	case 0xe9:
		return to == at + 5 + rel32(code + 1);
	case 0xeb:
		return to == at + 2 + rel8(code + 1);
	case 0xc2:
	case 0xc3:
		pt_stream__ret(stream, to);
		return true;
	case 0xca:
	case 0xcb: /* far return */
	case 0xcf: /* iret */
		pt_stream__jump_indirect(stream, to);
		return true;
	case 0xff:
		return encode_group5(stream, code + 1, at + 1 + modrm_length(code + 1), to);
	}
	return to - from <= MAX_INSN_LEN;
}

bool softpt_branch__is_pushf(const u8 *code)
{
	return code[count_prefixes(code)] == 0x9c;
}
