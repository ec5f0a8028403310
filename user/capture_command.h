/* SPDX-License-Identifier: MIT */
/* The common part of attach, run and record after their options are read. */
#ifndef MTBPF_CAPTURE_COMMAND_H
#define MTBPF_CAPTURE_COMMAND_H

#include <stdbool.h>

#include "session/capture_options.h"
#include "session/session.h"

/* Captures, writes the recording and, with `decode`, the trace and the report. Returns the exit
 * code. */
int capture_command__run(const struct capture_options *options, struct session_start *start,
			 bool decode);

#endif
