/* SPDX-License-Identifier: MIT */
/* The address that opens a trace in Perfetto at the hit. */
#ifndef MTBPF_SERVE_DEEP_LINK_H
#define MTBPF_SERVE_DEEP_LINK_H

#include <stdbool.h>
#include <stdint.h>

/* What there is to see. */
struct sight {
	bool found; /* a hit */
	uint64_t begin_ns,
		end_ns; /* of the hit's slice, on the trace's clock: it ends at the hit */
	uint64_t tid;	/* of the thread that triggered; 0: unknown */
	char name[160]; /* of the hit's slice: "hit one_iter" */
	uint64_t n_hits;
};

/*
 * Reads the trace for its hits: the slowest is the one to look at. 0, also where there is none;
 * -EBADMSG where the file is no FXT, or damaged before any hit; another -errno. Prints nothing.
 */
int sight__find(struct sight *sight, int trace_fd);

/*
 * At ui, which ends in "/", Perfetto's page, opening the trace at url: the hit in view, its thread
 * pinned, a note on it (perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui and
 * commands-automation-reference). Freed by the caller. NULL: no memory.
 */
char *deep_link(const char *ui, const char *url, const struct sight *sight);

#endif
