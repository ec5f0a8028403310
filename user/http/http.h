/* SPDX-License-Identifier: MIT */
/* A small web server for clients on this machine. The only user of libmicrohttpd. */
#ifndef MTBPF_HTTP_HTTP_H
#define MTBPF_HTTP_HTTP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "http/listen.h"

struct http_request {
	const char *method, *path;
	void *connection;
};

/* The header's value, or NULL. */
const char *http_request__header(const struct http_request *request, const char *name);

#define HTTP_HEADERS_MAX 8

/* One of text, fd and read is what is sent. */
struct http_answer {
	unsigned int status;
	const char *type; /* NULL: "text/plain" */
	const char *text; /* lives as long as the server; NULL: another one */
	char *own_text;	  /* the same, which the server frees */
	size_t size;	  /* of the text */
	int fd;		  /* of a file, which the server closes; -1 */
	/* A stream: bytes that were read, 0 at the end, or -errno. `end` is called once, after it.
	 */
	ssize_t (*read)(void *stream, char *data, size_t size);
	void (*end)(void *stream);
	void *stream;
	char *location; /* of a redirection; the server frees it */
	struct {
		const char *name, *value; /* live until the answer is given */
	} headers[HTTP_HEADERS_MAX];
	size_t n_headers;
};

/* Text of a program's own, as an answer. */
void http_answer__say(struct http_answer *answer, unsigned int status, const char *text);
/* Headers beyond HTTP_HEADERS_MAX are left out. */
void http_answer__add_header(struct http_answer *answer, const char *name, const char *value);

struct http_options {
	/* Sets the answer (status 0: the connection is closed). Called by the server's thread. */
	void (*answer)(void *ctx, const struct http_request *request, struct http_answer *answer);
	void *ctx;
	unsigned int connections_max;
	unsigned int timeout_s; /* a client that sends nothing is disconnected after it */
};

struct http_server;

/*
 * Starts a thread that answers, and takes the listener's descriptor over (fd is -1 then). Bodies of
 * requests are ignored. Block signals before, so that the thread does not take them. NULL: it
 * cannot start; the listener stays as it was.
 */
struct http_server *http_server__start(struct listener *listener,
				       const struct http_options *options);
/* Accepts NULL. The thread has ended when it returns. */
void http_server__stop(struct http_server *server);

/* libmicrohttpd's. */
const char *http_server__library_version(void);

#endif
