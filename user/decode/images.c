// SPDX-License-Identifier: MIT
#include "decode/images.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decode/images_internal.h"
#include "decode/space.h"
#include "target/symbols/jit_image.h"
#include "target/symbols/kernel_image.h"
#include "target/symbols/named_image.h"
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
	for (size_t i = 0; i < images->jits.n; i++)
		elf_image__free(images->jits.v[i].image);
	VEC_FINI(&images->files);
	VEC_FINI(&images->jits);
	elf_image__free(images->kernel);
	named_image__free(images->code);
	pthread_mutex_destroy(&images->lock);
	free(images);
}

void images__set_code(struct images *images, struct named_image *code)
{
	images->code = code;
}

bool images__has_kernel(const struct images *images)
{
	return images->code || images->rec->kernel.kallsyms;
}

static struct elf_image *from_recording(const struct recording *rec, const struct rec_map *map)
{
	for (size_t i = 0; i < rec->images.n; i++) {
		const struct rec_image *image = &rec->images.v[i];

		if (image->pid || strcmp(image->path, map->path))
			continue;
		if (image->is_elf)
			return elf_image__from_bytes(image->data, image->size, map->path);
		return elf_image__raw(image->data, image->size, map->path, map->path);
	}
	errno = ENOENT;
	return NULL;
}

/* Whether any of the mapping was copied from memory. */
static bool has_copy(const struct recording *rec, const struct rec_map *map)
{
	for (size_t i = 0; i < rec->images.n; i++) {
		const struct rec_image *image = &rec->images.v[i];

		if (image->pid == map->pid && image->start < map->start + map->len &&
		    map->start < image->start + image->size)
			return true;
	}
	return false;
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
	file->image = map->path[0] == '/' ? opened__open(file, images->rec, map)
					  : from_recording(images->rec, map);
	if (!file->image && map->path[0] == '/') {
		opened__say_missing(file, map);
		images->is_missing_some = true;
	}
	return file->image;
}

/* Locked. What was copied of the process's memory; NULL: nothing, or no memory for it (errno). */
static struct elf_image *find_jit(struct images *images, pid_t pid)
{
	struct jit *jit;

	for (size_t i = 0; i < images->jits.n; i++)
		if (images->jits.v[i].pid == pid)
			return images->jits.v[i].image;
	jit = VEC_PUSH(&images->jits);
	if (!jit) {
		errno = ENOMEM;
		return NULL;
	}
	*jit = (struct jit){pid, jit__open(images->rec, pid)};
	return jit->image;
}

/* What was found to be no longer as in the file. */
static int map_patches(const struct recording *rec, const struct rec_map *m, struct code_map *map)
{
	int err = 0;

	for (size_t i = 0; i < rec->images.n && err != -ENOMEM; i++) {
		const struct rec_image *image = &rec->images.v[i];

		if (image->pid == m->pid && image->size <= CODE_PATCH_MAX &&
		    image->start - m->start < m->len)
			err = code_map__patch(map, image->start, image->data, image->size);
	}
	return err == -ENOMEM ? err : 0;
}

/* Locked. A copy of the memory is right where the file was none that could be kept. 0 or -ENOMEM.
 */
static int map_code(struct images *images, const struct rec_map *m, struct code_map *map)
{
	bool is_copied =
		has_copy(images->rec, m) && !recording__find_file(images->rec, m->path, m->ino);
	struct elf_image *image = is_copied ? find_jit(images, m->pid) : find_image(images, m);
	int err;

	if (!image)
		return is_copied && errno == ENOMEM ? -ENOMEM : 0;
	if (is_copied)
		return jit_image__map(image, m->start, m->len, map);
	err = code_map__add(map, m->start, m->len, m->pgoff, image);
	return err == -ENOMEM ? err : map_patches(images->rec, m, map);
}

/* One whose code has been asked for, and that nobody else prepares. NULL: none is left. */
static struct elf_image *next_to_prepare(struct images *images, size_t *next)
{
	struct elf_image *image = NULL;

	pthread_mutex_lock(&images->lock);
	for (; *next < images->files.n && !image; ++*next) {
		struct opened *file = &images->files.v[*next];

		if (file->is_prepared || !file->image || !elf_image__is_used(file->image))
			continue;
		file->is_prepared = true;
		image = file->image;
	}
	pthread_mutex_unlock(&images->lock);
	return image;
}

void images__prepare_source(struct images *images)
{
	struct elf_image *image;
	size_t next = 0;

	while ((image = next_to_prepare(images, &next)))
		elf_image__prepare_source(image);
}

void images__mismatch(struct images *images, const struct elf_image *image)
{
	pthread_mutex_lock(&images->lock);
	for (size_t i = 0; i < images->files.n; i++) {
		struct opened *file = &images->files.v[i];

		/* Behind a call into code that is missing, nothing fits: that has been said. */
		if (file->image != image || file->mismatch_said || images->is_missing_some)
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

bool images__is_due(const struct images *images, uint64_t time_ns, size_t next,
		    const struct code_map *map)
{
	const struct recording *rec = images->rec;

	if (images->code)
		return code_map__is_empty(map);
	if (next < rec->maps.n && rec->maps.v[next].time_ns <= time_ns)
		return true;
	return !next && rec->kernel.kallsyms && code_map__is_empty(map);
}

int images__apply(struct images *images, pid_t pid, uint64_t time_ns, size_t *next,
		  struct code_map *map)
{
	const struct recording *rec = images->rec;
	int err = 0;

	if (!images__is_due(images, time_ns, *next, map))
		return 0;
	if (images->code)
		return named_image__show(images->code, map);
	pthread_mutex_lock(&images->lock);
	if (!*next)
		err = map_kernel(images, map);
	pthread_mutex_unlock(&images->lock);
	if (err)
		return err;
	for (; *next < rec->maps.n && rec->maps.v[*next].time_ns <= time_ns; (*next)++) {
		const struct rec_map *m = &rec->maps.v[*next];

		if (m->pid != pid)
			continue;
		pthread_mutex_lock(&images->lock);
		err = map_code(images, m, map);
		pthread_mutex_unlock(&images->lock);
		if (err)
			return err;
	}
	return 0;
}
