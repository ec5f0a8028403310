// SPDX-License-Identifier: MIT
#include "trace/read/fxt_by.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "trace/slice_args.h"
#include "util/label.h"

/* The file does not say how much of the call; no call takes that long. */
#define ALL_OF_IT UINT64_MAX

/*
 * Parses "helper (process 11050, thread 11051)"; goroutines have ", in main.handle" before the last
 * bracket. The name may contain brackets. *in points to the function's name, or is NULL.
 */
static bool parse(struct done_by *by, const char *text, const char **in)
{
	const char *at = strstr(text, " (process "), *next;

	while (at && (next = strstr(at + 1, " (process ")))
		at = next;
	if (!at || sscanf(at, " (process %d, thread %d", &by->pid, &by->tid) != 2)
		return false;
	next = strstr(at, SLICE_BY_IN);
	by->is_goroutine = next != NULL;
	*in = next && strncmp(next + strlen(SLICE_BY_IN), SLICE_BY_NOWHERE,
			      strlen(SLICE_BY_NOWHERE))
		      ? next + strlen(SLICE_BY_IN)
		      : NULL;
	snprintf(by->comm, sizeof(by->comm), "%.*s", (int)(at - text), text);
	label__clean_in_place(by->comm);
	return true;
}

/* Copies the rest of the text, without the bracket at its end. NULL: no memory. */
static const char *keep_name(const char *in, fxt_texts *texts)
{
	size_t n = strlen(in);
	char **copy = VEC_PUSH(texts);

	if (!copy)
		return NULL;
	*copy = strndup(in, n ? n - 1 : 0);
	if (*copy)
		label__clean_in_place(*copy);
	return *copy;
}

int fxt_by__take(struct call_tree *tree, const struct fxt_read *read, fxt_texts *texts)
{
	for (size_t i = 0; i < SLICE_BY_MAX; i++) {
		const struct fxt_read_arg *ns = fxt_read__arg(read, slice_by_keys[i].ns);
		struct done_by by = {.call = (uint32_t)tree->calls.n - 1,
				     .ns = ns ? ns->number : ALL_OF_IT},
			       *place;
		const char *in;

		if (!parse(&by, fxt_read__string(read, slice_by_keys[i].who), &in))
			break;
		by.in = in ? keep_name(in, texts) : NULL;
		place = !in || by.in ? VEC_PUSH(&tree->done_by) : NULL;
		if (!place)
			return -ENOMEM;
		*place = by;
	}
	return 0;
}

void fxt_by__finish(struct call_tree *tree)
{
	for (size_t i = 0; i < tree->done_by.n; i++) {
		struct done_by *by = &tree->done_by.v[i];
		const struct call *call = &tree->calls.v[by->call];

		/* Nothing in the file is believed. */
		if (by->ns > call->end_ns - call->start_ns)
			by->ns = call->end_ns - call->start_ns;
	}
}
