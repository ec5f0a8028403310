/* SPDX-License-Identifier: MIT */
/* Between the files that make slices. */
#ifndef MTBPF_SAMPLED_SLICES_INTERNAL_H
#define MTBPF_SAMPLED_SLICES_INTERNAL_H

#include "sampled/slices.h"

/* Opens one in the innermost; NULL where memory ran out. Good until the next one. */
struct open_slice *slices__push(struct slices *slices, const struct seen *seen, uint64_t time_ns,
				uint8_t flags);
/* Closes all but n, with these flags. */
void slices__pop_to(struct slices *slices, size_t n, uint64_t time_ns, uint8_t flags);
/* Closes calls whose returns were seen, up to now. */
void slices__leave_returned(struct slices *slices, uint64_t time_ns);
/* The innermost slice is or waits for that. */
void slices__add_wait(struct slices *slices, const struct waits_for *wait);
/* Begins the system call that lasts at that time, on this stack, if one does. */
void slices__begin_long_call(struct slices *slices, uint64_t time_ns, const struct seen *stack,
			     size_t n);
/* What was seen, without anything about the time before. */
void slices__see_stack(struct slices *slices, uint64_t time_ns, const struct seen *stack, size_t n);
/* No stack shows what was entered last: only what had called it is known to run on. */
void slices__flush_entered(struct slices *slices, uint64_t time_ns);

#endif
