/* SPDX-License-Identifier: MIT */
/*
 * cmocka as the tests use it, whatever its version: 2.0 takes the name stop for a macro, and gives
 * assert_in_range() another name.
 */
#include_next <cmocka.h>

#ifndef MTBPF_TESTS_CMOCKA_H
#define MTBPF_TESTS_CMOCKA_H

#undef stop
#ifdef assert_uint_in_range
#undef assert_in_range
#define assert_in_range(value, low, high) assert_uint_in_range(value, low, high)
#endif

#endif
