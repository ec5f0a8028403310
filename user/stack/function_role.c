// SPDX-License-Identifier: MIT
#include "stack/function_role.h"

#include <stdbool.h>
#include <string.h>

#include "stack/switch_code.h"
#include "kernel/address.h"

/* glibc's names, and those of others that are made like them. */
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

/* A stub is called what its function is, with "@plt" behind it. */
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
	/* One for each way to save registers. */
	return begins_with(function, "_dl_runtime_resolve") ? ROLE_RESOLVER : ROLE_NONE;
}

/*
 * They set the stack pointer as well: to that of a frame on the same stack; or to another stack,
 * for a call that comes back.
 */
static bool keeps_to_its_stack(const struct function *function)
{
	return begins_with(function, "_Unwind_") || begins_with(function, "caml_") ||
	       strstr(function->raw_name, "longjmp") ||
	       begins_with(function, "runtime.systemstack") ||
	       begins_with(function, "runtime.asmcgocall");
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
	/* In newer ones runtime.gogo() only goes to gogo(): rules/switch.c, where there is no code.
	 */
	if (role == ROLE_GOGO && elf_image__has_code(function->image))
		return switch_code__is_at(map, place) ? ROLE_GOGO : ROLE_NONE;
	if (role || function->kind == FUNCTION_PLT || keeps_to_its_stack(function))
		return role;
	return switch_code__is_at(map, place) ? ROLE_MAY_SWITCH : ROLE_NONE;
}
