// SPDX-License-Identifier: MIT
#include "http/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 16

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
};

static bool parse_port(const char *text, in_port_t *port)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	*port = htons((in_port_t)value);
	return *text >= '0' && *text <= '9' && !*end && value <= 65535;
}

/* Parses the address; returns its size, or 0. */
static socklen_t parse(const char *text, union address *address)
{
	const char *colon = strrchr(text, ':');
	char host[64];

	*address = (union address){0};
	if (!strncmp(text, "unix:", 5)) {
		address->local.sun_family = AF_UNIX;
		if (!text[5] || strlen(text + 5) >= sizeof(address->local.sun_path))
			return 0;
		strcpy(address->local.sun_path, text + 5);
		return sizeof(address->local);
	}
	if (!colon || (size_t)(colon - text) >= sizeof(host))
		return 0;
	snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
	if (!strcmp(host, "[::1]")) {
		address->v6.sin6_family = AF_INET6;
		address->v6.sin6_addr = in6addr_loopback;
		return parse_port(colon + 1, &address->v6.sin6_port) ? sizeof(address->v6) : 0;
	}
	address->v4.sin_family = AF_INET;
	if (inet_pton(AF_INET, strcmp(host, "localhost") ? host : "127.0.0.1",
		      &address->v4.sin_addr) != 1 ||
	    !parse_port(colon + 1, &address->v4.sin_port) ||
	    ntohl(address->v4.sin_addr.s_addr) >> 24 != IN_LOOPBACKNET)
		return 0;
	return sizeof(address->v4);
}

static void describe(struct listener *l, const union address *address)
{
	union address bound = *address;
	socklen_t size = sizeof(bound);

	getsockname(l->fd, &bound.any, &size);
	if (bound.any.sa_family == AF_UNIX) {
		snprintf(l->path, sizeof(l->path), "%s", address->local.sun_path);
		snprintf(l->url, sizeof(l->url), "unix:%s", l->path);
	} else if (bound.any.sa_family == AF_INET) {
		char host[INET_ADDRSTRLEN];

		inet_ntop(AF_INET, &bound.v4.sin_addr, host, sizeof(host));
		l->port = ntohs(bound.v4.sin_port);
		snprintf(l->url, sizeof(l->url), "http://%s:%u", host, l->port);
	} else {
		l->port = ntohs(bound.v6.sin6_port);
		snprintf(l->url, sizeof(l->url), "http://[::1]:%u", l->port);
	}
}

static int open_socket(struct listener *l, const union address *address, socklen_t size)
{
	bool is_local = address->any.sa_family == AF_UNIX;
	const char *path = address->local.sun_path;
	const int on = 1;
	struct stat st;

	l->fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return -errno;
	if (is_local) {
		/*
		 * Removes the socket of a mtbpf that was killed, but never one on which somebody
		 * listens.
		 */
		int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (other >= 0 && connect(other, &address->any, sizeof(address->local)) &&
		    errno == ECONNREFUSED && !lstat(path, &st) && S_ISSOCK(st.st_mode))
			unlink(path);
		if (other >= 0)
			close(other);
	} else {
		setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	}
	if (bind(l->fd, &address->any, size))
		return -errno;
	describe(l, address);
	/* Set the mode before a client can connect. */
	if (is_local && chmod(l->path, 0660))
		return -errno;
	return listen(l->fd, BACKLOG) ? -errno : 0;
}

int listener__open(struct listener *l, const char *text)
{
	union address address;
	socklen_t size = parse(text, &address);
	int err;

	*l = (struct listener){.fd = -1};
	if (!size)
		return -EINVAL;
	err = open_socket(l, &address, size);
	if (err)
		listener__close(l);
	return err;
}

void listener__close(struct listener *l)
{
	if (l->path[0])
		unlink(l->path);
	if (l->fd >= 0)
		close(l->fd);
	*l = (struct listener){.fd = -1};
}

#define BLOCK_SIZE (256 * 1024)

struct http_server {
	struct MHD_Daemon *daemon;
	struct http_options options;
};

/* The stream's part of an answer, for libmicrohttpd's callbacks. */
struct stream {
	ssize_t (*read)(void *stream, char *data, size_t size);
	void (*end)(void *stream);
	void *stream;
};

const char *http_request__header(const struct http_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

void http_answer__say(struct http_answer *answer, unsigned int status, const char *text)
{
	answer->status = status;
	answer->text = text;
	answer->size = strlen(text);
}

void http_answer__add_header(struct http_answer *answer, const char *name, const char *value)
{
	if (answer->n_headers == HTTP_HEADERS_MAX)
		return;
	answer->headers[answer->n_headers].name = name;
	answer->headers[answer->n_headers++].value = value;
}

static ssize_t read_stream(void *ctx, uint64_t at, char *data, size_t size)
{
	const struct stream *stream = ctx;
	ssize_t n = stream->read(stream->stream, data, size);

	if (n > 0)
		return n;
	return n ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
}

static void end_stream(void *ctx)
{
	struct stream *stream = ctx;

	stream->end(stream->stream);
	free(stream);
}

static struct MHD_Response *make_response(const struct http_answer *answer)
{
	struct MHD_Response *response = NULL;
	struct stream *stream;
	struct stat st;

	if (answer->read) {
		stream = malloc(sizeof(*stream));
		if (stream) {
			*stream = (struct stream){answer->read, answer->end, answer->stream};
			response = MHD_create_response_from_callback(
				MHD_SIZE_UNKNOWN, BLOCK_SIZE, read_stream, stream, end_stream);
		}
		if (!response) {
			answer->end(answer->stream);
			free(stream);
		}
	} else if (answer->fd >= 0) {
		if (!fstat(answer->fd, &st))
			response = MHD_create_response_from_fd64((uint64_t)st.st_size, answer->fd);
		if (!response)
			close(answer->fd);
	} else if (answer->own_text) {
		response = MHD_create_response_from_buffer(answer->size, answer->own_text,
							   MHD_RESPMEM_MUST_FREE);
		if (!response)
			free(answer->own_text);
	} else {
		response = MHD_create_response_from_buffer(answer->size, (void *)answer->text,
							   MHD_RESPMEM_PERSISTENT);
	}
	return response;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path,
				  const char *method, const char *version, const char *data,
				  size_t *data_size, void **state)
{
	const struct http_server *server = ctx;
	const struct http_request request = {method, path, connection};
	struct http_answer answer = {.fd = -1, .text = ""};
	struct MHD_Response *response = NULL;
	enum MHD_Result result = MHD_NO;

	/* The first call comes after the headers, the last one after the whole body. */
	if (!*state) {
		*state = ctx;
		return MHD_YES;
	}
	if (*data_size) {
		*data_size = 0;
		return MHD_YES;
	}
	server->options.answer(server->options.ctx, &request, &answer);
	if (answer.status)
		response = make_response(&answer);
	if (response) {
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
					answer.type ? answer.type : "text/plain");
		if (answer.location)
			MHD_add_response_header(response, MHD_HTTP_HEADER_LOCATION,
						answer.location);
		for (size_t i = 0; i < answer.n_headers; i++)
			MHD_add_response_header(response, answer.headers[i].name,
						answer.headers[i].value);
		result = MHD_queue_response(connection, answer.status, response);
		MHD_destroy_response(response);
	}
	free(answer.location);
	return result;
}

struct http_server *http_server__start(struct listener *listener,
				       const struct http_options *options)
{
	struct http_server *server = calloc(1, sizeof(*server));

	if (!server)
		return NULL;
	server->options = *options;
	server->daemon =
		MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO, 0, NULL, NULL,
				 on_request, server, MHD_OPTION_LISTEN_SOCKET, listener->fd,
				 MHD_OPTION_CONNECTION_LIMIT, options->connections_max,
				 MHD_OPTION_CONNECTION_TIMEOUT, options->timeout_s, MHD_OPTION_END);
	if (!server->daemon) {
		free(server);
		return NULL;
	}
	listener->fd = -1;
	return server;
}

void http_server__stop(struct http_server *server)
{
	if (!server)
		return;
	MHD_stop_daemon(server->daemon);
	free(server);
}

const char *http_server__library_version(void)
{
	return MHD_get_version();
}
