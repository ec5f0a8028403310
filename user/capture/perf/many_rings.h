/* SPDX-License-Identifier: MIT */
/* What very many rings need beside memory: descriptors and mappings of ours. */
#ifndef MTBPF_CAPTURE_PERF_MANY_RINGS_H
#define MTBPF_CAPTURE_PERF_MANY_RINGS_H

#include <stddef.h>

/*
 * Raises our limit of open files as far as is needed and allowed. 0, or -EMFILE after a line and a
 * hint on stderr: n threads' rings of so many descriptors and mappings each are too many.
 */
int many_rings__allow(size_t n, size_t fds_each, size_t mappings_each);

#endif
