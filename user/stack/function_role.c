// SPDX-License-Identifier: MIT
#include "stack/function_role.h"

#include <stdbool.h>
#include <string.h>

#include "stack/switch_code.h"
#include "util/address.h"

/* glibc's names, and those of others that are made like them. */
static const struct {
	const char *name;
	enum function_role role;
} roles[] = {
	{"setjmp", ROLE_SETJMP},	   {"_setjmp", ROLE_SETJMP},
	{"__setjmp", ROLE_SETJMP},	   {"sigsetjmp", ROLE_SIGSETJMP},
	{"__sigsetjmp", ROLE_SIGSETJMP},   {"getcontext", ROLE_GETCONTEXT},
	{"__getcontext", ROLE_GETCONTEXT}, {"_start", ROLE_START},
	{"swapcontext", ROLE_SWITCH},	   {"jump_fcontext", ROLE_SWITCH},
	{"ontop_fcontext", ROLE_SWITCH},   {"_mco_switch", ROLE_SWITCH},
	{"setcontext", ROLE_SETCONTEXT},
};

/* A stub is called what its function is, with "@plt" behind it. */
static bool is_called(const struct function *function, const char *name)
{
	const char *raw_name = function->raw_name;
	size_t len = strlen(name);

	if (strncmp(raw_name, name, len))
		return false;
	return !raw_name[len] ||
	       (function->kind == FUNCTION_PLT && !strcmp(raw_name + len, "@plt"));
}

static enum function_role by_name(const struct function *function)
{
	static const char resolver[] = "_dl_runtime_resolve"; /* one a way to save registers */

	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (is_called(function, roles[i].name))
			return roles[i].role;
	return strncmp(function->raw_name, resolver, sizeof(resolver) - 1) ? ROLE_NONE
									   : ROLE_RESOLVER;
}

/* They set the stack pointer as well, to that of a frame on the same stack. */
static bool unwinds(const struct function *function)
{
	return !strncmp(function->raw_name, "_Unwind_", strlen("_Unwind_")) ||
	       strstr(function->raw_name, "longjmp");
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
	if (role || function->kind == FUNCTION_PLT || unwinds(function))
		return role;
	return switch_code__is_at(map, place) ? ROLE_MAY_SWITCH : ROLE_NONE;
}
