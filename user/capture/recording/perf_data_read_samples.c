// SPDX-License-Identifier: MIT
/* The records of a source that samples: ours, or those of perf record -g. */
#include "capture/recording/perf_data_internal.h"

#include <stddef.h>

#include "kernel/address.h"

/* What may stand before the call chain, eight bytes each, in this order. */
static const uint64_t words_before[] = {
	PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,	  PERF_SAMPLE_TID,
	PERF_SAMPLE_TIME,	PERF_SAMPLE_ADDR, PERF_SAMPLE_ID,
	PERF_SAMPLE_STREAM_ID,	PERF_SAMPLE_CPU,  PERF_SAMPLE_PERIOD,
};

#define IPS_MAX 1024

/* Behind other things that a sample may have between them nothing is looked for. */
static int take_user(struct perf_reader *r, const struct perf_reader_event *event, struct cursor *c,
		     struct rec_user *user)
{
	*user = (struct rec_user){0};
	if (event->sample_type & (PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK))
		return 0;
	perf_reader__take_user(event, c, user);
	return c->failed ? damaged(r, "a sample's record is damaged") : 0;
}

static int add_stack(struct perf_reader *r, const struct perf_reader_event *event, struct cursor *c,
		     struct rec_sample *sample)
{
	uint64_t n = take_u64(c), ips[IPS_MAX] = {0}, kernel[IPS_MAX] = {0};
	uint32_t n_kernel = 0;
	struct rec_user user;
	int err;

	if (c->failed || n > (uint64_t)(c->end - c->at) / 8)
		return damaged(r, "a sample's record is damaged");
	for (uint64_t i = 0; i < n; i++) {
		uint64_t ip = take_u64(c);

		/* Not those that say whose code follows. */
		if (!address__is_kernel(ip) && sample->n_ips < IPS_MAX)
			ips[sample->n_ips++] = ip;
		else if (address__is_kernel(ip) && ip < (uint64_t)PERF_CONTEXT_MAX &&
			 n_kernel < IPS_MAX)
			kernel[n_kernel++] = ip;
	}
	err = take_user(r, event, c, &user);
	if (!err && user.size && !sample->n_ips)
		ips[sample->n_ips++] = user.ip;
	if (!err)
		err = recording__add_sample(r->rec, sample, ips);
	if (!err && n_kernel)
		err = recording__add_sample_kernel(r->rec, kernel, n_kernel);
	return err || !user.size ? err : recording__add_sample_user(r->rec, &user);
}

static void note_faults(const struct perf_reader_event *event, struct rec_sample *sample)
{
	sample->is_major = event->config == PERF_COUNT_SW_PAGE_FAULTS_MAJ;
	if (sample->is_major || event->config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
	    event->config == PERF_COUNT_SW_PAGE_FAULTS)
		sample->faults = event->period < UINT32_MAX ? (uint32_t)event->period : 0;
}

int perf_reader__stack(struct perf_reader *r, const struct perf_event_header *header,
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
	if (event->type == PERF_TYPE_SOFTWARE)
		note_faults(event, &sample);
	return add_stack(r, event, c, &sample);
}

/* At least so much of it is there in a recording of any version; the rest stays as it was. */
static int take_raw(struct perf_reader *r, struct cursor *c, void *out, size_t least, size_t size)
{
	uint32_t there;

	c->at += c->end - c->at >= 24 ? 24 : 0; /* TID, TIME, CPU: the data has them */
	there = take_u32(c);
	if (there < least)
		return damaged(r, "a record of mtbpf's is of another version");
	take(c, out, there < size ? least : size);
	return c->failed ? damaged(r, "a record of mtbpf's is damaged") : 0;
}

/* Earlier versions knew hits only. */
#define ENTRY_LEAST offsetof(struct mt_entry, kind)

int perf_reader__own(struct perf_reader *r, struct cursor *c, uint64_t own)
{
	uint64_t ip = take_u64(c);
	struct mt_entry entry = {.ip = ip};
	struct mt_sched by;
	int err = 0;

	if (own == PERF_OWN_ENTRY) {
		err = take_raw(r, c, &entry, ENTRY_LEAST, offsetof(struct mt_entry, ip));
		return err ? err : recording__add_entry(r->rec, &entry);
	}
	if (own == PERF_OWN_BY) {
		err = take_raw(r, c, &by, sizeof(by), sizeof(by));
		by.by_comm[sizeof(by.by_comm) - 1] = '\0';
		return err ? err : recording__add_sched_by(r->rec, &by);
	}
	return 0;
}

int perf_reader__sched(struct perf_reader *r, const struct perf_event_header *header,
		       const struct sample_id *id)
{
	struct rec_sched sched = {
		.time_ns = id->time_ns,
		.pid = (pid_t)id->pid,
		.tid = (pid_t)id->tid,
		.cpu = (int)id->cpu,
		.what = !(header->misc & PERF_RECORD_MISC_SWITCH_OUT)	     ? REC_SCHED_IN
			: header->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? REC_SCHED_PREEMPTED
									     : REC_SCHED_BLOCKED,
	};

	return recording__add_sched(r->rec, &sched);
}
