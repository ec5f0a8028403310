/* SPDX-License-Identifier: MIT */
/* Whose doing a slice is, back from its arguments. */
#ifndef MTBPF_TRACE_READ_FXT_BY_H
#define MTBPF_TRACE_READ_FXT_BY_H

#include "stack/call_tree.h"
#include "trace/read/fxt_read.h"

/* Texts that trees point to, each to be freed. */
typedef VEC(char *) fxt_texts;

/* Adds the done_by of the tree's last call, which has just begun; owns names in `texts`. 0 or
 * -ENOMEM. */
int fxt_by__take(struct call_tree *tree, const struct fxt_read *read, fxt_texts *texts);
/* After all calls have ended: if a call names only one thread, that one caused all of its time. */
void fxt_by__finish(struct call_tree *tree);

#endif
