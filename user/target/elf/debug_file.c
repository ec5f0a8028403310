// SPDX-License-Identifier: MIT
#include "target/elf/debug_file.h"

#include <elfutils/libdwelf.h>
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

#include "target/elf/elf_internal.h"
#include "util/cleanup.h"
#include "util/fs.h"

/* A debug file, which has the stripped sections with the same addresses, or dwz's. */
struct elf_separate {
	void *data;
	size_t size;
	Elf *elf;
};

static void close_file(struct elf_separate *file)
{
	elf_end(file->elf);
	if (file->data)
		munmap(file->data, file->size);
	*file = (struct elf_separate){0};
}

/* 0, -ENOEXEC, -EIO or -errno of the system. */
static int open_file(struct elf_separate *file, int fd)
{
	int err;

	*file = (struct elf_separate){0};
	err = elf_file__map(fd, &file->data, &file->size);
	if (err)
		return err;
	err = elf_image__check_header(file->data, file->size, ELF_SEPARATE);
	elf_version(EV_CURRENT);
	file->elf = err ? NULL : elf_memory(file->data, file->size);
	if (file->elf)
		return 0;
	close_file(file);
	return err ? err : -EIO;
}

bool elf_debug_file__has_build_id(int fd, const char *build_id)
{
	char id[ELF_BUILD_ID_SIZE];
	struct elf_separate file;

	if (open_file(&file, fd))
		return false;
	elf_build_id__read(file.elf, id);
	close_file(&file);
	return !strcmp(id, build_id);
}

static bool has_lines(Elf *elf)
{
	return elf_file__section(elf, 0, ".debug_line") ||
	       elf_file__section(elf, 0, ".zdebug_line");
}

bool elf_image__is_stripped(const struct elf_image *image)
{
	return image->elf &&
	       (!elf_file__section(image->elf, SHT_SYMTAB, NULL) || !has_lines(image->elf));
}

bool elf_image__has_symtab(const struct elf_image *image)
{
	return elf_file__section(image->elf, SHT_SYMTAB, NULL) ||
	       (image->separate && elf_file__section(image->separate->elf, SHT_SYMTAB, NULL));
}

bool elf_image__lacks_symbols(const struct elf_image *image)
{
	return image->elf && !image->go && !elf_image__has_symtab(image);
}

const char *elf_image__debug_link(const struct elf_image *image, uint32_t *crc)
{
	GElf_Word link_crc;
	const char *name = image->elf ? dwelf_elf_gnu_debuglink(image->elf, &link_crc) : NULL;

	if (!name || !*name)
		return NULL;
	*crc = link_crc;
	return name;
}

static bool is_separate(const struct elf_image *image)
{
	return image->separate && !has_lines(image->elf);
}

/* The section contains a name, a NUL, and the build ID. */
const char *elf_image__alt_link(const struct elf_image *image, char *build_id, size_t size)
{
	Elf *elf = is_separate(image) ? image->separate->elf : image->elf;
	Elf_Scn *scn = elf ? elf_file__section(elf, 0, ".gnu_debugaltlink") : NULL;
	const Elf_Data *data = scn ? elf_section__data(scn, 2) : NULL;
	const char *name = data ? elf_section__string(data, 0) : NULL;
	size_t at;

	if (!name || !*name)
		return NULL;
	at = strlen(name) + 1;
	if (2 * (data->d_size - at) >= size)
		return NULL;
	for (build_id[0] = '\0'; at < data->d_size; at++, build_id += 2)
		sprintf(build_id, "%02x", ((const uint8_t *)data->d_buf)[at]);
	return name;
}

/* Fails if the file's contents have been looked for already. */
static int set_file(struct elf_image *image, struct elf_separate **place, bool is_late, int fd)
{
	struct elf_separate *file = malloc(sizeof(*file));
	int err;

	if (!file)
		return -ENOMEM;
	err = open_file(file, fd);
	pthread_mutex_lock(&image->lock);
	if (!err && (*place || is_late || image->has_debug))
		err = -EBUSY;
	if (!err)
		*place = file;
	pthread_mutex_unlock(&image->lock);
	if (!err)
		return 0;
	close_file(file);
	free(file);
	return err;
}

int elf_image__set_debug_file(struct elf_image *image, int fd)
{
	return set_file(image, &image->separate, image->has_symbols, fd);
}

int elf_image__set_alt_file(struct elf_image *image, int fd)
{
	return set_file(image, &image->alt, false, fd);
}

void elf_image__free_separate(struct elf_image *image)
{
	struct elf_separate *files[] = {image->separate, image->alt};

	for (int i = 0; i < 2; i++) {
		if (files[i])
			close_file(files[i]);
		free(files[i]);
	}
}

Elf *elf_image__symbols_elf(const struct elf_image *image)
{
	if (!image->separate || !image->elf || elf_file__section(image->elf, SHT_SYMTAB, NULL))
		return NULL;
	return image->separate->elf;
}

const void *elf_image__debug_bytes(const struct elf_image *image, size_t *size)
{
	bool is_there = is_separate(image);

	*size = is_there ? image->separate->size : image->size;
	return is_there ? image->separate->data : image->data;
}

Elf *elf_image__alt_elf(const struct elf_image *image)
{
	return image->alt ? image->alt->elf : NULL;
}

/* The search for the debug file. */

/*
 * Opens a regular file for reading; or -errno. O_NONBLOCK: if the name is a fifo's by now, opening
 * would wait.
 */
static int open_regular(const char *path)
{
	return fs__only_regular(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

/* One search for a debug file. */
struct search {
	const struct elf_image *image;
	const char *path, *root;
	const char *link; /* of .gnu_debuglink; NULL: none */
	uint32_t crc;
};

/*
 * True if the file is the right one: by the image's build ID, or, without one, by the CRC of
 * .gnu_debuglink: zlib's (IEEE 802.3).
 */
static bool fits(const struct search *s, int fd)
{
	const char *build_id = elf_image__build_id(s->image);
	struct stat st;
	uLong sum;
	void *data;

	if (build_id[0])
		return elf_debug_file__has_build_id(fd, build_id);
	if (fstat(fd, &st) || st.st_size <= 0)
		return false;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return false;
	sum = crc32_z(crc32_z(0, NULL, 0), data, (z_size_t)st.st_size);
	munmap(data, (size_t)st.st_size);
	return sum == s->crc;
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

/* Looks beside the file, in .debug/ there, and under /usr/lib/debug. */
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
	const char *id = elf_image__build_id(image);
	const char *cache = getenv("DEBUGINFOD_CACHE_PATH"), *home = getenv("HOME");
	char fetched[PATH_MAX];
	int n, fd = -ENOENT;

	if (!elf_image__is_stripped(image))
		return -ENOENT;
	s.link = elf_image__debug_link(image, &s.crc);
	/* A valid debug link is a plain file name. */
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
	if (fd >= 0 || strlen(id) < 3)
		return fd < 0 ? -ENOENT : fd;
	/* debuginfod-find(1) may have fetched it. */
	n = cache && *cache
		    ? snprintf(fetched, sizeof(fetched), "%s/%s/debuginfo", cache, id)
		    : snprintf(fetched, sizeof(fetched), "%s/.cache/debuginfod_client/%s/debuginfo",
			       home ? home : "", id);
	return n > 0 && (size_t)n < sizeof(fetched) ? try_path(&s, fetched) : -ENOENT;
}

static int open_checked(const char *path, const char *build_id)
{
	int fd = open_regular(path);

	if (fd < 0 || elf_debug_file__has_build_id(fd, build_id))
		return fd;
	close(fd);
	return -ENOENT;
}

/* A relative name is relative to the folder of `from`, the file that has the link. */
static int open_alt(const char *name, const char *build_id, const char *from, const char *root)
{
	const char *slash = strrchr(from, '/');
	char path[PATH_MAX];
	int fd;

	if (name[0] == '/')
		snprintf(path, sizeof(path), "%s%s", root, name);
	else
		snprintf(path, sizeof(path), "%.*s/%s", slash ? (int)(slash - from) : 1,
			 slash ? from : ".", name);
	fd = open_checked(path, build_id);
	if (fd >= 0 || strlen(build_id) < 3)
		return fd;
	snprintf(path, sizeof(path), "%s/usr/lib/debug/.build-id/%.2s/%s.debug", root, build_id,
		 build_id + 2);
	return open_checked(path, build_id);
}

/*
 * Gives the image the file to which dwz moved shared debug info. Its name is relative to the debug
 * file fd, or to `path` if fd is -1.
 */
static void use_alt(struct elf_image *image, int fd, const char *path, const char *root)
{
	char build_id[2 * 64 + 1], link[32], from[PATH_MAX];
	const char *name = elf_image__alt_link(image, build_id, sizeof(build_id));
	_cleanup_close_ int alt = -1;
	ssize_t n;

	if (!name)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = fd < 0 ? -1 : readlink(link, from, sizeof(from) - 1);
	if (n > 0)
		from[n] = '\0';
	alt = open_alt(name, build_id, n > 0 ? from : path, root ? root : "");
	if (alt < 0 && root)
		alt = open_alt(name, build_id, n > 0 ? from : path, "");
	if (alt >= 0)
		elf_image__set_alt_file(image, alt);
}

bool debug_file__use(struct elf_image *image, const char *path, const char *root)
{
	_cleanup_close_ int fd = debug_file__open(image, path, root);
	bool is_used = fd >= 0 && !elf_image__set_debug_file(image, fd);

	use_alt(image, is_used ? fd : -1, path, root);
	return is_used;
}

int build_id__path(const char *build_id, unsigned int which, char *path, size_t size)
{
	const char *cache = getenv("DEBUGINFOD_CACHE_PATH"), *home = getenv("HOME");
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
		n = cache && *cache
			    ? snprintf(path, size, "%s/%s/executable", cache, build_id)
			    : snprintf(path, size, "%s/.cache/debuginfod_client/%s/executable",
				       home ? home : "", build_id);
		break;
	}
	return n >= 0 && (size_t)n < size ? 0 : -ENOENT;
}
