// SPDX-License-Identifier: MIT
/* libdw runs the programs of .eh_frame; the expressions in them are evaluated here. */
#include "target/unwind/cfi.h"

#include <dwarf.h>
#include <stdlib.h>

#include "target/elf/elf_internal.h"

#define STACK_MAX 64

/*
 * DWARF 5, 2.5 "DWARF Expressions": the operations that assemblers and linkers write in .eh_frame.
 */
struct machine {
	const struct cfi_frame *frame;
	const uint64_t *cfa; /* or NULL */
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

/* The entry at that depth; 0 is the top. */
static uint64_t peek(struct machine *m, uint64_t depth)
{
	if (depth < m->n)
		return m->stack[m->n - 1 - depth];
	m->failed = true;
	return 0;
}

static void push_register(struct machine *m, uint64_t reg, uint64_t offset)
{
	if (reg >= CFI_REGISTERS || !(m->frame->known >> reg & 1))
		m->failed = true;
	else
		push(m, m->frame->registers[reg] + offset);
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

static void run(struct machine *m, const Dwarf_Op *op)
{
	uint64_t a = 0, b;

	switch (op->atom) {
	case DW_OP_addr:
	case DW_OP_const1u ... DW_OP_consts:
		push(m, op->number);
		break;
	case DW_OP_lit0 ... DW_OP_lit31:
		push(m, op->atom - DW_OP_lit0);
		break;
	case DW_OP_breg0 ... DW_OP_breg31:
		push_register(m, op->atom - DW_OP_breg0, op->number);
		break;
	case DW_OP_bregx:
		push_register(m, op->number, op->number2);
		break;
	case DW_OP_call_frame_cfa:
		m->failed |= !m->cfa;
		push(m, m->cfa ? *m->cfa : 0);
		break;
	case DW_OP_dup:
		push(m, peek(m, 0));
		break;
	case DW_OP_drop:
		pop(m);
		break;
	case DW_OP_over:
		push(m, peek(m, 1));
		break;
	case DW_OP_pick:
		push(m, peek(m, op->number));
		break;
	case DW_OP_swap:
		a = pop(m);
		b = pop(m);
		push(m, a);
		push(m, b);
		break;
	case DW_OP_deref:
		m->failed |= !m->frame->read(m->frame->ctx, pop(m), &a);
		push(m, a);
		break;
	case DW_OP_plus_uconst:
		push(m, pop(m) + op->number);
		break;
	case DW_OP_neg:
		push(m, -pop(m));
		break;
	case DW_OP_not:
		push(m, ~pop(m));
		break;
	case DW_OP_nop:
		break;
	default:
		b = pop(m);
		push(m, combine(m, op->atom, pop(m), b));
	}
}

bool cfi_expression__value(const Dwarf_Op *ops, size_t n, const struct cfi_frame *frame,
			   const uint64_t *cfa, uint64_t *value)
{
	struct machine m = {.frame = frame, .cfa = cfa};

	for (size_t i = 0; i < n && !m.failed; i++)
		run(&m, &ops[i]);
	*value = pop(&m);
	return !m.failed;
}

/*
 * libdw's expressions give the address of the saved register, unless they end with
 * DW_OP_stack_value: then they give its value.
 */
static struct cfi_rule rule_of(const Dwarf_Op *ops, size_t n)
{
	bool is_value = ops[n - 1].atom == DW_OP_stack_value;
	struct cfi_rule rule = {.kind = is_value ? CFI_CFA_PLUS : CFI_AT_CFA};

	n -= is_value;
	if (ops[0].atom == DW_OP_regx ||
	    (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)) {
		uint64_t reg = ops[0].number;

		if (ops[0].atom != DW_OP_regx)
			reg = (uint64_t)(ops[0].atom - DW_OP_reg0);
		rule.kind = reg < CFI_REGISTERS ? CFI_REGISTER_PLUS : CFI_NOT_UNDERSTOOD;
		rule.other = (uint8_t)reg;
	} else if (n == 2 && ops[0].atom == DW_OP_call_frame_cfa &&
		   ops[1].atom == DW_OP_plus_uconst) {
		rule.offset = (int64_t)ops[1].number;
	} else if (n != 1 || ops[0].atom != DW_OP_call_frame_cfa) {
		rule.kind = is_value ? CFI_EXPRESSION : CFI_AT_EXPRESSION;
		rule.ops = ops;
		rule.n = n;
	}
	return rule;
}

static bool read_registers(Dwarf_Frame *frame, struct cfi_row *row)
{
	static const uint32_t kept = 1u << CFI_RBX | 1u << CFI_RBP | 1u << CFI_R12 | 1u << CFI_R13 |
				     1u << CFI_R14 | 1u << CFI_R15;

	for (int reg = 0; reg < CFI_REGISTERS; reg++) {
		struct cfi_rule rule = {.kind = CFI_SAME};
		Dwarf_Op memory[3], *ops;
		size_t n;

		if (dwarf_frame_register(frame, reg, memory, &ops, &n))
			return false;
		/*
		 * Without a rule libdw takes a register for lost. The ABI says which ones callees
		 * keep, and the caller's stack pointer is the CFA.
		 */
		if (n)
			rule = rule_of(ops, n);
		else if (ops == memory && reg == CFI_RSP)
			rule.kind = CFI_CFA_PLUS;
		else if (ops == memory && !(kept >> reg & 1))
			rule.kind = CFI_UNDEFINED;
		row->registers[reg] = rule;
	}
	return true;
}

static bool read_cfa(Dwarf_Frame *frame, struct cfi_rule *cfa)
{
	Dwarf_Op *ops;
	size_t n;

	if (dwarf_frame_cfa(frame, &ops, &n) || !n)
		return false;
	*cfa = (struct cfi_rule){.kind = CFI_EXPRESSION, .ops = ops, .n = n};
	if (n > 1)
		return true;
	if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31)
		*cfa = (struct cfi_rule){.kind = CFI_REGISTER_PLUS,
					 .other = ops[0].atom - DW_OP_breg0,
					 .offset = (int64_t)ops[0].number};
	else if (ops[0].atom == DW_OP_bregx && ops[0].number < CFI_REGISTERS)
		*cfa = (struct cfi_rule){.kind = CFI_REGISTER_PLUS,
					 .other = (uint8_t)ops[0].number,
					 .offset = (int64_t)ops[0].number2};
	return cfa->kind == CFI_EXPRESSION ? ops[0].atom != DW_OP_bregx
					   : cfa->other < CFI_REGISTERS;
}

bool cfi__find(struct elf_image *image, uint64_t vaddr, struct cfi_row *row)
{
	Dwarf_Frame *frame = NULL;
	bool found = false;

	pthread_mutex_lock(&image->lock);
	if (!image->has_asked_cfi && image->elf)
		image->cfi = dwarf_getcfi_elf(image->elf);
	image->has_asked_cfi = true;
	if (image->cfi && !dwarf_cfi_addrframe(image->cfi, vaddr, &frame)) {
		Dwarf_Addr start, end;

		found = dwarf_frame_info(frame, &start, &end, &row->is_signal) == CFI_RETURN &&
			read_cfa(frame, &row->cfa) && read_registers(frame, row);
	}
	pthread_mutex_unlock(&image->lock);
	free(frame);
	return found;
}
