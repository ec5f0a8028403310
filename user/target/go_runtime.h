/* SPDX-License-Identifier: MIT */
/* Differences between versions of Go's runtime, 1.minor, on amd64. */
#ifndef MTBPF_TARGET_GO_RUNTIME_H
#define MTBPF_TARGET_GO_RUNTIME_H

#include <stdbool.h>

#include "mtbpf_shared.h"

/*
 * Returns runtime.gopark()'s reason in the words of Go's tracebacks, such as "chan receive". NULL:
 * programs do not wait with that number, or the version is unknown.
 */
const char *go_runtime__wait_reason(unsigned int minor, unsigned int number);

/* The layout of struct g and struct m. False if the version is unknown. */
bool go_runtime__offsets(unsigned int minor, struct mt_go_offsets *offsets);

#endif
