/* SPDX-License-Identifier: MIT */
/* "did you mean": the known word nearest to a mistyped one. */
#ifndef MTBPF_UTIL_NEAREST_H
#define MTBPF_UTIL_NEAREST_H

#include <stddef.h>

/* State of a search over any number of candidates; zero-initialise, but for `word`. */
struct nearest {
	const char *word;
	const char *best;
	unsigned int distance; /* of best */
};

/* Offers one candidate; kept by pointer where it is nearer than those before. */
void nearest__offer(struct nearest *nearest, const char *candidate);

/* The best candidate, or NULL where none is near enough to be what the user meant. */
const char *nearest__result(const struct nearest *nearest);

#endif
