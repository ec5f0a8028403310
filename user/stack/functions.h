/* SPDX-License-Identifier: MIT */
/*
 * Functions that do something to the stack that no call or return shows. They are known by their
 * names; those that switch to another stack, by their names or their code.
 */
#ifndef MTBPF_STACK_FUNCTIONS_H
#define MTBPF_STACK_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "target/code_map.h"

enum function_role {
	ROLE_NONE,
	ROLE_SETJMP,	 /* returns once more, by longjmp() */
	ROLE_SIGSETJMP,	 /* by siglongjmp() */
	ROLE_GETCONTEXT, /* by setcontext() */
	ROLE_RESOLVER,	 /* of lazy binding: jumps to the function that it has found */
	ROLE_START,	 /* where the kernel begins a program */
	ROLE_LINKER,	 /* nameless code of the dynamic linker, maybe a RESOLVER or START */
	ROLE_FIND_FDE,	 /* the unwinder asks it for each frame that it looks at: unwinding.c */
	ROLE_MAY_SWITCH, /* its code may switch to another stack */
	ROLE_SWITCH,	 /* it switches to another stack */
	ROLE_SETCONTEXT, /* the same, and it does not return */
	ROLE_GOGO,	 /* Go's: from its scheduler's stack to a goroutine */
	ROLE_MCALL,	 /* Go's: calls a function on the scheduler's stack and never returns */
	/* OCaml's effects: coroutines.c */
	ROLE_PERFORM,
	ROLE_REPERFORM,
	ROLE_RESUME,
	ROLE_RUNSTACK,
	ROLE_FIBER, /* what a fiber's first function returns to, on its own stack */
};

/* True if this is its name in the symbol table. */
static inline bool function__is_named(const struct function *function, const char *name)
{
	return function && !strcmp(function->raw_name ?: function->name, name);
}

static inline bool function_role__is_effect(enum function_role role)
{
	return role >= ROLE_PERFORM;
}

/*
 * The role of the function that begins at `place`, or of the function that a stub there leads to.
 */
enum function_role function_role__at(struct code_map *map, const struct code_place *place);

/*
 * Maps addresses to functions: a trace asks for the same few thousand addresses millions of times.
 */

/* A power of two. */
#define FUNCTION_CACHE_SIZE 32768

struct function_cache {
	struct code_map *map;
	unsigned int replaced; /* code_map__replaced() when the cache was last cleared */
	struct cached_function {
		uint64_t ip;
		const struct function *function; /* NULL: nothing is cached here */
		bool is_entry;
		uint8_t role; /* enum function_role if is_entry, otherwise ROLE_NONE */
	} places[FUNCTION_CACHE_SIZE];
};

/*
 * The cache must be zeroed memory, so that only the pages that are used are touched. The map must
 * outlive it.
 */
void function_cache__init(struct function_cache *cache, struct code_map *map);

/* Clears the cache if code in the map has been replaced. Call it after changes of the map. */
void function_cache__follow(struct function_cache *cache);

/* Searches come for neighbouring addresses, so the hash uses the bits above the low ones, too. */
static inline struct cached_function *function_cache__place(struct function_cache *cache,
							    uint64_t ip)
{
	return &cache->places[(ip ^ ip >> 15) % FUNCTION_CACHE_SIZE];
}

/*
 * True if the function at `place` loads the stack pointer from a register or from memory, and then
 * returns or jumps indirectly, as a switch of coroutines does. Some functions that align their
 * stack end like that, too. False for glibc's longjmp().
 */
bool switch_code__is_at(struct code_map *map, const struct code_place *place);

/*
 * Searches the address's second place, which is its neighbour's first one, and then the map. What
 * it finds gets the first place, and what was there the second one.
 */
const struct function *function_cache__look_up(struct function_cache *cache, uint64_t ip,
					       bool *is_entry);

/*
 * The function at ip as the map had it when the cache followed it last; NULL where no code is
 * known. *is_entry, unless is_entry is NULL: ip is its first instruction.
 */
static inline const struct function *function_cache__find(struct function_cache *cache, uint64_t ip,
							  bool *is_entry)
{
	const struct cached_function *place = function_cache__place(cache, ip);
	bool unused;

	if (place->ip != ip || !place->function)
		return function_cache__look_up(cache, ip, is_entry ?: &unused);
	if (is_entry)
		*is_entry = place->is_entry;
	return place->function;
}

#endif
