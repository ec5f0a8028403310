/* SPDX-License-Identifier: MIT */
/* Between the pt source's files: its state, and what it makes of it. */
#ifndef MTBPF_CAPTURE_PT_PT_SOURCE_H
#define MTBPF_CAPTURE_PT_PT_SOURCE_H

#include <stdbool.h>

#include "capture/pt/perf_clock.h"
#include "capture/pt/pmu.h"
#include "capture/pt/pt_thread.h"
#include "capture/pt/sideband.h"
#include "capture/source.h"
#include "capture/tracefs_probe.h"

struct source {
	struct source_config config;
	struct pt_pmu pmu;
	struct pt_thread_config thread_config;
	struct tracefs_probe *tracefs; /* several threads: one probe that all their events share */
	VEC(struct pt_thread) threads;
	struct sideband sideband;
	struct recording pending; /* what the sideband has said so far */
	struct clock_point first;
	int epoll_fd, pid_fd;
	bool frozen;
};

/* Threads, names and mappings as they are now: the sideband tells of later ones. 0 or -errno. */
int pt_source__note_initial(struct source *s);
/* source_ops.read */
int pt_source__read(struct source *s, struct recording *rec);

#endif
