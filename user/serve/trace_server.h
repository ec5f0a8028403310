/* SPDX-License-Identifier: MIT */
/*
 * Serves one trace over HTTP on 127.0.0.1, with a local build of Perfetto's UI if there is one. A
 * request needs the path (with 128 random bits), our host name, and an allowed origin: this keeps
 * out other users of the machine, other pages in the browser, and DNS rebinding.
 */
#ifndef MTBPF_SERVE_TRACE_SERVER_H
#define MTBPF_SERVE_TRACE_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "serve/deep_link.h"

/* Without a local UI, this page may read the trace; its content security policy allows it only this
 * port. */
#define PERFETTO_ORIGIN "https://ui.perfetto.dev"
#define PERFETTO_PORT	9001

struct trace_server;

/*
 * Starts serving, in a thread of its own. trace_fd: an FXT file, compressed or not. ui_fd: the UI's
 * folder with its index.html, or -1 to allow PERFETTO_ORIGIN. The caller keeps both open. port 0:
 * any free port. NULL after a message and a hint.
 */
struct trace_server *trace_server__start(int trace_fd, int ui_fd, uint16_t port);

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

/* Serves a page at trace_server__url(). `pages` must live as long as the server. */
struct trace_server *trace_server__start_pages(const struct trace_pages *pages, int ui_fd,
					       uint16_t port);
void trace_server__stop(struct trace_server *server);

/* "http://127.0.0.1:9001/TOKEN/trace.fxt" and "http://127.0.0.1:9001/"; owned by the server. */
const char *trace_server__url(const struct trace_server *server);
const char *trace_server__root(const struct trace_server *server);
uint16_t trace_server__port(const struct trace_server *server);

#endif
