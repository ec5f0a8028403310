/* SPDX-License-Identifier: MIT */
/*
 * The stepper: a separate process that single-steps every thread of a target with ptrace and writes
 * what they do into shared memory. It outlives a killed mtbpf just long enough to release the
 * target: a tracer that dies with threads in mid-step leaves the trap flag set, and the next trap
 * kills the target.
 */
#ifndef MTBPF_CAPTURE_SOFT_STEPPER_H
#define MTBPF_CAPTURE_SOFT_STEPPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/recording/recording.h"
#include "capture/soft/pt_stream.h"
#include "capture/soft/stepped.h"

/* mtbpf commands the stepper by single bytes; end of file means detach. */
#define SOFT_COMMAND_FREEZE 'F'

/* A CPU has as many breakpoints. */
#define SOFT_MAX_STARTS 4

struct stepper_config {
	pid_t pid;
	int control_fd; /* commands in (SOFT_COMMAND_*), a byte out at each change of state */
	int freeze_fd;	/* freezes without a call when readable; -1: unused */
	bool from_exec;
	bool keeps_all; /* nothing in a ring is overwritten: its thread waits */
	/*
	 * Steps only between starts and stops, or everything without starts. At most
	 * SOFT_MAX_STARTS.
	 */
	const struct rec_place *starts, *stops;
	size_t n_starts, n_stops;
	const char *truth_path; /* or NULL */
	struct pt_stream_config stream;
};

/* Runs until the target is released or has ended; the caller then exits the process. */
void stepper__run(struct soft_shared *shared, const struct stepper_config *config);

#endif
