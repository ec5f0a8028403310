// SPDX-License-Identifier: MIT
#include "trace/read/fxt_hit.h"

#include <string.h>

#include "mtbpf_shared.h"
#include "trace/slice_args.h"
#include "util/units.h"

#define HIT_PREFIX "hit "

static uint64_t moment_of(const char *text)
{
	uint64_t unix_ms;

	return units__parse_moment(text, &unix_ms) ? 0 : unix_ms;
}

static uint8_t counted_of(const char *text)
{
	for (uint8_t i = 0; i < COUNTED_ALL; i++)
		if (counted_texts[i] && !strcmp(counted_texts[i], text))
			return i;
	return 0;
}

const char *fxt_hit__read(struct hit_mark *hit, const struct fxt_read *read)
{
	size_t n = strlen(HIT_PREFIX);
	uint64_t mark_ns = fxt_read__number(read, "since_mark_ns");
	uint64_t delay_ns = fxt_read__number(read, "delay_ns");
	uint64_t duration_ns = fxt_read__number(read, "duration_ns");
	uint64_t region_ns = fxt_read__number(read, "region_ns");
	uint64_t stall_ns = fxt_read__number(read, "stall_ns");
	uint64_t on_ns = fxt_read__number(read, "on_cpu_ns");
	uint64_t off_ns = fxt_read__number(read, "off_cpu_ns");
	uint64_t value_ns = delay_ns ?: duration_ns ?: mark_ns ?: region_ns ?: stall_ns;

	*hit = (struct hit_mark){
		.time_ns = read->end_ns,
		.value_ns = value_ns,
		.cpu_measure = on_ns	? MT_CPU_ON
			       : off_ns ? MT_CPU_OFF
					: MT_CPU_ALL,
		.off_cpu_ns = on_ns && on_ns <= value_ns ? value_ns - on_ns : off_ns,
		.threshold_ns = fxt_read__number(read, "threshold_ns"),
		.unix_ms = moment_of(fxt_read__string(read, "time")),
		.sequence = fxt_read__number(read, "sequence"),
		.counted = counted_of(fxt_read__string(read, "counted")),
		.reason = delay_ns	? MT_HIT_DELAY
			  : duration_ns ? MT_HIT_DURATION
			  : mark_ns	? MT_HIT_MARK
			  : region_ns	? MT_HIT_REGION
			  : stall_ns	? MT_HIT_STALL
					: 0,
		.stall_from = (uint32_t)fxt_read__number(read, "stall_from"),
		.pid = (pid_t)read->pid,
		.tid = (pid_t)fxt_read__number(read, "tid"),
		.ip = fxt_read__number(read, "address"),
	};
	return strncmp(read->name, HIT_PREFIX, n) ? NULL : read->name + n;
}
