// SPDX-License-Identifier: MIT
#include "serve/show.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/deep_link.h"
#include "serve/trace_server.h"
#include "util/signals.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/units.h"

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

static bool is_ui(int fd)
{
	return fd >= 0 && !faccessat(fd, "index.html", R_OK, 0);
}

static int open_folder(const char *path)
{
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

const char *show__ui_folder(void)
{
	const char *path = getenv(UI_VARIABLE);
	_cleanup_close_ int fd = open_folder(path ? path : UI_FOLDER);

	return !is_ui(fd) ? NULL : path ? path : UI_FOLDER;
}

/* Opens the UI's folder. *fd is -1 if no folder was asked for and the default one lacks a UI. */
static int open_ui(const char *asked, int *fd)
{
	const char *path = asked ? asked : getenv(UI_VARIABLE);

	*fd = open_folder(path ? path : UI_FOLDER);
	if (is_ui(*fd))
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
	server = pages ? trace_server__start_pages(pages, ui_fd, port)
		       : trace_server__start(trace_fd, ui_fd, port);
	if (!server)
		return -EADDRINUSE;
	if (pages)
		link = strdup(trace_server__url(server));
	else
		link = deep_link(ui_fd >= 0 ? trace_server__root(server) : PERFETTO_ORIGIN "/",
				 trace_server__url(server), hit);
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
	log__info("from another machine: ssh -L %1$u:127.0.0.1:%1$u HOST, then open it there; "
		  "Ctrl-C ends",
		  trace_server__port(server));
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
