/* SPDX-License-Identifier: MIT */
/*
 * The pattern of many captures as one HTML page: nothing is loaded from anywhere, no script is in
 * it, and its content security policy lets none run. Charts are SVG, in percent of the width, so
 * that they fit a phone as well as a wide screen.
 */
#ifndef MTBPF_VIEW_PAGE_H
#define MTBPF_VIEW_PAGE_H

#include <stddef.h>
#include <stdio.h>

#include "view/pattern.h"

/* So many captures are shown each, those that lost the most of each cause first. */
#define PAGE_CAPTURES_MAX 200

struct page_options {
	/* Where a capture opens in Perfetto: a link for the i-th summary; NULL: there is none. */
	const char *(*link)(void *ctx, size_t i);
	void *ctx;
};

/* 0 or -ENOMEM. Errors of writing are out's. */
int page__print(FILE *out, const struct patterns *p, const struct page_options *options);

#endif
