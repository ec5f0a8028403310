/* SPDX-License-Identifier: MIT */
/* For tests that look at a decoder's branches one by one. */
#ifndef MTBPF_TESTS_EACH_BRANCH_H
#define MTBPF_TESTS_EACH_BRANCH_H

#include "decode/branch.h"

/* Defines a branches_fn: `each` takes the branches, and no entries, until it returns non-zero. */
#define TAKE_EACH(name, each)                                                                      \
	static inline int name(void *ctx, struct branch *v, size_t n)                              \
	{                                                                                          \
		int err = 0;                                                                       \
                                                                                                   \
		for (size_t i = 0; i < n && !err; i++)                                             \
			if (!branch__is_entry(&v[i]))                                              \
				err = each(ctx, &v[i]);                                            \
		return err;                                                                        \
	}

#endif
