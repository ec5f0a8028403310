// SPDX-License-Identifier: MIT
#include "util/insn.h"

#include <stdio.h>
#include <Zydis/Zydis.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

static ZydisDecoder decoder;
static pthread_once_t decoder_once = PTHREAD_ONCE_INIT;

/* Minimal mode: no operands, which is where most of the time would go. Neither call can fail. */
static void init_decoder(void)
{
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
}

/* ff /n: Intel SDM vol. 2, table A-6, group 5. */
static enum insn_class class_of_group5(uint8_t reg)
{
	switch (reg) {
	case 2:
		return INSN_CALL_INDIRECT;
	case 4:
		return INSN_JUMP_INDIRECT;
	case 3:
	case 5:
		return INSN_FAR;
	default:
		return INSN_OTHER;
	}
}

/* Intel SDM vol. 2, table A-2. */
static enum insn_class class_of_one_byte(const ZydisDecodedInstruction *zydis)
{
	switch (zydis->opcode) {
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3: /* loopne, loope, loop, jrcxz */
		return INSN_COND;
	case 0xc2:
	case 0xc3:
		return INSN_RET;
	case 0xca:
	case 0xcb: /* far return */
	case 0xcf: /* iret */
		return INSN_FAR;
	case 0xcc:
		return INSN_INT3;
	case 0xcd:
	case 0xf1: /* int1: enters the kernel and comes back behind itself, as int n does */
		return INSN_SYSCALL;
	case 0xe8:
		return INSN_CALL;
	case 0xe9:
	case 0xeb:
		return INSN_JUMP;
	case 0xff:
		return class_of_group5(zydis->raw.modrm.reg);
	default:
		return INSN_OTHER;
	}
}

/* Of 0f 01, which is the opcode of several dozen. */
static bool is_far_mnemonic(ZydisMnemonic mnemonic)
{
	return mnemonic == ZYDIS_MNEMONIC_UIRET || mnemonic == ZYDIS_MNEMONIC_VMLAUNCH ||
	       mnemonic == ZYDIS_MNEMONIC_VMRESUME;
}

/* Intel SDM vol. 2, table A-3. */
static enum insn_class class_of_two_byte(const ZydisDecodedInstruction *zydis)
{
	switch (zydis->opcode) {
	case 0x05: /* syscall */
	case 0x34: /* sysenter */
		return INSN_SYSCALL;
	case 0x07: /* sysret */
	case 0x35: /* sysexit */
		return INSN_FAR;
	case 0x80 ... 0x8f:
		return INSN_COND;
	default:
		return is_far_mnemonic(zydis->mnemonic) ? INSN_FAR : INSN_OTHER;
	}
}

static enum insn_class class_of(const ZydisDecodedInstruction *zydis)
{
	if (zydis->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT)
		return class_of_one_byte(zydis);
	if (zydis->opcode_map == ZYDIS_OPCODE_MAP_0F)
		return class_of_two_byte(zydis);
	return INSN_OTHER;
}

/* 50+r. With an operand-size prefix it pushes 16 bits. */
static bool is_push_reg(const ZydisDecodedInstruction *zydis)
{
	return zydis->mnemonic == ZYDIS_MNEMONIC_PUSH &&
	       zydis->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (zydis->opcode & 0xf8) == 0x50 &&
	       zydis->operand_width == 64;
}

static void set_nop(const ZydisDecodedInstruction *zydis, struct insn *out)
{
	/* The mnemonic tells 90 from pause (f3 90) and xchg %r8,%rax (49 90). */
	if (zydis->mnemonic != ZYDIS_MNEMONIC_NOP)
		return;
	out->is_nop1 = zydis->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && zydis->opcode == 0x90;
	out->is_multi_byte_nop = zydis->opcode_map == ZYDIS_OPCODE_MAP_0F &&
				 zydis->opcode == 0x1f && zydis->raw.modrm.reg == 0;
}

int insn__decode(const uint8_t *bytes, size_t len, uint64_t ip, struct insn *out)
{
	ZydisDecodedInstruction zydis;
	ZyanStatus status;

	if (!len)
		return -ENODATA;
	pthread_once(&decoder_once, init_decoder);
	status = ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, len, &zydis);
	if (status == ZYDIS_STATUS_NO_MORE_DATA)
		return -ENODATA;
	if (!ZYAN_SUCCESS(status))
		return -EILSEQ;
	*out = (struct insn){
		.len = zydis.length,
		.cls = class_of(&zydis),
		.is_endbr = zydis.mnemonic == ZYDIS_MNEMONIC_ENDBR64 ||
			    zydis.mnemonic == ZYDIS_MNEMONIC_ENDBR32,
		.is_push_reg = is_push_reg(&zydis),
	};
	set_nop(&zydis, out);
	if (out->cls == INSN_CALL || out->cls == INSN_JUMP || out->cls == INSN_COND)
		out->target = ip + zydis.length + zydis.raw.imm[0].value.u;
	return 0;
}

bool insn__jumps_to_popped(const uint8_t code[static JUMP_TO_POPPED_LEN])
{
	uint8_t reg = code[1] & 7;

	return code[0] == 0x41 && code[1] == (0x58 | reg) && code[2] == 0x41 && code[3] == 0xff &&
	       code[4] == (0xe0 | reg);
}

bool insn__is_restorer(const uint8_t code[static RESTORER_MAX_LEN])
{
	static const uint8_t with_rax[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t with_eax[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};

	return !memcmp(code, with_rax, sizeof(with_rax)) ||
	       !memcmp(code, with_eax, sizeof(with_eax));
}

void insn__library_version(char *text, size_t size)
{
	ZyanU64 version = ZydisGetVersion();

	snprintf(text, size, "%u.%u.%u", (unsigned int)ZYDIS_VERSION_MAJOR(version),
		 (unsigned int)ZYDIS_VERSION_MINOR(version),
		 (unsigned int)ZYDIS_VERSION_PATCH(version));
}
