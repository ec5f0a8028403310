// SPDX-License-Identifier: MIT
#include "stack/functions.h"

#include <stdbool.h>
#include <string.h>

#include "kernel/kernel.h"
#include "util/insn.h"

/*
 * The largest function that may switch stacks: it saves and loads a few registers, in glibc also
 * the signal mask.
 */
#define MAX_SIZE 512

/*
 * True if the code may load the stack pointer, without decoding it: mov r/m64, %rsp (REX.W 8b /4),
 * mov %r64, %rsp (REX.W 89 /r to 4) and the same of xchg (87). Intel SDM vol. 2, "MOV", "XCHG".
 */
static bool may_load_sp(const uint8_t *code, size_t len)
{
	for (size_t i = 0; i + 2 < len; i++) {
		uint8_t rex = code[i], op = code[i + 1], modrm = code[i + 2];

		if ((rex & 0xf8) != 0x48)
			continue;
		if ((op == 0x8b || op == 0x87) && !(rex & 4) && (modrm & 0x38) == 0x20)
			return true;
		if ((op == 0x89 || op == 0x87) && !(rex & 1) && (modrm & 0xc7) == 0xc4)
			return true;
	}
	return false;
}

/*
 * True if the code loads SP from elsewhere and then, without another branch in between, returns or
 * jumps indirectly: to the other stack's code.
 */
static bool loads_sp_and_goes(const uint8_t *code, size_t len, uint64_t ip)
{
	struct insn_move before = {0};
	uint32_t saved = 0; /* registers that hold this stack's pointer, a bit each */
	bool loaded = false;
	struct insn insn;

	for (size_t at = 0; at < len; at += insn.len) {
		struct insn_move move;
		bool takes_trap, restores;

		if (insn__decode(code + at, len - at, ip + at, &insn))
			return false;
		if (insn.cls != INSN_OTHER) {
			if (loaded && (insn.cls == INSN_RET || insn.cls == INSN_JUMP_INDIRECT))
				return true;
			loaded = false;
			continue;
		}
		move = insn__move(code + at, insn.len, ip + at);
		/*
		 * pop slot(%r14), after mov slot(%r14),%rsp: OCaml's innermost trap frame, on the
		 * same stack (amd64 emit, Lraise).
		 */
		takes_trap = before.kind == MOVE_LOAD && before.reg == INSN_RSP &&
			     before.base == INSN_R14 && move.kind == MOVE_POP_MEM &&
			     move.base == INSN_R14 && move.disp == before.disp;
		/* OCaml 5 puts back a stack pointer that it has saved, after a call of C. */
		restores = move.kind == MOVE_REG && move.reg == INSN_RSP && saved >> move.base & 1;
		loaded =
			!takes_trap && !restores && (loaded || insn__loads_sp(code + at, insn.len));
		if (move.kind == MOVE_REG && move.base == INSN_RSP)
			saved |= 1u << move.reg;
		else if (move.kind == MOVE_REG || move.kind == MOVE_LOAD ||
			 move.kind == MOVE_ADDRESS || move.kind == MOVE_POP)
			saved &= ~(1u << move.reg);
		before = move;
	}
	return false;
}

/*
 * xor %fs:0x30, %r64 (REX.W 33 /r, after the prefix of %fs): glibc stores the pointers of a jmp_buf
 * scrambled so (sysdeps/unix/sysv/linux/x86_64/pointer_guard.h). This is longjmp(), which stays on
 * its stack.
 */
static bool takes_guarded_pointer(const uint8_t *code, size_t len)
{
	static const uint8_t guard[] = {0x25, 0x30, 0, 0, 0};

	for (size_t i = 0; i + 4 + sizeof(guard) <= len; i++)
		if (code[i] == 0x64 && (code[i + 1] & 0xfb) == 0x48 && code[i + 2] == 0x33 &&
		    (code[i + 3] & 0xc7) == 0x04 && !memcmp(code + i + 4, guard, sizeof(guard)))
			return true;
	return false;
}

bool switch_code__is_at(struct code_map *map, const struct code_place *place)
{
	uint8_t code[MAX_SIZE];
	size_t len = place->function->size;

	if (len > sizeof(code))
		return false;
	len = code_map__read(map, place->entry, code, len);
	return may_load_sp(code, len) && loads_sp_and_goes(code, len, place->entry) &&
	       !takes_guarded_pointer(code, len);
}

/* Names of glibc's functions, and of functions of other libraries that do the same. */
static const struct {
	const char *name;
	enum function_role role;
} roles[] = {
	{"setjmp", ROLE_SETJMP},
	{"_setjmp", ROLE_SETJMP},
	{"__setjmp", ROLE_SETJMP},
	{"sigsetjmp", ROLE_SIGSETJMP},
	{"__sigsetjmp", ROLE_SIGSETJMP},
	{"getcontext", ROLE_GETCONTEXT},
	{"__getcontext", ROLE_GETCONTEXT},
	{"_start", ROLE_START},
	{"_Unwind_Find_FDE", ROLE_FIND_FDE},
	{"swapcontext", ROLE_SWITCH},
	{"jump_fcontext", ROLE_SWITCH},
	{"ontop_fcontext", ROLE_SWITCH},
	{"_mco_switch", ROLE_SWITCH},
	{"coroutine_transfer", ROLE_SWITCH}, /* Ruby: coroutine/amd64/Context.S */
	{"setcontext", ROLE_SETCONTEXT},
	/* Go: src/runtime/asm_amd64.s */
	{"gogo", ROLE_GOGO},
	{"runtime.gogo", ROLE_GOGO},
	{"runtime.mcall", ROLE_MCALL},
	{"runtime.morestack", ROLE_MCALL},
	/* OCaml 5: runtime/amd64.S */
	{"caml_perform", ROLE_PERFORM},
	{"caml_reperform", ROLE_REPERFORM},
	{"caml_resume", ROLE_RESUME},
	{"caml_runstack", ROLE_RUNSTACK},
};

/* A stub has the name of its function followed by "@plt". */
static bool is_called(const struct function *function, const char *name)
{
	const char *raw_name = function->raw_name;
	size_t len = strlen(name);

	if (strncmp(raw_name, name, len))
		return false;
	raw_name += len;
	if (function->kind == FUNCTION_PLT)
		return !strcmp(raw_name, "@plt");
	/* Go has two conventions for calls; assembler's is the older one. */
	return !*raw_name || !strcmp(raw_name, ".abi0");
}

static bool begins_with(const struct function *function, const char *text)
{
	return !strncmp(function->raw_name, text, strlen(text));
}

static enum function_role by_name(const struct function *function)
{
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (is_called(function, roles[i].name))
			return roles[i].role;
	/* glibc has several, one for each way to save registers. */
	return begins_with(function, "_dl_runtime_resolve") ? ROLE_RESOLVER : ROLE_NONE;
}

enum function_role function_role__at(struct code_map *map, const struct code_place *place)
{
	const struct function *function = place->function;
	enum function_role role = ROLE_NONE;

	if (address__is_kernel(place->entry))
		return ROLE_NONE;
	if (function->kind != FUNCTION_UNKNOWN)
		role = by_name(function);
	else if (!strncmp(function->module, "ld-", strlen("ld-")))
		return ROLE_LINKER;
	/*
	 * In newer versions of Go runtime.gogo() only jumps to gogo(), which switches. If its code
	 * is not known, both have the role: see rules.c.
	 */
	if (role == ROLE_GOGO && elf_image__has_code(function->image))
		return switch_code__is_at(map, place) ? ROLE_GOGO : ROLE_NONE;
	if (role || function->kind == FUNCTION_PLT)
		return role;
	/*
	 * These set the stack pointer and do not switch: it is a frame's on the same stack, or
	 * another stack's for a call that comes back.
	 */
	if (begins_with(function, "_Unwind_") || begins_with(function, "caml_") ||
	    strstr(function->raw_name, "longjmp") || begins_with(function, "runtime.systemstack") ||
	    begins_with(function, "runtime.asmcgocall"))
		return ROLE_NONE;
	return switch_code__is_at(map, place) ? ROLE_MAY_SWITCH : ROLE_NONE;
}

void function_cache__init(struct function_cache *cache, struct code_map *map)
{
	cache->map = map;
}

void function_cache__follow(struct function_cache *cache)
{
	unsigned int replaced = code_map__replaced(cache->map);

	if (replaced == cache->replaced)
		return;
	memset(cache->places, 0, sizeof(cache->places));
	cache->replaced = replaced;
}

const struct function *function_cache__look_up(struct function_cache *cache, uint64_t ip,
					       bool *is_entry)
{
	struct cached_function *first = function_cache__place(cache, ip), was = *first;
	struct cached_function *second = &cache->places[(size_t)(first - cache->places) ^ 1];
	struct code_place place;

	*is_entry = false;
	if (second->ip == ip && second->function) {
		*first = *second;
		*second = was;
		*is_entry = first->is_entry;
		return first->function;
	}
	/* Failures are not cached: code may be mapped here later. */
	if (!code_map__find(cache->map, ip, &place))
		return NULL;
	*is_entry = place.entry == ip;
	*first = (struct cached_function){
		.ip = ip,
		.function = place.function,
		.is_entry = *is_entry,
		.role = *is_entry ? function_role__at(cache->map, &place) : ROLE_NONE,
	};
	if (was.function)
		*second = was;
	return place.function;
}
