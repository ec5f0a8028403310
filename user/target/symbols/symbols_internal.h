/* SPDX-License-Identifier: MIT */
/* Shared by the search for a function by name and its error messages. */
#ifndef MTBPF_TARGET_SYMBOLS_SYMBOLS_INTERNAL_H
#define MTBPF_TARGET_SYMBOLS_SYMBOLS_INTERNAL_H

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
 * Takes the text apart; the query points into it. 0, -ENOMEM, or -EINVAL after a line that shows
 * where it is wrong, and a hint. query__fini() in any case.
 */
int query__parse(struct query *query, const char *text);
void query__fini(struct query *query);
/* Whether it is "?": the user wants to pick from all. */
bool query__asks(const struct query *query);
/* True if query.module names this file, by its base name. */
bool query__names(const struct query *query, const char *name);
/* True if the module belongs to the tier. */
bool query__covers(const struct query *query, enum tier tier, const struct module *module);

/*
 * symbols_address.c: the code at query->address, of the executable as it is linked, or of the
 * process as it runs. 0, or -ENOENT after a line and a hint.
 */
int symbols__find_address(const struct symbols *symbols, const struct query *query,
			  struct symbol_match *match);

/*
 * symbols_line.c: the code of query->line, in each function that has some. 0, or after a line and a
 * hint: -ENOENT. The caller frees *found.
 */
int symbols__find_line(const struct symbols *symbols, const struct query *query, match_vec *found);

/* symbols_pick.c: whether there is somebody to ask which of several is meant. */
bool symbols__can_pick(void);
/* Asks. 0, -ENOMEM, or -EINVAL after a line and a hint: none. */
int symbols__pick(const match_vec *found, struct symbol_match *match);

/* Each prints one line and a hint. -ENODATA or -ENOENT: why nothing was found. */
int symbols__refuse_unknown(const struct symbols *symbols, const struct query *query);
/* -ENOTUNIQ */
int symbols__refuse_ambiguous(const struct symbols *symbols, const struct query *query,
			      const match_vec *found);

#endif
