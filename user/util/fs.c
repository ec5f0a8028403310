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

/* Room for what is read next. */
static int make_room(char **buf, size_t *size, size_t used, int fd)
{
	size_t bigger_size = *size ? *size * 2 : first_size(fd);
	char *bigger;

	if (used + 1 < *size)
		return 0;
	bigger = realloc(*buf, bigger_size);
	if (!bigger)
		return -ENOMEM;
	*buf = bigger;
	*size = bigger_size;
	return 0;
}

int fs__read_fd(int fd, size_t most, char **data, size_t *len)
{
	_cleanup_free_ char *buf = NULL;
	size_t size = 0, used = 0;
	struct stat st;
	ssize_t n = 1;

	if (!fstat(fd, &st) && st.st_size > 0 && (size_t)st.st_size > most)
		return -EFBIG;
	/* To the end of the file, not to its size: it may grow, and in /proc it says 0. */
	while (n > 0) {
		int err = make_room(&buf, &size, used, fd);

		if (err)
			return err;
		n = read_some(fd, buf + used, size - used - 1);
		if (n < 0)
			return (int)n;
		used += (size_t)n;
		if (used > most)
			return -EFBIG;
	}
	buf[used] = '\0';
	*data = buf;
	*len = used;
	buf = NULL;
	return 0;
}

int fs__read(const char *path, char **data, size_t *len)
{
	_cleanup_close_ int fd = open_file(path, O_RDONLY);

	return fd < 0 ? fd : fs__read_fd(fd, SIZE_MAX, data, len);
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

static int remove_entry(int dir, const char *name)
{
	if (!strcmp(name, ".") || !strcmp(name, "..") || !unlinkat(dir, name, 0))
		return 0;
	return errno == EISDIR ? remove_at(dir, name) : -errno;
}

/* Not by readdir(3), which takes memory: a signal's handler may not. */
static int remove_entries(int dir)
{
	_Alignas(struct dirent64) char entries[2048];
	ssize_t n;
	int err = 0;

	while (!err && (n = getdents64(dir, entries, sizeof(entries))) > 0) {
		const struct dirent64 *entry;

		for (ssize_t at = 0; at < n && !err; at += entry->d_reclen) {
			entry = (const struct dirent64 *)(entries + at);
			err = remove_entry(dir, entry->d_name);
		}
	}
	return err || n >= 0 ? err : -errno;
}

/* By descriptor and without following links: root may remove what another user can rename. */
static int remove_at(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = remove_entries(fd);
	close(fd);
	if (!err && unlinkat(parent, name, AT_REMOVEDIR))
		err = -errno;
	return err;
}

int fs__remove_dir(const char *path)
{
	return remove_at(AT_FDCWD, path);
}

int fs__put_in_place(const char *partial, const char *path, const char *old)
{
	if (!renameat2(AT_FDCWD, partial, AT_FDCWD, path, RENAME_EXCHANGE)) {
		int err = rename(partial, old) ? -errno : 0;

		if (err)
			renameat2(AT_FDCWD, partial, AT_FDCWD, path, RENAME_EXCHANGE);
		return err;
	}
	/* There was none; or the file system cannot do that: then there is none for a moment. */
	if (errno != ENOENT && rename(path, old) && errno != ENOENT)
		return -errno;
	return rename(partial, path) ? -errno : 0;
}
