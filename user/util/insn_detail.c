// SPDX-License-Identifier: MIT
#include "util/insn.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdio.h>

/* With operands, unlike insn__decode(): for the few instructions that need a closer look. */
struct detail {
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

static int detail__decode(const uint8_t *bytes, size_t len, struct detail *detail)
{
	ZydisDecoder decoder;
	ZyanStatus status;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	status = ZydisDecoderDecodeFull(&decoder, bytes, len, &detail->insn, detail->operands);
	return ZYAN_SUCCESS(status) ? 0 : -EILSEQ;
}

int insn__mnemonic(const uint8_t *bytes, size_t len, char *buf, size_t size)
{
	struct detail detail;
	const char *name;

	if (detail__decode(bytes, len, &detail))
		return -EILSEQ;
	name = ZydisMnemonicGetString(detail.insn.mnemonic);
	snprintf(buf, size, "%s", name ? name : "?");
	return 0;
}

static bool writes_sp(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
	       ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operand->reg.value) ==
		       ZYDIS_REGISTER_RSP;
}

bool insn__changes_sp(const uint8_t *bytes, size_t len)
{
	struct detail detail;

	if (detail__decode(bytes, len, &detail))
		return true;
	/* Hidden operands too: that of a push, for one. */
	for (int i = 0; i < detail.insn.operand_count; i++)
		if (writes_sp(&detail.operands[i]))
			return true;
	return false;
}

static bool is_frame_register(ZydisRegister reg)
{
	return reg == ZYDIS_REGISTER_RSP || reg == ZYDIS_REGISTER_RBP;
}

bool insn__loads_sp(const uint8_t *bytes, size_t len)
{
	struct detail detail;
	const ZydisDecodedOperand *from = &detail.operands[1];

	if (detail__decode(bytes, len, &detail))
		return false;
	if (detail.insn.mnemonic != ZYDIS_MNEMONIC_MOV &&
	    detail.insn.mnemonic != ZYDIS_MNEMONIC_XCHG)
		return false;
	if (!writes_sp(&detail.operands[0])) {
		from = &detail.operands[0];
		if (!writes_sp(&detail.operands[1]))
			return false;
	}
	if (from->type == ZYDIS_OPERAND_TYPE_MEMORY)
		return !is_frame_register(from->mem.base);
	return from->type == ZYDIS_OPERAND_TYPE_REGISTER && !is_frame_register(from->reg.value);
}

static const ZydisDecodedOperand *indexed_operand(const struct detail *detail)
{
	for (int i = 0; i < detail->insn.operand_count_visible; i++)
		if (detail->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    detail->operands[i].mem.index != ZYDIS_REGISTER_NONE)
			return &detail->operands[i];
	return NULL;
}

bool insn__has_index(const uint8_t *bytes, size_t len)
{
	struct detail detail;

	return !detail__decode(bytes, len, &detail) && indexed_operand(&detail);
}

bool insn__loads_indexed(const uint8_t *bytes, size_t len)
{
	const ZydisDecodedOperand *operand;
	struct detail detail;

	if (detail__decode(bytes, len, &detail))
		return false;
	if (detail.insn.mnemonic != ZYDIS_MNEMONIC_MOV &&
	    detail.insn.mnemonic != ZYDIS_MNEMONIC_MOVSXD)
		return false;
	operand = indexed_operand(&detail);
	return operand && operand != &detail.operands[0] && operand->mem.scale >= 4;
}

uint8_t insn__condition(const uint8_t *bytes, size_t len)
{
	/* Prefixes: bnd; the hints 2e and 3e take no probe. */
	while (len && (*bytes == 0xf2 || *bytes == 0xf3)) {
		bytes++;
		len--;
	}
	if (len && bytes[0] >= 0x70 && bytes[0] <= 0x7f)
		return INSN_CONDITION | (bytes[0] & 15);
	if (len > 1 && bytes[0] == 0x0f && bytes[1] >= 0x80 && bytes[1] <= 0x8f)
		return INSN_CONDITION | (bytes[1] & 15);
	return 0;
}
