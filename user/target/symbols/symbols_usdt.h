/* SPDX-License-Identifier: MIT */
/* USDT probes of a process by name. */
#ifndef MTBPF_TARGET_SYMBOLS_SYMBOLS_USDT_H
#define MTBPF_TARGET_SYMBOLS_SYMBOLS_USDT_H

#include "target/elf/elf_usdt.h"
#include "target/symbols/symbols.h"
#include "util/vec.h"

/* How such a selector begins. */
#define USDT_PREFIX "usdt:"

/* One place of a probe. */
struct usdt_match {
	const struct module *module;
	struct usdt_place place;
};
typedef VEC(struct usdt_match) usdt_match_vec;

/* Whether the text is meant to name a USDT probe. */
bool usdt__is_selector(const char *text);

/*
 * All places of the one probe that is named "usdt:provider:name", or "usdt:file:provider:name"
 * (file: as in symbols__find(), or a path). provider and name may be globs. 0 and *found, which the
 * caller frees; or after one line and a hint: -EINVAL it is no selector, -ENOENT, -ENOTUNIQ, or
 * -ENODATA: there are no USDT probes at all.
 */
int symbols__find_usdt(const struct symbols *symbols, const char *text, usdt_match_vec *found);

/*
 * Calls fn for every place whose "usdt:file:provider:name" or "usdt:provider:name" matches the
 * glob, until it returns non-zero. Returns that value.
 */
int symbols__each_usdt(const struct symbols *symbols, const char *glob,
		       int (*fn)(void *ctx, const struct usdt_match *match), void *ctx);

#endif
