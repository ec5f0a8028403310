// SPDX-License-Identifier: MIT
#include "target/elf/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "util/cleanup.h"

/* Opened for reading: a regular file, or -1. By now the name may be a fifo's. */
static int open_regular(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || (!fstat(fd, &st) && S_ISREG(st.st_mode)))
		return fd;
	close(fd);
	return -1;
}

/* The CRC that .gnu_debuglink means is zlib's (IEEE 802.3). */
static bool has_crc(int fd, uint32_t crc)
{
	struct stat st;
	uLong sum;
	void *data;

	if (fstat(fd, &st) || st.st_size <= 0)
		return false;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return false;
	sum = crc32_z(crc32_z(0, NULL, 0), data, (z_size_t)st.st_size);
	munmap(data, (size_t)st.st_size);
	return sum == crc;
}

/* What is looked for. */
struct search {
	const struct elf_image *image;
	const char *path, *root;
	const char *link; /* of .gnu_debuglink; NULL: none */
	uint32_t crc;
};

static bool fits(const struct search *s, int fd)
{
	const char *build_id = elf_image__build_id(s->image);

	return build_id[0] ? elf_debug_file__has_build_id(fd, build_id) : has_crc(fd, s->crc);
}

static int try_path(const struct search *s, const char *path)
{
	int fd = open_regular(path);

	if (fd >= 0 && fits(s, fd))
		return fd;
	if (fd >= 0)
		close(fd);
	return -ENOENT;
}

static int by_build_id(const struct search *s)
{
	const char *id = elf_image__build_id(s->image);
	char path[PATH_MAX];

	if (strlen(id) < 3)
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/usr/lib/debug/.build-id/%.2s/%s.debug", s->root, id,
		 id + 2);
	return try_path(s, path);
}

/* Beside the file, in .debug/ there, in the tree for all of them. */
static int by_link(const struct search *s)
{
	static const char *const ways[] = {"%s%.*s/%s", "%s%.*s/.debug/%s",
					   "%s/usr/lib/debug%.*s/%s"};
	const char *slash = strrchr(s->path, '/');
	int fd = -ENOENT;

	if (!s->link || !slash)
		return -ENOENT;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]) && fd < 0; i++) {
		_cleanup_free_ char *path = NULL;

		if (asprintf(&path, ways[i], s->root, (int)(slash - s->path), s->path, s->link) < 0)
			return -ENOMEM;
		fd = try_path(s, path);
	}
	return fd;
}

int debug_file__open(const struct elf_image *image, const char *path, const char *root)
{
	struct search s = {.image = image, .path = path, .root = root ? root : ""};
	int fd = -ENOENT;

	if (!elf_image__is_stripped(image))
		return -ENOENT;
	s.link = elf_image__debug_link(image, &s.crc);
	/* A name that leads elsewhere is nobody's debug link. */
	if (s.link && (strchr(s.link, '/') || !strcmp(s.link, "..")))
		s.link = NULL;
	for (int i = 0; i < 2 && fd < 0; i++) {
		fd = by_build_id(&s);
		if (fd < 0)
			fd = by_link(&s);
		if (!s.root[0])
			break;
		s.root = "";
	}
	return fd;
}

bool debug_file__use(struct elf_image *image, const char *path, const char *root)
{
	_cleanup_close_ int fd = debug_file__open(image, path, root);

	return fd >= 0 && !elf_image__set_debug_file(image, fd);
}

int build_id__path(const char *build_id, unsigned int which, char *path, size_t size)
{
	const char *home = getenv("HOME");
	int n = -1;

	if (strlen(build_id) < 3 || strspn(build_id, "0123456789abcdef") != strlen(build_id))
		return -ENOENT;
	switch (which) {
	case 0:
		n = snprintf(path, size, "/usr/lib/debug/.build-id/%.2s/%s", build_id,
			     build_id + 2);
		break;
	case 1:
		n = snprintf(path, size, "/usr/lib/.build-id/%.2s/%s", build_id, build_id + 2);
		break;
	case 2:
		n = snprintf(path, size, "%s/.debug/.build-id/%.2s/%s/elf", home ? home : "",
			     build_id, build_id + 2);
		break;
	case 3:
		n = snprintf(path, size, "%s/.cache/debuginfod_client/%s/executable",
			     home ? home : "", build_id);
		break;
	}
	return n >= 0 && (size_t)n < size ? 0 : -ENOENT;
}
