// SPDX-License-Identifier: MIT
#include "keep/folder.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/units.h"
#include "util/vec.h"

/* Prefixes of recordings that are being written or removed. */
#define WRITING	 ".writing-"
#define REMOVING ".removing-"
#define SUFFIX	 ".mtbpf"

uint64_t unix_now_ms(void)
{
	return clock__unix_ns() / 1000000;
}

int recording_name__format(char *buf, size_t size, const char *process, uint64_t unix_ms)
{
	int n = snprintf(buf, size, "%s-%s" SUFFIX, process, MOMENT(unix_ms));

	if (n < 0 || (size_t)n >= size)
		return -ENAMETOOLONG;
	for (char *c = buf; c < buf + strlen(process); c++)
		if (!isalnum((unsigned char)*c) && (!strchr("-.", *c) || c == buf))
			*c = '_';
	return 0;
}

bool recording_name__parse(const char *file, uint64_t *unix_ms)
{
	size_t len = strlen(file), tail = 1 + (UNITS_MOMENT_SIZE - 1) + strlen(SUFFIX);
	const char *at = file + len - tail;

	return len > tail && file[0] != '.' && *at == '-' &&
	       !strcmp(file + len - strlen(SUFFIX), SUFFIX) &&
	       !units__parse_moment(at + 1, unix_ms);
}

/* Joins the parts; the caller has checked their lengths. */
static void join_path(const struct folder *folder, char path[static PATH_MAX], const char *prefix,
		      const char *name)
{
	if (snprintf(path, PATH_MAX, "%s/%s%s", folder->dir, prefix, name) >= PATH_MAX)
		path[0] = '\0';
}

/* Calls `visit` for every entry. 0, its first error, or another -errno. */
static int each(const struct folder *folder,
		int (*visit)(const struct folder *folder, const char *name, void *ctx), void *ctx)
{
	DIR *dir = opendir(folder->dir);
	struct dirent *entry;
	int err = 0;

	if (!dir)
		return -errno;
	while (!err && (errno = 0, entry = readdir(dir)))
		err = visit(folder, entry->d_name, ctx);
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

/* Removes an incomplete recording without a writer, or the remains of a removed one. */
static int sweep_one(const struct folder *folder, const char *name, void *ctx)
{
	char path[PATH_MAX];
	int fd;

	if (!!strncmp(name, WRITING, strlen(WRITING)) &&
	    !!strncmp(name, REMOVING, strlen(REMOVING)))
		return 0;
	join_path(folder, path, "", name);
	fd = lock(path);
	if (fd < 0)
		return 0;
	log__info("%s: incomplete recording of an earlier mtbpf, removed", path);
	fs__remove_dir(path);
	close(fd);
	return 0;
}

static int add_item(const struct folder *folder, const char *name, void *ctx)
{
	struct folder_content *content = ctx;
	struct folder_item *item, found = {0};
	char path[PATH_MAX];

	if (!recording_name__parse(name, &found.unix_ms))
		return 0;
	join_path(folder, path, "", name);
	/* The recording may have been removed meanwhile. */
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

ORDER(compare_items, struct folder_item,
      COMPARE(x->unix_ms, y->unix_ms) ?: strcmp(x->name, y->name))

int folder__list(const struct folder *folder, struct folder_content *content)
{
	int err;

	*content = (struct folder_content){0};
	err = each(folder, add_item, content);
	if (err)
		folder_content__fini(content);
	else
		VEC_SORT(&content->items, compare_items);
	return err;
}

void folder_content__fini(struct folder_content *content)
{
	VEC_FINI_EACH(&content->items, e, free(e->name));
}

/* Renames the recording, then removes its files. -EWOULDBLOCK if a reader has locked it. */
static int remove_item(const struct folder *folder, const char *name)
{
	char path[PATH_MAX], gone[PATH_MAX];
	int err, fd;

	join_path(folder, path, "", name);
	join_path(folder, gone, REMOVING, name);
	fd = lock(path);
	if (fd < 0)
		return fd;
	err = rename(path, gone) ? -errno : 0;
	if (!err)
		err = fs__remove_dir(gone);
	close(fd);
	return err;
}

/*
 * Removes the oldest recordings to make room for one of this size. Warns of those that cannot be
 * removed, which may leave too little room. 0, -EFBIG or another -errno.
 */
static int make_room(const struct folder *folder, uint64_t bytes)
{
	struct folder_content content;
	char path[PATH_MAX];
	size_t n;
	int err;

	if (bytes > folder->max_bytes)
		return -EFBIG;
	err = folder__list(folder, &content);
	if (err)
		return err;
	n = content.items.n;
	VEC_EACH(&content.items, item) {
		if (n < folder->keep && content.bytes + bytes <= folder->max_bytes)
			break;
		err = remove_item(folder, item->name);
		if (!err || err == -ENOENT) {
			n--;
			content.bytes -= item->bytes;
			continue;
		}
		join_path(folder, path, "", item->name);
		if (err != -EWOULDBLOCK)
			log__warn("cannot remove %s: %s", path, strerror(-err));
		else if (folder->in_work && !strcmp(item->name, strrchr(folder->in_work, '/') + 1))
			log__warn("%s is not removed yet: its summary is being made, or the "
				  "-on-capture command uses it",
				  path);
		else
			log__warn("%s is not removed: another process reads it", path);
	}
	folder_content__fini(&content);
	return 0;
}

static int refuse(const char *dir, int err)
{
	log__error("cannot keep recordings in %s: %s", dir, strerror(-err));
	log__hint(err == -ENOENT ? "the parent folder must exist"
				 : "choose a folder with -dir that mtbpf may write to");
	return err;
}

int folder__open(struct folder *folder, const char *dir, size_t keep, uint64_t max_bytes)
{
	struct stat st;
	int err = 0;

	*folder = (struct folder){.keep = keep, .max_bytes = max_bytes};
	if (snprintf(folder->dir, sizeof(folder->dir), "%s", dir) >= PATH_MAX - NAME_MAX)
		return refuse(dir, -ENAMETOOLONG);
	if ((mkdir(dir, 0700) && errno != EEXIST) || stat(dir, &st))
		err = -errno;
	else if (!S_ISDIR(st.st_mode))
		err = -ENOTDIR;
	else if (access(dir, W_OK | X_OK))
		err = -errno;
	if (!err)
		err = each(folder, sweep_one, NULL);
	return err ? refuse(dir, err) : 0;
}

/*
 * Creates and locks the directory. -EEXIST if it exists, or if another mtbpf removed it before the
 * lock: the caller tries the next name.
 */
static int make_partial(struct folder_slot *slot)
{
	struct stat ours, now;

	slot->lock_fd = -1;
	if (mkdir(slot->partial, 0700))
		return -errno;
	slot->lock_fd = open(slot->partial, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (slot->lock_fd < 0)
		return errno == ENOENT ? -EEXIST : -errno;
	if (flock(slot->lock_fd, LOCK_EX | LOCK_NB) || fstat(slot->lock_fd, &ours) ||
	    stat(slot->partial, &now) || ours.st_ino != now.st_ino) {
		close(slot->lock_fd);
		return -EEXIST;
	}
	return 0;
}

int folder__begin(const struct folder *folder, const char *process, uint64_t unix_ms,
		  struct folder_slot *slot)
{
	char name[NAME_MAX];
	int err;

	/* Another mtbpf may use the same folder. */
	do {
		err = recording_name__format(name, sizeof(name), process, unix_ms++);
		if (err)
			return err;
		join_path(folder, slot->path, "", name);
		join_path(folder, slot->partial, WRITING, name);
		err = access(slot->path, F_OK) ? make_partial(slot) : -EEXIST;
	} while (err == -EEXIST);
	return err;
}

int folder__finish(const struct folder *folder, struct folder_slot *slot, uint64_t *bytes)
{
	int err = fs__tree_size(slot->partial, bytes);

	if (!err)
		err = fs__tree_sync(slot->partial);
	if (!err)
		err = make_room(folder, *bytes);
	if (!err && rename(slot->partial, slot->path))
		err = -errno;
	if (err)
		folder__abandon(slot);
	else
		close(slot->lock_fd);
	return err;
}

void folder__abandon(struct folder_slot *slot)
{
	fs__remove_dir(slot->partial);
	close(slot->lock_fd);
}
