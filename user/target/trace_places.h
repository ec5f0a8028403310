/* SPDX-License-Identifier: MIT */
/*
 * Where a program keeps the trace id that a thread works for: in mtbpf.h's thread-local variable,
 * or in the one that OpenTelemetry names (OTEP 4947: otel_thread_ctx_v1).
 */
#ifndef MTBPF_TARGET_TRACE_PLACES_H
#define MTBPF_TARGET_TRACE_PLACES_H

#include <stdbool.h>

#include "mtbpf_shared.h"
#include "target/process.h"

/*
 * False: it has none, as far as its files and its dynamic linker tell. A library that is loaded
 * later is not known. Prints nothing.
 */
bool trace_places__find(struct mt_trace_places *places, const struct process *process);
/* The same of a program that does not run yet: without its libraries. */
bool trace_places__find_in_file(struct mt_trace_places *places, const char *path);

#endif
