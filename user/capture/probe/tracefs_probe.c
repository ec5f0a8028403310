// SPDX-License-Identifier: MIT
#include "capture/probe/tracefs_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"

#define GROUP "mtbpf"
/* Closed events let go of the probe a little later (RCU). */
#define REMOVE_TRIES	200
#define REMOVE_PAUSE_US 10000

struct tracefs_probe {
	int dir; /* tracefs */
	char name[64];
	pid_t janitor;
	int janitor_pipe; /* its end of file is our end */
};

static bool is_tracefs(int dir)
{
	struct stat st;

	return dir >= 0 && !fstatat(dir, "uprobe_events", &st, 0);
}

/* A mount that nobody else sees, and that goes with its descriptor. */
static int mount_private(void)
{
	_cleanup_close_ int fs = fsopen("tracefs", FSOPEN_CLOEXEC);
	int dir;

	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -errno;
	dir = fsmount(fs, FSMOUNT_CLOEXEC, 0);
	return dir < 0 ? -errno : dir;
}

/* *place: where it is mounted; NULL: by us. */
static int open_tracefs(const char **place)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		/* Without O_DIRECTORY: debugfs would mount it for good, for everybody. */
		int dir = open(places[i], O_PATH | O_CLOEXEC);

		*place = places[i];
		if (is_tracefs(dir))
			return dir;
		if (dir >= 0)
			close(dir);
	}
	*place = NULL;
	return mount_private();
}

/* O_APPEND: O_TRUNC would remove every probe on the machine. */
static int write_command(int dir, const char *text)
{
	_cleanup_close_ int fd = openat(dir, "uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int remove_entry(int dir, const char *name)
{
	char text[96];
	int err = -EBUSY;

	snprintf(text, sizeof(text), "-:" GROUP "/%s", name);
	for (int i = 0; i < REMOVE_TRIES && err && err != -ENOENT; i++) {
		if (i)
			usleep(REMOVE_PAUSE_US);
		err = write_command(dir, text);
	}
	return err;
}

static int read_id(const struct tracefs_probe *p, uint32_t *id)
{
	char path[128], text[32] = "";
	_cleanup_close_ int fd = -1;

	snprintf(path, sizeof(path), "events/" GROUP "/%s/id", p->name);
	fd = openat(p->dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return -errno;
	*id = (uint32_t)strtoul(text, NULL, 10);
	return *id ? 0 : -EINVAL;
}

/* In the child: everything of ours but these two is closed, so that the probe is let go. */
static void run_janitor(const struct tracefs_probe *p, int pipe_end)
{
	sigset_t all;
	char byte;

	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "probe-janitor");
	fs__close_all_but(0, p->dir, pipe_end);
	while (read(pipe_end, &byte, 1) < 0 && errno == EINTR)
		;
	remove_entry(p->dir, p->name);
	_exit(0);
}

static int start_janitor(struct tracefs_probe *p)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	fflush(NULL);
	p->janitor = fork();
	if (p->janitor < 0) {
		close(fds[0]);
		close(fds[1]);
		return -errno;
	}
	if (!p->janitor) {
		close(fds[1]);
		run_janitor(p, fds[0]);
	}
	close(fds[0]);
	p->janitor_pipe = fds[1];
	return 0;
}

static int create_entry(struct tracefs_probe *p, const struct uprobe_spec *spec, size_t number)
{
	char text[PATH_MAX + 128];
	size_t len;

	snprintf(p->name, sizeof(p->name), "probe_%d_%zu", getpid(), number);
	snprintf(text, sizeof(text), "%c:" GROUP "/%s %s:0x%llx", spec->on_return ? 'r' : 'p',
		 p->name, spec->path, (unsigned long long)spec->offset);
	len = strlen(text);
	if (spec->semaphore)
		snprintf(text + len, sizeof(text) - len, "(0x%llx)",
			 (unsigned long long)spec->semaphore);
	return write_command(p->dir, text);
}

static void explain(const struct uprobe_spec *spec, int err)
{
	log__error("cannot set a probe at %s+0x%llx through tracefs: %s", spec->path,
		   (unsigned long long)spec->offset, strerror(-err));
	if (err == -EPERM || err == -EACCES)
		log__hint("needs root, and no kernel lockdown");
	else if (strchr(spec->path, ' '))
		log__hint("tracefs takes no path with a space in it: record one thread instead");
	else
		log__hint(
			"is tracefs in this kernel? mount -t tracefs tracefs /sys/kernel/tracing");
}

int tracefs_probe__create(struct tracefs_probe **out, const struct uprobe_spec *spec, size_t number,
			  uint32_t *id)
{
	struct tracefs_probe *p = calloc(1, sizeof(*p));
	const char *place;
	int err;

	*out = NULL;
	if (!p)
		return -ENOMEM;
	p->janitor_pipe = -1;
	p->dir = open_tracefs(&place);
	err = p->dir < 0 ? p->dir : start_janitor(p);
	if (!err)
		err = create_entry(p, spec, number);
	if (!err)
		err = read_id(p, id);
	if (!err) {
		*out = p;
		return 0;
	}
	explain(spec, err);
	tracefs_probe__remove(p);
	return err;
}

void tracefs_probe__remove(struct tracefs_probe *p)
{
	if (!p)
		return;
	if (p->janitor_pipe >= 0) {
		close(p->janitor_pipe);
		waitpid(p->janitor, NULL, 0);
	}
	if (p->dir >= 0)
		close(p->dir);
	free(p);
}

int tracefs_probe__try(const char **place)
{
	_cleanup_close_ int dir = open_tracefs(place);
	_cleanup_close_ int fd = -1;

	if (dir < 0)
		return dir;
	fd = openat(dir, "uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);
	return fd < 0 ? -errno : 0;
}
