/* SPDX-License-Identifier: MIT */
/* Probes in the files of one process: on functions, on instructions, and on USDT probes. */
#ifndef MTBPF_SESSION_PROBE_FILE_PROBE_H
#define MTBPF_SESSION_PROBE_FILE_PROBE_H

#include <stdbool.h>

#include "session/probe/probe.h"

/*
 * Calls fn for every place that the selector names in source->process or in source->exec_path: one
 * place for a function, all places of a USDT probe. Warns if each hit will be single-stepped. If fn
 * returns other than 0, stops and returns that; otherwise 0, or -errno after a message and a hint.
 */
int file_probe__each(const struct probe_source *source, const char *symbol, probe_fn fn, void *ctx);
/* Like file_probe__each(), for all functions that match a glob, except those that cannot be probed.
 */
int file_probe__each_function(const struct probe_source *source, const char *symbol, probe_fn fn,
			      void *ctx);

/*
 * True if `found` in the process is the same place of the same file as `other`: then `other` also
 * hits in this process. If overlays share a layer, a trial probe is needed to find out.
 */
bool file_probe__is_same(const struct probe *other, const struct probe *found,
			 const struct process *process);

/*
 * The functions that are the default for -symbol, in order of preference, NULL at the end: that of
 * include/mtbpf.h, which also has an argument and a mark, and that of magic-trace's library.
 */
extern const char *const default_triggers[];

/*
 * Finds the first of these in the process or, with exec_path, in the file that will be run. NULL
 * without such a function. Prints nothing.
 */
const char *default_trigger__find(const struct process *process, const char *exec_path);

#endif
