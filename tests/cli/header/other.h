/* SPDX-License-Identifier: MIT */
#ifndef OTHER_H
#define OTHER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

typedef void (*stub_fn)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

void other_mark(void);
int other_min_duration(uint64_t ns);
stub_fn other_stub(void);
int other_thread_has_mark(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
