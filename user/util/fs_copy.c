// SPDX-License-Identifier: MIT
#include "util/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* At the end it finds nothing more: some file systems of /proc and FUSE say 0 at once. */
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

/* Holes stay holes, where the file system tells of them. */
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
	/* One at the end. */
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

	if (low < first)
		low = high;
	if (low > first)
		close_range((unsigned int)first, (unsigned int)low - 1, 0);
	if (high > low + 1)
		close_range((unsigned int)low + 1, (unsigned int)high - 1, 0);
	close_range((unsigned int)high + 1, ~0u, 0);
}
