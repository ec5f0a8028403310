// SPDX-License-Identifier: MIT
#include "decode/images.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/elf/debug_file.h"
#include "target/symbols/live_image.h"
#include "target/symbols/named_image.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/vec.h"

/* A file, opened once for all of its mappings. */
struct opened {
	const char *path, *build_id; /* the recording's */
	uint64_t ino;
	struct elf_image *image; /* NULL: it could not be opened, which was reported */
	int error; /* errno of the attempt to open it; ENOMEM: no other place is tried */
	/* The file that has this path now, if it is another one. */
	char other_id[64];
	uint64_t other_ino;
	bool is_other; /* `image` is that other file, since the right one is missing */
	bool mismatch_said;
	bool is_prepared; /* images__prepare_source() */
};

/* The memory of a process as far as it was copied. */
struct jit {
	pid_t pid;
	struct elf_image *image; /* NULL: nothing was copied */
};

struct images {
	const struct recording *rec;
	pthread_mutex_t lock; /* of what follows */
	VEC(struct opened) files;
	bool is_missing_some; /* a file is missing, which was reported */
	VEC(struct jit) jits;
	struct elf_image *kernel; /* one for all processes; NULL: not traced, or not read yet */
	bool kernel_failed;	  /* the kernel's image cannot be made, which was reported */
	struct images_kept *kept;
	struct named_image *code; /* names all code, instead of the images above; or NULL */
};

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
	while (images->kept) {
		struct images_kept *kept = images->kept;

		images->kept = kept->next;
		kept->free(kept);
	}
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

const struct recording *images__recording(const struct images *images)
{
	return images->rec;
}

void images__keep(struct images *images, struct images_kept *kept)
{
	pthread_mutex_lock(&images->lock);
	kept->next = images->kept;
	images->kept = kept;
	pthread_mutex_unlock(&images->lock);
}

struct images_kept *images__take(struct images *images, pid_t pid,
				 bool (*fits)(const struct images_kept *kept, int how), int how)
{
	struct images_kept **at = &images->kept, *found;

	pthread_mutex_lock(&images->lock);
	while (*at && ((*at)->pid != pid || !fits(*at, how)))
		at = &(*at)->next;
	found = *at;
	if (found)
		*at = found->next;
	pthread_mutex_unlock(&images->lock);
	return found;
}

void images__set_code(struct images *images, struct named_image *code)
{
	images->code = code;
}

bool images__has_kernel(const struct images *images)
{
	return images->code || images->rec->kernel.kallsyms;
}

/* ---- finding the file that was mapped, and telling it from another file with its name */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static struct elf_image *open_elf(struct opened *file, int fd, const struct rec_map *map)
{
	const char *name = base_name(map->path);
	struct elf_image *image;
	void *data = MAP_FAILED;
	struct stat st;

	if (file->error == ENOMEM)
		return NULL;
	image = elf_image__open(fd, name);
	/* If the file is not valid ELF, its bytes are used as code without symbols. */
	if (!image && errno != ENOMEM && !fstat(fd, &st))
		data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data != MAP_FAILED) {
		image = elf_image__raw(data, (size_t)st.st_size, name, name);
		munmap(data, (size_t)st.st_size);
	}
	if (!image && errno == ENOMEM)
		file->error = ENOMEM;
	return image;
}

/*
 * The file at `path`, if it is what was mapped; otherwise NULL, and file->other_id and other_ino
 * describe another file that is there. NULL with errno.
 */
static struct elf_image *try_path(struct opened *file, const struct rec_map *map, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct elf_image *image = NULL;
	const char *build_id;
	struct stat st;

	if (fd < 0)
		return NULL;
	errno = ENOEXEC;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		image = open_elf(file, fd, map);
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
	errno = ENOENT;
	return NULL;
}

/*
 * Opens the file that was mapped: through the process, if it still runs, below its root, by its
 * path, or by its build ID. Without a build ID, any file of that path is taken in the end: a copy
 * on another machine or file system has another inode.
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
		if (file->error != ENOMEM)
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

/*
 * Opens the file of a mapping: the recording's copy, or a file on this machine. NULL with
 * file->error: it was not found (*file tells what has its name instead), or out of memory.
 */
static struct elf_image *opened__open(struct opened *file, const struct recording *rec,
				      const struct rec_map *map)
{
	const struct rec_file *kept = recording__find_file(rec, map->path, map->ino);
	struct elf_image *image = NULL;
	char root[REC_ROOT_SIZE];

	recording__root_path(rec, map->pid, root);
	if (kept && kept->fd >= 0)
		image = open_elf(file, kept->fd, map);
	if (!image)
		image = from_machine(file, map, root);
	if (!image)
		return NULL;
	if (kept && kept->debug_fd >= 0 && !elf_image__set_debug_file(image, kept->debug_fd))
		return image;
	debug_file__use(image, map->path, root);
	return image;
}

/* ---- mappings to code. These functions are called locked. */

/* A file's content in the recording. NULL with errno: ENOENT, ENOMEM, or it is not valid. */
static struct elf_image *from_recording(const struct recording *rec, const struct rec_map *map)
{
	VEC_EACH(&rec->images, image) {
		if (image->pid || strcmp(image->path, map->path))
			continue;
		if (image->is_elf)
			return elf_image__from_bytes(image->data, image->size, map->path);
		return elf_image__raw(image->data, image->size, map->path, map->path);
	}
	errno = ENOENT;
	return NULL;
}

/*
 * Sets *image to the file of a mapping; NULL: it cannot be opened, which is reported once with what
 * to do. 0 or -ENOMEM.
 */
static int find_image(struct images *images, const struct rec_map *map, struct elf_image **image)
{
	struct opened file = {.path = map->path, .build_id = map->build_id, .ino = map->ino};
	bool is_file = map->path[0] == '/';

	VEC_EACH(&images->files, f)
		if (f->ino == map->ino && !strcmp(f->build_id, map->build_id) &&
		    !strcmp(f->path, map->path)) {
			*image = f->image;
			return 0;
		}
	file.image =
		is_file ? opened__open(&file, images->rec, map) : from_recording(images->rec, map);
	if (!file.image && !is_file)
		file.error = errno;
	if ((!file.image && file.error == ENOMEM) || VEC_ADD(&images->files, file)) {
		elf_image__free(file.image);
		return -ENOMEM;
	}
	*image = file.image;
	if (file.image || !is_file)
		return 0;
	images->is_missing_some = true;
	if (file.other_ino) {
		log__warn("%s is not the file that ran: it has build ID %s instead of %s; its code "
			  "shows as gaps",
			  map->path, file.other_id[0] ? file.other_id : "none", map->build_id);
		log__hint("put the original file back at that path ('debuginfod-find executable "
			  "%s' may fetch it), or record with -portable",
			  map->build_id);
		return 0;
	}
	log__warn("cannot read the code of %s (%s): the trace has gaps where this code ran",
		  map->path, strerror(file.error));
	if (map->build_id[0])
		log__hint("put the file with build ID %s at that path ('debuginfod-find "
			  "executable' may fetch it), or record with -portable",
			  map->build_id);
	return 0;
}

/* Sets *image to what was copied of the process's memory; NULL: nothing. 0 or -ENOMEM. */
static int find_jit(struct images *images, pid_t pid, struct elf_image **image)
{
	const struct recording *rec = images->rec;
	_cleanup_free_ struct jit_piece *pieces = NULL;
	const char *perf_map = NULL;
	struct jit jit = {.pid = pid};
	size_t n = 0;

	VEC_EACH(&images->jits, j)
		if (j->pid == pid) {
			*image = j->image;
			return 0;
		}
	pieces = calloc(rec->images.n + 1, sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	VEC_EACH(&rec->images, copy)
		if (copy->pid == pid)
			pieces[n++] = (struct jit_piece){copy->start, copy->data, copy->size};
	VEC_EACH_WHILE(&rec->perf_maps, map, !perf_map)
		perf_map = map->pid == pid ? map->text : NULL;
	jit.image = jit_image__new(pieces, n, perf_map);
	if ((!jit.image && errno == ENOMEM) || VEC_ADD(&images->jits, jit)) {
		elf_image__free(jit.image);
		return -ENOMEM;
	}
	*image = jit.image;
	return 0;
}

/* Adds the mapping's code. 0 or -ENOMEM. */
static int map_code(struct images *images, const struct rec_map *m, struct code_map *map)
{
	const struct recording *rec = images->rec;
	struct elf_image *image;
	bool is_copied = false;
	int err;

	/* A copy of any of its memory is used if the recording does not have the file. */
	VEC_EACH(&rec->images, copy)
		is_copied |= copy->pid == m->pid && copy->start < m->start + m->len &&
			     m->start < copy->start + copy->size;
	is_copied = is_copied && !recording__find_file(rec, m->path, m->ino);
	err = is_copied ? find_jit(images, m->pid, &image) : find_image(images, m, &image);
	if (err || !image)
		return err;
	if (is_copied)
		return jit_image__map(image, m->start, m->len, map);
	err = code_map__add(map, m->start, m->len, m->pgoff, image);
	/* Adds code that the recording found to differ from the file. */
	VEC_EACH_WHILE(&rec->images, patch, err != -ENOMEM) {
		if (patch->pid == m->pid && patch->size <= CODE_PATCH_MAX &&
		    patch->start - m->start < m->len)
			err = code_map__patch(map, patch->start, patch->data, patch->size);
	}
	return err == -ENOMEM ? err : 0;
}

void images__prepare_source(struct images *images)
{
	pthread_mutex_lock(&images->lock);
	for (size_t i = 0; i < images->files.n; i++) {
		struct opened *file = &images->files.v[i];
		struct elf_image *image = file->image;

		if (file->is_prepared || !image || !elf_image__is_used(image))
			continue;
		/* Set while the lock is held, so that no other thread prepares this file. */
		file->is_prepared = true;
		pthread_mutex_unlock(&images->lock);
		elf_image__prepare_source(image);
		pthread_mutex_lock(&images->lock);
	}
	pthread_mutex_unlock(&images->lock);
}

void images__mismatch(struct images *images, const struct elf_image *image)
{
	pthread_mutex_lock(&images->lock);
	for (size_t i = 0; i < images->files.n; i++) {
		struct opened *file = &images->files.v[i];

		/*
		 * After a call into missing code packets cannot match, and that code was reported.
		 */
		if (file->image != image || file->mismatch_said || images->is_missing_some)
			continue;
		file->mismatch_said = true;
		log__warn("the trace does not fit the code of %s: unclear parts show as gaps",
			  file->path);
		if (file->is_other)
			log__hint("the file was replaced (its inode was %llu and is now %llu): "
				  "record "
				  "again, or put the old file there and decode again",
				  (unsigned long long)file->ino,
				  (unsigned long long)file->other_ino);
	}
	pthread_mutex_unlock(&images->lock);
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

/* Adds the kernel, which is part of every process. 0 or -ENOMEM. */
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

	if (!images__is_due(images, time_ns, *next, map))
		return 0;
	if (images->code)
		return named_image__show(images->code, map);
	pthread_mutex_lock(&images->lock);
	if (!*next)
		err = map_kernel(images, map);
	while (!err && *next < rec->maps.n && rec->maps.v[*next].time_ns <= time_ns) {
		const struct rec_map *m = &rec->maps.v[*next];

		if (m->pid == pid)
			err = map_code(images, m, map);
		if (!err)
			++*next;
	}
	pthread_mutex_unlock(&images->lock);
	return err;
}
