// SPDX-License-Identifier: MIT
#include "capture/code/found_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/elf/debug_file.h"
#include "target/elf/elf_image.h"
#include "util/fs.h"
#include "util/log.h"

/* A regular file at path, open as file->fd and file->debug_fd, if it is what was mapped. */
static bool try_path(struct rec_file *file, const struct rec_map *map, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct elf_image *image = NULL;
	const char *build_id = "";
	struct stat st;
	bool is_it;

	if (fd < 0)
		return false;
	is_it = !fstat(fd, &st) && S_ISREG(st.st_mode);
	if (is_it)
		image = elf_image__open(fd, path);
	if (image)
		build_id = elf_image__build_id(image);
	if (map->build_id[0])
		is_it = is_it && !strcmp(build_id, map->build_id);
	else if (map->ino)
		is_it = is_it && st.st_ino == map->ino;
	if (!is_it) {
		close(fd);
	} else {
		file->fd = fd;
		snprintf(file->build_id, sizeof(file->build_id), "%s", build_id);
		if (image)
			file->debug_fd = debug_file__open(image, path, NULL);
	}
	elf_image__free(image);
	return is_it;
}

static bool find(struct rec_file *file, const struct rec_map *map)
{
	char path[PATH_MAX];
	bool found = try_path(file, map, map->path);

	for (unsigned int i = 0; !found && !build_id__path(map->build_id, i, path, sizeof(path));
	     i++)
		found = try_path(file, map, path);
	return found;
}

static struct rec_file *known(struct recording *rec, const struct rec_map *map)
{
	return (struct rec_file *)recording__find_file(rec, map->path, map->ino);
}

static int add(struct recording *rec, const struct rec_map *map)
{
	struct rec_file file = {.path = map->path, .ino = map->ino, .fd = -1, .debug_fd = -1};
	struct rec_file *old = known(rec, map);

	if (old && old->fd >= 0)
		return 0;
	if (!find(&file, map)) {
		log__warn("%s is not here as it was when it ran: the recording goes without it",
			  map->path);
		log__hint("put the file that ran there; its build id is %s",
			  map->build_id[0] ? map->build_id : "not known");
	}
	if (!old)
		return recording__add_file(rec, &file);
	old->fd = file.fd;
	old->debug_fd = file.debug_fd;
	return 0;
}

/* They are to be written anew, wherever they were before. */
static void forget_names(struct recording *rec)
{
	for (size_t i = 0; i < rec->files.n; i++) {
		free(rec->files.v[i].name);
		free(rec->files.v[i].debug_name);
		rec->files.v[i].name = rec->files.v[i].debug_name = NULL;
	}
}

/* A file that was looked for in vain is known as well: it is said once. */
static bool is_first(const struct recording *rec, size_t i)
{
	const struct rec_map *map = &rec->maps.v[i];

	for (size_t k = 0; k < i; k++)
		if (rec->maps.v[k].ino == map->ino && !strcmp(rec->maps.v[k].path, map->path))
			return false;
	return true;
}

int found_files__add(struct recording *rec)
{
	int err = 0;

	rec->portable = true;
	forget_names(rec);
	fs__allow_open_files(2 * rec->maps.n);
	for (size_t i = 0; i < rec->maps.n && !err; i++)
		if (rec->maps.v[i].path[0] == '/' && is_first(rec, i))
			err = add(rec, &rec->maps.v[i]);
	return err;
}
