/* SPDX-License-Identifier: MIT */
/*
 * Limits on rings: -max-memory, the limit of locked memory that perf charges its buffers to, and
 * this process's limits of descriptors and mappings.
 */
#ifndef MTBPF_CAPTURE_PERF_RING_LIMITS_H
#define MTBPF_CAPTURE_PERF_RING_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A line and a hint: what cannot be done with perf's events, and why. */
void ring_limits__explain(int err, const char *what);

/* True if n rings of aux_size bytes of trace fit into max bytes. */
bool budget__allows(uint64_t max, size_t n, size_t aux_size);

/*
 * The same, for rings of threads or of CPUs. 0, or -ENOMEM after a line and a hint on stderr that
 * names the snapshot size that fits, if one does that is not below the least.
 */
int budget__check(uint64_t max, size_t n, size_t aux_size, size_t least, bool by_cpu);

struct memlock_limits {
	uint64_t mlock_kb; /* kernel.perf_event_mlock_kb: a user's, for each CPU */
	unsigned int cpus; /* online */
	uint64_t rlimit;   /* RLIMIT_MEMLOCK in bytes; UINT64_MAX: none */
	long paranoid;	   /* kernel.perf_event_paranoid: -1 lifts all */
	bool ipc_lock;	   /* CAP_IPC_LOCK: as well */
};

void memlock__read(struct memlock_limits *limits);
/* Bytes of perf's buffers that a process may map; UINT64_MAX: as many as there is memory. */
uint64_t memlock__fits(const struct memlock_limits *limits);

/*
 * Whether n buffers of `each` bytes fit, AUX areas of aux_size among them. 0, or -EPERM after a
 * line and a hint on stderr that name the limits, and the snapshot size that would fit.
 */
int memlock__check(const struct memlock_limits *limits, size_t n, size_t each, size_t aux_size);

/*
 * Raises this process's limit of open files as far as is needed and allowed. 0, or -EMFILE after a
 * line and a hint on stderr if n threads' rings, with these descriptors and mappings each, do not
 * fit.
 */
int many_rings__allow(size_t n, size_t fds_each, size_t mappings_each);

/* Both of these, by the limits of this process. 0 or -errno, as they do. */
int ring_limits__check(size_t n, size_t each, size_t aux_size, size_t fds_each,
		       size_t mappings_each);

#endif
