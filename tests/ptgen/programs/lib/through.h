/* SPDX-License-Identifier: MIT */
/* What exceptions.cc calls in libraries: one it is linked with, and one that it loads later. */
#ifndef MTBPF_TESTS_PTGEN_THROUGH_H
#define MTBPF_TESTS_PTGEN_THROUGH_H

struct trouble {
	unsigned depth;
};

/* Calls back, from `depth` calls deeper, with an object on the way that is cleaned up. */
extern "C" void through_library(void (*back)(unsigned), unsigned depth);
/* Throws a trouble, or catches its own and throws another. */
extern "C" void throw_in_plugin(unsigned depth);

#endif
