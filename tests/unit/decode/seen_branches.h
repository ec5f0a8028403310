/* SPDX-License-Identifier: MIT */
/* What a filter handed on, as text to compare: "begin 10, gap 20, ". */
#ifndef MTBPF_TESTS_UNIT_SEEN_BRANCHES_H
#define MTBPF_TESTS_UNIT_SEEN_BRANCHES_H

#include <stdio.h>
#include <string.h>

#include "decode/branch.h"

struct seen_branches {
	char text[512];
};

/* A branch_fn, whose ctx is a struct seen_branches. */
static inline int seen_branches__add(void *ctx, const struct branch *b)
{
	struct seen_branches *seen = ctx;
	size_t n = strlen(seen->text);

	snprintf(seen->text + n, sizeof(seen->text) - n, "%s %llu, ",
		 branch_kind__name((enum branch_kind)b->kind), (unsigned long long)b->time_ns);
	return 0;
}

#endif
