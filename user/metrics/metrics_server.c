// SPDX-License-Identifier: MIT
#include "metrics/metrics_server.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/listen.h"
#include "util/log.h"

/* A client that sends nothing is disconnected. */
#define TIMEOUT_S	10u
#define CONNECTIONS_MAX 16u

struct metrics_server {
	struct MHD_Daemon *daemon;
	struct listener listener;
	pthread_mutex_t lock; /* for metrics */
	struct metrics metrics;
};

/* Takes ownership of text. */
static enum MHD_Result answer(struct MHD_Connection *connection, unsigned int status, char *text,
			      const char *type)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result result;

	if (!response) {
		free(text);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned int status,
			      const char *why)
{
	char *text = strdup(why);

	return text ? answer(connection, status, text, "text/plain") : MHD_NO;
}

static char *print_now(struct metrics_server *server)
{
	struct metrics metrics;

	pthread_mutex_lock(&server->lock);
	metrics = server->metrics;
	pthread_mutex_unlock(&server->lock);
	return metrics__print(&metrics);
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *size, void **state)
{
	char *text;

	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET only\n");
	if (strcmp(url, "/metrics"))
		return refuse(connection, MHD_HTTP_NOT_FOUND, "there is only /metrics\n");
	text = print_now(ctx);
	return text ? answer(connection, MHD_HTTP_OK, text, "text/plain; version=0.0.4") : MHD_NO;
}

static int start(struct metrics_server *server, const char *address)
{
	int err = listener__open(&server->listener, address);

	if (err)
		return err;
	server->daemon = MHD_start_daemon(
		MHD_USE_AUTO_INTERNAL_THREAD, 0, NULL, NULL, on_request, server,
		MHD_OPTION_LISTEN_SOCKET, server->listener.fd, MHD_OPTION_CONNECTION_TIMEOUT,
		TIMEOUT_S, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_END);
	if (!server->daemon) {
		log__error("-metrics: cannot answer at %s", server->listener.url);
		return -EIO;
	}
	/* The daemon owns it now. */
	server->listener.fd = -1;
	log__info("metrics: %s", server->listener.url);
	return 0;
}

struct metrics_server *metrics_server__start(const char *address)
{
	struct metrics_server *server = calloc(1, sizeof(*server));
	int err;

	if (!server)
		return NULL;
	pthread_mutex_init(&server->lock, NULL);
	server->listener.fd = -1;
	err = start(server, address);
	if (!err)
		return server;
	metrics_server__stop(server);
	errno = -err;
	return NULL;
}

void metrics_server__stop(struct metrics_server *server)
{
	if (!server)
		return;
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	listener__close(&server->listener);
	pthread_mutex_destroy(&server->lock);
	free(server);
}

void metrics_server__set(struct metrics_server *server, const struct metrics *metrics)
{
	if (!server)
		return;
	pthread_mutex_lock(&server->lock);
	server->metrics = *metrics;
	pthread_mutex_unlock(&server->lock);
}
