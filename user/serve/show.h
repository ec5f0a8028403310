/* SPDX-License-Identifier: MIT */
/*
 * Shows a trace in the browser: serves it over HTTP on 127.0.0.1 until Ctrl-C, with a local build
 * of Perfetto's UI if there is one. A request needs the path (with 128 random bits), our host name,
 * and an allowed origin: this keeps out other users of the machine, other pages in the browser, and
 * DNS rebinding.
 */
#ifndef MTBPF_SERVE_SHOW_H
#define MTBPF_SERVE_SHOW_H

#include <stdbool.h>
#include <stddef.h>

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

struct shown_hit;

/* A page, and the traces that its links "open/N" open. */
struct trace_pages {
	const char *page;
	size_t size;
	/*
	 * Opens the N-th trace and finds the hit to show. Returns a descriptor, which the server
	 * takes over, or -errno. Called by one thread, and not again for a trace that it opened.
	 */
	int (*open)(void *ctx, size_t i, struct shown_hit *hit);
	void *ctx;
};

/* Like show__trace(), for a page and the traces that it links to. */
int show__pages(const struct trace_pages *pages, const struct show_options *options);

/* Opens the trace and finds the hit to show. A descriptor, or -errno after a line and a hint. */
int show__open_trace(const char *path, struct shown_hit *hit);

/* The default folder of the UI; NULL if it does not contain one. */
const char *show__ui_folder(void);

#endif
