// SPDX-License-Identifier: MIT
#include "util/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE (64u << 10)

/* Where the kernel cannot do it by itself: between some file systems. */
static int copy_by_hand(int from, int to, off_t at)
{
	char buf[PIECE];

	for (;;) {
		ssize_t n = pread(from, buf, sizeof(buf), at);
		int err;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : 0;
		err = fs__write_fd(to, buf, (size_t)n);
		if (err)
			return err;
		at += n;
	}
}

static int copy_all(int from, int to)
{
	off_t at = 0;
	ssize_t n;

	while ((n = copy_file_range(from, &at, to, NULL, 1u << 30, 0)) > 0)
		;
	if (n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO))
		return -errno;
	/* At the end it finds nothing more: some file systems of /proc and FUSE say 0 at once. */
	return copy_by_hand(from, to, at);
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
	struct rlimit limit;
	rlim_t want = n + 512;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= want)
		return;
	limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
	setrlimit(RLIMIT_NOFILE, &limit);
}
