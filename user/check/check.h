/* SPDX-License-Identifier: MIT */
/* The checks of `mtbpf check`, one per requirement: each tries it, and leaves nothing behind. */
#ifndef MTBPF_CHECK_CHECK_H
#define MTBPF_CHECK_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "check/check_report.h"

/* Runs every check; prints nothing. Free it with check_report__free(); NULL: no memory. */
struct check_report *check_report__new(void);

/* Runs the check with this name. False if no check has it. */
bool check__one(const char *name, struct check_result *result);

/* ---- for tests */

/* The first line of a small file, without characters that are not printable ASCII. 0 or -errno. */
int check__read_line(const char *path, char *line, size_t size);

/* The hypervisor's name from the 12 bytes of CPUID leaf 40000000H; NULL if unknown. */
const char *vm__hypervisor(const char signature[static 12]);

/* `scope`: yama's ptrace_scope, or 0 without yama; `capable`: has CAP_SYS_PTRACE. */
enum check_state ptrace__judge(long scope, bool capable);
/* `paranoid`: kernel.perf_event_paranoid; the others: has CAP_PERFMON, CAP_SYS_ADMIN. */
enum check_state perf__judge(long paranoid, bool perfmon, bool admin);

#endif
