/* SPDX-License-Identifier: MIT */
/*
 * A perf event's buffers: the ring of records, and the AUX area (include/uapi/linux/perf_event.h:
 * struct perf_event_mmap_page). Also checks their limits: -max-memory, locked memory, descriptors
 * and mappings.
 */
#ifndef MTBPF_CAPTURE_PERF_PERF_RING_H
#define MTBPF_CAPTURE_PERF_PERF_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/recording/recording.h"

struct perf_ring {
	struct perf_event_mmap_page *page; /* NULL: not mapped */
	uint8_t *data;
	size_t data_size; /* a power of two */
	uint8_t *aux;	  /* NULL: none */
	size_t aux_size;
	uint64_t mark; /* for a backward ring: the head at perf_ring__clear() */
};

enum perf_ring_use {
	PERF_RING_NORMAL, /* records are read while they come; a full AUX area is overwritten */
	/* perf_ring__drain_aux() reads the AUX area; the kernel stops when it is full. */
	PERF_RING_DRAINED,
	/*
	 * For an event with attr.write_backward: the kernel overwrites the oldest records. It
	 * writes from the end to the start: the newest record is at data_head, and older ones
	 * follow it (kernel/events/ring_buffer.c: __perf_output_begin).
	 */
	PERF_RING_BACKWARD,
};

/*
 * Maps the event's buffers. aux_size 0: no AUX area; otherwise a power of two of at least a page.
 * 0, or -errno: -EPERM: over the limits of locked memory; -ENOMEM; -EBUSY. Prints nothing.
 */
int perf_ring__map(struct perf_ring *ring, int event, size_t data_size, size_t aux_size,
		   enum perf_ring_use use);
void perf_ring__unmap(struct perf_ring *ring);

/*
 * Copies the next record whole, header included, and frees its place in the ring. Returns its size;
 * 0 if the ring is empty; -EMSGSIZE if it does not fit (it is skipped).
 */
int perf_ring__next(struct perf_ring *ring, void *record, size_t size);

/* Forgets the contents of a backward ring. */
void perf_ring__clear(struct perf_ring *ring);
/*
 * Returns the number of bytes written since perf_ring__clear(), which may exceed the ring's size.
 */
uint64_t perf_ring__written(const struct perf_ring *ring);

struct perf_ring_cursor {
	uint64_t at, end;
};

/* Returns a cursor at the newest record. Later writes may overwrite what is read. */
struct perf_ring_cursor perf_ring__newest(const struct perf_ring *ring);
/*
 * Copies the record at the cursor, header included, and moves on to the next older one. Returns its
 * size; 0 if the rest was never written or is overwritten; -EMSGSIZE if it does not fit (the cursor
 * has moved on).
 */
int perf_ring__older(const struct perf_ring *ring, struct perf_ring_cursor *cursor, void *record,
		     size_t size);

/*
 * Writes the data since the last call to the spool, and frees that part of the ring. Returns the
 * number of bytes. Only for a ring that is drained.
 */
size_t perf_ring__drain_aux(struct perf_ring *ring, struct spool *spool);

/*
 * Copies the AUX area, oldest byte first; only while the event is disabled (aux_head is then
 * final). The caller frees *data. *wrapped: bytes after the head are not all zero, so the area has
 * been filled. 0 or -ENOMEM.
 */
int perf_ring__read_aux(const struct perf_ring *ring, uint8_t **data, size_t *size, bool *wrapped);

/* Prints a message and a hint: what cannot be done with perf events, and why. */
void ring_limits__explain(int err, const char *what);

/* True if n rings of aux_size bytes of trace fit into max bytes. */
bool budget__allows(uint64_t max, size_t n, size_t aux_size);

/*
 * Like budget__allows(), for rings of threads or of CPUs. 0, or -ENOMEM after a line and a hint on
 * stderr that names the largest snapshot size that fits, if it is not below the least.
 */
int budget__check(uint64_t max, size_t n, size_t aux_size, size_t least, bool by_cpu);

struct memlock_limits {
	uint64_t mlock_kb; /* kernel.perf_event_mlock_kb: per user and CPU */
	unsigned int cpus; /* online */
	uint64_t rlimit;   /* RLIMIT_MEMLOCK in bytes; UINT64_MAX: none */
	long paranoid;	   /* kernel.perf_event_paranoid: -1 removes the limits */
	bool ipc_lock;	   /* CAP_IPC_LOCK: removes the limits */
};

void memlock__read(struct memlock_limits *limits);
/* Bytes of perf's buffers that this process may map; UINT64_MAX: unlimited. */
uint64_t memlock__fits(const struct memlock_limits *limits);

/*
 * Checks that n buffers of `each` bytes fit, including AUX areas of aux_size. 0, or -EPERM after a
 * line and a hint on stderr that name the limits, and the snapshot size that would fit.
 */
int memlock__check(const struct memlock_limits *limits, size_t n, size_t each, size_t aux_size);

/*
 * Raises this process's limit of open files as far as needed and allowed. 0, or -EMFILE after a
 * line and a hint on stderr if n rings, each with these descriptors and mappings, do not fit.
 */
int many_rings__allow(size_t n, size_t fds_each, size_t mappings_each);

/*
 * Checks memlock__check() and many_rings__allow() with the limits of this process. 0 or -errno,
 * like them.
 */
int ring_limits__check(size_t n, size_t each, size_t aux_size, size_t fds_each,
		       size_t mappings_each);

#endif
