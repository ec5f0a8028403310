/* SPDX-License-Identifier: MIT */
/* A small web server for clients on this machine. The only user of libmicrohttpd. */
#ifndef MTBPF_HTTP_HTTP_H
#define MTBPF_HTTP_HTTP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A listening socket that can only be reached from this machine. */

struct listener {
	int fd;
	uint16_t port;	/* 0: a unix socket */
	char path[108]; /* of a unix socket, which listener__close() removes; "" for a port */
	char url[128];	/* "http://127.0.0.1:9464" or "unix:/run/mtbpf.sock" */
};

/*
 * address: "unix:PATH" (mode 0660), or "ADDRESS:PORT" with a loopback address; port 0 takes a free
 * one. 0; -EINVAL: neither; or another -errno. Prints nothing.
 */
int listener__open(struct listener *listener, const char *address);
/* Also removes a unix socket's file. fd -1: another owner closes it. */
void listener__close(struct listener *listener);

struct http_request {
	const char *method, *path;
	void *connection;
};

/* The header's value, or NULL. */
const char *http_request__header(const struct http_request *request, const char *name);

#define HTTP_HEADERS_MAX 8

/* The body is one of text, own_text, fd and read. */
struct http_answer {
	unsigned int status;
	const char *type; /* NULL: "text/plain" */
	const char *text; /* must live as long as the server; or NULL */
	char *own_text;	  /* a text that the server frees; or NULL */
	size_t size;	  /* of the text */
	int fd;		  /* a file, which the server closes; or -1 */
	/* Reads a stream: returns the number of bytes, 0 at the end, or -errno. `end` is called
	 * once, after the last read. */
	ssize_t (*read)(void *stream, char *data, size_t size);
	void (*end)(void *stream);
	void *stream;
	char *location; /* target of a redirection; the server frees it */
	struct {
		const char *name, *value; /* live until the answer is given */
	} headers[HTTP_HEADERS_MAX];
	size_t n_headers;
};

/* Answers with a constant text. */
void http_answer__say(struct http_answer *answer, unsigned int status, const char *text);
/* Headers beyond HTTP_HEADERS_MAX are left out. */
void http_answer__add_header(struct http_answer *answer, const char *name, const char *value);

struct http_options {
	/* Sets the answer (status 0: the connection is closed). Called by the server's thread. */
	void (*answer)(void *ctx, const struct http_request *request, struct http_answer *answer);
	void *ctx;
	unsigned int connections_max;
	unsigned int timeout_s; /* a client that sends nothing for this long is disconnected */
};

struct http_server;

/*
 * Starts answering requests, in a thread of its own, and takes over the listener's descriptor (and
 * sets its fd to -1). Bodies of requests are ignored. Block signals before the call, so that the
 * thread does not receive them. NULL if it cannot start; the listener is unchanged then.
 */
struct http_server *http_server__start(struct listener *listener,
				       const struct http_options *options);
/* Accepts NULL. The thread has ended when it returns. */
void http_server__stop(struct http_server *server);

/* The version of libmicrohttpd. */
const char *http_server__library_version(void);

#endif
