/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Reads the current thread's trace id from a thread-local variable of the program. */
#ifndef MTBPF_TRACE_ID_BPF_H
#define MTBPF_TRACE_ID_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "mtbpf_shared.h"

/* Offset of thread.fsbase in struct task_struct; 0: no process has such a variable. */
const volatile __u32 fsbase_at;

/* By tgid. User space creates it only if a process has such a variable. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MT_TRACED_MAX);
	__type(key, u32);
	__type(value, struct mt_trace_places);
} places_of_trace_ids SEC(".maps");

/* The begin of the record in OpenTelemetry's OTEP 4947, "Thread-Local Context Record". */
struct otel_record {
	u64 trace_id[2]; /* big endian, as in W3C's Trace Context */
	u8 span_id[8];
	u8 valid; /* the record is valid only if this is 1 */
} __attribute__((packed));

static __always_inline bool read_user(void *to, u32 size, u64 address)
{
	return !bpf_probe_read_user(to, size, (const void *)address);
}

/* The address of the variable; 0: this thread does not have it yet. */
static __always_inline u64 find_variable(const struct mt_trace_place *place, u64 thread_pointer)
{
	u64 vector, n, block;

	if (!place->module)
		return thread_pointer + place->offset;
	/*
	 * glibc, sysdeps/x86_64/nptl/tls.h: the vector's address is the second word after the
	 * thread pointer. Each entry has two words; the first one is the block's address, or
	 * -1. Entry -1 contains the number of entries.
	 */
	if (!read_user(&vector, sizeof(vector), thread_pointer + 8) ||
	    !read_user(&n, sizeof(n), vector - 16) || place->module > n ||
	    !read_user(&block, sizeof(block), vector + 16 * (u64)place->module))
		return 0;
	return block && block != ~0ull ? block + place->offset : 0;
}

/* False if this variable contains no trace id. */
static __always_inline bool read_trace_id(const struct mt_trace_place *place, u64 thread_pointer,
					  u64 id[2])
{
	struct otel_record record;
	u64 address = find_variable(place, thread_pointer), pointer;

	if (!address)
		return false;
	if (place->kind == MT_TRACE_HALVES)
		return read_user(id, 16, address) && (id[0] | id[1]);
	if (!read_user(&pointer, sizeof(pointer), address) || !pointer ||
	    !read_user(&record, sizeof(record), pointer) || record.valid != 1)
		return false;
	id[0] = __builtin_bswap64(record.trace_id[0]);
	id[1] = __builtin_bswap64(record.trace_id[1]);
	return id[0] | id[1];
}

static __always_inline void take_trace_id(struct mt_hit *hit)
{
	const struct mt_trace_places *places;
	u64 id[2] = {}, thread_pointer = 0;
	u32 tgid = hit->tgid;

	hit->trace_id[0] = hit->trace_id[1] = 0;
	if (!fsbase_at)
		return;
	places = bpf_map_lookup_elem(&places_of_trace_ids, &tgid);
	if (!places || bpf_probe_read_kernel(&thread_pointer, sizeof(thread_pointer),
					     (void *)bpf_get_current_task() + fsbase_at))
		return;
	for (u32 i = 0; i < MT_TRACE_PLACES && places->v[i].kind; i++) {
		if (!read_trace_id(&places->v[i], thread_pointer, id))
			continue;
		hit->trace_id[0] = id[0];
		hit->trace_id[1] = id[1];
		return;
	}
}

#endif
