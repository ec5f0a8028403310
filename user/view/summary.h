/* SPDX-License-Identifier: MIT */
/*
 * The summary of one capture, small enough to be kept beside it and to be read by the thousand: a
 * JSON object with the hit, the account, the causes, the functions, and as much of the slow
 * iteration's stacks and threads as a page shows.
 */
#ifndef MTBPF_VIEW_SUMMARY_H
#define MTBPF_VIEW_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/vec.h"
#include "view/account.h"

struct cJSON;
struct report;
struct hit_mark;

/* Raised by each change of the content; summaries of other versions are made again. */
#define SUMMARY_VERSION 2
/* A larger file is not a summary. */
#define SUMMARY_SIZE_MAX (4u << 20)
/* An iteration's timeline has this many stretches of equal length. */
#define SUMMARY_BINS 240

struct summary_label {
	const char *key, *value;
};

/* A capture's facts that are not in its report. */
struct summary_facts {
	const struct hit_mark *hit; /* NULL: none */
	const char *no_report;	    /* reason for a missing report; NULL: not missing */
	uint64_t unix_ms;	    /* used without a hit; 0: unknown */
	uint64_t data_bytes;	    /* size of the recording's data, which identifies it */
	const char *command;	    /* NULL: unknown */
	/* The file that the trigger is in, and its build id; NULL: unknown. */
	const char *program, *build_id;
	const struct summary_label *labels;
	size_t n_labels;
};

/* The JSON text, freed by the caller. r: NULL if facts->no_report. NULL: no memory. */
char *summary__make(const struct report *r, const struct summary_facts *facts);

struct summary_frame {
	const char *name;
	bool is_inlined;
};

struct summary_cause {
	enum cause_kind kind;
	uint64_t ns;
	const char *text, *of;		/* of: what it waited for, or who took the CPU; or NULL */
	const char *meanwhile;		/* what the thread did that ended the wait; or NULL */
	VEC(struct summary_frame) path; /* outermost first */
};

struct summary_function {
	const char *name, *in; /* in: where time outside of functions was spent; or NULL */
	bool is_inlined;
	int64_t extra_ns;
	uint64_t slow_ns;
};

/* All texts are safe to print, and belong to `root`. */
struct summary {
	struct cJSON *root;
	char *path;	       /* of the capture; summary__fini() frees it */
	bool is_kept;	       /* it is stored in the capture's folder */
	const char *no_report; /* reason for missing causes; NULL: there is a report */
	const char *function, *command, *program, *build_id, *host; /* NULL: unknown */
	const char *trace_id;					    /* of the request; NULL: none */
	const char *print; /* what -print has read, on one line; NULL: nothing */
	uint64_t unix_ms;  /* 0: unknown */
	uint64_t slow_ns, ordinary_ns;
	uint64_t slow[ACCOUNT_PARTS], ordinary[ACCOUNT_PARTS]; /* account */
	VEC(struct summary_cause) causes;		       /* largest first */
	VEC(struct summary_function) functions;
};

/*
 * 0; -EPROTO: another version; -ESTALE: not of data_bytes (0: any); -EINVAL: not a summary;
 * -ENOMEM. summary__fini() in any case. path: copied.
 */
int summary__parse(struct summary *s, const char *path, const char *text, uint64_t data_bytes);
void summary__fini(struct summary *s);

/* The label's value, or NULL. */
const char *summary__label(const struct summary *s, const char *key);
/* The i-th; false: i is too large. */
bool summary__label_at(const struct summary *s, size_t i, struct summary_label *out);
/* The slow iteration's time beyond that of an ordinary one. */
uint64_t summary__excess(const struct summary *s);

/* A function of the slow iteration's stacks. Zero-initialise for the first one. */
struct summary_call {
	uint32_t depth;
	const char *name;
	uint64_t ns; /* includes its callees */
	const struct cJSON *item;
	size_t n; /* calls so far, this one included */
};
/* Moves to the next one, callers first; false: no more. Calls with little time are left out. */
bool summary__next_call(const struct summary *s, struct summary_call *call);

/*
 * A thread during the slow iteration: a letter of account_parts, or a space (unknown), for each of
 * SUMMARY_BINS stretches.
 */
struct summary_thread {
	const char *name, *bins;
	uint64_t tid;
	bool is_slow; /* the one that triggered */
};
/* The i-th; false: i is too large. */
bool summary__thread(const struct summary *s, size_t i, struct summary_thread *out);

#endif
