/* SPDX-License-Identifier: MIT */
/*
 * Functions of a JIT as triggers: "jit:handleRequest", by the names in /tmp/perf-PID.map. Their
 * code is not in a file, so a hardware breakpoint is used instead of a uprobe.
 */
#ifndef MTBPF_SESSION_PROBE_JIT_PROBE_H
#define MTBPF_SESSION_PROBE_JIT_PROBE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "session/probe/probe.h"

/*
 * Calls fn for each place of the function that the selector names: by its whole name in the map, by
 * a glob, or by a word of the name. A function that was compiled several times has several places.
 * Returns 0; what fn returned if that was not 0; or -errno after a message and a hint: -ENOENT,
 * -ENOTUNIQ, -EINVAL if the program does not run yet.
 */
int jit_probe__each(const struct probe_source *source, const char *text, probe_fn fn, void *ctx);

/* Prints the functions of the process's map whose names match the selector; returns how many. */
size_t jit_probe__list(pid_t pid, const char *text);

/*
 * Checks the probes of JIT functions: prints a warning and returns false if the code at one has
 * changed, or if the map now has its function at another place. Otherwise true, also if the code or
 * the map cannot be read, or if there are no such probes.
 */
bool jit_probe__check(pid_t pid, const struct probe *probes, size_t n);

/* Values of probe.exits_err for code whose calls cannot be measured. */
#define JIT_EXITS_ENTERED (-EXDEV)  /* it is also entered in its middle */
#define JIT_EXITS_VIRTUAL (-EXFULL) /* a call may continue on another thread */

/*
 * Checks that the calls of the JIT's functions among the probes can be measured, with the
 * breakpoints that a CPU has. 0, or -EINVAL after a message and a hint.
 */
int jit_probe__check_calls(const struct probe *probes, size_t n);

#endif
