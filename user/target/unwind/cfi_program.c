// SPDX-License-Identifier: MIT
#include "target/unwind/cfi_program.h"

#include <dwarf.h>

#include "target/unwind/lsda.h"

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
