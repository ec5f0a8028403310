// SPDX-License-Identifier: MIT
/* The frame of a perf.data file: its events, its sections, one record after the other. */
#include "capture/recording/perf_data_internal.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static bool inside(const struct perf_reader *r, struct perf_data_section s)
{
	return s.offset <= r->size && s.size <= r->size - s.offset;
}

static uint64_t period_of(const struct perf_event_attr *attr)
{
	if (attr->freq)
		return attr->sample_freq ? 1000000000 / attr->sample_freq : 0;
	return attr->type == PERF_TYPE_SOFTWARE && (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
						    attr->config == PERF_COUNT_SW_TASK_CLOCK)
		       ? attr->sample_period
		       : 0;
}

static int read_attrs(struct perf_reader *r, const struct perf_data_header *header)
{
	uint64_t n;

	if (header->attr_size < 64 + sizeof(struct perf_data_section) || header->attr_size > 4096 ||
	    !inside(r, header->attrs))
		return damaged(r, "its list of events is cut");
	n = header->attrs.size / header->attr_size;
	for (uint64_t i = 0; i < n; i++) {
		const uint8_t *entry = r->data + header->attrs.offset + i * header->attr_size;
		struct perf_event_attr attr = {0};
		struct perf_data_section ids;
		struct perf_reader_event *event;
		size_t attr_len = header->attr_size - sizeof(ids);

		memcpy(&attr, entry, attr_len < sizeof(attr) ? attr_len : sizeof(attr));
		memcpy(&ids, entry + attr_len, sizeof(ids));
		if (!inside(r, ids))
			return damaged(r, "an event's ids lie outside of the file");
		for (uint64_t at = 0; at == 0 || at + 8 <= ids.size; at += 8) {
			/* Each id has its 8 bytes; many sections over the same ones are no file. */
			if (r->events.n > r->size / 8)
				return damaged(r, "its lists of ids overlap");
			event = VEC_PUSH(&r->events);
			if (!event)
				return -ENOMEM;
			*event = (struct perf_reader_event){
				.type = attr.type,
				.config = attr.config,
				.sample_type = attr.sample_type,
				.regs_user = attr.sample_regs_user,
				.own = attr.config1,
				.exclude_user = attr.exclude_user,
				.period_ns = period_of(&attr),
				.period = attr.freq ? 0 : attr.sample_period};
			/* Also where all samples are of other events: how far apart they might
			 * have been tells how much they say. */
			if (event->period_ns && event->sample_type & PERF_SAMPLE_CALLCHAIN)
				r->rec->sample_period_ns = event->period_ns;
			if (at + 8 <= ids.size)
				memcpy(&event->id, r->data + ids.offset + at, 8);
		}
	}
	return r->events.n ? 0 : damaged(r, "it has no events");
}

static int read_record(struct perf_reader *r, const uint8_t *at, uint64_t left, uint64_t *used)
{
	struct perf_event_header header;
	struct cursor c = {0};
	uint64_t extra;
	int err;

	if (left < sizeof(header))
		return damaged(r, "it is cut in the middle of a record");
	memcpy(&header, at, sizeof(header));
	if (header.size < sizeof(header) || header.size > left)
		return damaged(r, "a record's size is wrong");
	c.at = at + sizeof(header);
	c.end = at + header.size;
	*used = header.size;
	if (header.type == PERF_USER_AUXTRACE_INFO)
		return perf_reader__auxtrace_info(r, &c);
	if (header.type != PERF_USER_AUXTRACE)
		return perf_reader__kernel_record(r, &header, &c);
	err = perf_reader__auxtrace(r, &c, at + header.size, left - header.size, &extra);
	*used += err ? 0 : extra;
	return err;
}

/* The CPU decides which errata a decoder works around. */
static void read_cpuid(struct perf_reader *r, struct perf_data_section s)
{
	struct rec_pt_config *pt = &r->rec->pt;
	char text[64];
	size_t n;

	n = s.size - 4 < sizeof(text) - 1 ? s.size - 4 : sizeof(text) - 1;
	memcpy(text, r->data + s.offset + 4, n);
	text[n] = 0;
	sscanf(text, "GenuineIntel,%u,%u,%u", &pt->cpu_family, &pt->cpu_model, &pt->cpu_stepping);
}

static int read_os_release(struct perf_reader *r, struct perf_data_section s)
{
	const char *text = (const char *)r->data + s.offset + 4;

	free(r->rec->os_release);
	r->rec->os_release = strndup(text, s.size - 4);
	return r->rec->os_release ? 0 : -ENOMEM;
}

static int read_features(struct perf_reader *r, const struct perf_data_header *header)
{
	uint64_t at = header->data.offset + header->data.size;

	for (int bit = 0; bit < 64; bit++) {
		struct perf_data_section s;

		if (!(header->features[0] >> bit & 1))
			continue;
		if (at > r->size || r->size - at < sizeof(s))
			return damaged(r, "it is cut");
		memcpy(&s, r->data + at, sizeof(s));
		at += sizeof(s);
		if (!inside(r, s))
			return damaged(r, "it is cut");
		if (bit == PERF_FEATURE_CPUID && s.size >= 4)
			read_cpuid(r, s);
		if (bit == PERF_FEATURE_OSRELEASE && s.size >= 4 && read_os_release(r, s))
			return -ENOMEM;
		if (bit == PERF_FEATURE_BUILD_ID)
			perf_data__read_build_ids(r->rec, r->data + s.offset, s.size);
	}
	return 0;
}

static int read_all(struct perf_reader *r)
{
	struct perf_data_header header;
	uint64_t at, end;
	int err;

	header = (struct perf_data_header){0};
	memcpy(&header, r->data, r->size < sizeof(header) ? r->size : sizeof(header));
	if (header.magic != PERF_DATA_MAGIC)
		return damaged(r, "it is no perf.data file");
	if (header.size == offsetof(struct perf_data_header, attr_size))
		return damaged(r, "it is of 'perf record -o -', not a file's");
	if (header.size < sizeof(header) || r->size < sizeof(header) || !inside(r, header.data))
		return damaged(r, "it is cut");
	err = read_attrs(r, &header);
	at = header.data.offset;
	end = at + header.data.size;
	while (!err && at < end) {
		uint64_t used;

		err = read_record(r, r->data + at, end - at, &used);
		at += err ? 0 : used;
	}
	if (!err)
		err = read_features(r, &header);
	if (!err)
		err = perf_reader__finish_switches(r);
	if (err)
		return err;
	if (!r->have_info && !recording__is_sampled(r->rec) && !r->rec->hits.n) {
		r->why = "there is no Intel PT in it, and no call chain";
		return -ENODATA;
	}
	return 0;
}

int perf_data__read(struct recording *rec, const uint8_t *data, size_t size, const char **why)
{
	struct perf_reader r = {.rec = rec, .data = data, .size = size};
	int err = read_all(&r);

	VEC_FINI(&r.events);
	VEC_FINI(&r.streams);
	VEC_FINI(&r.switches);
	*why = r.why ? r.why : "out of memory";
	return err;
}
