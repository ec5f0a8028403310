// SPDX-License-Identifier: MIT
#include "target/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"

static int checked_length(int n, size_t size)
{
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int map_files_path(pid_t pid, const struct mapping *m, char *path, size_t size)
{
	return checked_length(snprintf(path, size, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64,
				       (int)pid, m->start, m->end),
			      size);
}

static int root_path(pid_t pid, const struct mapping *m, char *path, size_t size)
{
	return checked_length(snprintf(path, size, "/proc/%d/root%s", (int)pid, m->path), size);
}

static bool has_file(const struct mapping *m)
{
	return m->ino && m->path[0] == '/';
}

/*
 * A package update puts another file under the same name. The device is not compared: on overlayfs
 * stat(2) shows the overlay's, and /proc/PID/maps the lower file system's.
 */
static bool is_same_file(const struct stat *st, const struct mapping *m)
{
	return S_ISREG(st->st_mode) && st->st_ino == m->ino;
}

static int open_by_name(pid_t pid, const struct mapping *m)
{
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];
	struct stat st;
	int err = root_path(pid, m, path, sizeof(path)), out;

	if (err)
		return err;
	/* O_NONBLOCK: by now the name may be a fifo's. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!is_same_file(&st, m))
		return -ESTALE;
	out = fd;
	fd = -1;
	return out;
}

int process__open_mapping(pid_t pid, const struct mapping *mapping)
{
	char path[PATH_MAX];
	int fd, err;

	if (!has_file(mapping))
		return -ENOENT;
	err = map_files_path(pid, mapping, path, sizeof(path));
	if (err)
		return err;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	/* map_files needs CAP_CHECKPOINT_RESTORE, and the mapping as it is this moment. */
	return fd >= 0 ? fd : open_by_name(pid, mapping);
}

int process__mapping_path(pid_t pid, const struct mapping *mapping, char *path, size_t size)
{
	struct stat st, ours;
	int err;

	if (!has_file(mapping))
		return -ENOENT;
	/* The name first: it goes on working when the mapping is split. */
	err = root_path(pid, mapping, path, size);
	if (!err && !stat(path, &st) && is_same_file(&st, mapping)) {
		/* Where it is the same file for us, the name outlives the process. */
		if (!stat(mapping->path, &ours) && ours.st_dev == st.st_dev &&
		    ours.st_ino == st.st_ino)
			return checked_length(snprintf(path, size, "%s", mapping->path), size);
		return 0;
	}
	err = map_files_path(pid, mapping, path, size);
	if (err)
		return err;
	return stat(path, &st) ? -errno : 0;
}

ssize_t process__read_memory(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	_cleanup_close_ int fd = -1;
	char path[64];
	size_t done = 0;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	while (done < len) {
		ssize_t n = pread(fd, (char *)buf + done, len - done, (off_t)(addr + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}
