// SPDX-License-Identifier: MIT
/* Intel PT's own records in a perf.data file: how to decode it, and the bytes. */
#include "capture/recording/perf_data_internal.h"

#include <stdlib.h>

int perf_reader__auxtrace_info(struct perf_reader *r, struct cursor *c)
{
	uint64_t info[PT_INFO_COUNT];
	struct rec_pt_config *pt = &r->rec->pt;

	if (take_u32(c) != AUXTRACE_TYPE_INTEL_PT) {
		r->why = "its trace is not Intel PT";
		return -ENODATA;
	}
	take_u32(c);
	for (size_t i = 0; i < PT_INFO_COUNT; i++)
		info[i] = take_u64(c);
	if (c->failed)
		return damaged(r, "its Intel PT description is cut");
	for (size_t i = 0; i < r->events.n; i++)
		if (r->events.v[i].type == info[PT_INFO_PMU_TYPE]) {
			pt->config = r->events.v[i].config;
			r->rec->kernel_only = r->events.v[i].exclude_user;
		}
	pt->time_shift = (uint16_t)info[PT_INFO_TIME_SHIFT];
	pt->time_mult = (uint32_t)info[PT_INFO_TIME_MULT];
	pt->time_zero = info[PT_INFO_TIME_ZERO];
	pt->nom_freq = (uint32_t)info[PT_INFO_MAX_NONTURBO];
	pt->tsc_ctc_num = (uint32_t)info[PT_INFO_TSC_CTC_N];
	pt->tsc_ctc_den = (uint32_t)info[PT_INFO_TSC_CTC_D];
	if (info[PT_INFO_MTC_FREQ_BITS])
		pt->mtc_freq = (uint32_t)((pt->config & info[PT_INFO_MTC_FREQ_BITS]) >>
					  __builtin_ctzll(info[PT_INFO_MTC_FREQ_BITS]));
	if (pt->time_shift > 63)
		return damaged(r, "its clock's shift is out of range");
	r->by_cpu = info[PT_INFO_PER_CPU_MMAPS] && info[PT_INFO_HAVE_SCHED_SWITCH];
	r->have_info = true;
	return 0;
}

static pid_t process_of(const struct recording *rec, pid_t tid)
{
	for (size_t i = 0; i < rec->threads.n; i++)
		if (rec->threads.v[i].tid == tid)
			return rec->threads.v[i].pid;
	return tid;
}

/* Whole words are written: what is beyond the next one's start is padding. */
static bool is_continued(const struct perf_reader *r, const struct perf_reader_stream *s,
			 uint64_t offset)
{
	return offset && s->end >= offset && s->end - offset < 8 &&
	       s->end - offset <= r->rec->aux.v[s->aux].size;
}

static const uint8_t *find_psb(const uint8_t *from, const uint8_t *end)
{
	static const uint8_t psb[16] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
					2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};

	return memmem(from, (size_t)(end - from), psb, sizeof(psb));
}

/* Behind a PSB comes its time: two that begin alike for so long are the same one. */
#define PSB_TELLS 64
/* But for streams that nobody recorded. */
#define MAX_TRIES 16

/*
 * A snapshot may begin with what the last one of its ring ends with (tools/perf/util/
 * intel-pt-decoder/intel-pt-decoder.c: intel_pt_find_overlap()): from one of the last one's PSBs
 * on, all of it stands behind the new one's first PSB. How many of the new one's bytes are known by
 * that; 0: none.
 */
static size_t find_overlap(const struct rec_aux *last, const struct rec_aux *next)
{
	const uint8_t *end = last->data + last->size, *next_end = next->data + next->size;
	const uint8_t *first = find_psb(next->data, next_end);
	const uint8_t *at = first ? find_psb(last->data, end) : NULL;

	for (unsigned int tries = 0; at && tries < MAX_TRIES; at = find_psb(at + 1, end)) {
		size_t n = (size_t)(end - at);

		if (n > (size_t)(next_end - first) ||
		    memcmp(at, first, n < PSB_TELLS ? n : PSB_TELLS))
			continue;
		tries++;
		if (!memcmp(at, first, n))
			return (size_t)(first - next->data) + n;
	}
	return 0;
}

/* The stream of the same thread or CPU; or NULL. */
static struct perf_reader_stream *find_stream(struct perf_reader *r, const struct rec_aux *aux)
{
	for (size_t i = 0; i < r->streams.n; i++)
		if (r->streams.v[i].tid == aux->tid && r->streams.v[i].cpu == aux->cpu)
			return &r->streams.v[i];
	return NULL;
}

/* A snapshot that does not continue the one before is a stream of its own. */
static int start_stream(struct perf_reader *r, struct rec_aux *aux, uint64_t end)
{
	struct perf_reader_stream *s = find_stream(r, aux);

	if (!s)
		s = VEC_PUSH(&r->streams);
	if (!s) {
		rec_aux__fini(aux);
		return -ENOMEM;
	}
	*s = (struct perf_reader_stream){
		.tid = aux->tid, .cpu = aux->cpu, .aux = r->rec->aux.n, .end = end};
	return recording__add_aux(r->rec, aux);
}

/* Room for `size` bytes, of which those that are there are the first. */
static uint8_t *grow(struct rec_aux *aux, size_t size)
{
	uint8_t *data = realloc(aux->is_mapped ? NULL : aux->data, size);

	if (!data)
		return NULL;
	if (aux->is_mapped)
		memcpy(data, aux->data, aux->size);
	aux->is_mapped = false;
	aux->data = data;
	return data;
}

/* Of the new bytes, the first `known` are there already. */
static int continue_stream(struct perf_reader *r, struct perf_reader_stream *s, size_t known,
			   struct rec_aux *more, uint64_t end)
{
	struct rec_aux *aux = &r->rec->aux.v[s->aux];
	size_t n = more->size - known;
	uint8_t *data = grow(aux, aux->size + n + 1);

	if (data) {
		memcpy(data + aux->size, more->data + known, n);
		aux->size += n;
		aux->tsc = more->tsc;
		s->end = end;
	}
	rec_aux__fini(more);
	return data ? 0 : -ENOMEM;
}

static int add_bytes(struct perf_reader *r, struct rec_aux *aux, uint64_t offset)
{
	struct perf_reader_stream *s = find_stream(r, aux);
	uint64_t end = offset + aux->size;
	size_t known;

	if (s && is_continued(r, s, offset)) {
		r->rec->aux.v[s->aux].size -= s->end - offset;
		return continue_stream(r, s, 0, aux, end);
	}
	known = s ? find_overlap(&r->rec->aux.v[s->aux], aux) : 0;
	return known ? continue_stream(r, s, known, aux, end) : start_stream(r, aux, end);
}

static uint8_t *memdup(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (copy)
		memcpy(copy, data, size);
	return copy;
}

int perf_reader__auxtrace(struct perf_reader *r, struct cursor *c, const uint8_t *data,
			  uint64_t left, uint64_t *size)
{
	struct rec_aux aux = {0};
	uint64_t offset;

	*size = take_u64(c);
	offset = take_u64(c);
	aux.tsc = take_u64(c);
	take_u32(c); /* index */
	aux.tid = (pid_t)take_u32(c);
	aux.cpu = (int)take_u32(c);
	if (c->failed || *size > left)
		return damaged(r, "its Intel PT data is cut");
	/* The recording does not keep it: what comes next would be taken for more of it. */
	if (!*size)
		return 0;
	/* 'perf record -p' writes the first thread's tid at each. */
	if (aux.tid == -1 || (r->by_cpu && aux.cpu >= 0))
		aux.tid = 0;
	else
		aux.cpu = 0;
	aux.pid = aux.tid ? process_of(r->rec, aux.tid) : 0;
	aux.size = *size;
	aux.is_mapped = r->rec->mapped.data == r->data;
	if (aux.is_mapped)
		aux.data = (uint8_t *)data;
	else
		aux.data = memdup(data, *size);
	if (!aux.data)
		return -ENOMEM;
	return add_bytes(r, &aux, offset);
}
