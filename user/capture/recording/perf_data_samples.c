// SPDX-License-Identifier: MIT
/* Reads the samples of a perf.data file: stacks, and mtbpf's own hits, entries and wake-ups. */
#include "capture/recording/perf_data_samples.h"

#include <stddef.h>

#include "kernel/kernel.h"

const struct perf_reader_event *perf_reader__find_event(const struct perf_reader *r, uint64_t id)
{
	return VEC_FIND(&r->events, event, event->id == id) ?: &r->events.v[0];
}

#define FIXED offsetof(struct mt_hit, stack)

#define SAMPLE_HIT                                                                                 \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW)

static int damaged_hit(struct perf_reader *r)
{
	return damaged(r, "a hit's record is damaged");
}

/* Reads what put_prints() writes: the key, where its request began, the values of -print. */
static int take_prints(struct perf_reader *r, struct cursor *raw, struct mt_hit *hit)
{
	uint64_t word;

	if (raw->end - raw->at < 16)
		return 0;
	hit->key = take_u64(raw);
	word = take_u64(raw);
	hit->since_tid = (uint32_t)word;
	if (word >> 32 > MT_PRINTS)
		return damaged_hit(r);
	hit->n_prints = (uint32_t)(word >> 32);
	for (uint32_t i = 0; i < hit->n_prints; i++) {
		struct mt_printed *print = &hit->prints[i];

		print->number = take_u64(raw);
		word = take_u64(raw);
		print->length = (uint16_t)word;
		print->kind = (uint8_t)(word >> 16);
		print->is_signed = word >> 24 & 1;
		print->is_cut = word >> 32 & 1;
		if (print->length > MT_TEXT_MAX || print->kind > MT_PRINT_BYTES)
			return damaged_hit(r);
		cursor__take(raw, print->text, print->length);
		take_part(raw, -(size_t)print->length & 7);
		if (raw->failed)
			return damaged_hit(r);
	}
	return 0;
}

/*
 * Reads what put_hit() writes. The frame-pointer stack is in the call chain, after
 * PERF_CONTEXT_USER, or in the raw data. The record may end after it, or after any of the later
 * parts; at most 4 bytes of padding follow.
 */
static int read_raw(struct perf_reader *r, struct cursor *chain, struct cursor *raw,
		    struct mt_hit *hit)
{
	size_t in_chain = (size_t)(chain->end - chain->at) / 8;
	uint64_t word;

	if ((size_t)(raw->end - raw->at) < FIXED)
		return damaged(r, "a hit's record is of another version");
	cursor__take(raw, hit, FIXED);
	take_u64(chain);
	if (hit->stack_depth > MT_STACK_DEPTH ||
	    (in_chain != 1 && in_chain != 1 + hit->stack_depth))
		return damaged_hit(r);
	cursor__take(in_chain == 1 ? raw : chain, hit->stack, 8 * hit->stack_depth);
	if (chain->failed || raw->failed)
		return damaged_hit(r);

	/* The arguments. */
	if (raw->end - raw->at < 8)
		return 0;
	word = take_u64(raw);
	hit->n_args = (uint16_t)word;
	hit->syscall = (uint16_t)(word >> 16);
	hit->args_read = (uint16_t)(word >> 32);
	hit->args_signed = (uint16_t)(word >> 48);
	if (hit->n_args > MT_ARGS_MAX)
		return damaged_hit(r);
	cursor__take(raw, hit->args, 8 * hit->n_args);
	if (raw->failed)
		return damaged_hit(r);

	/* The last branches, the time off the CPU, and the trace id. */
	if (raw->end - raw->at < 8)
		return 0;
	word = take_u64(raw);
	if (word > MT_BRANCHES_MAX)
		return damaged_hit(r);
	hit->n_branches = (uint32_t)word;
	cursor__take(raw, hit->branches, sizeof(hit->branches[0]) * hit->n_branches);
	if (!raw->failed && raw->end - raw->at >= 8)
		hit->off_cpu_ns = take_u64(raw);
	if (!raw->failed && (size_t)(raw->end - raw->at) >= sizeof(hit->trace_id))
		cursor__take(raw, hit->trace_id, sizeof(hit->trace_id));
	return raw->failed ? damaged_hit(r) : take_prints(r, raw, hit);
}

/* Reads PERF_SAMPLE_REGS_USER and PERF_SAMPLE_STACK_USER; user->stack points into the record. */
static void take_user(const struct perf_reader_event *event, struct cursor *c,
		      struct rec_user *user)
{
	/* In the order of the first members of struct rec_user. */
	static const uint8_t wanted[] = {PERF_REG_X86_BX,  PERF_REG_X86_BP,  PERF_REG_X86_SP,
					 PERF_REG_X86_IP,  PERF_REG_X86_R12, PERF_REG_X86_R13,
					 PERF_REG_X86_R14, PERF_REG_X86_R15};
	uint64_t regs[64] = {0};

	*user = (struct rec_user){0};
	/* The ABI, then the registers, unless it is PERF_SAMPLE_REGS_ABI_NONE. */
	if (event->sample_type & PERF_SAMPLE_REGS_USER && take_u64(c)) {
		for (int i = 0; i < 64; i++)
			if (event->regs_user >> i & 1)
				regs[i] = take_u64(c);
		for (size_t i = 0; i < sizeof(wanted); i++)
			memcpy((uint64_t *)(void *)user + i, &regs[wanted[i]], sizeof(regs[0]));
	}
	if (event->sample_type & PERF_SAMPLE_STACK_USER) {
		uint64_t room = take_u64(c);
		struct cursor stack = take_part(c, room);
		uint64_t size = room ? take_u64(c) : 0;

		c->failed |= size > room;
		if (c->failed)
			return;
		user->stack = (uint8_t *)stack.at;
		user->size = size;
	}
}

static int read_hit(struct perf_reader *r, const struct perf_reader_event *event, struct cursor *c)
{
	struct cursor chain, raw;
	struct rec_user user = {0};
	struct mt_hit hit = {0};
	uint64_t depth, probe_ip;
	int err;

	if (event->type != PERF_TYPE_SOFTWARE || event->config != PERF_COUNT_SW_BPF_OUTPUT ||
	    !(event->sample_type & PERF_SAMPLE_RAW))
		return 0;
	probe_ip = take_u64(c);
	take_part(c, 24); /* TID, TIME, CPU: mt_hit has them */
	depth = take_u64(c);
	if (c->failed || !depth || depth > 1 + MT_STACK_DEPTH)
		return damaged_hit(r);
	chain = take_part(c, 8 * depth);
	raw = take_part(c, take_u32(c));
	if (c->failed)
		return damaged_hit(r);
	err = read_raw(r, &chain, &raw, &hit);
	hit.probe_ip = probe_ip;
	if (!err && !(event->sample_type &
		      ~(SAMPLE_HIT | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER))) {
		take_user(event, c, &user);
		/* ip, sp and bp are in the hit already. */
		hit.bx = user.bx;
		hit.r12 = user.r12;
		hit.r13 = user.r13;
		hit.r14 = user.r14;
		hit.r15 = user.r15;
		hit.copied = (uint32_t)user.size;
		err = c->failed ? damaged_hit(r) : 0;
	}
	if (!err)
		err = VEC_ADD(&r->rec->hits, hit);
	if (err || !user.size)
		return err;
	return recording__add_stack(r->rec, user.stack, user.size);
}

/* Fields that may precede the call chain, eight bytes each, in this order. */
static const uint64_t words_before[] = {
	PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,	  PERF_SAMPLE_TID,
	PERF_SAMPLE_TIME,	PERF_SAMPLE_ADDR, PERF_SAMPLE_ID,
	PERF_SAMPLE_STREAM_ID,	PERF_SAMPLE_CPU,  PERF_SAMPLE_PERIOD,
};

#define IPS_MAX 1024

static int add_stack(struct perf_reader *r, const struct perf_reader_event *event, struct cursor *c,
		     struct rec_sample *sample)
{
	uint64_t n = take_u64(c), ips[IPS_MAX] = {0}, kernel[IPS_MAX] = {0};
	uint32_t n_kernel = 0;
	struct rec_user user = {0};
	int err;

	if (c->failed || n > (uint64_t)(c->end - c->at) / 8)
		return damaged(r, "a sample's record is damaged");
	for (uint64_t i = 0; i < n; i++) {
		uint64_t ip = take_u64(c);

		/* Skips the entries that mark the following context. */
		if (!address__is_kernel(ip) && sample->n_ips < IPS_MAX)
			ips[sample->n_ips++] = ip;
		else if (address__is_kernel(ip) && ip < (uint64_t)PERF_CONTEXT_MAX &&
			 n_kernel < IPS_MAX)
			kernel[n_kernel++] = ip;
	}
	/* Registers and the stack are read only if they follow the call chain directly. */
	if (!(event->sample_type & (PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK)))
		take_user(event, c, &user);
	if (c->failed)
		return damaged(r, "a sample's record is damaged");
	if (user.size && !sample->n_ips)
		ips[sample->n_ips++] = user.ip;
	err = recording__add_sample(r->rec, sample, ips);
	if (!err && n_kernel)
		err = recording__add_sample_kernel(r->rec, kernel, n_kernel);
	return err || !user.size ? err : recording__add_sample_user(r->rec, &user);
}

/* Adds the stack of events with call chains. 0 or -errno, with r->why. */
static int read_stack(struct perf_reader *r, const struct perf_event_header *header,
		      struct cursor *c)
{
	uint64_t word[sizeof(words_before) / sizeof(words_before[0])] = {0}, id;
	const struct perf_reader_event *event;
	struct rec_sample sample = {
		.in_kernel =
			(header->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL,
	};
	struct cursor peek = *c;

	id = take_u64(&peek);
	event = perf_reader__find_event(r, id);
	if (!(event->sample_type & PERF_SAMPLE_CALLCHAIN) ||
	    event->sample_type & PERF_SAMPLE_READ || !(event->sample_type & PERF_SAMPLE_TIME))
		return 0;
	for (size_t i = 0; i < sizeof(words_before) / sizeof(words_before[0]); i++)
		if (event->sample_type & words_before[i])
			word[i] = take_u64(c);
	sample.pid = (pid_t)(uint32_t)word[2];
	sample.tid = (pid_t)(word[2] >> 32);
	sample.time_ns = word[3];
	sample.cpu = (int)(uint32_t)word[7];
	sample.at_switch = event->type == PERF_TYPE_SOFTWARE &&
			   event->config == PERF_COUNT_SW_CONTEXT_SWITCHES;
	sample.at_park = event->type == PERF_TYPE_SOFTWARE && event->config == PERF_COUNT_SW_DUMMY;
	if (event->type == PERF_TYPE_SOFTWARE) {
		sample.is_major = event->config == PERF_COUNT_SW_PAGE_FAULTS_MAJ;
		if (sample.is_major || event->config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
		    event->config == PERF_COUNT_SW_PAGE_FAULTS)
			sample.faults = event->period < UINT32_MAX ? (uint32_t)event->period : 0;
	}
	return add_stack(r, event, c, &sample);
}

/*
 * Copies raw data, at least `least` bytes (older versions have fewer than `size`); the rest of *out
 * is unchanged.
 */
static int take_raw(struct perf_reader *r, struct cursor *c, void *out, size_t least, size_t size)
{
	uint32_t there;

	c->at += c->end - c->at >= 24 ? 24 : 0; /* TID, TIME, CPU: the data has them */
	there = take_u32(c);
	if (there < least)
		return damaged(r, "a record of mtbpf's is of another version");
	cursor__take(c, out, there < size ? there : size);
	return c->failed ? damaged(r, "a record of mtbpf's is damaged") : 0;
}

/* Earlier versions wrote only the members before `kind`: their entries are hits. */
#define ENTRY_LEAST offsetof(struct mt_entry, kind)

/* Reads our raw data, except hits: enum perf_own_data. 0 or -errno, with r->why. */
static int read_own(struct perf_reader *r, struct cursor *c, uint64_t own)
{
	uint64_t ip = take_u64(c);
	struct mt_entry entry = {.ip = ip};
	struct mt_sched by;
	int err = 0;

	if (own == PERF_OWN_ENTRY) {
		err = take_raw(r, c, &entry, ENTRY_LEAST, offsetof(struct mt_entry, ip));
		return err ? err : VEC_ADD(&r->rec->entries, entry);
	}
	if (own == PERF_OWN_BY) {
		err = take_raw(r, c, &by, sizeof(by), sizeof(by));
		by.by_comm[sizeof(by.by_comm) - 1] = '\0';
		return err ? err : recording__add_sched_by(r->rec, &by);
	}
	return 0;
}

int perf_reader__sample(struct perf_reader *r, const struct perf_event_header *header,
			struct cursor *c)
{
	struct cursor start = *c;
	const struct perf_reader_event *event = perf_reader__find_event(r, take_u64(c));

	if (event->type != PERF_TYPE_SOFTWARE || event->config != PERF_COUNT_SW_BPF_OUTPUT)
		return read_stack(r, header, &start);
	if (event->own != PERF_OWN_HIT)
		return read_own(r, c, event->own);
	return read_hit(r, event, c);
}
