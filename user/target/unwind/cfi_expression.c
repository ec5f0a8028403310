// SPDX-License-Identifier: MIT
/* DWARF 5, 2.5 "DWARF Expressions": what assemblers and linkers write in .eh_frame of it. */
#include <dwarf.h>

#include "target/unwind/cfi.h"
#include "target/unwind/lsda.h"

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

static uint64_t take(struct machine *m, uint8_t encoding)
{
	uint64_t value = 0;

	m->failed |= !eh_bytes__pointer(&m->bytes, encoding, &value);
	return value;
}

static uint8_t take_byte(struct machine *m)
{
	if (m->bytes.at < m->bytes.end)
		return *m->bytes.at++;
	m->failed = true;
	return 0;
}

static void push_register(struct machine *m, uint64_t reg)
{
	uint64_t offset = take(m, DW_EH_PE_sleb128);

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
		push(m, take_byte(m));
	else if (op == DW_OP_const1s)
		push(m, (uint64_t)(int8_t)take_byte(m));
	else if (op < sizeof(encodings) && encodings[op])
		push(m, take(m, encodings[op]));
	else if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		push_register(m, op - DW_OP_breg0);
	else if (op == DW_OP_bregx)
		push_register(m, take(m, DW_EH_PE_uleb128));
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
		push(m, peek(m, take_byte(m)));
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
		push(m, pop(m) + take(m, DW_EH_PE_uleb128));
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

static void run_one(struct machine *m)
{
	uint8_t op = take_byte(m);
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
		run_one(&m);
	*value = pop(&m);
	return !m.failed;
}
