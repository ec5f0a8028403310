// SPDX-License-Identifier: MIT
#include "util/insn.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "util/vec.h"

static ZydisDecoder lengths_decoder;
static pthread_once_t decoder_once = PTHREAD_ONCE_INIT;

/*
 * Minimal mode does not decode operands, which would take most of the time. Neither call can fail.
 */
static void init_decoder(void)
{
	ZydisDecoderInit(&lengths_decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(&lengths_decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
}

/* By the opcode; `reg` is ModR/M's. */
static enum insn_class class_of_opcode(bool is_two_byte, uint8_t op, uint8_t reg)
{
	/* Intel SDM vol. 2, table A-3; tables A-2 and A-6 (group 5) for opcodes of one byte. */
	if (is_two_byte) {
		switch (op) {
		case 0x05: /* syscall */
		case 0x34: /* sysenter */
			return INSN_SYSCALL;
		case 0x07: /* sysret */
		case 0x35: /* sysexit */
			return INSN_FAR;
		case 0x80 ... 0x8f:
			return INSN_COND;
		default:
			return INSN_OTHER;
		}
	}
	switch (op) {
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
	case 0xf1: /* int1: enters the kernel and returns to the next instruction, as int n does */
		return INSN_SYSCALL;
	case 0xe8:
		return INSN_CALL;
	case 0xe9:
	case 0xeb:
		return INSN_JUMP;
	case 0xff:
		return reg == 2		      ? INSN_CALL_INDIRECT
		       : reg == 4	      ? INSN_JUMP_INDIRECT
		       : reg == 3 || reg == 5 ? INSN_FAR
					      : INSN_OTHER;
	default:
		return INSN_OTHER;
	}
}

/*
 * Most compiled instructions are of a few kinds, whose length tables give: Intel SDM vol. 2, 2.1
 * (prefixes, ModR/M, SIB) and tables A-2 and A-3 (opcodes). Zydis decodes the rest, and everything
 * that might be invalid.
 */
enum form {
	KNOWN = 1 << 0,
	MODRM = 1 << 1,
	IMM_8 = 1 << 2,
	IMM_Z = 1 << 3,	 /* 2 bytes with the prefix 66, else 4 */
	IMM_V = 1 << 4,	 /* as IMM_Z, but 8 with REX.W */
	BRANCH = 1 << 5, /* relative, by an immediate; with prefixes, Zydis decodes it */
	GROUP = 1 << 6,	 /* ModR/M.reg is a part of the opcode: some of its values are invalid */
	BY_66 = 1 << 7,
	BY_F3 = 1 << 8,
	BY_F2 = 1 << 9,
};

#define M  (KNOWN | MODRM | BY_66)
#define M8 (M | IMM_8)
#define MZ (M | IMM_Z)
#define G  (M | GROUP)
#define G8 (M8 | GROUP)
#define N0 (KNOWN | MODRM) /* no prefix */
#define PA (M | BY_F3 | BY_F2)
#define PF (M | BY_F3)

/* clang-format off */
#define ALU(op) [op] = M, [op + 1] = M, [op + 2] = M, [op + 3] = M, \
	[op + 4] = KNOWN | IMM_8, [op + 5] = KNOWN | IMM_Z | BY_66

static const uint16_t one_byte[256] = {
	ALU(0x00), ALU(0x08), ALU(0x10), ALU(0x18), ALU(0x20), ALU(0x28), ALU(0x30), ALU(0x38),
	[0x50 ... 0x5f] = KNOWN, /* push, pop */
	[0x63] = M, [0x68] = KNOWN | IMM_Z, [0x69] = MZ, [0x6a] = KNOWN | IMM_8, [0x6b] = M8,
	[0x70 ... 0x7f] = KNOWN | IMM_8 | BRANCH,
	[0x80] = M8, [0x81] = MZ, [0x83] = M8, [0x84 ... 0x8b] = M, [0x8d] = G,
	[0x98] = KNOWN | BY_66, [0x99] = KNOWN | BY_66, [0xa8] = KNOWN | IMM_8,
	[0xa9] = KNOWN | IMM_Z | BY_66, [0xb0 ... 0xb7] = KNOWN | IMM_8,
	[0xb8 ... 0xbf] = KNOWN | IMM_V | BY_66, [0xc0] = G8, [0xc1] = G8, [0xc3] = KNOWN,
	[0xc6] = G8, [0xc7] = MZ | GROUP, [0xc9] = KNOWN, [0xd0 ... 0xd3] = G,
	[0xe8] = KNOWN | IMM_Z | BRANCH, [0xe9] = KNOWN | IMM_Z | BRANCH,
	[0xeb] = KNOWN | IMM_8 | BRANCH, [0xf6] = G, [0xf7] = G, [0xfe] = G, [0xff] = G,
};

/* Opcodes after 0f. */
static const uint16_t two_byte[256] = {
	[0x10] = PA, [0x11] = PA, [0x14] = M, [0x15] = M, [0x1f] = G, [0x28] = M, [0x29] = M,
	[0x2a] = PA, [0x2c] = PA, [0x2d] = PA, [0x2e] = M, [0x2f] = M, [0x40 ... 0x4f] = M, [0x51] = PA, [0x54 ... 0x57] = M,
	[0x58 ... 0x5a] = PA, [0x5b] = PF, [0x5c ... 0x5f] = PA, [0x60 ... 0x6b] = M,
	[0x6e] = M, [0x6f] = PF, [0x70] = PA | IMM_8, [0x74 ... 0x76] = M, [0x7e] = PF, [0x7f] = PF,
	[0x80 ... 0x8f] = KNOWN | IMM_Z | BRANCH, [0x90 ... 0x9f] = N0,
	[0xa3] = M, [0xa4] = M8, [0xa5] = M, [0xab] = M, [0xac] = M8, [0xad] = M, [0xaf] = M,
	[0xb0] = M, [0xb1] = M, [0xb3] = M, [0xb6] = M, [0xb7] = M, [0xba] = G8, [0xbb] = M,
	[0xbc] = PF, [0xbd] = PF, [0xbe] = M, [0xbf] = M, [0xc0] = M, [0xc1] = M, [0xc6] = M8,
	[0xc8 ... 0xcf] = KNOWN, [0xd1 ... 0xd5] = M, [0xd8 ... 0xdf] = M, [0xe0 ... 0xe5] = M,
	[0xe8 ... 0xef] = M, [0xf1 ... 0xf6] = M, [0xf8 ... 0xfe] = M,
};
/* clang-format on */

struct prefixes {
	uint8_t n; /* bytes, REX included */
	uint8_t rex;
	uint16_t forms; /* BY_66, BY_F3, BY_F2 */
	bool has_segment;
};

/* Reads the prefixes up to REX, which is the last one. False if there are five or more others. */
static bool read_prefixes(const uint8_t *at, struct prefixes *p)
{
	*p = (struct prefixes){0};
	for (; p->n < 5; p->n++) {
		switch (at[p->n]) {
		case 0x66:
			p->forms |= BY_66;
			break;
		case 0xf2:
			p->forms |= BY_F2;
			break;
		case 0xf3:
			p->forms |= BY_F3;
			break;
		case 0x2e:
		case 0x3e:
		case 0x64:
		case 0x65:
			p->has_segment = true;
			break;
		case 0x40 ... 0x4f:
			p->rex = at[p->n++];
			return true;
		default:
			return true;
		}
	}
	return false;
}

/* Size of ModR/M with SIB and displacement. */
static unsigned int modrm_size(const uint8_t *at)
{
	uint8_t mod = at[0] >> 6, rm = at[0] & 7;
	unsigned int size = 1;

	if (mod == 3)
		return size;
	if (rm == 4) {
		size++;
		rm = at[1] & 7; /* the base; 5 means the same as rm 5 without SIB */
	}
	if (mod == 1)
		return size + 1;
	return mod == 2 || rm == 5 ? size + 4 : size;
}

/* True if ModR/M's reg is valid for the opcode. Adds to *form the immediate that it implies. */
static bool has_group(bool is_two_byte, uint8_t op, uint8_t modrm, uint16_t *form)
{
	uint8_t reg = modrm >> 3 & 7;

	if (is_two_byte)
		return op == 0x1f ? !reg : reg >= 4;
	switch (op) {
	case 0x8d:
		return modrm < 0xc0;
	case 0xc6:
	case 0xc7:
		return !reg;
	case 0xf6:
	case 0xf7:
		if (!reg)
			*form |= op == 0xf6 ? IMM_8 : IMM_Z;
		return reg != 1;
	case 0xfe:
		return reg < 2;
	case 0xff:
		return reg < 3 || reg == 4 || reg == 6;
	default:
		return reg != 6;
	}
}

static unsigned int immediate_size(const struct prefixes *p, uint16_t form)
{
	bool is_wide = p->rex & 8;

	if (form & IMM_8)
		return 1;
	if (form & IMM_V && is_wide)
		return 8;
	if (form & (IMM_V | IMM_Z))
		return p->forms & BY_66 && !is_wide ? 2 : 4;
	return 0;
}

static uint64_t relative(const uint8_t *end, unsigned int size)
{
	int32_t offset;

	if (size == 1)
		return (uint64_t)(int8_t)end[-1];
	memcpy(&offset, end - sizeof(offset), sizeof(offset));
	return (uint64_t)offset;
}

/* Decodes from INSN_MAX_LEN readable bytes. False for instructions that are not in the tables. */
static bool decode_common(const uint8_t *bytes, uint64_t ip, struct insn *out)
{
	bool is_two_byte;
	struct prefixes p;
	const uint8_t *at;
	uint16_t form, prefixes;
	unsigned int size;
	uint8_t op, modrm;

	if (!read_prefixes(bytes, &p))
		return false;
	at = bytes + p.n;
	is_two_byte = *at == 0x0f;
	at += is_two_byte;
	op = *at++;
	modrm = *at;
	form = is_two_byte ? two_byte[op] : one_byte[op];
	prefixes = p.forms;
	if (!(form & KNOWN) || prefixes & ~form || (prefixes & BY_F3 && prefixes & BY_F2) ||
	    (p.has_segment && !(form & MODRM)) || (form & BRANCH && p.n) ||
	    (form & GROUP && !has_group(is_two_byte, op, modrm, &form)))
		return false;
	size = immediate_size(&p, form);
	at += (form & MODRM ? modrm_size(at) : 0) + size;
	*out = (struct insn){
		.len = (uint8_t)(at - bytes),
		.cls = class_of_opcode(is_two_byte, op, modrm >> 3 & 7),
		.target = form & BRANCH ? ip + (uint64_t)(at - bytes) + relative(at, size) : 0,
		.is_push_reg = !is_two_byte && (op & 0xf8) == 0x50,
		.is_multi_byte_nop = is_two_byte && op == 0x1f,
	};
	return out->len <= INSN_MAX_LEN;
}

int insn__decode(const uint8_t *bytes, size_t len, uint64_t ip, struct insn *out)
{
	ZydisDecodedInstruction zydis;
	bool is_one_byte, is_two_byte;
	ZyanStatus status;

	if (!len)
		return -ENODATA;
	if (len >= INSN_MAX_LEN && decode_common(bytes, ip, out))
		return 0;
	pthread_once(&decoder_once, init_decoder);
	status = ZydisDecoderDecodeInstruction(&lengths_decoder, NULL, bytes, len, &zydis);
	if (status == ZYDIS_STATUS_NO_MORE_DATA)
		return -ENODATA;
	if (!ZYAN_SUCCESS(status))
		return -EILSEQ;
	is_one_byte = zydis.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;
	is_two_byte = zydis.opcode_map == ZYDIS_OPCODE_MAP_0F;
	*out = (struct insn){
		.len = zydis.length,
		.cls = INSN_OTHER,
		.is_endbr = zydis.mnemonic == ZYDIS_MNEMONIC_ENDBR64 ||
			    zydis.mnemonic == ZYDIS_MNEMONIC_ENDBR32,
		/* 50+r. With an operand-size prefix it pushes 16 bits. */
		.is_push_reg = zydis.mnemonic == ZYDIS_MNEMONIC_PUSH && is_one_byte &&
			       (zydis.opcode & 0xf8) == 0x50 && zydis.operand_width == 64,
		/* The mnemonic tells 90 from pause (f3 90) and xchg %r8,%rax (49 90). */
		.is_nop1 =
			zydis.mnemonic == ZYDIS_MNEMONIC_NOP && is_one_byte && zydis.opcode == 0x90,
		.is_multi_byte_nop = zydis.mnemonic == ZYDIS_MNEMONIC_NOP && is_two_byte &&
				     zydis.opcode == 0x1f && zydis.raw.modrm.reg == 0,
	};
	if (is_one_byte || is_two_byte)
		out->cls = class_of_opcode(is_two_byte, zydis.opcode, zydis.raw.modrm.reg);
	/* Dozens of instructions share the opcode 0f 01. */
	if (is_two_byte &&
	    (zydis.mnemonic == ZYDIS_MNEMONIC_UIRET || zydis.mnemonic == ZYDIS_MNEMONIC_VMLAUNCH ||
	     zydis.mnemonic == ZYDIS_MNEMONIC_VMRESUME))
		out->cls = INSN_FAR;
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

/* The general register, whole, that the operand writes or may write; ZYDIS_REGISTER_NONE: none. */
static ZydisRegister written_register(const ZydisDecodedOperand *operand)
{
	if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return ZYDIS_REGISTER_NONE;
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operand->reg.value);
}

static bool writes_sp(const ZydisDecodedOperand *operand)
{
	return written_register(operand) == ZYDIS_REGISTER_RSP;
}

bool insn__changes_sp(const uint8_t *bytes, size_t len)
{
	struct detail detail;

	/* Includes hidden operands, such as that of push. */
	return detail__decode(bytes, len, &detail) ||
	       FIND_IN(detail.operands, detail.insn.operand_count, operand, writes_sp(operand));
}

uint8_t insn__changed_arguments(const uint8_t *bytes, size_t len)
{
	static const ZydisRegister arguments[INSN_ARGUMENTS] = {
		ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDX,
		ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_R8,	ZYDIS_REGISTER_R9};
	struct detail detail;
	uint8_t changed = 0;

	if (detail__decode(bytes, len, &detail))
		return (1 << INSN_ARGUMENTS) - 1;
	for (int i = 0; i < detail.insn.operand_count; i++)
		for (int k = 0; k < INSN_ARGUMENTS; k++)
			if (written_register(&detail.operands[i]) == arguments[k])
				changed |= (uint8_t)(1 << k);
	return changed;
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
	return FIND_IN(detail->operands, detail->insn.operand_count_visible, operand,
		       operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
			       operand->mem.index != ZYDIS_REGISTER_NONE);
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
	/* Skips prefixes such as bnd. Jumps with the hints 2e and 3e cannot be probed. */
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

static uint8_t reg_number(ZydisRegister reg)
{
	return (uint8_t)ZydisRegisterGetId(reg);
}

static void set_mem(struct insn_move *move, const ZydisDecodedOperand *operand)
{
	move->base = reg_number(operand->mem.base);
	move->disp = (int32_t)operand->mem.disp.value;
}

static void describe_mov(const struct detail *o, struct insn_move *move)
{
	const ZydisDecodedOperand *to = &o->operands[0], *from = &o->operands[1];

	if (is_reg(to) && is_reg(from)) {
		move->kind = MOVE_REG;
		move->reg = reg_number(to->reg.value);
		move->base = reg_number(from->reg.value);
	} else if (is_reg(to) && is_mem(from)) {
		move->kind = MOVE_LOAD;
		move->reg = reg_number(to->reg.value);
		set_mem(move, from);
	} else if (is_mem(to) && is_reg(from)) {
		move->kind = MOVE_STORE;
		move->reg = reg_number(from->reg.value);
		set_mem(move, to);
	} else if (is_reg(to) && from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		move->kind = MOVE_ADDRESS;
		move->reg = reg_number(to->reg.value);
		move->address = from->imm.value.u;
	}
}

/* An instruction of one operand, or that changes its first one. */
static void describe_one(const ZydisDecodedOperand *operand, uint8_t reg_kind, uint8_t mem_kind,
			 struct insn_move *move)
{
	if (is_reg(operand)) {
		move->kind = reg_kind;
		move->reg = reg_number(operand->reg.value);
	} else if (is_mem(operand)) {
		move->kind = mem_kind;
		set_mem(move, operand);
	}
}

struct insn_move insn__move(const uint8_t *bytes, size_t len, uint64_t ip)
{
	struct insn_move move = {.kind = MOVE_OTHER};
	struct detail o;
	const ZydisDecodedOperand *to = &o.operands[0], *from = &o.operands[1];

	if (detail__decode(bytes, len, &o))
		return move;
	switch (o.insn.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		describe_mov(&o, &move);
		break;
	case ZYDIS_MNEMONIC_LEA:
		if (!is_reg(to) || from->mem.base != ZYDIS_REGISTER_RIP)
			break;
		move.kind = MOVE_ADDRESS;
		move.reg = reg_number(to->reg.value);
		move.address = ip + o.insn.length + (uint64_t)from->mem.disp.value;
		break;
	case ZYDIS_MNEMONIC_MOVSXD:
		if (!is_reg(to) || from->type != ZYDIS_OPERAND_TYPE_MEMORY ||
		    from->mem.scale != 4 ||
		    ZydisRegisterGetClass(from->mem.base) != ZYDIS_REGCLASS_GPR64)
			break;
		move.kind = MOVE_LOAD_ENTRY;
		move.reg = reg_number(to->reg.value);
		set_mem(&move, from);
		break;
	case ZYDIS_MNEMONIC_ADD:
		describe_one(to, MOVE_ADD, MOVE_OTHER, &move);
		break;
	case ZYDIS_MNEMONIC_PUSH:
		describe_one(to, MOVE_PUSH, MOVE_PUSH_MEM, &move);
		break;
	case ZYDIS_MNEMONIC_POP:
		describe_one(to, MOVE_POP, MOVE_POP_MEM, &move);
		break;
	case ZYDIS_MNEMONIC_JMP:
		describe_one(to, MOVE_JUMP, MOVE_OTHER, &move);
		break;
	default:
		break;
	}
	return move;
}
