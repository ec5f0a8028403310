/* SPDX-License-Identifier: MIT */
/* Between the files that make slices. */
#ifndef MTBPF_SAMPLED_SLICES_INTERNAL_H
#define MTBPF_SAMPLED_SLICES_INTERNAL_H

#include "sampled/slices.h"

/* What is known of the stack at one moment. */
struct view {
	const struct seen *stack; /* outermost first */
	size_t n;
	bool is_known; /* else there is none: what was there before is taken to run on */
	bool is_cut;   /* it begins with SEEN_NO_CALLERS */
};

/* How much of the open slices and of a stack is the same. */
struct common {
	size_t open, stack; /* so many of either */
};

/* Opens one in the innermost; NULL where memory ran out. Good until the next one. */
struct open_slice *slices__push(struct slices *slices, const struct seen *seen, uint64_t time_ns,
				uint8_t flags);
/* Opens those from..to of a stack, which began before time_ns. */
void slices__push_rest(struct slices *slices, const struct view *view, size_t from, size_t to,
		       uint64_t start_ns);
/* Closes all but n, with these flags. */
void slices__pop_to(struct slices *slices, size_t n, uint64_t time_ns, uint8_t flags);
/* The innermost slice is or waits for that. */
void slices__add_wait(struct slices *slices, const struct waits_for *wait);

/* Where something ended behind from_ns, and began before to_ns, that differs between the two. */
uint64_t slices__edge_behind(const struct slices *slices, uint64_t from_ns, uint64_t to_ns);
uint64_t slices__edge_before(const struct slices *slices, uint64_t from_ns, uint64_t to_ns);

/*
 * It is on the CPU up to until_ns. Of a stretch before that without stacks, much longer than the
 * samples' period, it is not known what ran: a slice "[not recorded]" in the innermost of the
 * first `keep` open slices, the only ones to go on. Nothing where stacks tell it.
 */
void slices__fill_unknown(struct slices *slices, size_t keep, uint64_t until_ns);

/* Of a view that is known, once slices__place() has looked at it. */
struct common slices__common(const struct slices *slices, const struct view *view);
/* So many of the open ones are known to run: the innermost that is exact, and its callers. */
size_t slices__count_exact(const struct slices *slices);
/* As far as two stacks show, the same call. */
bool seen__is_same(const struct seen *a, const struct seen *b);

/*
 * Finds the calls that are exact, open ones and those entered since, in the stack at time_ns. False
 * if the stack must lack callers: a call that runs has no place in it, and what it begins with is
 * not what that call was made from.
 */
bool slices__place(struct slices *slices, uint64_t time_ns, const struct view *view);
/* Opens what was entered since the last stack, and closes what has returned, up to time_ns. */
void slices__take_entered(struct slices *slices, uint64_t time_ns, const struct view *view);

#endif
