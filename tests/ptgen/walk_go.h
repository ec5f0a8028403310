/* SPDX-License-Identifier: MIT */
/* Whose frames are where, in a Go program: calls on other stacks are their callers' too. */
#ifndef MTBPF_TESTS_PTGEN_WALK_GO_H
#define MTBPF_TESTS_PTGEN_WALK_GO_H

#include "walk.h"

/* The stack pointer's place on the stack of the goroutine whose call or return it is. */
uint64_t walk_go__place(struct walk *w, const struct block *p, uint64_t sp);
/* The first of the handlers to run has a stack of its own: its frames go on what it interrupted. */
void walk_go__interrupted(struct walk *w, const struct signal_frame *first);
/* Behind the last handler: it may have put a call in. */
void walk_go__resumed(struct walk *w, uint64_t ip, uint64_t sp);

#endif
