/* SPDX-License-Identifier: MIT */
/*
 * The pattern of many captures as one HTML page. It loads nothing and contains no script, and its
 * content security policy does not allow any. Charts are SVG, in percent of the width, so that they
 * fit a phone as well as a wide screen.
 */
#ifndef MTBPF_VIEW_PAGE_H
#define MTBPF_VIEW_PAGE_H

#include <stddef.h>
#include <stdio.h>

#include "view/pattern.h"

/* Limit of captures that get a section; each cause's worst come first. */
#define PAGE_CAPTURES_MAX 200

struct page_options {
	/* The link that opens the i-th summary's capture in Perfetto; NULL: no links. */
	const char *(*link)(void *ctx, size_t i);
	void *ctx;
};

/* 0 or -ENOMEM. Write errors are left in `out`: ferror(3). */
int page__print(FILE *out, const struct patterns *p, const struct page_options *options);

#endif
