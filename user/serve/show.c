// SPDX-License-Identifier: MIT
#include "serve/show.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "http/http.h"
#include "serve/deep_link.h"
#include "trace/codec.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/signals.h"
#include "util/units.h"
#include "util/vec.h"

/* Without a local UI, this page may read the trace; its content security policy allows it only this
 * port. */
#define PERFETTO_ORIGIN "https://ui.perfetto.dev"
#define PERFETTO_PORT	9001

/* The files of Perfetto's UI, in one folder; their content types follow from their suffixes. */

static const struct {
	const char *suffix, *type;
} types[] = {
	{".html", "text/html; charset=utf-8"},
	{".js", "text/javascript; charset=utf-8"},
	{".mjs", "text/javascript; charset=utf-8"},
	{".css", "text/css; charset=utf-8"},
	{".json", "application/json"},
	{".wasm", "application/wasm"}, /* browsers compile it while it loads only with this type */
	{".png", "image/png"},
	{".svg", "image/svg+xml"},
	{".woff2", "font/woff2"},
	{".ttf", "font/ttf"},
};

/* The file's path within the folder. */
static const char *name_of(const char *path)
{
	while (*path == '/')
		path++;
	return *path ? path : "index.html";
}

/* The content type by the file's suffix. */
static const char *ui_folder__content_type(const char *path)
{
	size_t len;

	path = name_of(path);
	len = strlen(path);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		size_t n = strlen(types[i].suffix);

		if (len > n && !strcmp(path + len - n, types[i].suffix))
			return types[i].type;
	}
	return "application/octet-stream";
}

/*
 * Opens the file that a request's path ("/", "/v55/a.js") names: a regular file in the folder,
 * without symbolic links. -ENOENT for anything else, or another -errno.
 */
static int ui_folder__open(int folder_fd, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	struct stat st;
	int fd;

	fd = (int)syscall(SYS_openat2, folder_fd, name_of(path), &how, sizeof(how));
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -errno : -ENOENT;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

/* A browser opens six connections per host. */
#define MAX_CONNECTIONS	   32
#define CONNECTION_SECONDS 120

/* The UI contacts servers of its authors; this policy forbids it, to keep the trace private. */
#define UI_POLICY                                                                                  \
	"default-src 'self' data: blob:; script-src 'self' 'unsafe-eval' 'unsafe-inline'; "        \
	"style-src 'self' 'unsafe-inline'; connect-src 'self' data: blob:; object-src 'none'"

struct served_trace {
	size_t index; /* number of the trace in the page's links */
	int fd;
	enum packing packing;
	struct shown_hit hit;
};

struct trace_server {
	struct http_server *http;
	int ui_fd;
	struct served_trace trace;	 /* the only trace, if `pages` is NULL */
	const struct trace_pages *pages; /* NULL: it serves `trace` */
	VEC(struct served_trace) opened; /* traces of `pages` that have been requested */
	char host[32], localhost[32];	 /* allowed values of the Host header */
	/* "http://127.0.0.1:9001/" and "http://127.0.0.1:9001/TOKEN/trace.fxt" */
	char root[48], url[128];
	uint16_t port;
	const char *path; /* of the trace, or the page: the end of url */
};

/*
 * True if the page may read the trace. Other host names may resolve to 127.0.0.1 (DNS rebinding).
 * Without an Origin header the address was typed, or the page has the same origin.
 */
static bool may_read(const struct trace_server *server, const struct http_request *request)
{
	const char *host = http_request__header(request, "Host");
	const char *origin = http_request__header(request, "Origin");
	const char *http = "http://";

	if (!host || (strcmp(host, server->host) && strcasecmp(host, server->localhost)))
		return false;
	if (!origin)
		return true;
	if (server->ui_fd < 0)
		return !strcmp(origin, PERFETTO_ORIGIN);
	return !strncmp(origin, http, strlen(http)) &&
	       (!strcmp(origin + strlen(http), server->host) ||
		!strcmp(origin + strlen(http), server->localhost));
}

static void add_headers(const struct trace_server *server, struct http_answer *answer)
{
	http_answer__add_header(answer, "Cache-Control", "no-store");
	http_answer__add_header(answer, "X-Content-Type-Options", "nosniff");
	http_answer__add_header(answer, "Referrer-Policy", "no-referrer");
	if (server->ui_fd >= 0) {
		http_answer__add_header(answer, "Content-Security-Policy", UI_POLICY);
		return;
	}
	http_answer__add_header(answer, "Access-Control-Allow-Origin", PERFETTO_ORIGIN);
	http_answer__add_header(answer, "Vary", "Origin");
	/* A page from the internet needs this to reach this machine. */
	http_answer__add_header(answer, "Access-Control-Allow-Private-Network", "true");
}

static void send_fd(struct http_answer *answer, int fd, const char *type)
{
	if (fd < 0) {
		http_answer__say(answer, 500, "cannot be read\n");
		return;
	}
	answer->status = 200;
	answer->fd = fd;
	answer->type = type;
}

static ssize_t read_unpacked(void *unpack, char *data, size_t size)
{
	return unpack__read(unpack, data, size);
}

static void end_unpacking(void *unpack)
{
	unpack__free(unpack);
}

/*
 * Sends the file that was opened at the start, even if its name now refers to another file.
 * Perfetto reads gzip, but not zstd, which is unpacked here.
 */
static void send_trace(struct http_answer *answer, const struct served_trace *trace)
{
	const char *type = "application/octet-stream";

	if (trace->packing != PACKED_ZSTD) {
		send_fd(answer, fcntl(trace->fd, F_DUPFD_CLOEXEC, 0), type);
		return;
	}
	answer->stream = unpack__open(trace->fd);
	if (!answer->stream)
		return;
	answer->status = 200;
	answer->type = type;
	answer->read = read_unpacked;
	answer->end = end_unpacking;
}

/* Opens the trace number `index` when it is first requested. NULL if it cannot be opened. */
static const struct served_trace *open_trace(struct trace_server *server, size_t index)
{
	const struct served_trace *known = VEC_FIND(&server->opened, e, e->index == index);
	struct served_trace trace = {.index = index};

	if (known)
		return known;
	trace.fd = server->pages->open(server->pages->ctx, index, &trace.hit);
	if (trace.fd < 0)
		return NULL;
	trace.packing = packing__of(trace.fd);
	if (!VEC_ADD(&server->opened, trace))
		return &server->opened.v[server->opened.n - 1];
	close(trace.fd);
	return NULL;
}

/* Parses the number after `what` in "open/12" or "trace-12.fxt.gz". */
static bool parse_number(const char *path, const char *what, size_t *index)
{
	size_t n = strlen(what), digits;

	if (strncmp(path, what, n))
		return false;
	digits = strspn(path + n, "0123456789");
	*index = strtoul(path + n, NULL, 10);
	return digits && digits < 10 && (!path[n + digits] || path[n + digits] == '.');
}

/* Answers requests for the page and for paths below it. */
static void send_below(struct trace_server *server, const char *path, struct http_answer *answer)
{
	const struct served_trace *trace;
	char url[192];
	size_t index;
	bool opens = parse_number(path, "open/", &index);

	if (!*path) {
		answer->status = 200;
		answer->text = server->pages->page;
		answer->size = server->pages->size;
		answer->type = "text/html; charset=utf-8";
		return;
	}
	trace = opens || parse_number(path, "trace-", &index) ? open_trace(server, index) : NULL;
	if (!trace) {
		http_answer__say(answer, 404,
				 "this capture cannot be shown: mtbpf's terminal says why\n");
		return;
	}
	if (!opens) {
		send_trace(answer, trace);
		return;
	}
	/* Redirects to Perfetto, which then requests the trace. */
	snprintf(url, sizeof(url), "%strace-%zu.fxt%s", server->url, trace->index,
		 trace->packing == PACKED_GZIP ? ".gz" : "");
	answer->location = deep_link(server->ui_fd >= 0 ? server->root : PERFETTO_ORIGIN "/", url,
				     &trace->hit);
	if (answer->location)
		answer->status = 302;
}

static void answer_request(void *ctx, const struct http_request *request,
			   struct http_answer *answer)
{
	struct trace_server *server = ctx;
	const char *method = request->method, *path = request->path;
	int fd;

	add_headers(server, answer);
	if (!may_read(server, request))
		http_answer__say(answer, 403, "not for this host or origin\n");
	else if (!strcmp(method, "OPTIONS"))
		http_answer__say(answer, 204, "");
	/* The UI looks for Perfetto's own server with POST. */
	else if (strcmp(method, "GET") && strcmp(method, "HEAD"))
		http_answer__say(answer, 404, "only GET and HEAD\n");
	else if (server->pages && !strncmp(path, server->path, strlen(server->path)))
		send_below(server, path + strlen(server->path), answer);
	else if (!server->pages && !strcmp(path, server->path))
		send_trace(answer, &server->trace);
	else if (server->ui_fd < 0 || (fd = ui_folder__open(server->ui_fd, path)) == -ENOENT)
		http_answer__say(answer, 404, "not here\n");
	else
		send_fd(answer, fd, ui_folder__content_type(path));
}

static int start(struct trace_server *server, uint16_t port)
{
	const struct http_options options = {.answer = answer_request,
					     .ctx = server,
					     .connections_max = MAX_CONNECTIONS,
					     .timeout_s = CONNECTION_SECONDS};
	struct listener listener;
	unsigned char token[16];
	char address[32];
	size_t n;
	int err;

	if (getrandom(token, sizeof(token), 0) != sizeof(token))
		return -errno;
	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	err = listener__open(&listener, address);
	if (err)
		return err;
	server->port = listener.port;
	snprintf(server->host, sizeof(server->host), "127.0.0.1:%u", server->port);
	snprintf(server->localhost, sizeof(server->localhost), "localhost:%u", server->port);
	snprintf(server->root, sizeof(server->root), "http://%s/", server->host);
	n = (size_t)snprintf(server->url, sizeof(server->url), "%s", server->root);
	server->path = &server->url[n - 1];
	for (size_t i = 0; i < sizeof(token); i++)
		n += (size_t)snprintf(&server->url[n], sizeof(server->url) - n, "%02x", token[i]);
	if (server->pages)
		snprintf(&server->url[n], sizeof(server->url) - n, "/");
	else
		snprintf(&server->url[n], sizeof(server->url) - n, "/trace.fxt%s",
			 server->trace.packing == PACKED_GZIP ? ".gz" : "");
	server->http = http_server__start(&listener, &options);
	listener__close(&listener);
	return server->http ? 0 : -ENOMEM;
}

/*
 * Starts serving `pages`, or the trace if that is NULL, in a thread of its own. trace_fd: an FXT
 * file, compressed or not. ui_fd: the UI's folder with its index.html, or -1 to allow
 * PERFETTO_ORIGIN. The caller keeps all of them. port 0: any free port. NULL after a message and a
 * hint.
 */
static struct trace_server *trace_server__start(const struct trace_pages *pages, int trace_fd,
						int ui_fd, uint16_t port)
{
	struct trace_server *server = calloc(1, sizeof(*server));
	int err = -ENOMEM;

	if (server) {
		*server = (struct trace_server){.pages = pages, .ui_fd = ui_fd};
		server->trace.fd = trace_fd;
		server->trace.packing = pages ? PACKED_NOT : packing__of(trace_fd);
		err = start(server, port);
	}
	if (!err)
		return server;
	log__error("cannot serve at 127.0.0.1:%u: %s", port, strerror(-err));
	if (err == -EADDRINUSE && ui_fd < 0)
		log__hint("the page of " PERFETTO_ORIGIN
			  " reads only from this port: end the process that uses it ('ss -ltnp' "
			  "shows it), or use a local UI with -ui DIR");
	else
		log__hint("choose another port with -port N, or leave -port out for any");
	free(server);
	return NULL;
}

static void trace_server__stop(struct trace_server *server)
{
	if (!server)
		return;
	http_server__stop(server->http);
	VEC_FINI_EACH(&server->opened, e, close(e->fd));
	free(server);
}

#define UI_VARIABLE "MTBPF_PERFETTO_UI"
#define UI_FOLDER   "/usr/share/mtbpf/perfetto-ui"

static int refuse_trace(const char *path, int err)
{
	if (err == -EBADMSG) {
		log__error("%s is not an FXT trace, or is damaged", path);
		log__hint("'mtbpf decode NAME.mtbpf' makes a trace from a recording");
		return -EINVAL;
	}
	if (err == -EISDIR) {
		log__error("%s is a folder, not a trace", path);
		log__hint("if it is a recording, 'mtbpf decode %s' makes a trace from it", path);
		return err;
	}
	log__error("cannot read %s: %s", path, strerror(-err));
	log__hint("a trace is named NAME.fxt, .fxt.gz or .fxt.zst; one made with sudo belongs to "
		  "root");
	return err;
}

int show__open_trace(const char *path, struct shown_hit *hit)
{
	int err, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return refuse_trace(path, -errno);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		err = S_ISDIR(st.st_mode) ? -EISDIR : -EBADMSG;
	else
		err = shown_hit__find_apart(hit, fd);
	if (!err)
		return fd;
	close(fd);
	return refuse_trace(path, err);
}

const char *show__ui_folder(void)
{
	const char *path = getenv(UI_VARIABLE);
	_cleanup_close_ int fd = open(path ? path : UI_FOLDER, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return !(fd >= 0 && !faccessat(fd, "index.html", R_OK, 0)) ? NULL : path ? path : UI_FOLDER;
}

/* Opens the UI's folder. *fd is -1 if no folder was asked for and the default one lacks a UI. */
static int open_ui(const char *asked, int *fd)
{
	const char *path = asked ? asked : getenv(UI_VARIABLE);

	*fd = open(path ? path : UI_FOLDER, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if ((*fd) >= 0 && !faccessat(*fd, "index.html", R_OK, 0))
		return 0;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	if (!path)
		return 0;
	log__error("%s is not Perfetto's UI: it lacks index.html", path);
	log__hint("unpack the perfetto-ui.zip of a release there "
		  "(github.com/google/perfetto/releases)");
	return -EINVAL;
}

/* Gives up root's rights under sudo: the server does not need them, and the browser must not run as
 * root. */
static int give_back_root(void)
{
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");

	if (geteuid() || !uid || !gid)
		return 0;
	if (!setgroups(0, NULL) && !setgid((gid_t)strtoul(gid, NULL, 10)) &&
	    !setuid((uid_t)strtoul(uid, NULL, 10)))
		return 0;
	log__error("cannot drop the rights of sudo (to user %s): %s", uid, strerror(errno));
	log__hint("copy the trace, and run 'mtbpf view' on it without sudo");
	return -EPERM;
}

static bool open_browser(const char *link)
{
	char *const words[] = {"xdg-open", (char *)link, NULL};
	posix_spawnattr_t attr;
	sigset_t none;
	pid_t pid;
	bool ok;

	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &none);
	ok = !posix_spawnp(&pid, words[0], NULL, &attr, words, environ);
	posix_spawnattr_destroy(&attr);
	return ok;
}

static void wait_for_interrupt(void)
{
	_cleanup_close_ int fd = interrupts__open();
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	struct signalfd_siginfo info;

	while (poll(&poll_fd, 1, -1) < 0 && errno == EINTR)
		;
	/* Take the signal: otherwise it would end mtbpf before it has cleaned up. */
	if (fd >= 0 && read(fd, &info, sizeof(info)) != sizeof(info))
		log__debug("no signal was read");
}

/* Serves `pages`, or the trace if that is NULL, until Ctrl-C. */
static int serve(const struct trace_pages *pages, int trace_fd, const struct shown_hit *hit,
		 const struct show_options *options)
{
	_cleanup_close_ int ui_fd = -1;
	_cleanup_free_ char *link = NULL;
	struct trace_server *server;
	uint16_t port;
	int err = open_ui(options->ui, &ui_fd);

	if (err)
		return err;
	/* Perfetto's own page reads from one port only. */
	port = (uint16_t)(options->port || ui_fd >= 0 ? options->port : PERFETTO_PORT);
	err = give_back_root();
	if (err)
		return err;
	server = trace_server__start(pages, trace_fd, ui_fd, port);
	if (!server)
		return -EADDRINUSE;
	if (pages)
		link = strdup(server->url);
	else
		link = deep_link(ui_fd >= 0 ? server->root : PERFETTO_ORIGIN "/", server->url, hit);
	if (!link) {
		trace_server__stop(server);
		return -ENOMEM;
	}
	if (!pages && !hit->found)
		log__info("this trace does not contain a hit: Perfetto shows all of it");
	else if (!pages)
		log__info("%s%s%s%s", hit->name, hit->end_ns > hit->begin_ns ? ", " : "",
			  hit->end_ns > hit->begin_ns ? DURATION(hit->end_ns - hit->begin_ns) : "",
			  hit->n_hits > 1 ? ": the slowest of the hits in the trace" : "");
	puts(link);
	fflush(stdout);
	if (!pages && ui_fd < 0)
		log__info("the page comes from " PERFETTO_ORIGIN
			  ", the trace stays here; Chrome asks "
			  "whether the page may reach this device");
	log__info("to open the address on another machine, run there: ssh -L %1$u:127.0.0.1:%1$u "
		  "HOST (HOST: this machine); Ctrl-C ends 'view'",
		  server->port);
	if (!options->no_open && geteuid() && (getenv("DISPLAY") || getenv("WAYLAND_DISPLAY")) &&
	    !open_browser(link))
		log__info("xdg-open is missing: open the address in a browser");
	wait_for_interrupt();
	trace_server__stop(server);
	return 0;
}

int show__trace(const char *path, const struct show_options *options)
{
	struct shown_hit hit;
	_cleanup_close_ int trace_fd = show__open_trace(path, &hit);
	int err;

	if (trace_fd < 0)
		return trace_fd;
	interrupts__hold();
	err = serve(NULL, trace_fd, &hit, options);
	interrupts__release();
	return err;
}

int show__pages(const struct trace_pages *pages, const struct show_options *options)
{
	int err;

	interrupts__hold();
	err = serve(pages, -1, NULL, options);
	interrupts__release();
	return err;
}
