// SPDX-License-Identifier: MIT
#include "stack/function_role.h"

#include <stdbool.h>
#include <string.h>

/* glibc's names, and those of others that are made like them. */
static const struct {
	const char *name;
	enum function_role role;
} roles[] = {
	{"setjmp", ROLE_SETJMP},	   {"_setjmp", ROLE_SETJMP},
	{"__setjmp", ROLE_SETJMP},	   {"sigsetjmp", ROLE_SIGSETJMP},
	{"__sigsetjmp", ROLE_SIGSETJMP},   {"getcontext", ROLE_GETCONTEXT},
	{"__getcontext", ROLE_GETCONTEXT}, {"_start", ROLE_START},
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

enum function_role function_role__at(const struct code_place *place)
{
	static const char resolver[] = "_dl_runtime_resolve"; /* one a way to save registers */
	const struct function *function = place->function;

	if (function->kind == FUNCTION_UNKNOWN)
		return strncmp(function->module, "ld-", 3) ? ROLE_NONE : ROLE_LINKER;
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (is_called(function, roles[i].name))
			return roles[i].role;
	return strncmp(function->raw_name, resolver, sizeof(resolver) - 1) ? ROLE_NONE
									   : ROLE_RESOLVER;
}
