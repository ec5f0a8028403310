// SPDX-License-Identifier: MIT
/* The file trees of containers, kept open for a decoder that may not ask for them any more. */
#include "capture/recording/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fs.h"

static const struct rec_root *find_root(const struct recording *rec, pid_t pid)
{
	for (size_t i = 0; i < rec->roots.n; i++)
		if (rec->roots.v[i].pid == pid)
			return &rec->roots.v[i];
	return NULL;
}

static void format_root(pid_t pid, char path[static REC_ROOT_SIZE])
{
	snprintf(path, REC_ROOT_SIZE, "/proc/%d/root", (int)pid);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* What a process sees as /, where that is another folder than ours; -1: it is ours, or it has gone.
 */
static int open_root(pid_t pid, struct stat *st)
{
	char path[REC_ROOT_SIZE];
	struct stat ours;
	int fd;

	format_root(pid, path);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || (!fstat(fd, st) && !stat("/", &ours) && !is_same(st, &ours)))
		return fd;
	close(fd);
	return -1;
}

/* Those of one container share the descriptor. */
static int add_root(struct recording *rec, pid_t pid)
{
	_cleanup_close_ int fd = -1;
	struct rec_root *root;
	struct stat st, other;

	fd = open_root(pid, &st);
	if (fd < 0)
		return 0;
	root = VEC_PUSH(&rec->roots);
	if (!root)
		return -ENOMEM;
	*root = (struct rec_root){.pid = pid, .fd = fd, .is_owner = true};
	for (struct rec_root *i = rec->roots.v; i < root; i++)
		if (i->is_owner && !fstat(i->fd, &other) && is_same(&st, &other)) {
			*root = (struct rec_root){.pid = pid, .fd = i->fd};
			return 0;
		}
	fd = -1;
	return 0;
}

int recording__hold_roots(struct recording *rec)
{
	pid_t last = 0;
	int err = 0;

	fs__allow_open_files(rec->files.n * 2 + 256);
	for (size_t i = 0; i < rec->maps.n && !err; i++) {
		pid_t pid = rec->maps.v[i].pid;

		if (pid != last && !find_root(rec, pid))
			err = add_root(rec, pid);
		last = pid;
	}
	return err;
}

void recording__root_path(const struct recording *rec, pid_t pid, char path[static REC_ROOT_SIZE])
{
	const struct rec_root *held = find_root(rec, pid);

	if (held)
		snprintf(path, REC_ROOT_SIZE, "/proc/self/fd/%d", held->fd);
	else
		format_root(pid, path);
}

void rec_roots__fini(struct recording *rec)
{
	for (size_t i = 0; i < rec->roots.n; i++)
		if (rec->roots.v[i].is_owner)
			close(rec->roots.v[i].fd);
	VEC_FINI(&rec->roots);
}
