// SPDX-License-Identifier: MIT
/* The kernel's code in a recording: kcore_dir/, in perf's own layout (tools/perf/util/data.c). */
#include "capture/recording/recording_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fs.h"
#include "util/page.h"

static int path_in(char path[static PATH_MAX], const char *dir, const char *name)
{
	return snprintf(path, PATH_MAX, "%s/kcore_dir/%s", dir, name) < PATH_MAX ? 0
										 : -ENAMETOOLONG;
}

/* Its holes stay holes: much of what the modules' area spans is one. */
static int copy_data(int from, int to, off_t start, off_t end)
{
	uint8_t buf[16 * PAGE];

	while (start < end) {
		size_t want =
			end - start < (off_t)sizeof(buf) ? (size_t)(end - start) : sizeof(buf);
		ssize_t n = pread(from, buf, want, start);

		if (n <= 0)
			return n ? -errno : -EIO;
		if (pwrite(to, buf, (size_t)n, start) != n)
			return errno ? -errno : -ENOSPC;
		start += n;
	}
	return 0;
}

static int copy_file(int from, int to)
{
	off_t at = 0, size = lseek(from, 0, SEEK_END);
	int err = size < 0 || ftruncate(to, size) ? -errno : 0;

	errno = 0;
	while (!err) {
		off_t start = lseek(from, at, SEEK_DATA), end;

		/* Only a hole follows. */
		if (start < 0)
			return errno == ENXIO ? 0 : -errno;
		end = lseek(from, start, SEEK_HOLE);
		err = end < 0 ? -errno : copy_data(from, to, start, end);
		at = end;
	}
	return err;
}

static int write_kcore(int kcore, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int err;

	if (fd < 0)
		return -errno;
	err = copy_file(kcore, fd);
	if (close(fd) && !err)
		err = -errno;
	return err;
}

static int write_text(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX];
	int err = path_in(path, dir, name);

	return err ? err : fs__write(path, text, strlen(text));
}

int recording_kernel__write(const struct rec_kernel *kernel, const char *dir)
{
	char path[PATH_MAX];
	int err;

	if (!kernel->kallsyms)
		return 0;
	err = path_in(path, dir, "");
	if (!err && mkdir(path, 0700) && errno != EEXIST)
		err = -errno;
	if (!err)
		err = write_text(dir, "kallsyms", kernel->kallsyms);
	if (!err)
		err = write_text(dir, "modules", kernel->modules);
	if (!err)
		err = path_in(path, dir, "kcore");
	return err ? err : write_kcore(kernel->kcore, path);
}

/* As with all of a recording that somebody sent: a regular file, no link out of it. */
static int open_regular(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;
	int fd, err = path_in(path, dir, name);

	if (err)
		return err;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

static int read_text(const char *dir, const char *name, char **text)
{
	_cleanup_close_ int fd = open_regular(dir, name);
	char path[32];
	size_t len;

	if (fd < 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return fs__read(path, text, &len);
}

int recording_kernel__read(struct rec_kernel *kernel, const char *dir)
{
	char path[PATH_MAX];
	int err;

	if (path_in(path, dir, "") || access(path, F_OK))
		return 0;
	err = read_text(dir, "kallsyms", &kernel->kallsyms);
	if (err)
		return err;
	kernel->kcore = open_regular(dir, "kcore");
	if (kernel->kcore < 0)
		return kernel->kcore;
	return read_text(dir, "modules", &kernel->modules);
}
