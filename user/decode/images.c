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
	int error;		 /* errno */
	/* Another file that now has its name. */
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
	bool kernel_failed;	  /* and the warning was printed */
	struct images_kept *kept;
	struct named_image *code; /* instead of all these; or NULL */
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

/* Used if a file is not valid ELF: its bytes ran, and they lack symbols. */
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

/*
 * Opens the file of a mapping: the recording's copy, or a file on this machine. NULL with errno:
 * it was not found (*file tells what has its name instead), or out of memory.
 */
static struct elf_image *opened__open(struct opened *file, const struct recording *rec,
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

/* Says why the file could not be opened, and what to do. */
static void opened__say_missing(const struct opened *file, const struct rec_map *map)
{
	if (!file->other_ino) {
		log__warn("cannot read the code of %s (%s): it shows as gaps", map->path,
			  strerror(file->error));
		if (map->build_id[0])
			log__hint("put the file with build ID %s at that path ('debuginfod-find "
				  "executable' may fetch it), or record with -portable",
				  map->build_id);
		return;
	}
	log__warn("%s is not the file that ran: it has build ID %s instead of %s; its code shows "
		  "as gaps",
		  map->path, file->other_id[0] ? file->other_id : "none", map->build_id);
	log__hint("put the original file back at that path ('debuginfod-find executable %s' may "
		  "fetch it), or record with -portable",
		  map->build_id);
}

/* ---- what was copied of a process's memory */

static const char *find_perf_map(const struct recording *rec, pid_t pid)
{
	for (size_t i = 0; i < rec->perf_maps.n; i++)
		if (rec->perf_maps.v[i].pid == pid)
			return rec->perf_maps.v[i].text;
	return NULL;
}

/* NULL with errno: ENOENT, ENOMEM. */
static struct elf_image *jit__open(const struct recording *rec, pid_t pid)
{
	_cleanup_free_ struct jit_piece *pieces = calloc(rec->images.n + 1, sizeof(*pieces));
	size_t n = 0;

	if (!pieces)
		return NULL;
	for (size_t i = 0; i < rec->images.n; i++) {
		const struct rec_image *image = &rec->images.v[i];

		if (image->pid == pid)
			pieces[n++] = (struct jit_piece){image->start, image->data, image->size};
	}
	return jit_image__new(pieces, n, find_perf_map(rec, pid));
}

/* ---- mappings to code */

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

/* True if any of the mapping was copied from memory. */
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

/* Adds code that the recording found to differ from the file. */
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

/* Call it locked. A copy of memory is used if the recording does not have the file. 0 or -ENOMEM.
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

/* A file whose code was used and that no other thread prepares, or NULL. */
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

/* Locked. The kernel is part of every process. */
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
