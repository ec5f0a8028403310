// SPDX-License-Identifier: MIT
#include "serve/trace_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/ui_folder.h"
#include "trace/codec.h"
#include "util/log.h"
#include "util/vec.h"

/* A browser opens six connections per host. */
#define MAX_CONNECTIONS	   32
#define CONNECTION_SECONDS 120
#define BLOCK_SIZE	   (256 * 1024)

/* The UI contacts servers of its authors; this policy forbids it, to keep the trace private. */
#define UI_POLICY                                                                                  \
	"default-src 'self' data: blob:; script-src 'self' 'unsafe-eval' 'unsafe-inline'; "        \
	"style-src 'self' 'unsafe-inline'; connect-src 'self' data: blob:; object-src 'none'"

struct served_trace {
	size_t index; /* its number in the page */
	int fd;
	enum packing packing;
	struct sight sight;
};

struct trace_server {
	struct MHD_Daemon *daemon;
	int ui_fd;
	struct served_trace trace;	 /* without a page */
	const struct trace_pages *pages; /* NULL: it serves `trace` */
	VEC(struct served_trace) opened; /* of pages */
	char host[32], localhost[32];	 /* as a request may name us */
	char root[48], url[128];
	uint16_t port;
	const char *path; /* of the trace, or the page: the end of url */
};

struct request {
	struct MHD_Connection *connection;
	const char *method, *path;
};

static const char *header_of(const struct request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

/* False for another name that resolves to 127.0.0.1 (DNS rebinding). */
static bool is_our_host(const struct trace_server *server, const struct request *request)
{
	const char *host = header_of(request, MHD_HTTP_HEADER_HOST);

	return host && (!strcmp(host, server->host) || !strcasecmp(host, server->localhost));
}

/* True if the page may read the trace. Without an Origin header the address was typed, or the page
 * has the same origin. */
static bool is_our_origin(const struct trace_server *server, const struct request *request)
{
	const char *origin = header_of(request, MHD_HTTP_HEADER_ORIGIN);
	const char *http = "http://";

	if (!origin)
		return true;
	if (server->ui_fd < 0)
		return !strcmp(origin, PERFETTO_ORIGIN);
	return !strncmp(origin, http, strlen(http)) &&
	       (!strcmp(origin + strlen(http), server->host) ||
		!strcmp(origin + strlen(http), server->localhost));
}

static void add_headers(const struct trace_server *server, struct MHD_Response *response)
{
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	if (server->ui_fd >= 0) {
		MHD_add_response_header(response, "Content-Security-Policy", UI_POLICY);
		return;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_ORIGIN,
				PERFETTO_ORIGIN);
	MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ORIGIN);
	/* A page from the internet needs this to reach this machine. */
	MHD_add_response_header(response, "Access-Control-Allow-Private-Network", "true");
}

static enum MHD_Result answer(const struct trace_server *server, const struct request *request,
			      unsigned int status, struct MHD_Response *response)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	add_headers(server, response);
	result = MHD_queue_response(request->connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result say(const struct trace_server *server, const struct request *request,
			   unsigned int status, const char *text)
{
	return answer(server, request, status,
		      MHD_create_response_from_buffer(strlen(text), (void *)text,
						      MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result send_fd(const struct trace_server *server, const struct request *request,
			       int fd, const char *type)
{
	struct MHD_Response *response;
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		if (fd >= 0)
			close(fd);
		return say(server, request, MHD_HTTP_INTERNAL_SERVER_ERROR, "cannot be read\n");
	}
	response = MHD_create_response_from_fd64((uint64_t)st.st_size, fd);
	if (!response)
		close(fd);
	else
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	return answer(server, request, MHD_HTTP_OK, response);
}

static ssize_t unpack_block(void *unpack, uint64_t at, char *data, size_t size)
{
	ssize_t n = unpack__read(unpack, data, size);

	if (n > 0)
		return n;
	return n ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
}

static void end_unpacking(void *unpack)
{
	unpack__free(unpack);
}

/* Sends the trace unpacked: Perfetto reads gzip, but not zstd. */
static enum MHD_Result send_unpacked(const struct trace_server *server,
				     const struct request *request, int fd)
{
	struct unpack *unpack = unpack__open(fd);
	struct MHD_Response *response = NULL;

	if (unpack)
		response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE,
							     unpack_block, unpack, end_unpacking);
	if (!response)
		unpack__free(unpack);
	return answer(server, request, MHD_HTTP_OK, response);
}

/* Sends the file that was opened at the start, even if its name is another file's by now. */
static enum MHD_Result send_trace(const struct trace_server *server, const struct request *request,
				  const struct served_trace *trace)
{
	if (trace->packing == PACKED_ZSTD)
		return send_unpacked(server, request, trace->fd);
	return send_fd(server, request, fcntl(trace->fd, F_DUPFD_CLOEXEC, 0),
		       "application/octet-stream");
}

/* NULL: it cannot be had. */
static const struct served_trace *open_trace(struct trace_server *server, size_t index)
{
	struct served_trace trace = {.index = index};

	for (size_t i = 0; i < server->opened.n; i++)
		if (server->opened.v[i].index == index)
			return &server->opened.v[i];
	trace.fd = server->pages->open(server->pages->ctx, index, &trace.sight);
	if (trace.fd < 0)
		return NULL;
	trace.packing = packing__of(trace.fd);
	if (!VEC_ADD(&server->opened, trace))
		return &server->opened.v[server->opened.n - 1];
	close(trace.fd);
	return NULL;
}

static enum MHD_Result send_page(const struct trace_server *server, const struct request *request)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		server->pages->size, (void *)server->pages->page, MHD_RESPMEM_PERSISTENT);

	if (response)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
					"text/html; charset=utf-8");
	return answer(server, request, MHD_HTTP_OK, response);
}

/* On to Perfetto, which asks for the trace then. */
static enum MHD_Result redirect(const struct trace_server *server, const struct request *request,
				const struct served_trace *trace)
{
	const char *ui = server->ui_fd >= 0 ? server->root : PERFETTO_ORIGIN "/";
	struct MHD_Response *response;
	char url[192], *link;

	snprintf(url, sizeof(url), "%strace-%zu.fxt%s", server->url, trace->index,
		 trace->packing == PACKED_GZIP ? ".gz" : "");
	link = deep_link(ui, url, &trace->sight);
	response = link ? MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT) : NULL;
	if (response)
		MHD_add_response_header(response, MHD_HTTP_HEADER_LOCATION, link);
	free(link);
	return answer(server, request, MHD_HTTP_FOUND, response);
}

/* "open/12" and "trace-12.fxt.gz": the number behind `what`. */
static bool parse_number(const char *path, const char *what, size_t *index)
{
	size_t n = strlen(what), digits;

	if (strncmp(path, what, n))
		return false;
	digits = strspn(path + n, "0123456789");
	*index = strtoul(path + n, NULL, 10);
	return digits && digits < 10 && (!path[n + digits] || path[n + digits] == '.');
}

/* What is below the page's path. */
static enum MHD_Result send_below(struct trace_server *server, const struct request *request,
				  const char *path)
{
	const struct served_trace *trace;
	size_t index;
	bool opens = parse_number(path, "open/", &index);

	if (!*path)
		return send_page(server, request);
	if (!opens && !parse_number(path, "trace-", &index))
		return say(server, request, MHD_HTTP_NOT_FOUND, "not here\n");
	trace = open_trace(server, index);
	if (!trace)
		return say(server, request, MHD_HTTP_NOT_FOUND,
			   "there is no trace of it: mtbpf's terminal says why\n");
	return opens ? redirect(server, request, trace) : send_trace(server, request, trace);
}

static enum MHD_Result send_ui(const struct trace_server *server, const struct request *request)
{
	int fd = server->ui_fd < 0 ? -ENOENT : ui_folder__open(server->ui_fd, request->path);

	if (fd == -ENOENT)
		return say(server, request, MHD_HTTP_NOT_FOUND, "not here\n");
	return send_fd(server, request, fd, ui_folder__content_type(request->path));
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path,
			      const char *method, const char *version, const char *data,
			      size_t *data_size, void **state)
{
	struct trace_server *server = context;
	const struct request request = {connection, method, path};

	/* Request bodies are ignored. */
	if (!*state) {
		*state = (void *)server;
		return MHD_YES;
	}
	if (*data_size) {
		*data_size = 0;
		return MHD_YES;
	}
	if (!is_our_host(server, &request) || !is_our_origin(server, &request))
		return say(server, &request, MHD_HTTP_FORBIDDEN, "not for this host or origin\n");
	if (!strcmp(method, MHD_HTTP_METHOD_OPTIONS))
		return say(server, &request, MHD_HTTP_NO_CONTENT, "");
	/* The UI looks for Perfetto's own server with POST. */
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return say(server, &request, MHD_HTTP_NOT_FOUND, "only GET and HEAD\n");
	if (server->pages && !strncmp(path, server->path, strlen(server->path)))
		return send_below(server, &request, path + strlen(server->path));
	if (!server->pages && !strcmp(path, server->path))
		return send_trace(server, &request, &server->trace);
	return send_ui(server, &request);
}

static int listen_here(struct trace_server *server, uint16_t port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(address);
	int on = 1, err, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, SOMAXCONN) ||
	    getsockname(fd, (struct sockaddr *)&address, &len)) {
		err = -errno;
		close(fd);
		return err;
	}
	port = ntohs(address.sin_port);
	server->port = port;
	snprintf(server->host, sizeof(server->host), "127.0.0.1:%u", port);
	snprintf(server->localhost, sizeof(server->localhost), "localhost:%u", port);
	snprintf(server->root, sizeof(server->root), "http://%s/", server->host);
	return fd;
}

static int name_trace(struct trace_server *server)
{
	unsigned char token[16];
	size_t n = (size_t)snprintf(server->url, sizeof(server->url), "%s", server->root);

	if (getrandom(token, sizeof(token), 0) != sizeof(token))
		return -errno;
	server->path = &server->url[n - 1];
	for (size_t i = 0; i < sizeof(token); i++)
		n += (size_t)snprintf(&server->url[n], sizeof(server->url) - n, "%02x", token[i]);
	if (server->pages)
		snprintf(&server->url[n], sizeof(server->url) - n, "/");
	else
		snprintf(&server->url[n], sizeof(server->url) - n, "/trace.fxt%s",
			 server->trace.packing == PACKED_GZIP ? ".gz" : "");
	return 0;
}

static int start(struct trace_server *server, uint16_t port)
{
	int err, fd = listen_here(server, port);

	if (fd < 0)
		return fd;
	err = name_trace(server);
	if (err) {
		close(fd);
		return err;
	}
	server->daemon =
		MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, handle, server,
				 MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
				 (unsigned int)MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
				 (unsigned int)CONNECTION_SECONDS, MHD_OPTION_END);
	if (server->daemon)
		return 0;
	close(fd);
	return -ENOMEM;
}

/* Takes the server over. */
static struct trace_server *start_or_say(struct trace_server *server, uint16_t port)
{
	int err = server ? start(server, port) : -ENOMEM;

	if (!err)
		return server;
	log__error("cannot serve at 127.0.0.1:%u: %s", port, strerror(-err));
	if (err == -EADDRINUSE && server->ui_fd < 0)
		log__hint("the page of " PERFETTO_ORIGIN
			  " reads only from this port: end the process that uses it ('ss -ltnp' "
			  "shows it), or use a local UI with -ui DIR");
	else
		log__hint("choose another port with -port N, or leave -port out for any");
	free(server);
	return NULL;
}

struct trace_server *trace_server__start(int trace_fd, int ui_fd, uint16_t port)
{
	struct trace_server *server = calloc(1, sizeof(*server));

	if (server) {
		server->trace.fd = trace_fd;
		server->trace.packing = packing__of(trace_fd);
		server->ui_fd = ui_fd;
	}
	return start_or_say(server, port);
}

struct trace_server *trace_server__start_pages(const struct trace_pages *pages, int ui_fd,
					       uint16_t port)
{
	struct trace_server *server = calloc(1, sizeof(*server));

	if (server) {
		server->pages = pages;
		server->ui_fd = ui_fd;
	}
	return start_or_say(server, port);
}

void trace_server__stop(struct trace_server *server)
{
	if (!server)
		return;
	MHD_stop_daemon(server->daemon);
	for (size_t i = 0; i < server->opened.n; i++)
		close(server->opened.v[i].fd);
	VEC_FINI(&server->opened);
	free(server);
}

const char *trace_server__url(const struct trace_server *server)
{
	return server->url;
}

const char *trace_server__root(const struct trace_server *server)
{
	return server->root;
}

uint16_t trace_server__port(const struct trace_server *server)
{
	return server->port;
}

const char *trace_server__library_version(void)
{
	return MHD_get_version();
}
