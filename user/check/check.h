/* SPDX-License-Identifier: MIT */
/* What this machine can do, one result a need: found by trying, and nothing stays behind. */
#ifndef MTBPF_CHECK_CHECK_H
#define MTBPF_CHECK_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum check_state {
	CHECK_OK,
	CHECK_LIMITED, /* there, but not all of it */
	CHECK_MISSING,
};

/* For programs that read the results: text, or where that is empty a number. */
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
	bool needed; /* attach with Intel PT does not work where it is missing */
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

/* Runs every check; stderr stays silent. The caller frees it; NULL: no memory. */
struct check_report *check_report__new(void);
void check_report__free(struct check_report *report);

/* Runs the one of this name into *result; false: there is none. */
bool check__one(const char *name, struct check_result *result);

/* True where nothing that is needed is missing: attach would work with Intel PT. */
bool check_report__good(const struct check_report *report);

/* A line a result, in columns: name, state, reason and remedy. */
void check_report__print(const struct check_report *report, FILE *out);
/* The same and the facts as a JSON array of objects. The caller frees it; NULL: no memory. */
char *check_report__json(const struct check_report *report);

#endif
