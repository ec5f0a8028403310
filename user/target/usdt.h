/* SPDX-License-Identifier: MIT */
/*
 * USDT probes: places for probes that were built into a program (sys/sdt.h). They are read from its
 * notes in .note.stapsdt: name and locations of the arguments. Invalid notes are skipped.
 */
#ifndef MTBPF_TARGET_USDT_H
#define MTBPF_TARGET_USDT_H

#include <stdint.h>

#include "mtbpf_shared.h"
#include "target/elf/elf_image.h"
#include "target/symbols/symbols.h"
#include "util/vec.h"

/* One place; a probe may have several. The strings live as long as the image. */
struct usdt_place {
	const char *provider, *name;
	const char *args;	   /* where they are: "-4@%eax 8@-24(%rbp)" */
	uint64_t vaddr;		   /* of the instruction */
	uint64_t semaphore_offset; /* in the file: incremented while it is probed; 0: none */
};

typedef VEC(struct usdt_place) usdt_place_vec;

/* Adds every place, in the order of the notes. 0 or -ENOMEM. */
int elf_image__usdt_places(struct elf_image *image, usdt_place_vec *places);

/* USDT probes, by name. */

/* The prefix of a USDT selector. */
#define USDT_PREFIX "usdt:"

/* One place of a probe. */
struct usdt_match {
	const struct module *module;
	struct usdt_place place;
};
typedef VEC(struct usdt_match) usdt_match_vec;

/* True if the text has the form of a USDT selector. */
bool usdt__is_selector(const char *text);

/*
 * Finds all places of the one probe named "usdt:provider:name", or "usdt:file:provider:name" (file:
 * as in symbols__find(), or a path). provider and name may be globs. 0 and *found, which the caller
 * frees; or after one line and a hint: -EINVAL invalid selector, -ENOENT, -ENOTUNIQ, or -ENODATA:
 * the process does not have USDT probes.
 */
int symbols__find_usdt(const struct symbols *symbols, const char *text, usdt_match_vec *found);

/*
 * Calls fn for every place whose "usdt:file:provider:name" or "usdt:provider:name" matches the
 * glob, until it returns non-zero. Returns that value; otherwise 0, or -ENOMEM.
 */
int symbols__each_usdt(const struct symbols *symbols, const char *glob,
		       int (*fn)(void *ctx, const struct usdt_match *match), void *ctx);

/* Locations of a USDT probe's arguments, from the text in its note. */

/*
 * Reads "-4@%eax 8@-24(%rbp) 4@$5 8@(%rax,%rbx,8)": size@operand, with a negative size if signed.
 * Other operands (vector registers, %rip, segments), and invalid text, become MT_ARG_UNKNOWN.
 */
void usdt_args__parse(const char *text, struct mt_args *args);

#endif
