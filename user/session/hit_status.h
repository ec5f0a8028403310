/* SPDX-License-Identifier: MIT */
/* The status of a probe, as capture and watch show it: joins trigger (counts) and view (the line).
 */
#ifndef MTBPF_SESSION_HIT_STATUS_H
#define MTBPF_SESSION_HIT_STATUS_H

#include <stdint.h>

#include "trigger/trigger.h"
#include "view/status.h"

/* Of the counts so far, and of how many of these hits came within the last span_ns. */
struct status_view hit_status__view(const struct mt_stats *stats, uint64_t hits, uint64_t span_ns);

#endif
