/* SPDX-License-Identifier: MIT */
/* Shows a trace in the browser: serves it until Ctrl-C. */
#ifndef MTBPF_SERVE_SHOW_H
#define MTBPF_SERVE_SHOW_H

#include <stdbool.h>

struct show_options {
	const char *ui; /* a folder with a build of Perfetto's UI; NULL: where one is installed */
	int port;	/* 0: 9001, which Perfetto's own page needs; with a UI of ours any */
	bool no_open;	/* print the address only */
};

/*
 * Returns after Ctrl-C, SIGTERM or SIGHUP: 0. -EINVAL where the file is no trace, or the folder no
 * UI; another -errno. One message. What sudo has given is given back before anything is served.
 */
int show__trace(const char *path, const struct show_options *options);

struct trace_pages;
/* The same of a page, and of the traces behind it. */
int show__pages(const struct trace_pages *pages, const struct show_options *options);

struct sight;
/* A descriptor of the trace, and what is to be seen in it. -errno after a line and a hint. */
int show__open_trace(const char *path, struct sight *sight);

/* The folder with a UI that is used where none is asked for; NULL: there is none. */
const char *show__ui_folder(void);

#endif
