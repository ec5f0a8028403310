// SPDX-License-Identifier: MIT
#include "capture/perf/perf_ring.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kernel/rights.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/units.h"

int perf_ring__map(struct perf_ring *ring, int event, size_t data_size, size_t aux_size,
		   enum perf_ring_use use)
{
	/* The kernel overwrites old data in a buffer that is mapped without PROT_WRITE. */
	int data_prot = use == PERF_RING_BACKWARD ? PROT_READ : PROT_READ | PROT_WRITE;
	int aux_prot = use == PERF_RING_DRAINED ? PROT_READ | PROT_WRITE : PROT_READ;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, page + data_size, data_prot, MAP_SHARED, event, 0);

	*ring = (struct perf_ring){0};
	if (p == MAP_FAILED)
		return -errno;
	ring->page = p;
	ring->data = (uint8_t *)p + page;
	ring->data_size = data_size;
	if (!aux_size)
		return 0;
	ring->page->aux_offset = page + data_size;
	ring->page->aux_size = aux_size;
	p = mmap(NULL, aux_size, aux_prot, MAP_SHARED, event, (off_t)ring->page->aux_offset);
	if (p == MAP_FAILED) {
		int err = -errno;

		perf_ring__unmap(ring);
		return err;
	}
	ring->aux = p;
	ring->aux_size = aux_size;
	return 0;
}

void perf_ring__unmap(struct perf_ring *ring)
{
	if (ring->aux)
		munmap(ring->aux, ring->aux_size);
	if (ring->page)
		munmap(ring->page, (size_t)(ring->data - (uint8_t *)ring->page) + ring->data_size);
	*ring = (struct perf_ring){0};
}

static void copy_out(const struct perf_ring *ring, uint64_t at, void *out, size_t n)
{
	size_t start = at & (ring->data_size - 1);
	size_t first = ring->data_size - start < n ? ring->data_size - start : n;

	memcpy(out, ring->data + start, first);
	memcpy((uint8_t *)out + first, ring->data, n - first);
}

static uint64_t head_of(const struct perf_ring *ring)
{
	return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

int perf_ring__next(struct perf_ring *ring, void *record, size_t size)
{
	uint64_t head = head_of(ring);
	uint64_t tail = ring->page->data_tail;
	struct perf_event_header header;
	int n;

	if (head - tail < sizeof(header))
		return 0;
	copy_out(ring, tail, &header, sizeof(header));
	n = header.size;
	if (header.size < sizeof(header) || header.size > head - tail) {
		/* Only a broken kernel writes such a record; later ones cannot be read. */
		__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
		return 0;
	}
	if (header.size <= size)
		copy_out(ring, tail, record, header.size);
	else
		n = -EMSGSIZE;
	__atomic_store_n(&ring->page->data_tail, tail + header.size, __ATOMIC_RELEASE);
	return n;
}

void perf_ring__clear(struct perf_ring *ring)
{
	ring->mark = head_of(ring);
}

/* The head of a backward ring starts at 0 and falls. */
uint64_t perf_ring__written(const struct perf_ring *ring)
{
	return ring->mark - head_of(ring);
}

struct perf_ring_cursor perf_ring__newest(const struct perf_ring *ring)
{
	uint64_t head = head_of(ring), written = ring->mark - head;

	return (struct perf_ring_cursor){
		.at = head, .end = head + (written < ring->data_size ? written : ring->data_size)};
}

int perf_ring__older(const struct perf_ring *ring, struct perf_ring_cursor *cursor, void *record,
		     size_t size)
{
	uint64_t left = cursor->end - cursor->at;
	struct perf_event_header header;

	if (left < sizeof(header))
		return 0;
	copy_out(ring, cursor->at, &header, sizeof(header));
	/* The newest record has overwritten the end of the oldest one. */
	if (header.size < sizeof(header) || header.size > left)
		return 0;
	if (header.size <= size)
		copy_out(ring, cursor->at, record, header.size);
	cursor->at += header.size;
	return header.size <= size ? header.size : -EMSGSIZE;
}

/*
 * When the area is drained, head and tail count all bytes and do not wrap:
 * kernel/events/ring_buffer.c, perf_aux_output_end().
 */
size_t perf_ring__drain_aux(struct perf_ring *ring, struct spool *spool)
{
	uint64_t head = __atomic_load_n(&ring->page->aux_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->aux_tail;
	size_t n = head - tail, at = tail & (ring->aux_size - 1);
	size_t first = ring->aux_size - at < n ? ring->aux_size - at : n;

	if (n > ring->aux_size)
		return 0;
	spool__write(spool, ring->aux + at, first);
	spool__write(spool, ring->aux, n - first);
	__atomic_store_n(&ring->page->aux_tail, head, __ATOMIC_RELEASE);
	return n;
}

int perf_ring__read_aux(const struct perf_ring *ring, uint8_t **data, size_t *size, bool *wrapped)
{
	/* In overwrite mode the head is an offset in the area (perf_aux_output_end()). */
	uint64_t head = __atomic_load_n(&ring->page->aux_head, __ATOMIC_ACQUIRE) % ring->aux_size;
	const uint8_t *end = ring->aux + ring->aux_size;
	size_t behind = 0;

	/* The area starts as zeroes: a byte after the head that is not zero is old data. */
	*wrapped = false;
	for (const uint8_t *byte = ring->aux + head; byte < end && !*wrapped; byte++)
		*wrapped = *byte;
	if (*wrapped)
		behind = ring->aux_size - head;
	*size = behind + head;
	*data = malloc(*size ? *size : 1);
	if (!*data)
		return -ENOMEM;
	memcpy(*data, ring->aux + head, behind);
	memcpy(*data + behind, ring->aux, head);
	return 0;
}

#define AUX_MIN 4096
#define BY_CPU	"-cgroup takes one ring per CPU, however many threads there are"

void ring_limits__explain(int err, const char *what)
{
	if (err == -ESRCH) {
		log__error("the process has exited");
		log__hint("start the process again, and use its new pid");
		return;
	}
	log__error("cannot %s: %s", what, strerror(-err));
	if (err == -EACCES || err == -EPERM)
		log__hint("needs CAP_PERFMON, or kernel.perf_event_paranoid <= 1 (now %ld)",
			  fs__read_number("/proc/sys/kernel/perf_event_paranoid", -1));
	else
		log__hint("'mtbpf check' shows what works on this machine");
}

bool budget__allows(uint64_t max, size_t n, size_t aux_size)
{
	return n <= max / aux_size;
}

int budget__check(uint64_t max, size_t n, size_t size, size_t least, bool by_cpu)
{
	const char *other = by_cpu ? "a larger -max-memory allows more"
				   : BY_CPU "; a larger -max-memory allows more";

	if (budget__allows(max, n, size))
		return 0;
	log__error("%zu %s%s with %s of trace each need %s together, but -max-memory allows %s", n,
		   by_cpu ? "CPU" : "thread", n == 1 ? "" : "s", BYTES(size),
		   BYTES((uint64_t)n * size), BYTES(max));
	while (size > least && !budget__allows(max, n, size))
		size /= 2;
	if (budget__allows(max, n, size))
		log__hint("-snapshot-size %zuK fits; %s", size / 1024, other);
	else
		log__hint("%s", other);
	return -ENOMEM;
}

void memlock__read(struct memlock_limits *limits)
{
	struct rlimit rlimit = {0};
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	getrlimit(RLIMIT_MEMLOCK, &rlimit);
	*limits = (struct memlock_limits){
		.mlock_kb = (uint64_t)fs__read_number("/proc/sys/kernel/perf_event_mlock_kb", 0),
		.cpus = cpus > 0 ? (unsigned int)cpus : 1,
		.rlimit = rlimit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : rlimit.rlim_cur,
		.paranoid = fs__read_number("/proc/sys/kernel/perf_event_paranoid", 2),
		.ipc_lock = capability__has(CAP_IPC_LOCK),
	};
}

/*
 * kernel/events/core.c, perf_mmap(): buffers beyond the user's share count against the process's
 * RLIMIT_MEMLOCK.
 */
uint64_t memlock__fits(const struct memlock_limits *limits)
{
	uint64_t share = limits->mlock_kb * 1024 * limits->cpus;

	if (limits->ipc_lock || limits->paranoid < 0 || limits->rlimit > UINT64_MAX - share)
		return UINT64_MAX;
	return share + limits->rlimit;
}

int memlock__check(const struct memlock_limits *limits, size_t n, size_t each, size_t aux_size)
{
	uint64_t fits = memlock__fits(limits);
	size_t size = aux_size;

	if (n * each <= fits)
		return 0;
	log__error("the trace needs %s of locked memory (%zu ring%s), but only %s can be locked: "
		   "kernel.perf_event_mlock_kb %llu x %u CPUs, plus RLIMIT_MEMLOCK",
		   BYTES(n * each), n, n == 1 ? "" : "s", BYTES(fits),
		   (unsigned long long)limits->mlock_kb, limits->cpus);
	while (size >= AUX_MIN && n * (each - aux_size + size) > fits)
		size /= 2;
	if (size >= AUX_MIN)
		log__hint("-snapshot-size %zuK fits (%s); CAP_IPC_LOCK lifts the limit (or ulimit "
			  "-l)",
			  size / 1024, BYTES(size));
	else
		log__hint("CAP_IPC_LOCK lifts the limit, 'ulimit -l' raises it");
	return -EPERM;
}

/* Descriptors and mappings kept free for everything but rings. */
#define SPARE 512

int many_rings__allow(size_t n, size_t fds_each, size_t mappings_each)
{
	rlim_t fds = n * fds_each + SPARE;
	struct rlimit allowed = {0};
	size_t mappings = n * mappings_each + SPARE;
	long max = fs__read_number("/proc/sys/vm/max_map_count", 0);

	fs__allow_open_files(n * fds_each);
	getrlimit(RLIMIT_NOFILE, &allowed);
	if (allowed.rlim_cur < fds) {
		log__error("%zu rings need %llu open files, but %llu are allowed", n,
			   (unsigned long long)fds, (unsigned long long)allowed.rlim_cur);
		log__hint("'sudo prlimit --nofile=%llu --pid $$' allows this shell more; " BY_CPU,
			  (unsigned long long)fds);
		return -EMFILE;
	}
	if (max > 0 && mappings > (size_t)max) {
		log__error("%zu rings need %zu mappings, and vm.max_map_count is %ld", n, mappings,
			   max);
		log__hint("'sysctl vm.max_map_count=%zu' allows more; " BY_CPU, mappings);
		return -EMFILE;
	}
	return 0;
}

int ring_limits__check(size_t n, size_t each, size_t aux_size, size_t fds_each,
		       size_t mappings_each)
{
	struct memlock_limits limits;
	int err;

	memlock__read(&limits);
	err = memlock__check(&limits, n, each, aux_size);
	return err ? err : many_rings__allow(n, fds_each, mappings_each);
}
