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
#include "util/fs.h"
#include "util/interrupts.h"
#include "util/log.h"
#include "util/stop.h"

#define PARTIAL ".part"

struct sink {
	char *path;
	char *old;     /* what the file of that name becomes */
	char *partial; /* what is written, until it is whole */
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
		log__hint(
			"free some space, write elsewhere, or write .fxt.gz, a sixth of the size");
		break;
	case EFBIG:
		log__hint("the file size limit is reached (ulimit -f); .fxt.gz is a sixth of the "
			  "size");
		break;
	case ENOENT:
	case ENOTDIR:
		log__hint("the folder must exist");
		break;
	case ENOMEM:
		log__hint("decode a part with -filter, or decode on a machine with more memory");
		break;
	default:
		log__hint("choose a folder that you may write to");
	}
}

static bool is_there(const char *path, struct stat *st)
{
	return !lstat(path, st);
}

/* What the user wrote last time is never overwritten, nor are devices and folders. */
static int check_place(const struct sink *sink)
{
	const char *wrong = NULL;
	struct stat st;

	if (!is_there(sink->path, &st))
		return 0;
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		wrong = sink->path;
	else if (is_there(sink->old, &st) && S_ISDIR(st.st_mode))
		wrong = sink->old;
	if (!wrong)
		return 0;
	log__error("cannot write %s: %s exists and is not a regular file", sink->path,
		   wrong == sink->path ? "it" : wrong);
	log__hint("choose another name");
	return -EEXIST;
}

static void remove_partial(const struct sink *sink)
{
	unlink(sink->partial);
	stop__set_partial(NULL);
}

/* For a moment the one before may have the partial one's name. */
static int put_in_place(const struct sink *sink)
{
	sigset_t before;
	int err;

	interrupts__block(&before);
	stop__set_partial(NULL);
	err = fs__put_in_place(sink->partial, sink->path, sink->old);
	interrupts__unblock(&before);
	return err;
}

/* Whoever is told to end knows of it from its first moment on. */
static int create_partial(struct sink *sink)
{
	sigset_t before;
	int err = 0;

	interrupts__block(&before);
	sink->fd = mkostemps(sink->partial, (int)strlen(PARTIAL), O_CLOEXEC);
	if (sink->fd < 0)
		err = -errno;
	else
		stop__set_partial(sink->partial);
	interrupts__unblock(&before);
	return err;
}

static int create(struct sink *sink)
{
	int err = create_partial(sink);

	if (err)
		return err;
	sink->writer = block_writer__new(sink->fd, codec__of(sink->path));
	if (sink->writer)
		return 0;
	close(sink->fd);
	remove_partial(sink);
	return -ENOMEM;
}

static void destroy(struct sink *sink)
{
	if (!sink)
		return;
	free(sink->path);
	free(sink->old);
	free(sink->partial);
	free(sink);
}

static char *join(const char *path, const char *suffix)
{
	char *name;

	return asprintf(&name, "%s%s", path, suffix) < 0 ? NULL : name;
}

static struct sink *allocate(const char *path)
{
	struct sink *sink = calloc(1, sizeof(*sink));

	if (!sink)
		return NULL;
	sink->path = strdup(path);
	sink->old = join(path, ".old");
	sink->partial = join(path, ".XXXXXX" PARTIAL);
	if (sink->path && sink->old && sink->partial)
		return sink;
	destroy(sink);
	return NULL;
}

struct sink *sink__open(const char *path)
{
	struct sink *sink = allocate(path);
	int err = sink ? check_place(sink) : -ENOMEM;

	if (err != -EEXIST) {
		err = err ? err : create(sink);
		if (!err)
			return sink;
		log__error("cannot create %s: %s", path, strerror(-err));
		say_hint(err);
	}
	destroy(sink);
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
	if (!sink->err)
		sink->err = put_in_place(sink);
	err = sink->err;
	if (err) {
		log__error("cannot write %s: %s", sink->path, strerror(-err));
		say_hint(err);
		unlink(sink->partial);
	}
	stop__set_partial(NULL);
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
	remove_partial(sink);
	destroy(sink);
}
