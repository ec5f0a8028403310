/* SPDX-License-Identifier: MIT */
/*
 * Decoded stacks against the true ones: who sees the stack pointer after every call and return (the
 * stepper, ptgen) knows how deep the thread really is, and logs it (user/capture/soft/truth.h).
 */
#ifndef MTBPF_TESTS_LIVE_TRUTH_COMPARE_H
#define MTBPF_TESTS_LIVE_TRUTH_COMPARE_H

#include <stddef.h>

/*
 * Fails the test where a call or return of a thread in the recording is not the log's, or not as
 * deep. Nor may it have a gap. Returns how many there were.
 */
size_t truth_compare__recording(const char *recording, const char *truth);

/* The same, but those that are not as deep, or in another function, are counted in *wrong. */
size_t truth_compare__count(const char *recording, const char *truth, size_t *wrong);

#endif
