/* SPDX-License-Identifier: MIT */
/*
 * The checks, and the result of one. A check fills state, reason, remedy and facts of a result
 * that is OK and empty. It prints nothing and does not depend on other checks.
 */
#ifndef MTBPF_CHECK_RESULTS_H
#define MTBPF_CHECK_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum check_state {
	CHECK_OK,
	CHECK_LIMITED, /* a part of it is missing */
	CHECK_MISSING,
};

/* For programs that read the results: text, or a number if that is empty. */
struct check_fact {
	const char *name; /* static */
	char text[64];
	int64_t number;
};

#define CHECK_TEXT_SIZE 160
#define CHECK_MAX_FACTS 24

struct check_result {
	const char *name; /* static */
	enum check_state state;
	bool needed; /* attach with Intel PT does not work without it */
	char reason[CHECK_TEXT_SIZE];
	char remedy[CHECK_TEXT_SIZE]; /* empty: none, or none needed */
	struct check_fact facts[CHECK_MAX_FACTS];
	size_t n_facts;
};

struct check {
	const char *name;
	void (*run)(const struct check *check, struct check_result *result);
	bool needed;
	/* A capability (CAP_*), a freeze method (enum pt_freeze), or enum counting. */
	int which;
	const char *purpose; /* of a capability: what it is needed for */
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

void check_result__set(struct check_result *result, enum check_state state, const char *reason, ...)
	__attribute__((format(printf, 3, 4)));
void check_result__remedy(struct check_result *result, const char *remedy, ...)
	__attribute__((format(printf, 2, 3)));
/* Facts beyond CHECK_MAX_FACTS are left out. */
void check_result__add_number(struct check_result *result, const char *name, int64_t number);
void check_result__add_text(struct check_result *result, const char *name, const char *text);

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
