// SPDX-License-Identifier: MIT
#include "decode/images.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/images_internal.h"
#include "decode/space.h"
#include "target/kernel_image.h"
#include "util/log.h"

struct images *images__new(const struct recording *rec)
{
	struct images *images = calloc(1, sizeof(*images));

	if (!images)
		return NULL;
	images->rec = rec;
	pthread_mutex_init(&images->lock, NULL);
	return images;
}

void images__free(struct images *images)
{
	if (!images)
		return;
	space__free_idle(images);
	for (size_t i = 0; i < images->files.n; i++)
		elf_image__free(images->files.v[i].image);
	VEC_FINI(&images->files);
	elf_image__free(images->kernel);
	pthread_mutex_destroy(&images->lock);
	free(images);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static struct elf_image *from_recording(const struct recording *rec, const struct rec_map *map)
{
	for (size_t i = 0; i < rec->images.n; i++) {
		const struct rec_image *image = &rec->images.v[i];

		if (strcmp(image->path, map->path))
			continue;
		if (image->is_elf)
			return elf_image__from_bytes(image->data, image->size, map->path);
		return elf_image__raw(image->data, image->size, map->path, map->path);
	}
	errno = ENOENT;
	return NULL;
}

/* The inode tells the file that was mapped from one of the same name (another namespace's). */
static int open_same(const char *path, uint64_t ino)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && (!ino || st.st_ino == ino))
		return fd;
	close(fd);
	errno = ESTALE;
	return -1;
}

static int open_file(const struct rec_map *map)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", map->pid,
		 (unsigned long)map->start, (unsigned long)(map->start + map->len));
	fd = open_same(path, map->ino);
	if (fd < 0) {
		snprintf(path, sizeof(path), "/proc/%d/root%s", map->pid, map->path);
		fd = open_same(path, map->ino);
	}
	if (fd < 0)
		fd = open_same(map->path, map->ino);
	/* Copied to another machine or file system: the name is all there is. */
	if (fd < 0)
		fd = open_same(map->path, 0);
	return fd;
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

static struct elf_image *open_image(const struct recording *rec, const struct rec_map *map)
{
	struct elf_image *image;
	int fd;

	if (map->path[0] != '/')
		return from_recording(rec, map);
	fd = open_file(map);
	if (fd < 0)
		return NULL;
	image = elf_image__open(fd, base_name(map->path));
	if (!image && errno != ENOMEM)
		image = raw_image(fd, base_name(map->path));
	close(fd);
	return image;
}

static struct elf_image *find_image(struct images *images, const struct rec_map *map)
{
	struct opened *file;

	for (size_t i = 0; i < images->files.n; i++)
		if (images->files.v[i].ino == map->ino &&
		    !strcmp(images->files.v[i].path, map->path))
			return images->files.v[i].image;
	file = VEC_PUSH(&images->files);
	if (!file)
		return NULL;
	*file = (struct opened){.path = map->path, .ino = map->ino};
	file->image = open_image(images->rec, map);
	if (!file->image && map->path[0] == '/')
		log__warn("cannot read the code of %s (%s): it shows as gaps", map->path,
			  strerror(errno));
	return file->image;
}

/* Locked. Every process has it, from the start. */
static int map_kernel(struct images *images, struct code_map *map)
{
	const struct rec_kernel *kernel = &images->rec->kernel;

	if (!kernel->kallsyms || images->kernel_failed || !code_map__is_empty(map))
		return 0;
	if (!images->kernel)
		images->kernel = kernel_image__open(kernel->kcore, kernel->kallsyms);
	if (images->kernel)
		return kernel_image__map(images->kernel, map);
	if (errno == ENOMEM)
		return -ENOMEM;
	images->kernel_failed = true;
	log__warn("cannot read the kernel's code in the recording (%s): it shows as gaps",
		  strerror(errno));
	return 0;
}

int images__apply(struct images *images, pid_t pid, uint64_t time_ns, size_t *next,
		  struct code_map *map)
{
	const struct recording *rec = images->rec;
	int err = 0;

	pthread_mutex_lock(&images->lock);
	if (!*next)
		err = map_kernel(images, map);
	pthread_mutex_unlock(&images->lock);
	if (err)
		return err;
	for (; *next < rec->maps.n && rec->maps.v[*next].time_ns <= time_ns; (*next)++) {
		const struct rec_map *m = &rec->maps.v[*next];
		struct elf_image *image;

		if (m->pid != pid)
			continue;
		pthread_mutex_lock(&images->lock);
		image = find_image(images, m);
		pthread_mutex_unlock(&images->lock);
		if (image && code_map__add(map, m->start, m->len, m->pgoff, image) == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}
