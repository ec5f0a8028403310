/* SPDX-License-Identifier: MIT */
/* Writes the call tree as lines of text, with the same content as the trace file. */
#ifndef MTBPF_TRACE_TEXT_H
#define MTBPF_TRACE_TEXT_H

#include <stdint.h>
#include <stdio.h>

#include "stack/call_tree.h"

/*
 * Prints one line per slice, in pre-order: "tid depth start_ns end_ns name", with times relative to
 * base_ns; a coroutine's tid is "tid.number". The suffix [kernel] or [inlined] follows the name of
 * a kernel function or of an inlined one. Slices deeper than TIMELINE_MAX_DEPTH are left out. 0 or
 * -errno.
 */
int trace_text__tree(FILE *out, const struct call_tree *tree, uint64_t base_ns);

/* The formats of text: -format NAME prints each tree with trace_NAME__tree(). */
#define TEXT_FORMATS(EACH) EACH(text)

typedef int (*text_format_fn)(FILE *out, const struct call_tree *tree, uint64_t base_ns);

/*
 * Writes n trees to the file that sink__open() creates; *bytes is its size. 0, or -errno after one
 * line and a hint on stderr.
 */
int trace_text__write(const char *path, text_format_fn format, const struct call_tree *trees,
		      size_t n, uint64_t base_ns, uint64_t *bytes);

#endif
