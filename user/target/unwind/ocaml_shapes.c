// SPDX-License-Identifier: MIT
#include "target/unwind/ocaml_shapes.h"

#include <string.h>

#include "util/insn.h"

/* Where the runtime's raisers have raised, at the latest. */
#define RAISER_LENGTH 8

void recent_moves__add(struct recent_moves *recent, struct insn_move move)
{
	memmove(&recent->v[1], &recent->v[0], (SHAPE_LENGTH - 1) * sizeof(recent->v[0]));
	recent->v[0] = move;
}

static bool is_mem(const struct insn_move *move, uint8_t kind, uint8_t base, int32_t disp)
{
	return move->kind == kind && move->base == base && move->disp == disp;
}

static bool is_store_to_state(const struct insn_move *move)
{
	return move->kind == MOVE_STORE && move->base == INSN_R14;
}

/* lea handler,%r11; push %r11; push slot(%r14); mov %rsp,slot(%r14) */
static bool is_compilers_push(const struct insn_move v[static SHAPE_LENGTH])
{
	return v[0].reg == INSN_RSP && is_mem(&v[1], MOVE_PUSH_MEM, INSN_R14, v[0].disp) &&
	       v[2].kind == MOVE_PUSH && v[3].kind == MOVE_ADDRESS && v[3].reg == v[2].reg;
}

/*
 * On a stack that is not switched to yet (5.x: caml_start_program, caml_runstack):
 * lea handler,%x; mov %x,8(%y); mov ...,%x; mov %x,(%y); mov %y,slot(%r14)
 */
static bool is_runtimes_push(const struct insn_move v[static SHAPE_LENGTH])
{
	uint8_t frame = v[0].reg, value = v[1].reg;

	return is_mem(&v[1], MOVE_STORE, frame, 0) && v[2].kind == MOVE_LOAD && v[2].reg == value &&
	       is_mem(&v[3], MOVE_STORE, frame, 8) && v[3].reg == value &&
	       v[4].kind == MOVE_ADDRESS && v[4].reg == value;
}

uint64_t recent_moves__pushed(const struct recent_moves *recent, int32_t *slot)
{
	const struct insn_move *v = recent->v;

	if (!is_store_to_state(&v[0]))
		return 0;
	*slot = v[0].disp;
	if (is_compilers_push(v))
		return v[3].address;
	return is_runtimes_push(v) ? v[4].address : 0;
}

bool recent_moves__popped(const struct recent_moves *recent, int32_t slot)
{
	const struct insn_move *v = recent->v;

	return is_mem(&v[0], MOVE_POP_MEM, INSN_R14, slot) ||
	       (is_store_to_state(&v[0]) && v[0].disp == slot);
}

bool recent_moves__raises(const struct recent_moves *recent, int32_t slot)
{
	return is_mem(&recent->v[0], MOVE_LOAD, INSN_R14, slot) && recent->v[0].reg == INSN_RSP;
}

/* lea table,%x; movslq (%x,%y,4),%y; add %y,%x; jmp *%x */
uint64_t recent_moves__switches(const struct recent_moves *recent)
{
	const struct insn_move *v = recent->v;

	if (v[0].kind != MOVE_JUMP || v[1].kind != MOVE_ADD || v[1].reg != v[0].reg ||
	    !is_mem(&v[2], MOVE_LOAD_ENTRY, v[3].reg, 0) || v[3].kind != MOVE_ADDRESS)
		return 0;
	return v[3].address;
}

/* mov %reg,disp(%r14): REX.W + REX.B 89 /r with %r14 and a displacement. */
bool ocaml_shapes__may_push(const uint8_t *code, size_t len)
{
	for (size_t i = 0; i + 2 < len; i++)
		if (code[i + 1] == 0x89 && (code[i] & 0xfb) == 0x49 && (code[i + 2] & 7) == 6 &&
		    ((code[i + 2] >> 6) == 1 || (code[i + 2] >> 6) == 2))
			return true;
	return false;
}

static bool is_raisers_name(const char *name)
{
	static const char *const names[] = {"caml_raise_exn", "caml_reraise_exn",
					    "caml_ml_array_bound_error",
					    "caml_ml_array_align_error"};
	size_t len = strcspn(name, "@");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (len == strlen(names[i]) && !memcmp(name, names[i], len))
			return true;
	return false;
}

/* How the code at vaddr begins, without what it would jump to. The count of instructions. */
static size_t read_start(struct elf_image *image, uint64_t vaddr,
			 struct insn_move moves[static RAISER_LENGTH], struct insn *last)
{
	uint64_t offset = elf_image__offset_of_vaddr(image, vaddr);
	size_t len = 0, n = 0;
	const uint8_t *code = offset == UINT64_MAX ? NULL : elf_image__bytes(image, offset, &len);

	while (code && n < RAISER_LENGTH && !insn__decode(code, len, vaddr, last)) {
		moves[n++] = insn__move(code, len, vaddr);
		code += last->len;
		len -= last->len;
		vaddr += last->len;
		if (last->cls != INSN_OTHER && last->cls != INSN_COND)
			break;
	}
	return n;
}

/*
 * Nobody tells its name: caml_raise_exn loads the stack pointer from the state; and
 * caml_ml_array_bound_error jumps to caml_c_call with a C function's address in %rax.
 */
static bool looks_like_raiser(struct elf_image *image, uint64_t vaddr)
{
	struct insn_move moves[RAISER_LENGTH];
	struct insn last = {0};
	size_t n = read_start(image, vaddr, moves, &last);

	for (size_t i = 0; i < n; i++)
		if (moves[i].kind == MOVE_LOAD && moves[i].base == INSN_R14 &&
		    moves[i].reg == INSN_RSP)
			return true;
	return n > 1 && last.cls == INSN_JUMP && moves[n - 2].kind == MOVE_ADDRESS &&
	       moves[n - 2].reg == INSN_RAX &&
	       elf_image__offset_of_vaddr(image, moves[n - 2].address) != UINT64_MAX;
}

bool ocaml_shapes__is_raiser(struct elf_image *image, uint64_t vaddr)
{
	const struct function *function = elf_image__function_at(image, vaddr);

	if (!function)
		return false;
	if (function->kind == FUNCTION_UNKNOWN)
		return looks_like_raiser(image, vaddr);
	return is_raisers_name(function->raw_name);
}
