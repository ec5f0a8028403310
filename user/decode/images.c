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
	errno = ESTALE;
	return NULL;
}

/*
 * From the process, if it still runs, or its root; then by its name. A file copied to another
 * machine or file system has another inode: the name is all there is, unless the build id tells.
 */
static struct elf_image *from_files(struct opened *file, const struct rec_map *map)
{
	struct rec_map by_name = *map;
	struct elf_image *image;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", map->pid,
		 (unsigned long)map->start, (unsigned long)(map->start + map->len));
	image = try_path(file, map, path);
	snprintf(path, sizeof(path), "/proc/%d/root%s", map->pid, map->path);
	if (!image)
		image = try_path(file, map, path);
	if (!image)
		image = try_path(file, map, map->path);
	if (image || map->build_id[0])
		return image;
	by_name.ino = 0;
	image = try_path(file, &by_name, map->path);
	file->is_other = image && file->other_ino;
	return image;
}

static void say_missing(const struct opened *file, const struct rec_map *map)
{
	if (errno != ESTALE) {
		log__warn("cannot read the code of %s (%s): it shows as gaps", map->path,
			  strerror(errno));
		return;
	}
	log__warn("%s is not the file that ran: it has build id %s, the one that ran had %s; its "
		  "code shows as gaps",
		  map->path, file->other_id[0] ? file->other_id : "none", map->build_id);
	log__hint("put the file that ran there, and decode again");
}

static struct elf_image *find_image(struct images *images, const struct rec_map *map)
{
	struct opened *file;

	for (size_t i = 0; i < images->files.n; i++)
		if (images->files.v[i].ino == map->ino &&
		    !strcmp(images->files.v[i].build_id, map->build_id) &&
		    !strcmp(images->files.v[i].path, map->path))
			return images->files.v[i].image;
	file = VEC_PUSH(&images->files);
	if (!file)
		return NULL;
	*file = (struct opened){.path = map->path, .build_id = map->build_id, .ino = map->ino};
	file->image =
		map->path[0] == '/' ? from_files(file, map) : from_recording(images->rec, map);
	if (!file->image && map->path[0] == '/')
		say_missing(file, map);
	return file->image;
}

void images__mismatch(struct images *images, const struct elf_image *image)
{
	pthread_mutex_lock(&images->lock);
	for (size_t i = 0; i < images->files.n; i++) {
		struct opened *file = &images->files.v[i];

		if (file->image != image || file->mismatch_said)
			continue;
		file->mismatch_said = true;
		log__warn("the trace does not fit the code of %s: what is unclear shows as gaps",
			  file->path);
		if (file->is_other)
			log__hint("the file that ran is no longer there: its inode was %llu, the "
				  "one of that name has %llu",
				  (unsigned long long)file->ino,
				  (unsigned long long)file->other_ino);
	}
	pthread_mutex_unlock(&images->lock);
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
