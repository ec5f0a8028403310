/* SPDX-License-Identifier: MIT */
/* Tests that sanitizers themselves make impossible. */
#ifndef MTBPF_TESTS_SANITIZERS_H
#define MTBPF_TESTS_SANITIZERS_H

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

/* They bring an allocator of their own, of which mallinfo2(3) knows nothing. */
static inline void not_with_own_allocator(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	print_message("# skip: what sanitizers allocate is not known\n");
	skip();
#endif
}

#endif
