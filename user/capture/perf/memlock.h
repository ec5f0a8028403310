/* SPDX-License-Identifier: MIT */
/* The limits of locked memory, which perf's buffers count against. */
#ifndef MTBPF_CAPTURE_PERF_MEMLOCK_H
#define MTBPF_CAPTURE_PERF_MEMLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
