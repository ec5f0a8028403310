/* SPDX-License-Identifier: MIT */
/* What `mtbpf check` reports: one result per requirement, as text and as JSON. */
#ifndef MTBPF_CHECK_CHECK_REPORT_H
#define MTBPF_CHECK_CHECK_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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

#endif
