/* SPDX-License-Identifier: MIT */
/* Decoded stacks of a generated stream (tests/ptgen) against the true ones. */
#ifndef MTBPF_TESTS_LIVE_PTGEN_TRUTH_H
#define MTBPF_TESTS_LIVE_PTGEN_TRUTH_H

#include <stddef.h>

/*
 * `command` is options of ptgen, "--", the program and its arguments. Fails the test where any call
 * or return is not the true one, or not as deep, and skips it where ptgen cannot run. Returns how
 * many there were.
 */
size_t ptgen_truth__check(const char *command);

#endif
