// SPDX-License-Identifier: MIT
#include "target/symbols/deb_package.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/cleanup.h"
#include "util/fs.h"

/* A desktop has 4000 lists, of 30 MB in all. */
#define MAX_FILES 40000
#define MAX_BYTES (128u << 20)

/* "nginx.list", "libc6:amd64.list". False where it is no package's. */
static bool take_name(const char *file, char name[static DEB_PACKAGE_SIZE])
{
	size_t len = strspn(file, "abcdefghijklmnopqrstuvwxyz0123456789+.-");
	const char *end = file + strlen(file);

	if (end - file < 6 || strcmp(end - 5, ".list"))
		return false;
	if (file + len == end)
		len -= 5;
	else if (file[len] != ':')
		return false;
	snprintf(name, DEB_PACKAGE_SIZE, "%.*s", (int)len, file);
	return len && len < DEB_PACKAGE_SIZE;
}

/* A line is a path. */
static bool has_line(const char *text, const char *line)
{
	size_t len = strlen(line);

	for (const char *p = text; (p = strstr(p, line)); p += len)
		if ((p == text || p[-1] == '\n') && (p[len] == '\n' || !p[len]))
			return true;
	return false;
}

/* Where /bin is a link to /usr/bin, packages may still list the one and the kernel show the other.
 */
static bool lists(const char *text, const char *path)
{
	char merged[PATH_MAX];

	if (has_line(text, path))
		return true;
	if (!strncmp(path, "/usr/", 5))
		return has_line(text, path + 4);
	snprintf(merged, sizeof(merged), "/usr%s", path);
	return has_line(text, merged);
}

/* What is read counts against *left. */
static bool is_listed(int dir, const char *file, const char *path, size_t *left)
{
	_cleanup_close_ int fd = openat(dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	_cleanup_free_ char *text = NULL;
	struct stat st;
	size_t len;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > (off_t)*left ||
	    fs__read_fd(fd, *left, &text, &len))
		return false;
	*left -= len;
	return lists(text, path);
}

static int search(DIR *dir, const char *path, char name[static DEB_PACKAGE_SIZE])
{
	const struct dirent *entry;
	size_t left = MAX_BYTES;

	for (size_t n = 0; n < MAX_FILES && left && (entry = readdir(dir)); n++)
		if (take_name(entry->d_name, name) &&
		    is_listed(dirfd(dir), entry->d_name, path, &left))
			return 0;
	return -ENOENT;
}

int deb_package__owning(const char *root, const char *path, char name[static DEB_PACKAGE_SIZE])
{
	char folder[PATH_MAX];
	DIR *dir;
	int err;

	if (path[0] != '/' || strlen(path) + 8 > PATH_MAX || strchr(path, '\n'))
		return -ENOENT;
	snprintf(folder, sizeof(folder), "%s/var/lib/dpkg/info", root);
	dir = opendir(folder);
	if (!dir)
		return -ENOENT;
	err = search(dir, path, name);
	closedir(dir);
	return err;
}
