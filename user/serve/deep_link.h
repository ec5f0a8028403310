/* SPDX-License-Identifier: MIT */
/* Makes the address that opens a trace in Perfetto at the hit. */
#ifndef MTBPF_SERVE_DEEP_LINK_H
#define MTBPF_SERVE_DEEP_LINK_H

#include <stdbool.h>
#include <stdint.h>

/* The part of a trace to show: its slowest hit. */
struct shown_hit {
	bool found; /* false: the trace does not contain a hit */
	uint64_t begin_ns,
		end_ns; /* of the hit's slice, which ends at the hit, on the trace's clock */
	uint64_t tid;	/* of the thread that triggered; 0: unknown */
	char name[160]; /* of the hit's slice: "hit one_iter" */
	uint64_t n_hits;
};

/*
 * Finds the trace's slowest hit, in a child process without rights (as far as the kernel can
 * confine it), since the trace may be hostile. 0, also for a trace without hits; -EBADMSG if the
 * file is not an FXT trace, or is damaged before the first hit, or if the child crashes; or another
 * -errno.
 */
int shown_hit__find_apart(struct shown_hit *hit, int trace_fd);

/*
 * The address of Perfetto's page `ui` (which ends in "/") that opens the trace at `url` with the
 * hit in view, its thread pinned and a note on it (perfetto.dev/docs/visualization/
 * deep-linking-to-perfetto-ui and commands-automation-reference). The caller frees it; NULL: out of
 * memory.
 */
char *deep_link(const char *ui, const char *url, const struct shown_hit *hit);

#endif
