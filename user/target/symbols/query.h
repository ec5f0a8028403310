/* SPDX-License-Identifier: MIT */
/* Selectors of functions, source lines and addresses, as users type them. */
#ifndef MTBPF_TARGET_SYMBOLS_QUERY_H
#define MTBPF_TARGET_SYMBOLS_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/symbols/symbols.h"
#include "util/vec.h"

typedef VEC(struct symbol_match) match_vec;

/* The prefix of a source line's selector. */
#define LINE_PREFIX "line:"

/* A parsed selector. */
struct query {
	const char *text;   /* all of it */
	const char *module; /* "libfoo.so" of "libfoo.so:name": module_len characters of text */
	size_t module_len;  /* 0: any module */
	char *name;	    /* owned */
	uint64_t vaddr;	    /* of "0x1234"; else UINT64_MAX */
	uint64_t address;   /* of "addr:0x1234"; else UINT64_MAX */
	uint64_t offset;    /* of "name+0x10" */
	unsigned int line;  /* of "line:file.c:123", where name is the file; else 0 */
	/* An identifier that the mangled name must contain too; len 0: unused. */
	const char *needle;
	size_t needle_len;
};

enum tier {
	TIER_EXECUTABLE,
	TIER_LIBRARIES,
	TIER_NAMED, /* those that query.module names */
};

/*
 * Parses the text; the query points into it. 0, -ENOMEM, or -EINVAL after a message that shows the
 * error, and a hint. query__fini() in any case.
 */
int query__parse(struct query *query, const char *text);
void query__fini(struct query *query);
/* True if the selector is "?": the user wants to pick from all functions. */
bool query__asks(const struct query *query);
/* True if query.module names this file: by its base name, or by that up to a '.'. */
bool query__names(const struct query *query, const char *name);
/* True if the module belongs to the tier. */
bool query__covers(const struct query *query, enum tier tier, const struct module *module);

#endif
