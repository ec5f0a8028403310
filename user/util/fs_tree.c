// SPDX-License-Identifier: MIT
#include "util/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <unistd.h>

/* Calls `visit` for each file and, when all in it have been seen, each folder. */
static int walk(const char *path, int (*visit)(const FTSENT *entry, void *ctx), void *ctx)
{
	char *paths[] = {(char *)path, NULL};
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *entry;
	int err = 0;

	if (!tree)
		return -errno;
	while (!err && (errno = 0, entry = fts_read(tree))) {
		if (entry->fts_info == FTS_F || entry->fts_info == FTS_DP)
			err = visit(entry, ctx);
		else if (entry->fts_info == FTS_ERR || entry->fts_info == FTS_DNR ||
			 entry->fts_info == FTS_NS)
			err = -entry->fts_errno;
	}
	if (!err)
		err = -errno;
	fts_close(tree);
	return err;
}

static int add_size(const FTSENT *entry, void *ctx)
{
	if (entry->fts_info == FTS_F)
		*(uint64_t *)ctx += (uint64_t)entry->fts_statp->st_size;
	return 0;
}

int fs__tree_size(const char *path, uint64_t *bytes)
{
	*bytes = 0;
	return walk(path, add_size, bytes);
}

static int sync_one(const FTSENT *entry, void *ctx)
{
	int fd = open(entry->fts_path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = fsync(fd) ? -errno : 0;
	close(fd);
	return err;
}

int fs__tree_sync(const char *path)
{
	return walk(path, sync_one, NULL);
}
