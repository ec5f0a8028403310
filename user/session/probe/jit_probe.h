/* SPDX-License-Identifier: MIT */
/*
 * Functions of a JIT as triggers: "jit:handleRequest", by the names in /tmp/perf-PID.map. Their
 * code is in no file, so that a breakpoint of the CPU takes the place of a uprobe.
 */
#ifndef MTBPF_SESSION_PROBE_JIT_PROBE_H
#define MTBPF_SESSION_PROBE_JIT_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "session/probe/probe.h"

/*
 * Calls fn for each place of the one function that the selector names: the whole name in the map, a
 * glob of it, or a word of it. A function that was compiled several times has several places.
 * Returns 0; what fn returned if that was not 0; or -errno after a message and a hint: -ENOENT,
 * -ENOTUNIQ, -EINVAL if the program does not run yet.
 */
int jit_probe__each(const struct probe_source *source, const char *text, probe_fn fn, void *ctx);

/* Prints the functions of the process's map whose names match the selector; returns how many. */
size_t jit_probe__list(pid_t pid, const char *text);

/*
 * Looks whether the code of each such probe is still as it was found, and whether the map has its
 * function at another place by now. If so it prints a warning and returns false. Returns true also
 * if that cannot be read, or if none of the probes is of a JIT's function.
 */
bool jit_probe__check(pid_t pid, const struct probe *probes, size_t n);

#endif
