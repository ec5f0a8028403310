/* SPDX-License-Identifier: MIT */
/*
 * The stepper: a separate process that single-steps every thread of a target with ptrace(2) and
 * writes what they do into shared memory. If mtbpf is killed, the stepper lives on until it has
 * released the target: a tracer that dies while threads are in a step leaves their trap flag set,
 * and the next trap kills the target.
 */
#ifndef MTBPF_CAPTURE_SOFT_STEPPER_H
#define MTBPF_CAPTURE_SOFT_STEPPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/recording/recording.h"
#include "capture/soft/pt_stream.h"
#include "capture/soft/stepped.h"

/* The commands of mtbpf to the stepper are single bytes. End of file means detach. */
#define SOFT_COMMAND_FREEZE 'F'

/* One breakpoint of the CPU per start. */
#define SOFT_MAX_STARTS 4

struct stepper_config {
	pid_t pid;
	int control_fd; /* receives SOFT_COMMAND_*; sends a byte at each change of state */
	int freeze_fd;	/* freezes when it is readable; -1: unused */
	bool from_exec;
	bool keeps_all; /* a thread waits if its ring is full: nothing is overwritten */
	/*
	 * Steps threads only between a start and a stop; without starts it always steps them.
	 * The starts have at most SOFT_MAX_STARTS addresses in the target.
	 */
	const struct rec_place *starts, *stops;
	size_t n_starts, n_stops;
	const char *truth_path; /* or NULL */
	struct pt_stream_config stream;
};

/* Runs until the target is released or has ended. The caller then exits the process. */
void stepper__run(struct soft_shared *shared, const struct stepper_config *config);

#endif
