/* SPDX-License-Identifier: MIT */
/* Between the soft source's files: its state, and what it makes of it. */
#ifndef MTBPF_CAPTURE_SOFT_SOFT_SOURCE_H
#define MTBPF_CAPTURE_SOFT_SOFT_SOURCE_H

#include <stddef.h>
#include <sys/types.h>

#include "capture/soft/shared.h"
#include "capture/recording/spool.h"
#include "capture/source.h"

#define SOFT_CBR 10 /* x 100 MHz: the stream's clock is 1 GHz, nanoseconds */

struct source {
	struct source_config config;
	struct soft_shared *shared;
	size_t shared_size;
	int control_fd;
	pid_t stepper;
	struct spool *spools; /* where all is kept: SOFT_MAX_THREADS; else NULL */
};

/* Where all is kept: takes what is in the rings. */
void soft_source__drain(struct source *source);

/* source_ops.read */
int soft_source__read(struct source *source, struct recording *rec);

#endif
