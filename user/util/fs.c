// SPDX-License-Identifier: MIT
#include "util/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"

/* First buffer size for a /proc file, whose reported size is 0. */
#define FIRST_SIZE 4096

static int open_file(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

int fs__read_fd(int fd, size_t most, char **data, size_t *len)
{
	_cleanup_free_ char *buf = NULL;
	size_t size = FIRST_SIZE, used = 0;
	struct stat st;
	ssize_t n = 1;

	if (!fstat(fd, &st) && st.st_size > 0) {
		if ((size_t)st.st_size > most)
			return -EFBIG;
		/* Room for one more byte, and one for the NUL. */
		if (st.st_size >= FIRST_SIZE)
			size = (size_t)st.st_size + 2;
	}
	/* Reads to the end of the file, and not just its size, which may grow and is 0 in /proc. */
	while (n) {
		if (!buf || used + 1 == size) {
			size_t want = buf ? 2 * size : size;
			char *bigger = realloc(buf, want);

			if (!bigger)
				return -ENOMEM;
			buf = bigger;
			size = want;
		}
		n = read(fd, buf + used, size - used - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
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

int fs__read_proc(pid_t pid, const char *name, char **data, size_t *len)
{
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	err = fs__read(path, data, len);
	return err == -ENOENT ? -ESRCH : err;
}

int fs__read_proc_link(pid_t pid, const char *name, char target[static PATH_MAX])
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	n = readlink(path, target, PATH_MAX - 1);
	target[n < 0 ? 0 : n] = '\0';
	return n >= 0 ? 0 : errno == ENOENT ? -ESRCH : -errno;
}

int fs__only_regular(int fd)
{
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
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

/* Does not use readdir(3), which allocates memory: a signal's handler must not. */
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

/*
 * Uses descriptors and follows no links, because another user may rename files in a tree that root
 * removes.
 */
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
	/*
	 * Either the path was missing, or the file system cannot exchange names: then the path is
	 * missing for a moment.
	 */
	if (errno != ENOENT && rename(path, old) && errno != ENOENT)
		return -errno;
	return rename(partial, path) ? -errno : 0;
}

#define PIECE (64u << 10)

/* Copies up to `end`, or to the file's end, where copy_file_range() cannot: between some file
 * systems. */
static int copy_by_hand(int from, int to, off_t at, off_t end)
{
	char buf[PIECE];

	while (at < end) {
		size_t want = end - at < (off_t)sizeof(buf) ? (size_t)(end - at) : sizeof(buf);
		ssize_t n = pread(from, buf, want, at), put;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : 0;
		put = pwrite(to, buf, (size_t)n, at);
		if (put < 0 && errno != EINTR)
			return -errno;
		at += put > 0 ? put : 0;
	}
	return 0;
}

/*
 * copy_by_hand() copies the rest: some file systems (/proc, FUSE) let copy_file_range() return 0 at
 * once. Otherwise it finds nothing more.
 */
static int copy_range(int from, int to, off_t at, off_t end)
{
	off_t out = at;
	ssize_t n = 1;

	while (n > 0 && at < end) {
		off_t left = end - at;

		n = copy_file_range(from, &at, to, &out, left < 1 << 30 ? (size_t)left : 1u << 30,
				    0);
	}
	if (n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO))
		return -errno;
	return copy_by_hand(from, to, at, end);
}

/* Holes stay holes, if the file system reports them. */
static int copy_all(int from, int to)
{
	off_t at, end, size = lseek(from, 0, SEEK_END);
	int err = 0;

	at = size > 0 ? lseek(from, 0, SEEK_DATA) : -1;
	if (at < 0 && !(size > 0 && errno == ENXIO))
		return copy_range(from, to, 0, INT64_MAX);
	while (at >= 0 && !err) {
		end = lseek(from, at, SEEK_HOLE);
		err = end < 0 ? -errno : copy_range(from, to, at, end);
		at = lseek(from, end, SEEK_DATA);
	}
	/* Keeps a hole at the end. */
	return err || !ftruncate(to, size) ? err : -errno;
}

int fs__copy(int fd, const char *path)
{
	int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), err;

	if (to < 0)
		return -errno;
	err = copy_all(fd, to);
	if (close(to) && !err)
		err = -errno;
	if (err)
		unlink(path);
	return err;
}

int fs__make_parents(const char *path, size_t from)
{
	char part[PATH_MAX];

	if (strlen(path) >= sizeof(part))
		return -ENAMETOOLONG;
	strcpy(part, path);
	for (char *slash = strchr(part + from, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (slash != part && mkdir(part, 0700) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

void fs__allow_open_files(size_t n)
{
	struct rlimit limit, raised;
	rlim_t want = n + 512;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= want)
		return;
	raised = (struct rlimit){want, limit.rlim_max > want ? limit.rlim_max : want};
	limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
	/* With CAP_SYS_RESOURCE the hard limit can be raised as well. */
	if (setrlimit(RLIMIT_NOFILE, &raised))
		setrlimit(RLIMIT_NOFILE, &limit);
}

void fs__close_all_but(int first, int a, int b)
{
	int low = a < b ? a : b, high = a < b ? b : a;

	if (high < first)
		high = first - 1;
	if (low < first)
		low = high;
	if (low > first)
		close_range((unsigned int)first, (unsigned int)low - 1, 0);
	if (high > low + 1)
		close_range((unsigned int)low + 1, (unsigned int)high - 1, 0);
	close_range((unsigned int)high + 1, ~0u, 0);
}

/* Calls `visit` for each file and, when all in it have been seen, each folder. */
static int visit_tree(const char *path, int (*visit)(const FTSENT *entry, void *ctx), void *ctx)
{
	char *paths[] = {(char *)path, NULL};
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *entry;
	int err = 0;

	if (!tree)
		return -errno;
	while (!err && (errno = 0, entry = fts_read(tree))) {
		if (entry->fts_info == FTS_F || entry->fts_info == FTS_DP)
			err = visit(entry, ctx);
		else if (entry->fts_info == FTS_ERR || entry->fts_info == FTS_DNR ||
			 entry->fts_info == FTS_NS)
			err = -entry->fts_errno;
	}
	if (!err)
		err = -errno;
	fts_close(tree);
	return err;
}

static int add_size(const FTSENT *entry, void *ctx)
{
	if (entry->fts_info == FTS_F)
		*(uint64_t *)ctx += (uint64_t)entry->fts_statp->st_size;
	return 0;
}

int fs__tree_size(const char *path, uint64_t *bytes)
{
	*bytes = 0;
	return visit_tree(path, add_size, bytes);
}

static int sync_one(const FTSENT *entry, void *ctx)
{
	int fd = open(entry->fts_path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = fsync(fd) ? -errno : 0;
	close(fd);
	return err;
}

int fs__tree_sync(const char *path)
{
	return visit_tree(path, sync_one, NULL);
}
