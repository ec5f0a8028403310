/* SPDX-License-Identifier: MIT */
/* attr.aux_action, which Debian 12's header does not name yet (include/uapi/linux/perf_event.h). */
#ifndef MTBPF_CAPTURE_PERF_AUX_ACTION_H
#define MTBPF_CAPTURE_PERF_AUX_ACTION_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* From Linux 6.13 on, and in Debian's 6.12; others refuse the event: EINVAL. */
enum aux_action {
	AUX_START_PAUSED = 1, /* of the event that has the AUX area */
	AUX_PAUSE = 2,	      /* of another one in its group, at each overflow */
	AUX_RESUME = 4,
};

_Static_assert(offsetof(struct perf_event_attr, aux_sample_size) == 112, "aux_action follows");

static inline void aux_action__set(struct perf_event_attr *attr, enum aux_action action)
{
	uint32_t bits = action;

	memcpy((char *)attr + 116, &bits, sizeof(bits));
}

#endif
