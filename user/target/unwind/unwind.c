// SPDX-License-Identifier: MIT
#include "target/unwind/unwind.h"

#include <errno.h>
#include <string.h>
#include <ucontext.h>

#include "target/unwind/cfi.h"
#include "util/insn.h"

/* The longest call: a REX prefix, opcode, ModRM, SIB, four bytes of displacement. */
#define CALL_MAX	8
#define DIRECT_CALL_LEN 5

struct unwinder {
	struct code_map *map;
	struct unwound *out;
	struct cfi_frame frame;
	uint64_t ip, sp;
	const struct unwind_start *start;
	size_t next_call; /* in start->calls */
	bool is_exact;	  /* ip is the next instruction to run, and not a return address */
	bool by_frame;	  /* ip and %rbp come from a frame that %rbp pointed to */
};

enum step {
	STEP_CALLER,	  /* ip is in the caller now */
	STEP_INTERRUPTED, /* ip is where a signal came */
	STEP_OUTERMOST,
	STEP_LOST,
};

static bool read_stack(void *ctx, uint64_t address, uint64_t *word)
{
	struct unwinder *u = ctx;
	const struct unwind_start *start = u->start;
	uint64_t offset = address - start->sp;

	if (address < start->sp)
		return false;
	if (offset > start->size || start->size - offset < sizeof(*word)) {
		u->out->is_cut = true;
		return false;
	}
	memcpy(word, start->stack + offset, sizeof(*word));
	return true;
}

static bool read_word(const struct unwinder *u, uint64_t address, uint64_t *word)
{
	return u->frame.read(u->frame.ctx, address, word);
}

static void set_register(struct cfi_frame *frame, enum cfi_register reg, uint64_t value)
{
	frame->registers[reg] = value;
	frame->known |= 1u << reg;
}

bool unwind__is_behind_call(struct code_map *map, uint64_t ip)
{
	uint8_t code[CALL_MAX];
	struct insn insn;

	for (size_t len = 2; len <= CALL_MAX && len <= ip; len++)
		if (code_map__read(map, ip - len, code, len) == len &&
		    !insn__decode(code, len, ip - len, &insn) && insn.len == len &&
		    (insn.cls == INSN_CALL || insn.cls == INSN_CALL_INDIRECT))
			return true;
	return false;
}

/*
 * True if %rbp is as its caller has it, and may be a frame pointer there: the function leaves %rbp
 * alone, or has not set up its frame yet, or has restored %rbp and returns next (then only the
 * return address is on the stack, whatever the rule for %rbp says).
 */
static bool has_no_frame(struct code_map *map, uint64_t ip, const struct code_place *place)
{
	/* "mov %rsp,%rbp", in both encodings: until it has run, %rbp is the caller's. */
	static const uint8_t store[] = {0x48, 0x89, 0xe5}, load[] = {0x48, 0x8b, 0xec};
	uint8_t code[sizeof(store)];
	struct cfi_row row;

	if (place->function->kind == FUNCTION_PLT || !cfi__find(place->image, place->vaddr, &row) ||
	    row.is_signal || row.cfa.kind != CFI_REGISTER_PLUS || row.cfa.other != CFI_RSP ||
	    row.registers[CFI_RETURN].kind != CFI_AT_CFA)
		return false;
	if (row.registers[CFI_RBP].kind == CFI_SAME || row.cfa.offset == 8)
		return true;
	return code_map__read(map, ip, code, sizeof(code)) == sizeof(code) &&
	       (!memcmp(code, store, sizeof(code)) || !memcmp(code, load, sizeof(code)));
}

/* A PLT stub begins with a jump, after an optional endbr64. */
static bool is_stub(struct code_map *map, uint64_t entry)
{
	uint8_t code[INSN_MAX_LEN];
	struct insn insn = {.is_endbr = true};

	for (; insn.is_endbr; entry += insn.len)
		if (insn__decode(code, code_map__read(map, entry, code, sizeof(code)), entry,
				 &insn))
			return true;
	return insn.cls == INSN_JUMP || insn.cls == INSN_JUMP_INDIRECT;
}

uint64_t unwind__called_before(struct code_map *map, uint64_t ip)
{
	uint8_t code[DIRECT_CALL_LEN];
	struct insn insn;

	if (ip < sizeof(code) ||
	    code_map__read(map, ip - sizeof(code), code, sizeof(code)) != sizeof(code) ||
	    insn__decode(code, sizeof(code), ip - sizeof(code), &insn) ||
	    insn.len != sizeof(code) || insn.cls != INSN_CALL)
		return 0;
	return insn.target;
}

static bool find_called(struct code_map *map, uint64_t return_ip, struct code_place *called)
{
	uint64_t target = unwind__called_before(map, return_ip);

	return target && code_map__find(map, target, called) && called->entry == target &&
	       called->function->kind != FUNCTION_PLT && !is_stub(map, target);
}

bool unwind__misses_caller(struct code_map *map, uint64_t ip, uint64_t return_ip,
			   struct code_place *caller)
{
	struct code_place place;

	if (!code_map__find(map, ip, &place) || !has_no_frame(map, ip, &place) ||
	    !unwind__is_behind_call(map, return_ip))
		return false;
	if (!find_called(map, return_ip, caller))
		*caller = (struct code_place){0};
	return caller->function != place.function;
}

bool unwind__has_rules(struct code_map *map, uint64_t ip)
{
	struct code_place place;
	struct cfi_row row;

	return code_map__find(map, ip, &place) && cfi__find(place.image, place.vaddr, &row);
}

bool unwind__reuses_frame_pointer(struct code_map *map, uint64_t ip)
{
	struct code_place place;
	struct cfi_row row;

	return code_map__find(map, ip, &place) && cfi__find(place.image, place.vaddr, &row) &&
	       !row.is_signal && row.cfa.kind == CFI_REGISTER_PLUS && row.cfa.other != CFI_RBP &&
	       row.registers[CFI_RBP].kind != CFI_SAME && !has_no_frame(map, ip, &place);
}

/*
 * True if ip is at rt_sigreturn's trampoline. Recognised by its two instructions, as in libgcc and
 * gdb: not every C library describes it.
 */
static bool is_restorer(const struct unwinder *u)
{
	uint8_t code[RESTORER_MAX_LEN] = {0};

	code_map__read(u->map, u->ip, code, sizeof(code));
	return insn__is_restorer(code);
}

/*
 * The kernel's frame is on the stack: arch/x86/include/asm/sigframe.h, struct rt_sigframe; the
 * handler has returned to the restorer, so that sp is at its ucontext.
 */
static enum step step_signal(struct unwinder *u)
{
	static const struct {
		enum cfi_register reg;
		int index;
	} saved[] = {
		{CFI_RBX, REG_RBX}, {CFI_RBP, REG_RBP}, {CFI_RSP, REG_RSP}, {CFI_R12, REG_R12},
		{CFI_R13, REG_R13}, {CFI_R14, REG_R14}, {CFI_R15, REG_R15}, {CFI_RETURN, REG_RIP},
	};
	uint64_t gregs = u->sp + offsetof(ucontext_t, uc_mcontext.gregs), value;

	u->by_frame = false;
	u->frame.known = 0;
	for (size_t i = 0; i < sizeof(saved) / sizeof(saved[0]); i++) {
		if (!read_word(u, gregs + 8 * (uint64_t)saved[i].index, &value))
			return STEP_LOST;
		set_register(&u->frame, saved[i].reg, value);
	}
	u->ip = u->frame.registers[CFI_RETURN];
	u->sp = u->frame.registers[CFI_RSP];
	return STEP_INTERRUPTED;
}

/* False if the value is lost. Only the CFA, the return address and the stack pointer are needed. */
static bool apply(const struct unwinder *u, const struct cfi_rule *rule, int reg, uint64_t cfa,
		  uint64_t *value)
{
	const struct cfi_frame *frame = &u->frame;
	uint64_t address;

	switch ((enum cfi_kind)rule->kind) {
	case CFI_SAME:
		*value = frame->registers[reg];
		return frame->known >> reg & 1;
	case CFI_AT_CFA:
		return read_word(u, cfa + (uint64_t)rule->offset, value);
	case CFI_CFA_PLUS:
		*value = cfa + (uint64_t)rule->offset;
		return true;
	case CFI_REGISTER_PLUS:
		*value = frame->registers[rule->other] + (uint64_t)rule->offset;
		return frame->known >> rule->other & 1;
	case CFI_AT_EXPRESSION:
		return cfi_expression__value(rule->ops, rule->n, frame, &cfa, &address) &&
		       read_word(u, address, value);
	case CFI_EXPRESSION:
		return cfi_expression__value(rule->ops, rule->n, frame, &cfa, value);
	case CFI_UNDEFINED:
	case CFI_NOT_UNDERSTOOD:
		break;
	}
	return false;
}

/* The stack grows down: a caller's frame is above, except after a signal on an alternate stack. */
static enum step step_by_rules(struct unwinder *u, const struct cfi_row *row)
{
	struct cfi_frame caller = {.read = u->frame.read, .ctx = u->frame.ctx};
	uint64_t cfa, value;
	bool has_cfa;

	set_register(&u->frame, CFI_RSP, u->sp);
	set_register(&u->frame, CFI_RETURN, u->ip);
	if (row->registers[CFI_RETURN].kind == CFI_UNDEFINED)
		return STEP_OUTERMOST;
	if (row->cfa.kind == CFI_EXPRESSION)
		has_cfa = cfi_expression__value(row->cfa.ops, row->cfa.n, &u->frame, NULL, &cfa);
	else
		has_cfa = apply(u, &row->cfa, CFI_RSP, 0, &cfa);
	if (!has_cfa || (cfa <= u->sp && !row->is_signal))
		return STEP_LOST;
	for (int reg = 0; reg < CFI_REGISTERS; reg++)
		if (apply(u, &row->registers[reg], reg, cfa, &value))
			set_register(&caller, (enum cfi_register)reg, value);
	if (!(caller.known >> CFI_RETURN & 1) || !(caller.known >> CFI_RSP & 1))
		return STEP_LOST;
	u->frame = caller;
	u->ip = caller.registers[CFI_RETURN];
	u->sp = caller.registers[CFI_RSP];
	return row->is_signal ? STEP_INTERRUPTED : STEP_CALLER;
}

/* The most bytes of an epilogue: a pop for each register, and a few more instructions. */
#define EPILOGUE_MAX 64

/* DWARF's numbers of the registers, by those of instructions (System V ABI, AMD64, 3.6.2). */
static const uint8_t dwarf_numbers[] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

/*
 * Carries out an instruction of an epilogue. Returns its length; 0: it is the return, or is not
 * part of an epilogue.
 */
static size_t run_epilogue(struct cfi_frame *frame, const uint8_t *code, uint64_t *sp)
{
	static const uint8_t add8[] = {0x48, 0x83, 0xc4}, add32[] = {0x48, 0x81, 0xc4};
	size_t rex = code[0] == 0x41;
	uint64_t value;
	int32_t n;

	if (!memcmp(code, add8, sizeof(add8)) && !(code[3] & 0x80)) {
		*sp += code[3];
		return 4;
	}
	memcpy(&n, code + 3, sizeof(n));
	if (!memcmp(code, add32, sizeof(add32)) && n > 0) {
		*sp += (uint64_t)n;
		return 7;
	}
	if ((code[rex] & 0xf8) != 0x58 || (!rex && code[0] == 0x5c) ||
	    !frame->read(frame->ctx, *sp, &value))
		return 0;
	set_register(frame, (enum cfi_register)dwarf_numbers[(code[rex] & 7) + 8 * rex], value);
	*sp += sizeof(value);
	return 1 + rex;
}

/*
 * If only the end of the function is left to run, that code shows the return address: "add $8,%rsp;
 * ret" of CPython's perf trampolines, which lack a frame pointer.
 */
static bool step_by_epilogue(struct unwinder *u, const struct code_place *place)
{
	struct code_place next;
	uint8_t code[EPILOGUE_MAX + 8] = {0};
	struct cfi_frame caller = u->frame;
	uint64_t sp = u->sp, ip;
	size_t at = 0, n = 1;
	size_t len = code_map__read(u->map, u->ip, code, EPILOGUE_MAX);

	/* After a call that never returns, another function may begin. */
	if (!code_map__find(u->map, u->ip, &next) || next.function != place->function)
		return false;
	for (; n && at < len; at += n)
		n = run_epilogue(&caller, code + at, &sp);
	if (at >= len || code[at] != 0xc3 || !read_word(u, sp, &ip))
		return false;
	u->frame = caller;
	u->ip = ip;
	u->sp = sp + sizeof(ip);
	return true;
}

/*
 * In a chain of frame pointers, 0 marks the outermost frame ("deepest" in System V ABI, AMD64,
 * 3.4.1). Its return address need not follow a call: Go puts the address of goexit there.
 */
static bool is_behind_deepest(const struct unwinder *u)
{
	return u->by_frame && !u->frame.registers[CFI_RBP];
}

/* Follows %rbp in code that has no unwind rules, if it points to what looks like a frame. */
static enum step step_by_frame_pointer(struct unwinder *u, const struct code_place *place)
{
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint8_t code[sizeof(endbr)];
	uint64_t slot = u->sp, bp = u->frame.registers[CFI_RBP], ip, saved = bp;
	bool has_frame = true;

	/* Nothing has been pushed yet in a stub, or at the first instruction of a function. */
	if (u->is_exact && (u->ip == place->entry || place->function->kind == FUNCTION_PLT))
		has_frame = false;
	else if (u->is_exact && u->ip == place->entry + sizeof(endbr))
		has_frame =
			code_map__read(u->map, place->entry, code, sizeof(code)) != sizeof(code) ||
			memcmp(code, endbr, sizeof(code)) != 0;
	if (has_frame) {
		if (is_behind_deepest(u))
			return STEP_OUTERMOST;
		if (!(u->frame.known >> CFI_RBP & 1) || bp < u->sp || !read_word(u, bp, &saved))
			return STEP_LOST;
		slot = bp + 8;
	}
	if (!read_word(u, slot, &ip))
		return STEP_LOST;
	u->by_frame = slot != u->sp;
	/* Other registers may have been saved anywhere. */
	u->frame.known = 0;
	set_register(&u->frame, CFI_RBP, saved);
	u->ip = ip;
	u->sp = slot + 8;
	return STEP_CALLER;
}

static enum step step(struct unwinder *u)
{
	struct code_place place;
	struct cfi_row row;

	if (is_restorer(u))
		return step_signal(u);
	/* A call that never returns may be the last instruction of its function. */
	if (!code_map__find(u->map, u->ip - !u->is_exact, &place))
		return STEP_LOST;
	if (cfi__find(place.image, place.vaddr, &row)) {
		u->by_frame = false;
		return step_by_rules(u, &row);
	}
	return step_by_epilogue(u, &place) ? STEP_CALLER : step_by_frame_pointer(u, &place);
}

/* The most tail calls, one after another, by which a probed function has become the running one. */
#define TAIL_CALLS_MAX 4

/* True if the function's code has a jump to `to`, or to a function that leads there by such jumps.
 */
static bool jumps_to(struct code_map *map, const struct code_place *function, uint64_t to,
		     unsigned int n_calls)
{
	uint64_t end = function->entry + function->function->size;
	uint8_t code[INSN_MAX_LEN];
	struct code_place next;
	struct insn insn;

	for (uint64_t ip = function->entry; ip < end; ip += insn.len) {
		if (insn__decode(code, code_map__read(map, ip, code, sizeof(code)), ip, &insn))
			return false;
		if (insn.cls != INSN_JUMP)
			continue;
		if (insn.target == to)
			return true;
		if (n_calls < TAIL_CALLS_MAX && code_map__find(map, insn.target, &next) &&
		    next.entry == insn.target && next.function != function->function &&
		    jumps_to(map, &next, to, n_calls + 1))
			return true;
	}
	return false;
}

/* Returns the original return address of the frame at `from`, if its return is probed; 0: unknown.
 */
static uint64_t find_original(struct unwinder *u, uint64_t from)
{
	const struct unwind_start *start = u->start;
	struct code_place place, called;
	bool is_probed = false;
	size_t i = 0;

	if (!start->n_calls)
		return start->returns_to;
	if (!code_map__find(u->map, from, &place))
		return 0;
	for (size_t j = start->n_calls; j-- > 0;) {
		if (start->calls[j].function != place.function)
			continue;
		is_probed = true;
		if (j >= u->next_call)
			i = j;
	}
	/*
	 * The frame of a function to which a probed one has jumped (a tail call, or several)
	 * returns for that one. Otherwise another tool probes the function.
	 */
	if (!is_probed) {
		i = u->next_call;
		if (!find_called(u->map, start->calls[i].returns_to, &called) ||
		    called.function != start->calls[i].function ||
		    !jumps_to(u->map, &called, place.entry, 1))
			return 0;
	}
	if (i < u->next_call)
		return 0;
	u->next_call = i + 1 < start->n_calls ? i + 1 : i;
	return start->calls[i].returns_to;
}

int unwind__stack(struct code_map *map, const struct unwind_start *start, struct unwound *out)
{
	struct unwinder u = {
		.map = map,
		.out = out,
		.frame = {.read = read_stack, .ctx = &u},
		.ip = start->ip,
		.sp = start->sp,
		.start = start,
		.is_exact = true,
	};
	struct code_place place;
	int err;

	*out = (struct unwound){0};
	set_register(&u.frame, CFI_RBX, start->bx);
	set_register(&u.frame, CFI_RBP, start->bp);
	set_register(&u.frame, CFI_R12, start->r12);
	set_register(&u.frame, CFI_R13, start->r13);
	set_register(&u.frame, CFI_R14, start->r14);
	set_register(&u.frame, CFI_R15, start->r15);
	err = VEC_ADD(&out->ips, u.ip);
	while (!err && out->ips.n < UNWIND_MAX) {
		uint64_t from = u.ip - !u.is_exact;
		enum step result = step(&u);

		/*
		 * A signal handler returns to the restorer, whose address the kernel has pushed.
		 * The restorer is not a caller, and is removed.
		 */
		if (result == STEP_INTERRUPTED && out->ips.n > 1)
			out->ips.n--;
		u.is_exact = result == STEP_INTERRUPTED;
		out->is_whole = result == STEP_OUTERMOST ||
				(result == STEP_CALLER && is_behind_deepest(&u));
		if (start->trampoline && u.ip == start->trampoline)
			u.ip = find_original(&u, from);
		if (result == STEP_OUTERMOST || result == STEP_LOST)
			break;
		/* The new ip must be in known code, or follow a call. */
		if (u.is_exact ? !code_map__find(map, u.ip, &place)
			       : !unwind__is_behind_call(map, u.ip) && !is_restorer(&u))
			break;
		err = VEC_ADD(&out->ips, u.ip);
	}
	return err;
}

void unwound__fini(struct unwound *unwound)
{
	VEC_FINI(&unwound->ips);
}
