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
 * Serves until Ctrl-C, SIGTERM or SIGHUP, and returns 0. -EINVAL if the file is not a trace, or the
 * folder has no UI; or another -errno; each after one message. Gives up sudo's rights before it
 * serves.
 */
int show__trace(const char *path, const struct show_options *options);

struct trace_pages;
/* The same of a page, and of the traces behind it. */
int show__pages(const struct trace_pages *pages, const struct show_options *options);

struct shown_hit;
/* A descriptor of the trace, and what is to be seen in it. -errno after a line and a hint. */
int show__open_trace(const char *path, struct shown_hit *hit);

/* The default folder with a UI; NULL: there is none. */
const char *show__ui_folder(void);

#endif
