/* SPDX-License-Identifier: MIT */
/*
 * Serves one trace over HTTP on 127.0.0.1, and a build of Perfetto's UI beside it where there is
 * one. Whoever does not know its path (of 128 random bits), names another host or comes from
 * another origin gets nothing: other users of the machine, other pages in the browser, names that
 * resolve to 127.0.0.1.
 */
#ifndef MTBPF_SERVE_TRACE_SERVER_H
#define MTBPF_SERVE_TRACE_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "serve/deep_link.h"

/* The page that may read the trace where we serve no UI; its content security policy lets it
 * connect to this port only. */
#define PERFETTO_ORIGIN "https://ui.perfetto.dev"
#define PERFETTO_PORT	9001

struct trace_server;

/*
 * trace_fd: of an FXT file, compressed or not. ui_fd: of the folder of the UI (index.html in it),
 * or -1: PERFETTO_ORIGIN is let in. Both stay the caller's, and open. port: 0 takes a free one.
 * Answers from now on, in a thread of its own. NULL after a line and a hint.
 */
struct trace_server *trace_server__start(int trace_fd, int ui_fd, uint16_t port);

/* A page, and the traces behind its links "open/N". */
struct trace_pages {
	const char *page;
	size_t size;
	/*
	 * The N-th trace: a descriptor, which the server takes over, and what is to be seen in it;
	 * -errno. Asked for once each, by one thread.
	 */
	int (*open)(void *ctx, size_t i, struct sight *sight);
	void *ctx;
};

/* The same of a page, at its url(); `pages` lives as long as the server. */
struct trace_server *trace_server__start_pages(const struct trace_pages *pages, int ui_fd,
					       uint16_t port);
void trace_server__stop(struct trace_server *server);

/* "http://127.0.0.1:9001/TOKEN/trace.fxt" and "http://127.0.0.1:9001/": its own until it stops. */
const char *trace_server__url(const struct trace_server *server);
const char *trace_server__root(const struct trace_server *server);
uint16_t trace_server__port(const struct trace_server *server);

/* Of libmicrohttpd, as it says itself. */
const char *trace_server__library_version(void);

#endif
