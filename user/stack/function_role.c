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
	{"__getcontext", ROLE_GETCONTEXT},
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

/*
 * glibc's sysdeps/x86_64/dl-trampoline.h: one for each way to save registers. Where the linker's
 * symbols are stripped, it is known by who jumps to it: see stack__on_jump().
 */
static bool is_resolver(const struct function *function)
{
	return !strncmp(function->raw_name, "_dl_runtime_resolve", strlen("_dl_runtime_resolve"));
}

enum function_role function_role__at(const struct code_place *place)
{
	const struct function *function = place->function;

	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (is_called(function, roles[i].name))
			return roles[i].role;
	return is_resolver(function) ? ROLE_RESOLVER : ROLE_NONE;
}
