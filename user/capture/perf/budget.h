/* SPDX-License-Identifier: MIT */
/* How much memory the rings may take together (-max-memory). */
#ifndef MTBPF_CAPTURE_PERF_BUDGET_H
#define MTBPF_CAPTURE_PERF_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether n rings of aux_size bytes of trace are within max. */
bool budget__allows(uint64_t max, size_t n, size_t aux_size);

/*
 * The same, for rings of threads or of CPUs. 0, or -ENOMEM after a line and a hint on stderr that
 * name the snapshot size that fits.
 */
int budget__check(uint64_t max, size_t n, size_t aux_size, bool by_cpu);

#endif
