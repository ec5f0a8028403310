// SPDX-License-Identifier: MIT
#include "util/insn_move.h"

#include <Zydis/Zydis.h>
#include <stdbool.h>

/* The operands that are written in the assembler's text: two at most. */
struct operands {
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand v[ZYDIS_MAX_OPERAND_COUNT];
	uint64_t ip;
};

static bool is_reg(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       ZydisRegisterGetClass(operand->reg.value) == ZYDIS_REGCLASS_GPR64;
}

/* disp(base), with nothing added to it. */
static bool is_mem(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->size == 64 &&
	       operand->mem.segment != ZYDIS_REGISTER_FS &&
	       operand->mem.segment != ZYDIS_REGISTER_GS &&
	       operand->mem.index == ZYDIS_REGISTER_NONE &&
	       ZydisRegisterGetClass(operand->mem.base) == ZYDIS_REGCLASS_GPR64;
}

static uint8_t number(ZydisRegister reg)
{
	return (uint8_t)ZydisRegisterGetId(reg);
}

static void set_mem(struct insn_move *move, const ZydisDecodedOperand *operand)
{
	move->base = number(operand->mem.base);
	move->disp = (int32_t)operand->mem.disp.value;
}

static void describe_mov(const struct operands *o, struct insn_move *move)
{
	const ZydisDecodedOperand *to = &o->v[0], *from = &o->v[1];

	if (is_reg(to) && is_reg(from)) {
		move->kind = MOVE_REG;
		move->reg = number(to->reg.value);
		move->base = number(from->reg.value);
	} else if (is_reg(to) && is_mem(from)) {
		move->kind = MOVE_LOAD;
		move->reg = number(to->reg.value);
		set_mem(move, from);
	} else if (is_mem(to) && is_reg(from)) {
		move->kind = MOVE_STORE;
		move->reg = number(from->reg.value);
		set_mem(move, to);
	} else if (is_reg(to) && from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		move->kind = MOVE_ADDRESS;
		move->reg = number(to->reg.value);
		move->address = from->imm.value.u;
	}
}

static void describe_lea(const struct operands *o, struct insn_move *move)
{
	const ZydisDecodedOperand *to = &o->v[0], *from = &o->v[1];

	if (!is_reg(to) || from->mem.base != ZYDIS_REGISTER_RIP)
		return;
	move->kind = MOVE_ADDRESS;
	move->reg = number(to->reg.value);
	move->address = o->ip + o->insn.length + (uint64_t)from->mem.disp.value;
}

static void describe_movsxd(const struct operands *o, struct insn_move *move)
{
	const ZydisDecodedOperand *to = &o->v[0], *from = &o->v[1];

	if (!is_reg(to) || from->type != ZYDIS_OPERAND_TYPE_MEMORY || from->mem.scale != 4 ||
	    ZydisRegisterGetClass(from->mem.base) != ZYDIS_REGCLASS_GPR64)
		return;
	move->kind = MOVE_LOAD_ENTRY;
	move->reg = number(to->reg.value);
	set_mem(move, from);
}

/* push and pop. */
static void describe_one(const ZydisDecodedOperand *operand, uint8_t reg_kind, uint8_t mem_kind,
			 struct insn_move *move)
{
	if (is_reg(operand)) {
		move->kind = reg_kind;
		move->reg = number(operand->reg.value);
	} else if (is_mem(operand)) {
		move->kind = mem_kind;
		set_mem(move, operand);
	}
}

struct insn_move insn__move(const uint8_t *bytes, size_t len, uint64_t ip)
{
	struct insn_move move = {.kind = MOVE_OTHER};
	struct operands o = {.ip = ip};
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, len, &o.insn, o.v)))
		return move;
	switch (o.insn.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		describe_mov(&o, &move);
		break;
	case ZYDIS_MNEMONIC_LEA:
		describe_lea(&o, &move);
		break;
	case ZYDIS_MNEMONIC_MOVSXD:
		describe_movsxd(&o, &move);
		break;
	case ZYDIS_MNEMONIC_ADD:
		describe_one(&o.v[0], MOVE_ADD, MOVE_OTHER, &move);
		break;
	case ZYDIS_MNEMONIC_PUSH:
		describe_one(&o.v[0], MOVE_PUSH, MOVE_PUSH_MEM, &move);
		break;
	case ZYDIS_MNEMONIC_POP:
		describe_one(&o.v[0], MOVE_POP, MOVE_POP_MEM, &move);
		break;
	case ZYDIS_MNEMONIC_JMP:
		describe_one(&o.v[0], MOVE_JUMP, MOVE_OTHER, &move);
		break;
	default:
		break;
	}
	return move;
}
