// SPDX-License-Identifier: MIT
/* The rows of .eh_frame against libdw's; its expressions; damaged ones. */
#include "unwind_fixture.h"

#include <dwarf.h>

#include "target/unwind/cfi.h"
#include "target/elf/elf_internal.h"

/* What libdw says of a register, in our words. */
static struct cfi_rule translate(const Dwarf_Op *ops, size_t n, bool is_undefined)
{
	struct cfi_rule rule = {.kind = CFI_NOT_UNDERSTOOD};
	bool is_value = n && ops[n - 1].atom == DW_OP_stack_value;

	n -= is_value;
	if (!n)
		rule.kind = is_undefined ? CFI_UNDEFINED : CFI_SAME;
	else if (ops[0].atom != DW_OP_call_frame_cfa)
		rule.kind = CFI_REGISTER_PLUS;
	else if (n == 1)
		rule.kind = is_value ? CFI_CFA_PLUS : CFI_AT_CFA;
	else if (n == 2 && ops[1].atom == DW_OP_plus_uconst) {
		rule.kind = is_value ? CFI_CFA_PLUS : CFI_AT_CFA;
		rule.offset = (int64_t)ops[1].number;
	} else
		rule.kind = is_value ? CFI_EXPRESSION : CFI_AT_EXPRESSION;
	return rule;
}

static void compare_cfa(const struct cfi_row *row, Dwarf_Frame *frame)
{
	Dwarf_Op *ops;
	size_t n;

	assert_int_equal(dwarf_frame_cfa(frame, &ops, &n), 0);
	if (n == 1 && ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
		assert_int_equal(row->cfa.kind, CFI_REGISTER_PLUS);
		assert_int_equal(row->cfa.other, ops[0].atom - DW_OP_breg0);
		assert_true(row->cfa.offset == (int64_t)ops[0].number);
	} else if (n == 1 && ops[0].atom == DW_OP_bregx) {
		assert_int_equal(row->cfa.kind, CFI_REGISTER_PLUS);
		assert_int_equal(row->cfa.other, ops[0].number);
		assert_true(row->cfa.offset == (int64_t)ops[0].number2);
	} else {
		assert_int_equal(row->cfa.kind, CFI_EXPRESSION);
	}
}

static void compare_register(const struct cfi_row *row, Dwarf_Frame *frame, int reg)
{
	Dwarf_Op memory[3], *ops;
	struct cfi_rule rule;
	size_t n;

	assert_int_equal(dwarf_frame_register(frame, reg, memory, &ops, &n), 0);
	rule = translate(ops, n, ops == memory);
	/* Without a rule libdw takes it for lost; the ABI says that callees keep it. */
	if (rule.kind == CFI_UNDEFINED && reg != CFI_RETURN)
		rule.kind = CFI_SAME;
	assert_int_equal(row->registers[reg].kind, rule.kind);
	if (rule.kind == CFI_AT_CFA || rule.kind == CFI_CFA_PLUS)
		assert_true(row->registers[reg].offset == rule.offset);
}

/* False where libdw has none for vaddr. */
static bool compare_row(struct elf_image *image, Dwarf_CFI *cfi, uint64_t vaddr)
{
	static const int kept[] = {CFI_RBX, CFI_RBP, CFI_R12,	CFI_R13,
				   CFI_R14, CFI_R15, CFI_RETURN};
	Dwarf_Addr start, end;
	Dwarf_Frame *frame;
	struct cfi_row row;
	bool is_signal;

	if (dwarf_cfi_addrframe(cfi, vaddr, &frame))
		return false;
	assert_int_equal(dwarf_frame_info(frame, &start, &end, &is_signal), CFI_RETURN);
	assert_true(cfi__find(image, vaddr, &row));
	assert_int_equal(row.is_signal, is_signal);
	compare_cfa(&row, frame);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		compare_register(&row, frame, kept[i]);
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

static void test_rows_against_libdw(void **state)
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

static bool read_nothing(void *ctx, uint64_t address, uint64_t *word)
{
	*word = ~address;
	return address != 0x666;
}

struct expression {
	uint64_t value; /* with 1000 on the stack, and rsp 0x100 */
	size_t len;
	uint8_t bytes[16];
};

#define EXPRESSION(value, ...)                                                                     \
	{                                                                                          \
		(uint64_t)(value), sizeof((uint8_t[]){__VA_ARGS__}),                               \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

static void test_expressions(void **state)
{
	static const struct expression all[] = {
		EXPRESSION(1000, DW_OP_nop),
		EXPRESSION(31, DW_OP_lit31),
		EXPRESSION(255, DW_OP_const1u, 255),
		EXPRESSION(-1, DW_OP_const1s, 255),
		EXPRESSION(0xfffe, DW_OP_const2u, 0xfe, 0xff),
		EXPRESSION(-2, DW_OP_const2s, 0xfe, 0xff),
		EXPRESSION(-2, DW_OP_const4s, 0xfe, 0xff, 0xff, 0xff),
		EXPRESSION(0xff000000, DW_OP_const4u, 0, 0, 0, 0xff),
		EXPRESSION(1ull << 63, DW_OP_const8u, 0, 0, 0, 0, 0, 0, 0, 0x80),
		EXPRESSION(300, DW_OP_constu, 0xac, 2),
		EXPRESSION(-3, DW_OP_consts, 0x7d),
		EXPRESSION(0x108, DW_OP_breg7, 8),
		EXPRESSION(0xf8, DW_OP_bregx, 7, 0x78),
		EXPRESSION(~1000ull, DW_OP_deref),
		EXPRESSION(1008, DW_OP_plus_uconst, 8),
		EXPRESSION(-1000, DW_OP_neg),
		EXPRESSION(2000, DW_OP_dup, DW_OP_plus),
		EXPRESSION(1000, DW_OP_lit1, DW_OP_drop),
		EXPRESSION(1000, DW_OP_lit1, DW_OP_over),
		EXPRESSION(1000, DW_OP_lit1, DW_OP_lit2, DW_OP_pick, 2),
		EXPRESSION(-995, DW_OP_lit5, DW_OP_swap, DW_OP_minus),
		EXPRESSION(995, DW_OP_lit5, DW_OP_minus),
		EXPRESSION(3000, DW_OP_lit3, DW_OP_mul),
		EXPRESSION(8, DW_OP_lit8, DW_OP_and),
		EXPRESSION(1001, DW_OP_lit1, DW_OP_or),
		EXPRESSION(1008, DW_OP_lit24, DW_OP_xor),
		EXPRESSION(4000, DW_OP_lit2, DW_OP_shl),
		EXPRESSION(0, DW_OP_const1u, 64, DW_OP_shl),
		EXPRESSION(250, DW_OP_lit2, DW_OP_shr),
		EXPRESSION(-1, DW_OP_neg, DW_OP_const1u, 70, DW_OP_shra),
		EXPRESSION(1, DW_OP_neg, DW_OP_lit3, DW_OP_lt),
		EXPRESSION(0, DW_OP_neg, DW_OP_lit3, DW_OP_ge),
		/* A linker's, for a lazy stub: 8, and behind its push another 8. */
		EXPRESSION(0x110, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and,
			   DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus),
	};
	const uint64_t first = 1000;
	struct cfi_frame frame = {.known = 1u << 7 | 1u << 16, .read = read_nothing};
	uint64_t value;

	frame.registers[7] = 0x100;
	frame.registers[16] = 0x40102b;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_true(
			cfi_expression__value(all[i].bytes, all[i].len, &frame, &first, &value));
		assert_true(value == all[i].value);
	}
}

static void test_expressions_that_cannot_be_told(void **state)
{
	static const struct expression all[] = {
		EXPRESSION(0, DW_OP_drop),
		EXPRESSION(0, DW_OP_drop, DW_OP_drop),
		EXPRESSION(0, DW_OP_plus),
		EXPRESSION(0, DW_OP_pick, 1),
		EXPRESSION(0, DW_OP_pick),
		EXPRESSION(0, DW_OP_over),
		EXPRESSION(0, DW_OP_const8u, 1, 2, 3),
		EXPRESSION(0, DW_OP_constu, 0x80),
		EXPRESSION(0, DW_OP_breg6, 0),	       /* not known */
		EXPRESSION(0, DW_OP_bregx, 99, 0),     /* no such */
		EXPRESSION(0, DW_OP_skip, 0xfd, 0xff), /* for ever */
		EXPRESSION(0, DW_OP_lit0, DW_OP_div),
		EXPRESSION(0, DW_OP_const2u, 0x66, 0x06, DW_OP_deref), /* no memory */
		EXPRESSION(0, 0xff),
	};
	struct cfi_frame frame = {.known = 1u << 7, .read = read_nothing};
	const uint64_t first = 1000;
	uint8_t deep[100];
	uint64_t value;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		assert_false(
			cfi_expression__value(all[i].bytes, all[i].len, &frame, &first, &value));
	assert_false(cfi_expression__value(NULL, 0, &frame, NULL, &value));
	memset(deep, DW_OP_dup, sizeof(deep));
	assert_false(cfi_expression__value(deep, sizeof(deep), &frame, &first, &value));
}

static bool run_program(const uint8_t *bytes, size_t len, struct cfi_row *row)
{
	const struct cfi_row initial = {.cfa = {.kind = CFI_REGISTER_PLUS, .other = 7}};
	struct cfi_program program = {.at = bytes,
				      .end = len ? bytes + len : bytes,
				      .code_factor = 1,
				      .data_factor = -8,
				      .location = 0x1000,
				      .until = 0x1010,
				      .initial = &initial};

	*row = initial;
	return cfi_program__run(&program, row);
}

#define PROGRAM(...) (const uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__})

static void test_programs(void **state)
{
	struct cfi_row row;

	assert_true(run_program(NULL, 0, &row));
	/* Up to the place, and no further. */
	assert_true(run_program(PROGRAM(DW_CFA_advance_loc + 16, DW_CFA_def_cfa_offset, 16,
					DW_CFA_advance_loc + 1, DW_CFA_def_cfa_offset, 32),
				&row));
	assert_int_equal(row.cfa.offset, 16);
	/* A register that there is not is nobody's concern, however large its number. */
	assert_true(run_program(PROGRAM(DW_CFA_offset_extended, 0xff, 0xff, 0xff, 0xff, 0x7f, 1,
					DW_CFA_offset + 3, 2),
				&row));
	assert_int_equal(row.registers[3].kind, CFI_AT_CFA);
	assert_int_equal(row.registers[3].offset, -16);
	assert_true(run_program(
		PROGRAM(DW_CFA_remember_state, DW_CFA_def_cfa_register, 6, DW_CFA_restore_state),
		&row));
	assert_int_equal(row.cfa.other, 7);
	assert_true(run_program(PROGRAM(DW_CFA_offset + 6, 2, DW_CFA_restore + 6), &row));
	assert_int_equal(row.registers[6].kind, CFI_SAME);
}

static void test_damaged_programs(void **state)
{
	uint8_t deep[100];
	struct cfi_row row;

	assert_false(run_program(PROGRAM(DW_CFA_restore_state), &row));
	assert_false(run_program(PROGRAM(DW_CFA_def_cfa, 7), &row));
	assert_false(run_program(PROGRAM(DW_CFA_def_cfa, 17, 8), &row));
	assert_false(run_program(PROGRAM(DW_CFA_advance_loc4, 0, 0), &row));
	assert_false(run_program(PROGRAM(DW_CFA_expression, 3, 5, DW_OP_lit0), &row));
	assert_false(run_program(
		PROGRAM(DW_CFA_def_cfa_expression, 1, DW_OP_lit0, DW_CFA_def_cfa_offset, 8), &row));
	assert_false(run_program(PROGRAM(0x3f), &row));
	memset(deep, DW_CFA_remember_state, sizeof(deep));
	assert_false(run_program(deep, sizeof(deep), &row));
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
			if (row.registers[reg].expression)
				cfi_expression__value(row.registers[reg].expression,
						      row.registers[reg].len, &frame, &vaddr,
						      &value);
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
		cmocka_unit_test(test_rows_against_libdw),
		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_expressions_that_cannot_be_told),
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_damaged_programs),
		cmocka_unit_test(test_damaged_sections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
