/* SPDX-License-Identifier: MIT */
/*
 * The checks, a file a subject. Each fills state, reason, remedy and facts of a result that is OK
 * and empty; none prints, and none depends on another.
 */
#ifndef MTBPF_CHECK_SUBJECTS_H
#define MTBPF_CHECK_SUBJECTS_H

#include "check/check.h"

struct check {
	const char *name;
	void (*run)(const struct check *check, struct check_result *result);
	bool needed;
	/* A capability (CAP_*), a freeze method (enum pt_freeze), or enum counting. */
	int which;
	const char *purpose; /* a capability's: what does not work without it */
};

void check_kernel(const struct check *check, struct check_result *result);
void check_btf(const struct check *check, struct check_result *result);
void check_lockdown(const struct check *check, struct check_result *result);
void check_vm(const struct check *check, struct check_result *result);
void check_intel_pt(const struct check *check, struct check_result *result);
void check_pt_caps(const struct check *check, struct check_result *result);
void check_sample(const struct check *check, struct check_result *result);
void check_counting(const struct check *check, struct check_result *result);
void check_branch_snapshot(const struct check *check, struct check_result *result);
void check_freeze(const struct check *check, struct check_result *result);
void check_bpf(const struct check *check, struct check_result *result);
void check_uprobe(const struct check *check, struct check_result *result);
void check_tracefs(const struct check *check, struct check_result *result);
void check_perf(const struct check *check, struct check_result *result);
void check_ptrace(const struct check *check, struct check_result *result);
void check_memlock(const struct check *check, struct check_result *result);
void check_capability(const struct check *check, struct check_result *result);
void check_kernel_code(const struct check *check, struct check_result *result);
void check_fzf(const struct check *check, struct check_result *result);

/* ---- for the checks: filling a result */
void check_result__set(struct check_result *result, enum check_state state, const char *reason, ...)
	__attribute__((format(printf, 3, 4)));
void check_result__remedy(struct check_result *result, const char *remedy, ...)
	__attribute__((format(printf, 2, 3)));
/* Past CHECK_MAX_FACTS they are left out. */
void check_result__add_number(struct check_result *result, const char *name, int64_t number);
void check_result__add_text(struct check_result *result, const char *name, const char *text);

/* The first line of a small file, what is not printable ASCII left out. 0 or -errno. */
int check__read_line(const char *path, char *line, size_t size);
/* "EACCES: Permission denied" is for programmers: the short text of -err. */
const char *check__strerror(int err);

/* ---- what several checks ask, and tests */

/* The hypervisor's name from CPUID leaf 40000000H's 12 bytes; NULL: one we don't know. */
const char *vm__hypervisor(const char signature[static 12]);
/* True where CPUID says that this is a virtual machine. */
bool vm__is_one(void);

/* yama's ptrace_scope (0 where there is no yama), with CAP_SYS_PTRACE or without. */
enum check_state ptrace__judge(long scope, bool capable);
/* kernel.perf_event_paranoid, with CAP_PERFMON and CAP_SYS_ADMIN or without. */
enum check_state perf__judge(long paranoid, bool perfmon, bool admin);

#endif
