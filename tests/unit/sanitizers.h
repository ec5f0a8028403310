/* SPDX-License-Identifier: MIT */
/* Tests that sanitizers themselves make impossible. */
#ifndef MTBPF_TESTS_SANITIZERS_H
#define MTBPF_TESTS_SANITIZERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* gcc defines macros, clang answers __has_feature(). */
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define HAS_THREAD_SANITIZER 1
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define HAS_ADDRESS_SANITIZER 1
#endif
#if defined(HAS_ADDRESS_SANITIZER) || defined(HAS_THREAD_SANITIZER)
#define HAS_OWN_ALLOCATOR 1
#endif

static inline void not_with_thread_sanitizer(const char *why)
{
#ifdef HAS_THREAD_SANITIZER
	print_message("# skip: ThreadSanitizer %s\n", why);
	skip();
#endif
}

/* They bring an allocator of their own, of which mallinfo2(3) knows nothing. */
static inline void not_with_own_allocator(void)
{
#ifdef HAS_OWN_ALLOCATOR
	print_message("# skip: what sanitizers allocate is not known\n");
	skip();
#endif
}

#endif
