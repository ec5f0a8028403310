// SPDX-License-Identifier: MIT
/* DWARF 5, 2.5 "DWARF Expressions": what assemblers and linkers write in .eh_frame of it. */
#include "target/unwind/cfi.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/elf_internal.h"
#include "target/unwind/landing_pads.h"

#define STACK_MAX 64

struct machine {
	const struct cfi_frame *frame;
	struct eh_bytes bytes;
	uint64_t stack[STACK_MAX];
	size_t n;
	bool failed;
};

static void push(struct machine *m, uint64_t value)
{
	if (m->n < STACK_MAX)
		m->stack[m->n++] = value;
	else
		m->failed = true;
}

static uint64_t pop(struct machine *m)
{
	if (m->n)
		return m->stack[--m->n];
	m->failed = true;
	return 0;
}

/* The one that lies so deep; 0 is the top. */
static uint64_t peek(struct machine *m, uint64_t depth)
{
	if (depth < m->n)
		return m->stack[m->n - 1 - depth];
	m->failed = true;
	return 0;
}

static uint64_t take_operand(struct machine *m, uint8_t encoding)
{
	uint64_t value = 0;

	m->failed |= !eh_bytes__pointer(&m->bytes, encoding, &value);
	return value;
}

static uint8_t take_operand_byte(struct machine *m)
{
	if (m->bytes.at < m->bytes.end)
		return *m->bytes.at++;
	m->failed = true;
	return 0;
}

static void push_register(struct machine *m, uint64_t reg)
{
	uint64_t offset = take_operand(m, DW_EH_PE_sleb128);

	if (reg >= CFI_REGISTERS || !(m->frame->known >> reg & 1))
		m->failed = true;
	else
		push(m, m->frame->registers[reg] + offset);
}

static uint64_t load(struct machine *m, uint64_t address)
{
	uint64_t word = 0;

	m->failed |= !m->frame->read(m->frame->ctx, address, &word);
	return word;
}

static bool run_constant(struct machine *m, uint8_t op)
{
	static const uint8_t encodings[] = {
		[DW_OP_addr] = DW_EH_PE_udata8,	   [DW_OP_const2u] = DW_EH_PE_udata2,
		[DW_OP_const2s] = DW_EH_PE_sdata2, [DW_OP_const4u] = DW_EH_PE_udata4,
		[DW_OP_const4s] = DW_EH_PE_sdata4, [DW_OP_const8u] = DW_EH_PE_udata8,
		[DW_OP_const8s] = DW_EH_PE_sdata8, [DW_OP_constu] = DW_EH_PE_uleb128,
		[DW_OP_consts] = DW_EH_PE_sleb128,
	};

	if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
		push(m, op - DW_OP_lit0);
	else if (op == DW_OP_const1u)
		push(m, take_operand_byte(m));
	else if (op == DW_OP_const1s)
		push(m, (uint64_t)(int8_t)take_operand_byte(m));
	else if (op < sizeof(encodings) && encodings[op])
		push(m, take_operand(m, encodings[op]));
	else if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		push_register(m, op - DW_OP_breg0);
	else if (op == DW_OP_bregx)
		push_register(m, take_operand(m, DW_EH_PE_uleb128));
	else
		return false;
	return true;
}

static bool run_stack(struct machine *m, uint8_t op)
{
	uint64_t a, b;

	switch (op) {
	case DW_OP_dup:
		push(m, peek(m, 0));
		return true;
	case DW_OP_drop:
		pop(m);
		return true;
	case DW_OP_over:
		push(m, peek(m, 1));
		return true;
	case DW_OP_pick:
		push(m, peek(m, take_operand_byte(m)));
		return true;
	case DW_OP_swap:
		a = pop(m);
		b = pop(m);
		push(m, a);
		push(m, b);
		return true;
	case DW_OP_deref:
		push(m, load(m, pop(m)));
		return true;
	case DW_OP_plus_uconst:
		push(m, pop(m) + take_operand(m, DW_EH_PE_uleb128));
		return true;
	case DW_OP_neg:
		push(m, -pop(m));
		return true;
	case DW_OP_not:
		push(m, ~pop(m));
		return true;
	case DW_OP_nop:
		return true;
	}
	return false;
}

/* a is what was pushed before b. */
static uint64_t combine(struct machine *m, uint8_t op, uint64_t a, uint64_t b)
{
	int64_t x = (int64_t)a, y = (int64_t)b;

	switch (op) {
	case DW_OP_plus:
		return a + b;
	case DW_OP_minus:
		return a - b;
	case DW_OP_mul:
		return a * b;
	case DW_OP_and:
		return a & b;
	case DW_OP_or:
		return a | b;
	case DW_OP_xor:
		return a ^ b;
	case DW_OP_shl:
		return b < 64 ? a << b : 0;
	case DW_OP_shr:
		return b < 64 ? a >> b : 0;
	case DW_OP_shra:
		return (uint64_t)(x >> (b < 64 ? b : 63));
	case DW_OP_eq:
		return x == y;
	case DW_OP_ne:
		return x != y;
	case DW_OP_ge:
		return x >= y;
	case DW_OP_gt:
		return x > y;
	case DW_OP_le:
		return x <= y;
	case DW_OP_lt:
		return x < y;
	}
	m->failed = true;
	return 0;
}

static void evaluate_one(struct machine *m)
{
	uint8_t op = take_operand_byte(m);
	uint64_t b;

	if (run_constant(m, op) || run_stack(m, op))
		return;
	b = pop(m);
	push(m, combine(m, op, pop(m), b));
}

bool cfi_expression__value(const uint8_t *expression, size_t len, const struct cfi_frame *frame,
			   const uint64_t *first, uint64_t *value)
{
	struct machine m = {
		.frame = frame,
		.bytes = {.at = expression, .end = len ? expression + len : expression}};

	if (first)
		push(&m, *first);
	while (m.bytes.at < m.bytes.end && !m.failed)
		evaluate_one(&m);
	*value = pop(&m);
	return !m.failed;
}

/* Compilers remember one state at a time. */
#define REMEMBERED_MAX 8

struct run {
	struct cfi_program *program;
	struct cfi_row *row;
	struct eh_bytes bytes;
	struct cfi_row remembered[REMEMBERED_MAX];
	size_t n_remembered;
	bool failed, done;
};

static uint64_t take(struct run *r, uint8_t encoding)
{
	uint64_t value = 0;

	r->failed |= !eh_bytes__pointer(&r->bytes, encoding, &value);
	return value;
}

static uint64_t take_byte(struct run *r)
{
	if (r->bytes.at == r->bytes.end) {
		r->failed = true;
		return 0;
	}
	return *r->bytes.at++;
}

static uint64_t take_uleb(struct run *r)
{
	return take(r, DW_EH_PE_uleb128);
}

/* Offsets wrap where they are damaged. */
static int64_t take_offset(struct run *r, bool is_signed)
{
	uint64_t number = take(r, is_signed ? DW_EH_PE_sleb128 : DW_EH_PE_uleb128);

	return (int64_t)(number * (uint64_t)r->program->data_factor);
}

static struct cfi_rule take_expression(struct run *r, enum cfi_kind kind)
{
	struct cfi_rule rule = {.kind = (uint8_t)kind};
	uint64_t len = take_uleb(r);

	if (len > (uint64_t)(r->bytes.end - r->bytes.at)) {
		r->failed = true;
		return rule;
	}
	rule.expression = r->bytes.at;
	rule.len = len;
	r->bytes.at += len;
	return rule;
}

/* Of other registers nothing is kept. */
static void set(struct run *r, uint64_t reg, struct cfi_rule rule)
{
	if (reg < CFI_REGISTERS)
		r->row->registers[reg] = rule;
}

static void restore(struct run *r, uint64_t reg)
{
	if (!r->program->initial)
		r->failed = true;
	else if (reg < CFI_REGISTERS)
		set(r, reg, r->program->initial->registers[reg]);
}

/* The row is of all code up to the next location. */
static void advance(struct run *r, uint64_t by)
{
	uint64_t delta = by * r->program->code_factor;

	if (delta > r->program->until - r->program->location)
		r->done = true;
	else
		r->program->location += delta;
}

static void set_cfa(struct run *r, uint64_t reg, int64_t offset)
{
	r->failed |= reg >= CFI_REGISTERS;
	r->row->cfa = (struct cfi_rule){
		.kind = CFI_REGISTER_PLUS, .other = (uint8_t)reg, .offset = offset};
}

/* Only where the CFA is a register and an offset: one of them changes. */
static void change_cfa(struct run *r, uint64_t reg, int64_t offset)
{
	r->failed |= r->row->cfa.kind != CFI_REGISTER_PLUS;
	set_cfa(r, reg, offset);
}

static void remember(struct run *r)
{
	if (r->n_remembered < REMEMBERED_MAX)
		r->remembered[r->n_remembered++] = *r->row;
	else
		r->failed = true;
}

static void recall(struct run *r)
{
	if (r->n_remembered)
		*r->row = r->remembered[--r->n_remembered];
	else
		r->failed = true;
}

static void run_cfa(struct run *r, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = take_uleb(r);
		set_cfa(r, reg, (int64_t)take_uleb(r));
		break;
	case DW_CFA_def_cfa_sf:
		reg = take_uleb(r);
		set_cfa(r, reg, take_offset(r, true));
		break;
	case DW_CFA_def_cfa_register:
		change_cfa(r, take_uleb(r), r->row->cfa.offset);
		break;
	case DW_CFA_def_cfa_offset:
		change_cfa(r, r->row->cfa.other, (int64_t)take_uleb(r));
		break;
	case DW_CFA_def_cfa_offset_sf:
		change_cfa(r, r->row->cfa.other, take_offset(r, true));
		break;
	default:
		r->row->cfa = take_expression(r, CFI_EXPRESSION);
	}
}

static void run_register(struct run *r, uint8_t op)
{
	uint64_t reg = take_uleb(r);

	switch (op) {
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
		set(r, reg,
		    (struct cfi_rule){.kind = CFI_AT_CFA,
				      .offset = take_offset(r, op == DW_CFA_offset_extended_sf)});
		break;
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		set(r, reg,
		    (struct cfi_rule){.kind = CFI_CFA_PLUS,
				      .offset = take_offset(r, op == DW_CFA_val_offset_sf)});
		break;
	case DW_CFA_undefined:
		set(r, reg, (struct cfi_rule){.kind = CFI_UNDEFINED});
		break;
	case DW_CFA_same_value:
		set(r, reg, (struct cfi_rule){.kind = CFI_SAME});
		break;
	case DW_CFA_register: {
		uint64_t other = take_uleb(r);

		set(r, reg,
		    (struct cfi_rule){.kind = other < CFI_REGISTERS ? CFI_REGISTER_PLUS
								    : CFI_NOT_UNDERSTOOD,
				      .other = (uint8_t)other});
		break;
	}
	case DW_CFA_expression:
		set(r, reg, take_expression(r, CFI_AT_EXPRESSION));
		break;
	case DW_CFA_val_expression:
		set(r, reg, take_expression(r, CFI_EXPRESSION));
		break;
	default:
		restore(r, reg);
	}
}

static void run_extended(struct run *r, uint8_t op)
{
	switch (op) {
	case DW_CFA_nop:
		break;
	case DW_CFA_advance_loc1:
		advance(r, take_byte(r));
		break;
	case DW_CFA_advance_loc2:
		advance(r, take(r, DW_EH_PE_udata2));
		break;
	case DW_CFA_advance_loc4:
		advance(r, take(r, DW_EH_PE_udata4));
		break;
	case DW_CFA_remember_state:
		remember(r);
		break;
	case DW_CFA_restore_state:
		recall(r);
		break;
	case DW_CFA_GNU_args_size:
		take_uleb(r);
		break;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_def_cfa_expression:
		run_cfa(r, op);
		break;
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_register:
	case DW_CFA_expression:
	case DW_CFA_val_expression:
	case DW_CFA_restore_extended:
		run_register(r, op);
		break;
	default:
		/* DW_CFA_set_loc, and what is not for this machine: no compiler writes it. */
		r->failed = true;
	}
}

static void run_one(struct run *r)
{
	uint8_t op = (uint8_t)take_byte(r), low = op & 0x3f;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		advance(r, low);
		break;
	case DW_CFA_offset:
		set(r, low, (struct cfi_rule){.kind = CFI_AT_CFA, .offset = take_offset(r, false)});
		break;
	case DW_CFA_restore:
		restore(r, low);
		break;
	default:
		run_extended(r, op);
	}
}

bool cfi_program__run(struct cfi_program *program, struct cfi_row *row)
{
	struct run r = {
		.program = program, .row = row, .bytes = {.at = program->at, .end = program->end}};

	while (r.bytes.at < r.bytes.end && !r.failed && !r.done)
		run_one(&r);
	return !r.failed;
}

struct cfi_table {
	elf_frame_vec frames; /* ascending */
};

void cfi_table__free(struct cfi_table *table)
{
	if (!table)
		return;
	VEC_FINI(&table->frames);
	free(table);
}

static struct cfi_table *build(struct elf_image *image)
{
	struct cfi_table *table = calloc(1, sizeof(*table));

	if (table && elf_image__load_frames(image, &table->frames)) {
		cfi_table__free(table);
		return NULL;
	}
	return table;
}

/* What describes vaddr, and what that starts from. */
static const struct elf_frame *find_frame(struct elf_image *image, uint64_t vaddr, Dwarf_CIE *cie)
{
	const struct elf_frame *frame = NULL;

	pthread_mutex_lock(&image->lock);
	if (!image->cfi)
		image->cfi = build(image);
	if (image->cfi)
		frame = elf_frames__find(&image->cfi->frames, vaddr);
	if (frame && (!frame->program || !elf_image__read_cie(image, frame->cie, cie)))
		frame = NULL;
	pthread_mutex_unlock(&image->lock);
	return frame;
}

/*
 * What a callee need not keep is lost without a rule that says otherwise. The caller's stack
 * pointer is the CFA.
 */
static void reset(struct cfi_row *row)
{
	static const uint8_t kept[] = {CFI_RBX, CFI_RBP, CFI_R12, CFI_R13, CFI_R14, CFI_R15};

	*row = (struct cfi_row){.cfa = {.kind = CFI_NOT_UNDERSTOOD}};
	for (int i = 0; i < CFI_REGISTERS; i++)
		row->registers[i].kind = CFI_UNDEFINED;
	for (size_t i = 0; i < sizeof(kept); i++)
		row->registers[kept[i]].kind = CFI_SAME;
	row->registers[CFI_RSP].kind = CFI_CFA_PLUS;
	row->registers[CFI_RETURN].kind = CFI_NOT_UNDERSTOOD;
}

bool cfi__find(struct elf_image *image, uint64_t vaddr, struct cfi_row *row)
{
	struct cfi_program program = {.until = vaddr};
	const struct elf_frame *frame;
	struct cfi_row initial;
	Dwarf_CIE cie;

	frame = find_frame(image, vaddr, &cie);
	if (!frame || cie.return_address_register != CFI_RETURN)
		return false;
	reset(row);
	row->is_signal = strchr(cie.augmentation, 'S') != NULL;
	program.code_factor = cie.code_alignment_factor;
	program.data_factor = cie.data_alignment_factor;
	program.at = cie.initial_instructions;
	program.end = cie.initial_instructions_end;
	program.location = vaddr;
	if (!cfi_program__run(&program, row))
		return false;
	initial = *row;
	program.initial = &initial;
	program.at = frame->program;
	program.end = frame->program_end;
	program.location = frame->start;
	return cfi_program__run(&program, row) && row->cfa.kind != CFI_NOT_UNDERSTOOD;
}
