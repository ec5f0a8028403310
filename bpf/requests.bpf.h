/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * -key: delays, and times from -start to -stop, belong to a request and not to a thread. Hits with
 * the same key in the same process belong to the same request; the key is usually an object's
 * address.
 */
#ifndef MTBPF_REQUESTS_BPF_H
#define MTBPF_REQUESTS_BPF_H

#include "counters.bpf.h"
#include "fire.bpf.h"
#include "syscalls.bpf.h"

const volatile bool has_key;

struct request_key {
	u64 key;
	u32 tgid, pad;
};

struct request {
	u64 key; /* compared at each lookup: an evicted entry may have been reused */
	u64 since_ns;
	u64 socket; /* socket_of() of the one that it was read from; 0: none */
	u32 tid;
	u32 pad;
};

/*
 * User space counts the entries: requests that were added and not removed, but are not in the map,
 * have been evicted.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MT_REQUESTS);
	__type(key, struct request_key);
	__type(value, struct request);
} requests SEC(".maps");

/*
 * Sets *g to the running goroutine's g. Go keeps g in r14, also at its system calls. In threads
 * that run C code, r14 may have any value: g begins with the bounds of the goroutine's stack, in
 * which the stack pointer must be. *g serves as scratch, since little of the BPF stack is left.
 */
static __always_inline bool read_goroutine(const struct pt_regs *regs, u64 *g)
{
	const u64 *bounds = (const void *)regs->r14;

	if (bpf_probe_read_user(g, sizeof(*g), &bounds[0]) || regs->sp < *g ||
	    bpf_probe_read_user(g, sizeof(*g), &bounds[1]) || regs->sp > *g)
		return false;
	*g = (u64)bounds;
	return true;
}

/* False if the key cannot be read, which is counted. */
static __always_inline bool key_of(const struct hit_place *place, struct mt_counters *stats,
				   struct request_key *key)
{
	const struct mt_reads *reads = reads_of(place);

	key->tgid = current_pid_tgid() >> 32;
	key->pad = 0;
	if (reads && (reads->key.from.kind == MT_ARG_GOROUTINE
			      ? read_goroutine(place->regs, &key->key)
			      : read_value(place->regs, &reads->key, &key->key)))
		return true;
	add_one(&stats->keyless);
	return false;
}

/*
 * A second start of the same key begins a new request: the object is used again. From a socket it
 * may be the rest of the same request, and is not counted as a loss.
 */
static __always_inline void begin_request(const struct request_key *key, struct mt_counters *stats,
					  u64 now, u64 socket)
{
	struct request request = {
		.key = key->key, .since_ns = now, .socket = socket, .tid = (u32)current_pid_tgid()};

	if (!bpf_map_update_elem(&requests, key, &request, BPF_NOEXIST))
		add_one(&stats->begun);
	else if (bpf_map_update_elem(&requests, key, &request, BPF_ANY))
		add_one(&stats->unmeasured);
	else if (!socket)
		add_one(&stats->restarted);
}

/*
 * Finds when and where a request began. False if that is not known, which leaves *since as it is,
 * or if the hit is on the request's descriptor, which has another file now (is_reused()).
 */
static __always_inline bool find_request(const struct hit_place *place,
					 const struct request_key *key, struct since *since)
{
	const volatile struct request *found = bpf_map_lookup_elem(&requests, key);

	if (!found)
		return false;
	since->ns = found->since_ns;
	since->tid = found->tid;
	since->key = key->key;
	return found->key == key->key && !is_reused(found->socket, place);
}

/*
 * Like find_request(), and removes the request, known or not. *since is 0 before. If two threads
 * end it at once, one of them gets true.
 */
static __always_inline bool end_request(const struct hit_place *place,
					const struct request_key *key, struct mt_counters *stats,
					struct since *since)
{
	bool is_known = find_request(place, key, since);

	if (!since->ns || bpf_map_delete_elem(&requests, key))
		return false;
	add_one(&stats->ended);
	return is_known;
}

#endif
