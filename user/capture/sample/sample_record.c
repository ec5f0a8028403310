// SPDX-License-Identifier: MIT
#include "capture/sample/sample_record.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "kernel/address.h"

/* A call instruction is no longer, with a prefix, REX, SIB and a displacement. */
#define CALL_LEN_MAX 9

/* Finds the return address of the call at call_ip; n_ips if there is none. */
static uint32_t find_return(const uint64_t *ips, uint32_t n_ips, uint64_t call_ip)
{
	uint32_t i = 1;

	while (i < n_ips && (ips[i] <= call_ip || ips[i] - call_ip > CALL_LEN_MAX))
		i++;
	return i;
}

uint32_t noted_calls__join(const struct perf_branch_entry *calls, size_t n, uint64_t *ips,
			   uint32_t n_ips, uint32_t room, uint32_t *n_calls)
{
	uint32_t rest, left;

	*n_calls = 0;
	/* A branch filter that lets the kernel in has made no call of ours. */
	for (size_t i = 0;
	     i < n && i < NOTED_CALLS_MAX && !address__is_kernel(calls[i].from) && calls[i].from;
	     i++)
		++*n_calls;
	if (!*n_calls || !n_ips || room <= *n_calls) {
		*n_calls = 0;
		return n_ips;
	}
	/* Frame pointers add callers only if they pass through the outermost of these calls. */
	rest = find_return(ips, n_ips, calls[*n_calls - 1].from);
	left = rest < n_ips ? n_ips - rest - 1 : 0;
	if (left > room - 1 - *n_calls)
		left = room - 1 - *n_calls;
	memmove(ips + 1 + *n_calls, ips + rest + (left ? 1 : 0), left * sizeof(*ips));
	for (uint32_t i = 0; i < *n_calls; i++)
		ips[1 + i] = calls[i].from;
	return 1 + *n_calls + left;
}

/* The kernel gives no more (kernel.perf_event_max_stack is 127 by default). */
#define IPS_MAX 1024

/* As sample_ring.c asks for it (include/uapi/linux/perf_event.h: PERF_RECORD_SAMPLE). */
struct sample_record {
	struct perf_event_header header;
	uint64_t identifier, ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t n_ips;
	uint64_t ips[];
};

/* PERF_RECORD_SWITCH, and the ids behind it; a CPU's has next to whom it was before them. */
struct switch_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t identifier;
};

/* Its pid and tid. */
#define SWITCH_OTHER_SIZE 8

/*
 * Of the chain, what is no mark of whose code follows (enum perf_callchain_context): the user's
 * part, or the kernel's.
 */
static uint32_t take_ips(const struct sample_record *r, size_t size, bool of_kernel, uint64_t *ips)
{
	size_t room = (size - offsetof(struct sample_record, ips)) / sizeof(*ips);
	uint32_t n = 0;

	for (size_t i = 0; i < r->n_ips && i < room && n < IPS_MAX; i++)
		if (r->ips[i] < (uint64_t)PERF_CONTEXT_MAX &&
		    address__is_kernel(r->ips[i]) == of_kernel)
			ips[n++] = r->ips[i];
	return n;
}

/* None where it was not asked for. */
static int add_kernel(struct recording *rec, const struct sample_record *r, size_t size)
{
	uint64_t chain[IPS_MAX];
	uint32_t n = take_ips(r, size, true, chain);

	return n ? recording__add_sample_kernel(rec, chain, n) : 0;
}

/* What follows the chain there: their number, and as many. */
static uint32_t join_calls(const struct sample_record *r, size_t size, uint64_t *chain,
			   struct rec_sample *sample)
{
	size_t at = offsetof(struct sample_record, ips) + 8 * r->n_ips;
	struct perf_branch_entry calls[NOTED_CALLS_MAX];
	uint64_t n;

	if (r->n_ips > IPS_MAX || at + sizeof(n) > size)
		return sample->n_ips;
	memcpy(&n, (const uint8_t *)r + at, sizeof(n));
	if (n > NOTED_CALLS_MAX || at + sizeof(n) + n * sizeof(*calls) > size)
		return sample->n_ips;
	memcpy(calls, (const uint8_t *)r + at + sizeof(n), n * sizeof(*calls));
	return noted_calls__join(calls, n, chain, sample->n_ips, IPS_MAX, &sample->n_calls);
}

/* The registers, as PERF_HIT_REGS and struct rec_user order them; their ABI is in front of them. */
#define REGS_SIZE 64

/* What follows the chain, where it was asked for: false where there is none, or not all of it. */
static bool take_user(const struct sample_record *r, size_t size, struct rec_user *user)
{
	size_t at = offsetof(struct sample_record, ips) + 8 * r->n_ips, room;
	const uint8_t *bytes = (const uint8_t *)r + at;
	uint64_t abi, copied, valid;

	if (r->n_ips > IPS_MAX || at + 8 + REGS_SIZE + 8 > size)
		return false;
	memcpy(&abi, bytes, 8);
	memcpy(&copied, bytes + 8 + REGS_SIZE, 8);
	room = size - at - 8 - REGS_SIZE - 8;
	/* Without the registers' values (a kernel thread's) there is less. */
	if (abi != PERF_SAMPLE_REGS_ABI_64 || !copied || copied + 8 > room)
		return false;
	memcpy(user, bytes + 8, REGS_SIZE);
	user->stack = (uint8_t *)bytes + 8 + REGS_SIZE + 8;
	memcpy(&valid, user->stack + copied, 8);
	user->size = valid < copied ? valid : copied;
	return user->size > 0;
}

static bool is_late(const struct sample_record_ids *ids, uint64_t time_ns)
{
	return ids->until_ns && time_ns > ids->until_ns;
}

static int add_sample(struct sample_record_ids *ids, struct recording *rec,
		      const struct sample_record *r, size_t size)
{
	struct rec_sample sample = {
		.time_ns = r->time_ns,
		.pid = (pid_t)r->pid,
		.tid = (pid_t)r->tid,
		.cpu = (int)r->cpu,
		.at_switch = r->identifier == ids->switches,
		.in_kernel =
			(r->header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL,
	};
	bool has_calls = ids->calls && r->identifier == ids->calls;
	bool is_minor = ids->minor_faults && r->identifier == ids->minor_faults;
	uint64_t chain[IPS_MAX];
	struct rec_user user;
	int err;

	if (is_late(ids, r->time_ns)) {
		ids->late++;
		return 0;
	}
	sample.is_major = ids->major_faults && r->identifier == ids->major_faults;
	sample.faults = sample.is_major ? 1 : is_minor ? REC_FAULT_PERIOD : 0;
	sample.n_ips = take_ips(r, size, false, chain);
	if (has_calls)
		sample.n_ips = join_calls(r, size, chain, &sample);
	err = recording__add_sample(rec, &sample, chain);
	if (!err)
		err = add_kernel(rec, r, size);
	return err || has_calls || !take_user(r, size, &user)
		       ? err
		       : recording__add_sample_user(rec, &user);
}

static int add_switch(const struct sample_record_ids *ids, struct recording *rec,
		      const struct switch_record *r, uint16_t misc)
{
	struct rec_sched sched = {
		.time_ns = r->time_ns,
		.pid = (pid_t)r->pid,
		.tid = (pid_t)r->tid,
		.cpu = (int)r->cpu,
		.what = !(misc & PERF_RECORD_MISC_SWITCH_OUT)	     ? REC_SCHED_IN
			: misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? REC_SCHED_PREEMPTED
								     : REC_SCHED_BLOCKED,
	};

	return is_late(ids, r->time_ns) ? 0 : recording__add_sched(rec, &sched);
}

/* PERF_RECORD_THROTTLE, and the ids behind it. */
struct throttle_record {
	struct perf_event_header header;
	uint64_t time_ns, id, stream_id;
};

/* Until the next tick there are no samples. */
static int count_throttle(const struct sample_record_ids *ids, struct recording *rec,
			  const struct throttle_record *r)
{
	if (!is_late(ids, r->time_ns))
		rec->drops[DROP_THROTTLED]++;
	return 0;
}

int sample_record__add(struct sample_record_ids *ids, struct recording *rec, const void *record,
		       size_t size)
{
	const struct perf_event_header *header = record;

	if (header->type == PERF_RECORD_SAMPLE && size >= sizeof(struct sample_record))
		return add_sample(ids, rec, record, size);
	if (header->type == PERF_RECORD_THROTTLE && size >= sizeof(struct throttle_record))
		return count_throttle(ids, rec, record);
	if (header->type == PERF_RECORD_SWITCH && size >= sizeof(struct switch_record))
		return add_switch(ids, rec, record, header->misc);
	if (header->type == PERF_RECORD_SWITCH_CPU_WIDE &&
	    size >= SWITCH_OTHER_SIZE + sizeof(struct switch_record)) {
		struct switch_record r;

		memcpy(&r, (const uint8_t *)record + SWITCH_OTHER_SIZE, sizeof(r));
		return add_switch(ids, rec, &r, header->misc);
	}
	return 0;
}
