// SPDX-License-Identifier: MIT
#include "util/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/cleanup.h"

/* What a /proc file, whose size is 0, starts with. */
#define FIRST_SIZE 4096

static int open_file(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

/* Room for one more byte, and one for the NUL. */
static size_t first_size(int fd)
{
	struct stat st;

	if (fstat(fd, &st) || st.st_size < FIRST_SIZE)
		return FIRST_SIZE;
	return (size_t)st.st_size + 2;
}

static ssize_t read_some(int fd, char *buf, size_t len)
{
	ssize_t n;

	do {
		n = read(fd, buf, len);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

int fs__read(const char *path, char **data, size_t *len)
{
	_cleanup_free_ char *buf = NULL;
	_cleanup_close_ int fd = open_file(path, O_RDONLY);
	size_t size = 0, used = 0;
	ssize_t n = 1;

	if (fd < 0)
		return fd;
	/* To the end of the file, not to its size: it may grow, and in /proc it says 0. */
	while (n > 0) {
		if (used + 1 >= size) {
			size_t bigger_size = size ? size * 2 : first_size(fd);
			char *bigger = realloc(buf, bigger_size);

			if (!bigger)
				return -ENOMEM;
			buf = bigger;
			size = bigger_size;
		}
		n = read_some(fd, buf + used, size - used - 1);
		if (n < 0)
			return (int)n;
		used += (size_t)n;
	}
	buf[used] = '\0';
	*data = buf;
	*len = used;
	buf = NULL;
	return 0;
}

long fs__read_number(const char *path, long otherwise)
{
	_cleanup_free_ char *text = NULL;
	char *end;
	size_t len;
	long value;

	if (fs__read(path, &text, &len))
		return otherwise;
	value = strtol(text, &end, 10);
	return end == text ? otherwise : value;
}

int fs__write_fd(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int fs__write(const char *path, const void *data, size_t len)
{
	int fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
	int err;

	if (fd < 0)
		return fd;
	err = fs__write_fd(fd, data, len);
	/* Some file systems report a failed write only here. */
	if (close(fd) && !err)
		err = -errno;
	return err;
}

static int remove_at(int parent, const char *name);

static int remove_entries(DIR *dir)
{
	struct dirent *entry;

	while ((errno = 0, entry = readdir(dir))) {
		int err;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (!unlinkat(dirfd(dir), entry->d_name, 0))
			continue;
		if (errno != EISDIR)
			return -errno;
		err = remove_at(dirfd(dir), entry->d_name);
		if (err)
			return err;
	}
	return -errno;
}

/* By descriptor and without following links: root may remove what another user can rename. */
static int remove_at(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir;
	int err;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		err = -errno;
		close(fd);
		return err;
	}
	err = remove_entries(dir);
	closedir(dir);
	if (!err && unlinkat(parent, name, AT_REMOVEDIR))
		err = -errno;
	return err;
}

int fs__remove_dir(const char *path)
{
	return remove_at(AT_FDCWD, path);
}
