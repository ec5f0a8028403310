// SPDX-License-Identifier: MIT
/* Which file was mapped: where it is now, and how it is told from another one of its name. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/images_internal.h"
#include "target/elf/debug_file.h"
#include "util/log.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Code in a file that is no ELF, or a damaged one: its bytes are what ran, whatever they lack. */
static struct elf_image *raw_image(int fd, const char *name)
{
	struct elf_image *image;
	struct stat st;
	void *data;

	if (fstat(fd, &st))
		return NULL;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return NULL;
	image = elf_image__raw(data, (size_t)st.st_size, name, name);
	munmap(data, (size_t)st.st_size);
	return image;
}

static struct elf_image *open_elf(int fd, const struct rec_map *map)
{
	struct elf_image *image = elf_image__open(fd, base_name(map->path));

	return image || errno == ENOMEM ? image : raw_image(fd, base_name(map->path));
}

/* The file at `path`, if it is what was mapped; else why not is in file->other. */
static struct elf_image *try_path(struct opened *file, const struct rec_map *map, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct elf_image *image = NULL;
	const char *build_id;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		image = open_elf(fd, map);
	close(fd);
	if (!image)
		return NULL;
	build_id = elf_image__build_id(image);
	if (map->build_id[0] ? !strcmp(build_id, map->build_id)
			     : !map->ino || st.st_ino == map->ino)
		return image;
	snprintf(file->other_id, sizeof(file->other_id), "%s", build_id);
	file->other_ino = st.st_ino;
	elf_image__free(image);
	return NULL;
}

/*
 * From the process, if it still runs, or its root; then by its name. A file copied to another
 * machine or file system has another inode: the name is all there is, unless the build id tells.
 */
static struct elf_image *from_machine(struct opened *file, const struct rec_map *map,
				      const char *root)
{
	struct rec_map by_name = *map;
	struct elf_image *image;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", map->pid,
		 (unsigned long)map->start, (unsigned long)(map->start + map->len));
	image = try_path(file, map, path);
	snprintf(path, sizeof(path), "%s%s", root, map->path);
	if (!image)
		image = try_path(file, map, path);
	if (!image) {
		image = try_path(file, map, map->path);
		file->error = errno;
	}
	for (unsigned int i = 0; !image && !build_id__path(map->build_id, i, path, sizeof(path));
	     i++)
		image = try_path(file, map, path);
	if (image || map->build_id[0])
		return image;
	by_name.ino = 0;
	image = try_path(file, &by_name, map->path);
	file->is_other = image && file->other_ino;
	return image;
}

struct elf_image *opened__open(struct opened *file, const struct recording *rec,
			       const struct rec_map *map)
{
	const struct rec_file *kept = recording__find_file(rec, map->path, map->ino);
	struct elf_image *image = NULL;
	char root[REC_ROOT_SIZE];

	recording__root_path(rec, map->pid, root);
	if (kept && kept->fd >= 0)
		image = open_elf(kept->fd, map);
	if (!image)
		image = from_machine(file, map, root);
	if (!image)
		return NULL;
	if (kept && kept->debug_fd >= 0 && !elf_image__set_debug_file(image, kept->debug_fd))
		return image;
	debug_file__use(image, map->path, root);
	return image;
}

void opened__say_missing(const struct opened *file, const struct rec_map *map)
{
	if (!file->other_ino) {
		log__warn("cannot read the code of %s (%s): it shows as gaps", map->path,
			  strerror(file->error));
		if (map->build_id[0])
			log__hint("its build id is %s; with -portable a recording holds its files",
				  map->build_id);
		return;
	}
	log__warn("%s is not the file that ran: it has build id %s, the one that ran had %s; its "
		  "code shows as gaps",
		  map->path, file->other_id[0] ? file->other_id : "none", map->build_id);
	log__hint("put the file that ran there ('debuginfod-find executable %s' may have it), or "
		  "record with -portable",
		  map->build_id);
}
