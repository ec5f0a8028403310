// SPDX-License-Identifier: MIT
/* The rows of .eh_frame say what libdw's expressions say; expressions; damaged sections. */
#include "unwind_fixture.h"

#include <dwarf.h>

#include "target/unwind/cfi.h"
#include "target/elf/elf_internal.h"

static bool read_nothing(void *ctx, uint64_t address, uint64_t *word)
{
	*word = ~address;
	return address != 0x666;
}

/* Every register is known, and each has another value. */
static struct cfi_frame made_frame(void)
{
	struct cfi_frame frame = {.known = (1u << CFI_REGISTERS) - 1, .read = read_nothing};

	for (int reg = 0; reg < CFI_REGISTERS; reg++)
		frame.registers[reg] = 0x7000000 + 0x10000 * (uint64_t)reg;
	return frame;
}

/* What the rule gives in that frame. */
static uint64_t by_rule(const struct cfi_rule *rule, int reg, uint64_t cfa)
{
	const struct cfi_frame frame = made_frame();
	uint64_t value = 0;

	switch ((enum cfi_kind)rule->kind) {
	case CFI_SAME:
		return frame.registers[reg];
	case CFI_AT_CFA:
		return ~(cfa + (uint64_t)rule->offset);
	case CFI_CFA_PLUS:
		return cfa + (uint64_t)rule->offset;
	case CFI_REGISTER_PLUS:
		return frame.registers[rule->other] + (uint64_t)rule->offset;
	case CFI_AT_EXPRESSION:
	case CFI_EXPRESSION:
		assert_true(cfi_expression__value(rule->ops, rule->n, &frame, &cfa, &value));
		return rule->kind == CFI_AT_EXPRESSION ? ~value : value;
	default:
		return 0;
	}
}

/* What libdw's expression gives there. */
static uint64_t by_expression(const Dwarf_Op *ops, size_t n, uint64_t cfa)
{
	const struct cfi_frame frame = made_frame();
	bool is_value = ops[n - 1].atom == DW_OP_stack_value;
	uint64_t value;

	if (ops[0].atom == DW_OP_regx)
		return frame.registers[ops[0].number];
	if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
		return frame.registers[ops[0].atom - DW_OP_reg0];
	assert_true(cfi_expression__value(ops, n - is_value, &frame, &cfa, &value));
	return is_value ? value : ~value;
}

static void compare_register(const struct cfi_row *row, Dwarf_Frame *frame, int reg, uint64_t cfa)
{
	Dwarf_Op memory[3], *ops;
	size_t n;

	assert_int_equal(dwarf_frame_register(frame, reg, memory, &ops, &n), 0);
	if (n)
		assert_true(by_rule(&row->registers[reg], reg, cfa) == by_expression(ops, n, cfa));
	else if (reg == CFI_RETURN)
		assert_int_equal(row->registers[reg].kind, CFI_UNDEFINED);
	else
		assert_int_equal(row->registers[reg].kind, CFI_SAME);
}

/* False where libdw has none for vaddr. */
static bool compare_row(struct elf_image *image, Dwarf_CFI *cfi, uint64_t vaddr)
{
	static const int kept[] = {CFI_RBX, CFI_RBP, CFI_R12,	CFI_R13,
				   CFI_R14, CFI_R15, CFI_RETURN};
	const struct cfi_frame made = made_frame();
	Dwarf_Addr start, end, cfa;
	Dwarf_Frame *frame;
	struct cfi_row row;
	bool is_signal;
	Dwarf_Op *ops;
	size_t n;

	if (dwarf_cfi_addrframe(cfi, vaddr, &frame))
		return false;
	assert_int_equal(dwarf_frame_info(frame, &start, &end, &is_signal), CFI_RETURN);
	assert_true(cfi__find(image, vaddr, &row));
	assert_int_equal(row.is_signal, is_signal);
	assert_int_equal(dwarf_frame_cfa(frame, &ops, &n), 0);
	assert_true(cfi_expression__value(ops, n, &made, NULL, &cfa));
	assert_true(by_rule(&row.cfa, CFI_RSP, 0) == cfa);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		compare_register(&row, frame, kept[i], cfa);
	free(frame);
	return true;
}

static size_t compare_image(struct elf_image *image)
{
	Dwarf_CFI *cfi = dwarf_getcfi_elf(image->elf);
	elf_frame_vec frames = {0};
	size_t compared = 0, n;

	if (!cfi)
		return 0;
	assert_int_equal(elf_image__load_frames(image, &frames), 0);
	n = frames.n;
	for (size_t i = 0; i < n; i++) {
		const struct elf_frame *f = &frames.v[i];
		uint64_t len = f->end - f->start;
		const uint64_t at[] = {0, 1, 4, 6, len / 3, len / 2, len - 1};

		for (size_t j = 0; j < sizeof(at) / sizeof(at[0]); j++)
			compared += at[j] < len && compare_row(image, cfi, f->start + at[j]);
	}
	VEC_FINI(&frames);
	dwarf_cfi_end(cfi);
	return compared;
}

static void test_rows_say_what_libdw_says(void **state)
{
	struct program_code code;
	size_t compared = 0;

	program_code__open(&code);
	for (size_t i = 0; i < code.n; i++)
		compared += compare_image(code.images[i]);
	program_code__close(&code);
	print_message("%zu rows, all as libdw has them\n", compared);
	assert_true(compared > 10000);
}

#define EXPRESSION(value, ...)                                                                     \
	{                                                                                          \
		(uint64_t)(value), sizeof((Dwarf_Op[]){__VA_ARGS__}) / sizeof(Dwarf_Op),           \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
/* An operation, with operands. */
#define OP2(op, a, b)                                                                              \
	{                                                                                          \
		.atom = (op), .number = (a), .number2 = (b)                                        \
	}
#define OP1(op, a) OP2(op, a, 0)
#define OP(op)	   OP2(op, 0, 0)
#define CFA	   OP(DW_OP_call_frame_cfa)

struct expression {
	uint64_t value; /* with a CFA of 1000, and rsp 0x100 */
	size_t n;
	Dwarf_Op ops[16];
};

static const uint64_t cfa_of_1000 = 1000;

static void test_expressions(void **state)
{
	static const struct expression all[] = {
		EXPRESSION(1000, CFA, OP(DW_OP_nop)),
		EXPRESSION(31, OP(DW_OP_lit31)),
		EXPRESSION(255, OP1(DW_OP_const1u, 255)),
		EXPRESSION(-1, OP1(DW_OP_const1s, (Dwarf_Word)-1)),
		EXPRESSION(1ull << 63, OP1(DW_OP_const8u, 1ull << 63)),
		EXPRESSION(300, OP1(DW_OP_constu, 300)),
		EXPRESSION(-3, OP1(DW_OP_consts, (Dwarf_Word)-3)),
		EXPRESSION(0x108, OP1(DW_OP_breg7, 8)),
		EXPRESSION(0xf8, OP2(DW_OP_bregx, 7, (Dwarf_Word)-8)),
		EXPRESSION(~1000ull, CFA, OP(DW_OP_deref)),
		EXPRESSION(1008, CFA, OP1(DW_OP_plus_uconst, 8)),
		EXPRESSION(-1000, CFA, OP(DW_OP_neg)),
		EXPRESSION(~1000ull, CFA, OP(DW_OP_not)),
		EXPRESSION(2000, CFA, OP(DW_OP_dup), OP(DW_OP_plus)),
		EXPRESSION(1000, CFA, OP(DW_OP_lit1), OP(DW_OP_drop)),
		EXPRESSION(1000, CFA, OP(DW_OP_lit1), OP(DW_OP_over)),
		EXPRESSION(1000, CFA, OP(DW_OP_lit1), OP(DW_OP_lit2), OP1(DW_OP_pick, 2)),
		EXPRESSION(-995, CFA, OP(DW_OP_lit5), OP(DW_OP_swap), OP(DW_OP_minus)),
		EXPRESSION(995, CFA, OP(DW_OP_lit5), OP(DW_OP_minus)),
		EXPRESSION(3000, CFA, OP(DW_OP_lit3), OP(DW_OP_mul)),
		EXPRESSION(8, CFA, OP(DW_OP_lit8), OP(DW_OP_and)),
		EXPRESSION(1001, CFA, OP(DW_OP_lit1), OP(DW_OP_or)),
		EXPRESSION(1008, CFA, OP(DW_OP_lit24), OP(DW_OP_xor)),
		EXPRESSION(4000, CFA, OP(DW_OP_lit2), OP(DW_OP_shl)),
		EXPRESSION(0, CFA, OP1(DW_OP_const1u, 64), OP(DW_OP_shl)),
		EXPRESSION(250, CFA, OP(DW_OP_lit2), OP(DW_OP_shr)),
		EXPRESSION(-1, CFA, OP(DW_OP_neg), OP1(DW_OP_const1u, 70), OP(DW_OP_shra)),
		EXPRESSION(1, CFA, OP(DW_OP_neg), OP(DW_OP_lit3), OP(DW_OP_lt)),
		EXPRESSION(0, CFA, OP(DW_OP_neg), OP(DW_OP_lit3), OP(DW_OP_ge)),
		/* A linker's, for a lazy stub: 8, and behind its push another 8. */
		EXPRESSION(0x110, OP1(DW_OP_breg7, 8), OP1(DW_OP_breg16, 0), OP(DW_OP_lit15),
			   OP(DW_OP_and), OP(DW_OP_lit11), OP(DW_OP_ge), OP(DW_OP_lit3),
			   OP(DW_OP_shl), OP(DW_OP_plus)),
	};
	struct cfi_frame frame = {.known = 1u << 7 | 1u << 16, .read = read_nothing};
	uint64_t value;

	frame.registers[7] = 0x100;
	frame.registers[16] = 0x40102b;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_true(
			cfi_expression__value(all[i].ops, all[i].n, &frame, &cfa_of_1000, &value));
		assert_true(value == all[i].value);
	}
}

static void test_expressions_that_cannot_be_told(void **state)
{
	static const struct expression all[] = {
		EXPRESSION(0, CFA, OP(DW_OP_drop)),
		EXPRESSION(0, OP(DW_OP_drop)),
		EXPRESSION(0, CFA, OP(DW_OP_plus)),
		EXPRESSION(0, CFA, OP1(DW_OP_pick, 1)),
		EXPRESSION(0, CFA, OP(DW_OP_over)),
		EXPRESSION(0, OP(DW_OP_breg6)),			     /* not known */
		EXPRESSION(0, OP1(DW_OP_bregx, 99)),		     /* no such */
		EXPRESSION(0, CFA, OP1(DW_OP_skip, (Dwarf_Word)-3)), /* for ever */
		EXPRESSION(0, CFA, OP(DW_OP_lit0), OP(DW_OP_div)),
		EXPRESSION(0, OP1(DW_OP_const2u, 0x666), OP(DW_OP_deref)), /* no memory */
		EXPRESSION(0, CFA, OP(0xff)),
	};
	struct cfi_frame frame = {.known = 1u << 7, .read = read_nothing};
	Dwarf_Op deep[100];
	uint64_t value;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		assert_false(
			cfi_expression__value(all[i].ops, all[i].n, &frame, &cfa_of_1000, &value));
	assert_false(cfi_expression__value(NULL, 0, &frame, NULL, &value));
	assert_false(cfi_expression__value((Dwarf_Op[]){CFA}, 1, &frame, NULL, &value));
	for (size_t i = 0; i < sizeof(deep) / sizeof(deep[0]); i++)
		deep[i] = (Dwarf_Op)OP(DW_OP_lit1);
	assert_false(cfi_expression__value(deep, 100, &frame, &cfa_of_1000, &value));
}

/* The bytes of a file whose .eh_frame is at *offset. */
static uint8_t *read_self(size_t *size, size_t *offset, size_t *len)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	off_t end = lseek(fd, 0, SEEK_END);
	uint8_t *bytes = malloc((size_t)end);
	struct elf_image *image;
	GElf_Shdr shdr;

	assert_int_equal(pread(fd, bytes, (size_t)end, 0), end);
	close(fd);
	image = elf_image__from_bytes(bytes, (size_t)end, "self");
	assert_non_null(image);
	assert_non_null(elf_image__section(image, ".eh_frame", &shdr));
	elf_image__free(image);
	*size = (size_t)end;
	*offset = shdr.sh_offset;
	*len = shdr.sh_size;
	return bytes;
}

/* No row, or one of which every register can be asked for. */
static void use_rows(struct elf_image *image, const struct elf_segment *code, unsigned int *seed)
{
	struct cfi_frame frame = {.known = ~0u, .read = read_nothing};

	for (int i = 0; i < 60; i++) {
		uint64_t vaddr = code->vaddr + (uint64_t)rand_r(seed) % code->size, value;
		struct cfi_row row;

		if (!cfi__find(image, vaddr, &row))
			continue;
		assert_true(row.cfa.kind == CFI_EXPRESSION || row.cfa.other < CFI_REGISTERS);
		for (int reg = 0; reg < CFI_REGISTERS; reg++)
			if (row.registers[reg].ops)
				cfi_expression__value(row.registers[reg].ops, row.registers[reg].n,
						      &frame, &vaddr, &value);
	}
}

static void test_damaged_sections(void **state)
{
	unsigned int seed = 5;
	size_t size, offset, len;
	uint8_t *bytes = read_self(&size, &offset, &len);
	uint8_t *good = malloc(len);

	memcpy(good, bytes + offset, len);
	for (int round = 0; round < 100; round++) {
		struct elf_image *image;

		for (int i = rand_r(&seed) % 200; i >= 0; i--)
			bytes[offset + (size_t)rand_r(&seed) % len] = (uint8_t)rand_r(&seed);
		image = elf_image__from_bytes(bytes, size, "damaged");
		assert_non_null(image);
		use_rows(image, &image->segments[0], &seed);
		elf_image__free(image);
		memcpy(bytes + offset, good, len);
	}
	free(good);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_say_what_libdw_says),
		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_expressions_that_cannot_be_told),
		cmocka_unit_test(test_damaged_sections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
