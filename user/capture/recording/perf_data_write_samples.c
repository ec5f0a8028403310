// SPDX-License-Identifier: MIT
/* The records of a source that samples: as the kernel writes them, and entries as raw data. */
#include <stddef.h>

#include "capture/recording/perf_data_writer.h"

/* IDENTIFIER, IP, TID, TIME, CPU: what every sample begins with. */
static void put_head(struct perf_writer *w, const struct sample_id_fields *id, uint64_t ip)
{
	put_u64(w, perf_event_ids[id->event]);
	put_u64(w, ip);
	put_u32(w, (uint32_t)id->pid);
	put_u32(w, (uint32_t)id->tid);
	put_u64(w, id->time_ns);
	put_u32(w, (uint32_t)id->cpu);
	put_u32(w, 0);
}

#define HEAD_SIZE 40

static enum event_index event_of(const struct rec_sample *s)
{
	if (s->faults)
		return s->is_major ? EVENT_MAJOR_FAULTS : EVENT_MINOR_FAULTS;
	return s->at_switch ? EVENT_SWITCHES : EVENT_CLOCK;
}

/* Where perf unwinds a copy of the stack, the chain by frame pointers would come in front of it. */
static void put_sample(struct perf_writer *w, const struct rec_sample *s)
{
	static const struct rec_user none = {0};
	const struct rec_user *user = s->user ? &w->rec->sample_users.v[s->user - 1] : &none;
	const uint64_t *ips = s->n_ips ? &w->rec->sample_ips.v[s->first_ip] : NULL;
	const uint64_t *kernel = s->n_kernel ? &w->rec->sample_ips.v[s->first_kernel] : NULL;
	uint32_t n_kernel = s->n_kernel ? 1 + s->n_kernel : 0;
	bool has_users = w->rec->sample_users.n;
	uint32_t chain = s->user ? 0 : s->n_ips;
	struct sample_id_fields id = {s->pid, s->tid, s->time_ns, s->cpu, event_of(s)};

	put_header(w, PERF_RECORD_SAMPLE,
		   s->in_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER,
		   HEAD_SIZE + 8 + 8 * (1 + (size_t)chain + n_kernel) +
			   (has_users ? perf_writer__user_size(user) : 0));
	put_head(w, &id, s->in_kernel && kernel ? kernel[0] : s->n_ips ? ips[0] : 0);
	put_u64(w, 1 + (uint64_t)chain + n_kernel);
	if (kernel) {
		put_u64(w, (uint64_t)PERF_CONTEXT_KERNEL);
		put(w, kernel, 8 * (size_t)s->n_kernel);
	}
	put_u64(w, (uint64_t)PERF_CONTEXT_USER);
	if (chain)
		put(w, ips, 8 * (size_t)chain);
	if (has_users)
		perf_writer__put_user(w, user);
}

static void put_sched(struct perf_writer *w, const struct rec_sched *s)
{
	uint16_t misc = s->what == REC_SCHED_IN ? 0 : PERF_RECORD_MISC_SWITCH_OUT;

	if (s->what == REC_SCHED_PREEMPTED)
		misc |= PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	put_header(w, PERF_RECORD_SWITCH, misc, perf_writer__sample_id_size(w));
	perf_writer__put_sample_id(
		w, &(struct sample_id_fields){s->pid, s->tid, s->time_ns, s->cpu, EVENT_CLOCK});
}

static void put_raw(struct perf_writer *w, const struct sample_id_fields *id, uint64_t ip,
		    const void *data, size_t size)
{
	size_t raw = 4 + size, pad = padding(raw, 8);

	put_header(w, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, HEAD_SIZE + raw + pad);
	put_head(w, id, ip);
	put_u32(w, (uint32_t)(size + pad));
	put(w, data, size);
	put_zeroes(w, pad);
}

static void put_entry(struct perf_writer *w, const struct mt_entry *entry)
{
	struct sample_id_fields id = {(pid_t)entry->tgid, (pid_t)entry->tid, entry->start_ns, 0,
				      EVENT_ENTRY};

	/* The ip is the sample's. */
	put_raw(w, &id, entry->ip, entry, offsetof(struct mt_entry, ip));
}

static void put_by(struct perf_writer *w, const struct mt_sched *by)
{
	struct sample_id_fields id = {(pid_t)by->tgid, (pid_t)by->tid, by->time_ns, 0, EVENT_BY};

	put_raw(w, &id, 0, by, sizeof(*by));
}

void perf_writer__put_samples(struct perf_writer *w)
{
	const struct recording *rec = w->rec;

	for (size_t i = 0; i < rec->samples.n; i++)
		put_sample(w, &rec->samples.v[i]);
	for (size_t i = 0; i < rec->scheds.n; i++)
		put_sched(w, &rec->scheds.v[i]);
	for (size_t i = 0; i < rec->entries.n; i++)
		put_entry(w, &rec->entries.v[i]);
	for (size_t i = 0; i < rec->sched_bys.n; i++)
		put_by(w, &rec->sched_bys.v[i]);
}
