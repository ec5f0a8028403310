/* SPDX-License-Identifier: MIT */
/*
 * Finds the thread-local variable in which a program stores the trace id of a thread's current
 * request: mtbpf.h's, or the one that OpenTelemetry specifies (OTEP 4947: otel_thread_ctx_v1).
 */
#ifndef MTBPF_TARGET_TRACE_PLACES_H
#define MTBPF_TARGET_TRACE_PLACES_H

#include <stdbool.h>

#include "mtbpf_shared.h"
#include "target/process.h"

/*
 * False if the process's files and its dynamic linker show no such variable. Libraries that are
 * loaded later are not searched. Prints nothing.
 */
bool trace_places__find(struct mt_trace_places *places, const struct process *process);
/* Like trace_places__find(), for a program that does not run yet: without its libraries. */
bool trace_places__find_in_file(struct mt_trace_places *places, const char *path);

#endif
