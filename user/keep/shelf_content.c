// SPDX-License-Identifier: MIT
#include "keep/shelf_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "keep/stamp.h"
#include "util/fs.h"
#include "util/log.h"

void shelf__path(const struct shelf *shelf, char path[static PATH_MAX], const char *prefix,
		 const char *name)
{
	if (snprintf(path, PATH_MAX, "%s/%s%s", shelf->dir, prefix, name) >= PATH_MAX)
		path[0] = '\0';
}

/* Calls `visit` for every entry. 0, its first error, or another -errno. */
static int each(const struct shelf *shelf,
		int (*visit)(const struct shelf *shelf, const char *name, void *ctx), void *ctx)
{
	DIR *dir = opendir(shelf->dir);
	struct dirent *entry;
	int err = 0;

	if (!dir)
		return -errno;
	while (!err && (errno = 0, entry = readdir(dir)))
		err = visit(shelf, entry->d_name, ctx);
	if (!err)
		err = -errno;
	closedir(dir);
	return err;
}

/* Returns a locked descriptor, or -errno: -EWOULDBLOCK if another process holds the lock. */
static int lock(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static bool begins_with(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

static int sweep_one(const struct shelf *shelf, const char *name, void *ctx)
{
	char path[PATH_MAX];
	int fd;

	if (!begins_with(name, SHELF_WRITING) && !begins_with(name, SHELF_REMOVING))
		return 0;
	shelf__path(shelf, path, "", name);
	fd = lock(path);
	if (fd < 0)
		return 0;
	log__info("%s: incomplete recording of an earlier mtbpf, removed", path);
	fs__remove_dir(path);
	close(fd);
	return 0;
}

int shelf__sweep(const struct shelf *shelf)
{
	return each(shelf, sweep_one, NULL);
}

static int add_item(const struct shelf *shelf, const char *name, void *ctx)
{
	struct shelf_content *content = ctx;
	struct shelf_item *item, found = {0};
	char path[PATH_MAX];

	if (!stamp__parse(name, &found.unix_ms))
		return 0;
	shelf__path(shelf, path, "", name);
	/* It may have been removed meanwhile. */
	if (fs__tree_size(path, &found.bytes))
		return 0;
	found.name = strdup(name);
	item = found.name ? VEC_PUSH(&content->items) : NULL;
	if (!item) {
		free(found.name);
		return -ENOMEM;
	}
	*item = found;
	content->bytes += found.bytes;
	return 0;
}

static int compare_items(const void *a, const void *b)
{
	const struct shelf_item *x = a, *y = b;

	if (x->unix_ms != y->unix_ms)
		return x->unix_ms < y->unix_ms ? -1 : 1;
	return strcmp(x->name, y->name);
}

int shelf__look(const struct shelf *shelf, struct shelf_content *content)
{
	int err;

	*content = (struct shelf_content){0};
	err = each(shelf, add_item, content);
	if (err)
		shelf_content__fini(content);
	else
		VEC_SORT(&content->items, compare_items);
	return err;
}

void shelf_content__fini(struct shelf_content *content)
{
	for (size_t i = 0; i < content->items.n; i++)
		free(content->items.v[i].name);
	VEC_FINI(&content->items);
}

/* Renames it first, then removes its files. -EWOULDBLOCK if a reader has locked it. */
static int remove_item(const struct shelf *shelf, const char *name)
{
	char path[PATH_MAX], gone[PATH_MAX];
	int err, fd;

	shelf__path(shelf, path, "", name);
	shelf__path(shelf, gone, SHELF_REMOVING, name);
	fd = lock(path);
	if (fd < 0)
		return fd;
	err = rename(path, gone) ? -errno : 0;
	if (!err)
		err = fs__remove_dir(gone);
	close(fd);
	return err;
}

static void say_stays(const struct shelf *shelf, const char *name, int err)
{
	char path[PATH_MAX];

	shelf__path(shelf, path, "", name);
	if (err != -EWOULDBLOCK)
		log__warn("%s stays: %s", path, strerror(-err));
	else if (shelf->in_work && !strcmp(name, strrchr(shelf->in_work, '/') + 1))
		log__warn("%s stays for now: its summary is being made, or -on-capture runs with "
			  "it",
			  path);
	else
		log__warn("%s stays: another process reads it", path);
}

int shelf__make_room(const struct shelf *shelf, uint64_t bytes)
{
	struct shelf_content content;
	size_t n;
	int err;

	if (bytes > shelf->max_bytes)
		return -EFBIG;
	err = shelf__look(shelf, &content);
	if (err)
		return err;
	n = content.items.n;
	for (size_t i = 0; i < content.items.n; i++) {
		const struct shelf_item *item = &content.items.v[i];

		if (n < shelf->keep && content.bytes + bytes <= shelf->max_bytes)
			break;
		err = remove_item(shelf, item->name);
		if (err && err != -ENOENT) {
			say_stays(shelf, item->name, err);
			continue;
		}
		n--;
		content.bytes -= item->bytes;
	}
	shelf_content__fini(&content);
	return 0;
}
