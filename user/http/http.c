// SPDX-License-Identifier: MIT
#include "http/http.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static struct MHD_Response *make_stream(const struct http_answer *answer)
{
	struct stream *stream = malloc(sizeof(*stream));
	struct MHD_Response *response = NULL;

	if (stream) {
		*stream = (struct stream){answer->read, answer->end, answer->stream};
		response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE,
							     read_stream, stream, end_stream);
	}
	if (response)
		return response;
	answer->end(answer->stream);
	free(stream);
	return NULL;
}

static struct MHD_Response *make_response(const struct http_answer *answer)
{
	struct MHD_Response *response = NULL;
	struct stat st;

	if (answer->read)
		return make_stream(answer);
	if (answer->fd >= 0) {
		if (!fstat(answer->fd, &st))
			response = MHD_create_response_from_fd64((uint64_t)st.st_size, answer->fd);
		if (!response)
			close(answer->fd);
		return response;
	}
	if (!answer->own_text)
		return MHD_create_response_from_buffer(answer->size, (void *)answer->text,
						       MHD_RESPMEM_PERSISTENT);
	response = MHD_create_response_from_buffer(answer->size, answer->own_text,
						   MHD_RESPMEM_MUST_FREE);
	if (!response)
		free(answer->own_text);
	return response;
}

static enum MHD_Result send_answer(struct MHD_Connection *connection,
				   const struct http_answer *answer)
{
	struct MHD_Response *response = make_response(answer);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
				answer->type ? answer->type : "text/plain");
	if (answer->location)
		MHD_add_response_header(response, MHD_HTTP_HEADER_LOCATION, answer->location);
	for (size_t i = 0; i < answer->n_headers; i++)
		MHD_add_response_header(response, answer->headers[i].name,
					answer->headers[i].value);
	result = MHD_queue_response(connection, answer->status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path,
				  const char *method, const char *version, const char *data,
				  size_t *data_size, void **state)
{
	const struct http_server *server = ctx;
	const struct http_request request = {method, path, connection};
	struct http_answer answer = {.fd = -1, .text = ""};
	enum MHD_Result result;

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
	result = answer.status ? send_answer(connection, &answer) : MHD_NO;
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
