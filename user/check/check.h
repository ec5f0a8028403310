/* SPDX-License-Identifier: MIT */
/*
 * The checks of `mtbpf check`, one per requirement: each tries it, and leaves nothing behind. Their
 * results are printed as text and as JSON.
 */
#ifndef MTBPF_CHECK_CHECK_H
#define MTBPF_CHECK_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum check_state {
	CHECK_OK,
	CHECK_LIMITED, /* a part of it is missing */
	CHECK_MISSING,
};

/* A fact for programs that read the results: `text`, or `number` if the text is empty. */
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

#define CHECK_MAX_RESULTS 40

struct check_report {
	struct check_result results[CHECK_MAX_RESULTS];
	size_t n;
};

void check_report__free(struct check_report *report);

/* True if nothing that is needed is missing: attach works with Intel PT. */
bool check_report__good(const struct check_report *report);

/* Prints one line per result: name, state, reason and remedy. */
void check_report__print(const struct check_report *report, FILE *out);
/* Results and facts as a JSON array of objects. Freed by the caller; NULL: no memory. */
char *check_report__json(const struct check_report *report);

void check_result__set(struct check_result *result, enum check_state state, const char *reason, ...)
	__attribute__((format(printf, 3, 4)));
void check_result__remedy(struct check_result *result, const char *remedy, ...)
	__attribute__((format(printf, 2, 3)));
/* Facts beyond CHECK_MAX_FACTS are left out. */
void check_result__add_number(struct check_result *result, const char *name, int64_t number);
void check_result__add_text(struct check_result *result, const char *name, const char *text);

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
