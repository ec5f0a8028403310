// SPDX-License-Identifier: MIT
#include "keep/shelf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keep/shelf_internal.h"
#include "keep/stamp.h"
#include "util/fs.h"
#include "util/log.h"

static int refuse(const char *dir, int err)
{
	log__error("cannot keep recordings in %s: %s", dir, strerror(-err));
	log__hint(err == -ENOENT ? "its parent folder must exist"
				 : "choose a folder with -dir that mtbpf may write to");
	return err;
}

static int make_dir(const char *dir)
{
	struct stat st;

	if (mkdir(dir, 0700) && errno != EEXIST)
		return -errno;
	if (stat(dir, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return access(dir, W_OK | X_OK) ? -errno : 0;
}

int shelf__open(struct shelf *shelf, const char *dir, size_t keep, uint64_t max_bytes)
{
	int err;

	*shelf = (struct shelf){.keep = keep, .max_bytes = max_bytes};
	if (snprintf(shelf->dir, sizeof(shelf->dir), "%s", dir) >= PATH_MAX - NAME_MAX)
		return refuse(dir, -ENAMETOOLONG);
	err = make_dir(dir);
	if (!err)
		err = shelf__sweep(shelf);
	return err ? refuse(dir, err) : 0;
}

/* Creates and locks the directory, again if another mtbpf removed it before it was locked. */
static int make_partial(struct shelf_slot *slot)
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

int shelf__begin(const struct shelf *shelf, const char *process, uint64_t unix_ms,
		 struct shelf_slot *slot)
{
	char name[NAME_MAX];
	int err;

	/* Another mtbpf may use the same folder. */
	do {
		err = stamp__name(name, sizeof(name), process, unix_ms++);
		if (err)
			return err;
		shelf__path(shelf, slot->path, "", name);
		shelf__path(shelf, slot->partial, SHELF_WRITING, name);
		err = access(slot->path, F_OK) ? make_partial(slot) : -EEXIST;
	} while (err == -EEXIST);
	return err;
}

static int give_name(const struct shelf *shelf, struct shelf_slot *slot, uint64_t *bytes)
{
	int err = fs__tree_size(slot->partial, bytes);

	if (!err)
		err = fs__tree_sync(slot->partial);
	if (!err)
		err = shelf__make_room(shelf, *bytes);
	if (!err && rename(slot->partial, slot->path))
		err = -errno;
	return err;
}

int shelf__finish(const struct shelf *shelf, struct shelf_slot *slot, uint64_t *bytes)
{
	int err = give_name(shelf, slot, bytes);

	if (err)
		shelf__abandon(slot);
	else
		close(slot->lock_fd);
	return err;
}

void shelf__abandon(struct shelf_slot *slot)
{
	fs__remove_dir(slot->partial);
	close(slot->lock_fd);
}
