// SPDX-License-Identifier: MIT
#include "stack/switch_code.h"

#include "util/insn.h"
#include "util/insn_move.h"

/* They are short: a few registers, and in glibc the signal mask. */
#define MAX_SIZE 512

/*
 * Whether it can be there at all, without decoding: mov r/m64, %rsp (REX.W 8b /4), mov %r64, %rsp
 * (REX.W 89 /r to 4) and the same of xchg (87). Intel SDM vol. 2, "MOV", "XCHG".
 */
static bool may_load_sp(const uint8_t *code, size_t len)
{
	for (size_t i = 0; i + 2 < len; i++) {
		uint8_t rex = code[i], op = code[i + 1], modrm = code[i + 2];

		if ((rex & 0xf8) != 0x48)
			continue;
		if ((op == 0x8b || op == 0x87) && !(rex & 4) && (modrm & 0x38) == 0x20)
			return true;
		if ((op == 0x89 || op == 0x87) && !(rex & 1) && (modrm & 0xc7) == 0xc4)
			return true;
	}
	return false;
}

/*
 * pop slot(%r14), behind mov slot(%r14),%rsp: OCaml's innermost trap frame, which lies on the same
 * stack (amd64 emit, Lraise).
 */
static bool takes_trap(const struct insn_move *load, const struct insn_move *next)
{
	return load->kind == MOVE_LOAD && load->reg == INSN_RSP && load->base == INSN_R14 &&
	       next->kind == MOVE_POP_MEM && next->base == INSN_R14 && next->disp == load->disp;
}

/* From the load on nothing but a few moves comes before it goes to the other stack's code. */
static bool loads_sp_and_goes(const uint8_t *code, size_t len, uint64_t ip)
{
	struct insn_move before = {0}, move;
	struct insn insn;
	bool loaded = false;

	for (size_t at = 0; at < len; at += insn.len) {
		if (insn__decode(code + at, len - at, ip + at, &insn))
			return false;
		move = insn__move(code + at, insn.len, ip + at);
		if (takes_trap(&before, &move))
			loaded = false;
		before = move;
		if (insn.cls == INSN_OTHER)
			loaded |= insn__loads_sp(code + at, insn.len);
		else if (loaded && (insn.cls == INSN_RET || insn.cls == INSN_JUMP_INDIRECT))
			return true;
		else
			loaded = false;
	}
	return false;
}

bool switch_code__is_at(struct code_map *map, const struct code_place *place)
{
	uint8_t code[MAX_SIZE];
	size_t len = place->function->size;

	if (len > sizeof(code))
		return false;
	len = code_map__read(map, place->entry, code, len);
	return may_load_sp(code, len) && loads_sp_and_goes(code, len, place->entry);
}
