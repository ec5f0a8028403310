/* SPDX-License-Identifier: MIT */
/* Shows a trace in the browser: serves it until Ctrl-C. */
#ifndef MTBPF_SERVE_SHOW_H
#define MTBPF_SERVE_SHOW_H

#include <stdbool.h>

struct show_options {
	const char *ui; /* a folder with a build of Perfetto's UI; NULL: the installed one */
	int port;	/* 0: 9001, which ui.perfetto.dev needs; any free port with a local UI */
	bool no_open;	/* print the address only */
};

/*
 * Serves until Ctrl-C, SIGTERM or SIGHUP, and returns 0. After a message, -EINVAL if the file is
 * not a trace or the folder does not contain a UI, or another -errno. Gives up sudo's rights before
 * it serves.
 */
int show__trace(const char *path, const struct show_options *options);

struct trace_pages;
/* Like show__trace(), for a page and the traces that it links to. */
int show__pages(const struct trace_pages *pages, const struct show_options *options);

struct shown_hit;
/* Opens the trace and finds the hit to show. A descriptor, or -errno after a line and a hint. */
int show__open_trace(const char *path, struct shown_hit *hit);

/* The default folder of the UI; NULL if it does not contain one. */
const char *show__ui_folder(void);

#endif
