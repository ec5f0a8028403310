// SPDX-License-Identifier: MIT
#include "trace/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/kernel.h"
#include "trace/codec.h"
#include "util/clock.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/signals.h"

struct block_writer;

struct block {
	uint8_t *data;
	size_t size; /* bytes that the caller may fill */
	size_t n;    /* bytes filled; a block may begin with the rest of the last one */
	/* Used by the writer only. */
	uint8_t *encoded;
	uint32_t check; /* codec->check() of data */
	uint64_t number;
	struct block *next;
};

/* The first piece of this size or more turns direct writing on. */
#define DIRECT_MIN (1u << 20)
/* The time for fewer bytes says nothing about the disk. */
#define SLOW_MIN (16u << 20)
/*
 * If the disk is slower than this, direct writing is turned off, and the page cache takes the rest.
 * One CPU copies memory two to four times as fast.
 */
#define SLOW_BYTES_PER_US 500

static void set_direct(struct file_writer *w, bool on)
{
	int flags = fcntl(w->fd, F_GETFL);

	if (flags < 0)
		return;
	flags = on ? flags | O_DIRECT : flags & ~O_DIRECT;
	/* Fails if the file system does not support it. */
	if (!fcntl(w->fd, F_SETFL, flags))
		w->is_direct = on;
}

bool file_writer__is_slow(uint64_t bytes, uint64_t ns)
{
	return bytes >= SLOW_MIN && ns / 1000 > bytes / SLOW_BYTES_PER_US;
}

int file_writer__write(struct file_writer *w, const void *data, size_t len)
{
	size_t done = 0; /* bytes written past the page cache */

	if (!w->was_direct && len >= DIRECT_MIN) {
		w->was_direct = true;
		set_direct(w, true);
	}
	if (w->is_direct && !(((uintptr_t)data | len) % FILE_WRITER_PAGE)) {
		uint64_t start_ns = clock__now_ns();
		ssize_t n = write(w->fd, data, len);

		if (n >= 0) {
			done = (size_t)n;
			w->bytes += done;
			w->ns += clock__now_ns() - start_ns;
		}
	}
	/* If the error is not specific to direct writes, fs__write_fd() below meets it again. */
	if (w->is_direct && (done < len || file_writer__is_slow(w->bytes, w->ns)))
		set_direct(w, false);
	return done < len ? fs__write_fd(w->fd, (const char *)data + done, len - done) : 0;
}

/* More threads than the caller can keep busy. */
#define MAX_JOBS 8
/* One per thread, one that the caller fills, and one that waits for a thread or for the caller. */
#define MAX_BLOCKS (MAX_JOBS + 2)

/* A block to compress should fit in a CPU's cache; disks prefer large pieces. */
#define CODEC_BLOCK_SIZE (1u << 20)
#define PLAIN_BLOCK_SIZE (4u << 20)

struct block_writer {
	struct file_writer file;
	const struct codec *codec;
	void *state; /* the codec's, for blocks that the caller's thread encodes */
	/* Sums over the blocks written, in order; used only by the thread whose turn it is. */
	uint32_t check;
	uint64_t n_plain;
	unsigned int n_jobs, n_threads;
	pthread_t threads[MAX_JOBS];
	uint64_t n_put; /* blocks handed on */
	size_t n_rest;	/* bytes in rest: those after the last whole page */
	uint8_t rest[FILE_WRITER_PAGE];

	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t changed;
	struct block *free, *first, **last; /* from first on: to be encoded */
	uint64_t n_written;
	uint64_t bytes;
	int err;
	bool stop;

	unsigned int n_blocks;
	struct block blocks[MAX_BLOCKS];
};

static bool add_block(struct block_writer *w)
{
	struct block *block = &w->blocks[w->n_blocks];

	block->size = w->codec ? CODEC_BLOCK_SIZE : PLAIN_BLOCK_SIZE;
	block->data = huge_pages__alloc(block->size);
	if (w->codec)
		block->encoded = malloc(w->codec->bound(block->size));
	w->n_blocks++;
	if (!block->data || (w->codec && !block->encoded))
		return false;
	block->next = w->free;
	w->free = block;
	return true;
}

static void block_writer__free(struct block_writer *writer);

/* fd stays the caller's. codec: NULL for none. NULL: no memory. */
static struct block_writer *block_writer__new(int fd, const struct codec *codec)
{
	/* Compression uses one thread per CPU, at most MAX_JOBS; writing alone uses one thread. */
	long cpus = codec ? sysconf(_SC_NPROCESSORS_ONLN) : 1;
	struct block_writer *w = calloc(1, sizeof(*w));
	bool ok = true;

	if (!w)
		return NULL;
	w->file.fd = fd;
	w->codec = codec;
	w->last = &w->first;
	w->n_jobs = cpus < 1 ? 1 : cpus > MAX_JOBS ? MAX_JOBS : (unsigned int)cpus;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	if (codec)
		ok = (w->state = codec->new ()) != NULL;
	while (ok && w->n_blocks < w->n_jobs + 2)
		ok = add_block(w);
	if (ok && codec && codec->head) {
		/* An error here is kept in w->err, like that of every other write. */
		uint8_t head[CODEC_MAX_FRAME];

		w->bytes = w->codec->head(head);
		w->err = file_writer__write(&w->file, head, w->bytes);
	}
	if (ok)
		return w;
	block_writer__free(w);
	return NULL;
}

/* Ends the threads, which first write the blocks that were handed on, unless that fails. */
static void stop(struct block_writer *w)
{
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	for (unsigned int i = 0; i < w->n_threads; i++)
		pthread_join(w->threads[i], NULL);
	w->n_threads = 0;
}

/* Frees the writer, after its threads have written the blocks that were handed on. NULL is fine. */
static void block_writer__free(struct block_writer *w)
{
	if (!w)
		return;
	stop(w);
	for (unsigned int i = 0; i < w->n_blocks; i++) {
		free(w->blocks[i].data);
		free(w->blocks[i].encoded);
	}
	if (w->codec)
		w->codec->free(w->state);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* The thread whose turn it is writes without the lock: the others wait for their turn. */
static void write_in_turn(struct block_writer *w, struct block *block, const uint8_t *bytes,
			  ssize_t n)
{
	int err;

	pthread_mutex_lock(&w->lock);
	while (w->n_written != block->number)
		pthread_cond_wait(&w->changed, &w->lock);
	err = w->err;
	pthread_mutex_unlock(&w->lock);
	if (w->codec && w->codec->check) {
		w->check = w->codec->join(w->check, block->check, block->n);
		w->n_plain += block->n;
	}
	if (!err)
		err = n < 0 ? (int)n : file_writer__write(&w->file, bytes, (size_t)n);
	pthread_mutex_lock(&w->lock);
	w->err = err;
	w->bytes += err ? 0 : (uint64_t)n;
	w->n_written++;
	block->next = w->free;
	w->free = block;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

/* The next block to encode; NULL if the writer stops. */
static struct block *next_block(struct block_writer *w)
{
	struct block *block;

	pthread_mutex_lock(&w->lock);
	while (!w->first && !w->stop)
		pthread_cond_wait(&w->changed, &w->lock);
	block = w->first;
	if (block) {
		w->first = block->next;
		if (!w->first)
			w->last = &w->first;
	}
	pthread_mutex_unlock(&w->lock);
	return block;
}

/* Encodes a block and writes it. state: the codec's; NULL if memory ran out. */
static void process(struct block_writer *w, void *state, struct block *block)
{
	const uint8_t *bytes = w->codec ? block->encoded : block->data;
	ssize_t n = w->codec ? -ENOMEM : (ssize_t)block->n;

	if (w->codec && state) {
		if (w->codec->check)
			block->check = w->codec->check(block->data, block->n);
		n = w->codec->encode(state, block->data, block->n, block->encoded,
				     w->codec->bound(block->size));
	}
	write_in_turn(w, block, bytes, n);
}

static void *work(void *ctx)
{
	struct block_writer *w = ctx;
	void *state = w->codec ? w->codec->new () : NULL;
	struct block *block;

	while ((block = next_block(w)))
		process(w, state, block);
	if (w->codec)
		w->codec->free(state);
	return NULL;
}

/* Does the work in this thread if no other was started. */
static void process_all(struct block_writer *w)
{
	while (!w->n_threads && w->first)
		process(w, w->state, next_block(w));
}

/*
 * Waits for a free block and returns it. It begins with the rest of the last block, less than a
 * page. The caller has one block at a time.
 */
static struct block *block_writer__take(struct block_writer *w)
{
	struct block *block;

	/* A file of one block is not worth a thread. */
	if (w->n_put && !w->n_threads) {
		while (w->n_threads < w->n_jobs &&
		       !pthread_create(&w->threads[w->n_threads], NULL, work, w))
			w->n_threads++;
	}
	process_all(w);
	pthread_mutex_lock(&w->lock);
	while (!w->free)
		pthread_cond_wait(&w->changed, &w->lock);
	block = w->free;
	w->free = block->next;
	pthread_mutex_unlock(&w->lock);
	block->n = w->n_rest;
	memcpy(block->data, w->rest, w->n_rest);
	w->n_rest = 0;
	return block;
}

/*
 * Hands a block on, to be written after the earlier blocks. Without a codec, its bytes after the
 * last whole page become the begin of the next block.
 */
static void block_writer__put(struct block_writer *w, struct block *block)
{
	/* The file grows by whole pages. */
	if (!w->codec) {
		w->n_rest = block->n % FILE_WRITER_PAGE;
		block->n -= w->n_rest;
		memcpy(w->rest, block->data + block->n, w->n_rest);
	}
	block->number = w->n_put++;
	block->next = NULL;
	pthread_mutex_lock(&w->lock);
	*w->last = block;
	w->last = &block->next;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

/*
 * Writes all blocks that are left, the trailer, and the rest of a page. 0, or -errno of the first
 * error; *bytes is the file's size.
 */
static int block_writer__finish(struct block_writer *w, uint64_t *bytes)
{
	stop(w);
	process_all(w);
	if (w->codec && w->codec->tail)
		w->n_rest = w->codec->tail(w->check, w->n_plain, w->rest);
	if (!w->err)
		w->err = file_writer__write(&w->file, w->rest, w->n_rest);
	w->bytes += w->n_rest;
	*bytes = w->bytes;
	return w->err;
}

#define PARTIAL ".part"

struct sink {
	char *path;
	char *old;     /* the new name of an existing file */
	char *partial; /* the file's name until it is complete */
	int fd;
	int err;
	struct block_writer *writer;
	struct block *block; /* the block that is being filled; NULL: none yet */
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

/*
 * Refuses devices and folders, after a message and a hint. Another existing file is no error: it is
 * renamed later. 0 or -EEXIST.
 */
static int check_place(const struct sink *sink)
{
	const char *wrong = NULL;
	struct stat st;

	if (lstat(sink->path, &st))
		return 0;
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		wrong = sink->path;
	else if (!lstat(sink->old, &st) && S_ISDIR(st.st_mode))
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

/*
 * Blocks signals: for a moment, the existing file may have the partial file's name, and no handler
 * may remove it.
 */
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

static int create(struct sink *sink)
{
	sigset_t before;
	int err = 0;

	/* A signal that arrives just after the file is created must still remove it. */
	interrupts__block(&before);
	sink->fd = mkostemps(sink->partial, (int)strlen(PARTIAL), O_CLOEXEC);
	if (sink->fd < 0)
		err = -errno;
	else
		stop__set_partial(sink->partial);
	interrupts__unblock(&before);
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

struct sink *sink__open(const char *path)
{
	struct sink *sink = calloc(1, sizeof(*sink));
	int err = -ENOMEM;

	if (sink) {
		sink->path = strdup(path);
		sink->old = join(path, ".old");
		sink->partial = join(path, ".XXXXXX" PARTIAL);
		if (sink->path && sink->old && sink->partial)
			err = check_place(sink);
	}
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

/* A block with room for len more bytes, or NULL after an error. */
static struct block *block_for(struct sink *sink, size_t len)
{
	if (sink->block && sink->block->size - sink->block->n < len)
		hand_on(sink);
	/* Blocks that were handed on may have failed since. */
	if (!sink->block) {
		pthread_mutex_lock(&sink->writer->lock);
		sink__fail(sink, sink->writer->err);
		pthread_mutex_unlock(&sink->writer->lock);
	}
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
