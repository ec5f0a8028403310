/* SPDX-License-Identifier: MIT */
/* The common part of attach, run and record after their options are read. */
#ifndef MTBPF_CAPTURE_COMMAND_H
#define MTBPF_CAPTURE_COMMAND_H

#include <stdbool.h>

#include "session/capture_options.h"
#include "session/session.h"

/* The result besides the recording. For Intel PT there is a summary only with a trace. */
enum capture_result { CAPTURE_RECORDING, CAPTURE_SUMMARY, CAPTURE_TRACE };

/* Captures, writes the recording, and makes the result. Returns the exit code. */
int capture_command__run(const struct capture_options *options, struct session_start *start,
			 enum capture_result result);

#endif
