// SPDX-License-Identifier: MIT
#include "trace/sink/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/sink/block_writer.h"
#include "util/cleanup.h"
#include "util/log.h"

struct sink {
	char *path;
	int fd;
	int err;
	struct block_writer *writer;
	struct block *block; /* that is being filled; NULL: none yet */
};

static void say_hint(int err)
{
	switch (-err) {
	case ENOSPC:
	case EDQUOT:
		log__hint("make room there, write elsewhere, or write .fxt.gz, a sixth of the "
			  "size");
		break;
	case EFBIG:
		log__hint("the file size limit is reached (ulimit -f); .fxt.gz is a sixth of the "
			  "size");
		break;
	case ENOENT:
	case ENOTDIR:
		log__hint("the folder has to exist");
		break;
	case ENOMEM:
		log__hint("trace a shorter window, or decode on a machine with more memory");
		break;
	default:
		log__hint("choose a name in a folder that you may write to");
	}
}

/* What the user wrote last time is never overwritten, nor are devices and folders. */
static int keep_old(const char *path)
{
	_cleanup_free_ char *old = NULL;
	struct stat st;
	int err;

	if (lstat(path, &st))
		return 0;
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) {
		log__error("cannot write %s: it exists, and is no file", path);
		log__hint("choose another name");
		return -EEXIST;
	}
	if (asprintf(&old, "%s.old", path) < 0) {
		old = NULL;
		return -ENOMEM;
	}
	if (!rename(path, old))
		return 0;
	err = -errno;
	log__error("cannot rename %s to %s: %s", path, old, strerror(-err));
	log__hint("remove one of the two, or choose another name");
	return err;
}

static int create(struct sink *sink, const char *path)
{
	sink->path = strdup(path);
	if (!sink->path)
		return -ENOMEM;
	sink->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (sink->fd < 0)
		return -errno;
	sink->writer = block_writer__new(sink->fd, codec__of(path));
	if (sink->writer)
		return 0;
	close(sink->fd);
	unlink(path);
	return -ENOMEM;
}

struct sink *sink__open(const char *path)
{
	int err = keep_old(path);
	struct sink *sink;

	if (err) {
		errno = -err;
		return NULL;
	}
	sink = calloc(1, sizeof(*sink));
	err = -ENOMEM;
	if (sink)
		err = create(sink, path);
	if (!err)
		return sink;
	log__error("cannot create %s: %s", path, strerror(-err));
	say_hint(err);
	if (sink)
		free(sink->path);
	free(sink);
	errno = -err;
	return NULL;
}

static void hand_on(struct sink *sink)
{
	if (!sink->block)
		return;
	block_writer__put(sink->writer, sink->block);
	sink->block = NULL;
}

/* A block with room for len more, or NULL behind an error. */
static struct block *block_for(struct sink *sink, size_t len)
{
	if (sink->block && sink->block->size - sink->block->n < len)
		hand_on(sink);
	if (!sink->block)
		sink__fail(sink, block_writer__error(sink->writer));
	if (sink->err)
		return NULL;
	if (!sink->block)
		sink->block = block_writer__take(sink->writer);
	return sink->block;
}

void sink__write(struct sink *sink, const void *data, size_t len)
{
	const uint8_t *from = data;
	struct block *block;

	while (len && (block = block_for(sink, 1))) {
		size_t room = block->size - block->n;
		size_t n = len < room ? len : room;

		memcpy(block->data + block->n, from, n);
		block->n += n;
		from += n;
		len -= n;
	}
}

void *sink__room(struct sink *sink, size_t len)
{
	struct block *block = block_for(sink, len);

	return block ? block->data + block->n : NULL;
}

void sink__use_room(struct sink *sink, size_t used)
{
	sink->block->n += used;
}

void sink__fail(struct sink *sink, int err)
{
	if (!sink->err)
		sink->err = err;
}

int sink__error(const struct sink *sink)
{
	return sink->err;
}

static void destroy(struct sink *sink)
{
	free(sink->path);
	free(sink);
}

int sink__close(struct sink *sink, uint64_t *bytes)
{
	uint64_t size;
	int err;

	hand_on(sink);
	sink__fail(sink, block_writer__finish(sink->writer, &size));
	block_writer__free(sink->writer);
	/* Network file systems report a full disk as late as this. */
	if (close(sink->fd) && !sink->err)
		sink->err = -errno;
	err = sink->err;
	if (err) {
		log__error("cannot write %s: %s", sink->path, strerror(-err));
		say_hint(err);
		unlink(sink->path);
	}
	if (bytes)
		*bytes = err ? 0 : size;
	destroy(sink);
	return err;
}

void sink__abort(struct sink *sink)
{
	if (!sink)
		return;
	block_writer__free(sink->writer);
	close(sink->fd);
	unlink(sink->path);
	destroy(sink);
}
