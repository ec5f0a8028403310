/* SPDX-License-Identifier: MIT */
/* What attach, run and record do alike once their options are read. */
#ifndef MTBPF_CAPTURE_COMMAND_H
#define MTBPF_CAPTURE_COMMAND_H

#include <stdbool.h>

#include "session/capture_options.h"
#include "session/session.h"

/* Captures, writes the recording, and, with `decode`, the trace and the report. The exit code. */
int capture_command__run(const struct capture_options *options, struct session_start *start,
			 bool decode);

#endif
