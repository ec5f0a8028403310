/* SPDX-License-Identifier: MIT */
/*
 * What a session learns of its hits while it waits: the status line, and the threshold where that
 * is a percentile.
 */
#ifndef MTBPF_SESSION_PROGRESS_H
#define MTBPF_SESSION_PROGRESS_H

#include <stdint.h>

#include "session/capture_options.h"
#include "trigger/learner.h"
#include "trigger/trigger.h"
#include "util/units.h"
#include "view/status.h"

struct progress {
	bool has_terms;	       /* -if: hits of which it is not true are not counted */
	uint64_t threshold_ns; /* now; 0: none, UINT64_MAX: not learned yet */
	struct learner learner;
	struct mt_stats last_stats;
	uint64_t began_ns, last_ns; /* when it was looked at first, and last */
};

void progress__init(struct progress *progress, const struct capture_options *options);

/* "10.0 ms", or "p99.9". */
void progress__format_threshold(const struct progress *progress,
				char text[static THRESHOLD_TEXT_SIZE + UNITS_TEXT_SIZE]);
/* Says after how many values a percentile is known; nothing, where none is to be learned. */
void progress__say_needed(const struct progress *progress);

/* Once a second: learns, tells the trigger what it has learned, and shows the status line. */
void progress__look(struct progress *progress, struct trigger *trigger, uint64_t now_ns,
		    const char *cost);

/* What the hits were like; without any, why there was no trigger: in a line. `name` is the
 * trigger's. */
void progress__say(struct progress *progress, const struct trigger *trigger, const char *name);

/* Takes the counts so far, and how many of these hits came within the last span_ns. */
struct status_view hit_status__view(const struct mt_stats *stats, uint64_t hits, uint64_t span_ns);

#endif
