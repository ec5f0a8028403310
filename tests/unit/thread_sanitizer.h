/* SPDX-License-Identifier: MIT */
/* Tests that ThreadSanitizer itself makes impossible. */
#ifndef MTBPF_TESTS_THREAD_SANITIZER_H
#define MTBPF_TESTS_THREAD_SANITIZER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static inline void not_with_thread_sanitizer(const char *why)
{
#ifdef __SANITIZE_THREAD__
	print_message("# skip: ThreadSanitizer %s\n", why);
	skip();
#endif
}

#endif
