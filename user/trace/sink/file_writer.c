// SPDX-License-Identifier: MIT
#include "trace/sink/file_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/fs.h"

/* A file without such a piece is written at once in any way. */
#define DIRECT_MIN (1u << 20)
/* Less says nothing about a disk. */
#define SLOW_MIN (16u << 20)
/* Memory is copied two to four times as fast, on one CPU. */
#define SLOW_BYTES_PER_US 500

static void set_direct(struct file_writer *w, bool on)
{
	int flags = fcntl(w->fd, F_GETFL);

	if (flags < 0)
		return;
	flags = on ? flags | O_DIRECT : flags & ~O_DIRECT;
	/* Fails where the file system has nothing of the kind. */
	if (!fcntl(w->fd, F_SETFL, flags))
		w->is_direct = on;
}

bool file_writer__is_slow(uint64_t bytes, uint64_t ns)
{
	return bytes >= SLOW_MIN && ns / 1000 > bytes / SLOW_BYTES_PER_US;
}

/* How many bytes of it are in the file now: all, unless something is wrong. */
static size_t write_direct(struct file_writer *w, const void *data, size_t len)
{
	uint64_t start_ns = clock__now_ns();
	ssize_t n = write(w->fd, data, len);

	if (n < 0)
		return 0;
	w->bytes += (uint64_t)n;
	w->ns += clock__now_ns() - start_ns;
	return (size_t)n;
}

static bool is_aligned(const void *data, size_t len)
{
	return !(((uintptr_t)data | len) % FILE_WRITER_PAGE);
}

int file_writer__write(struct file_writer *w, const void *data, size_t len)
{
	size_t done = 0;

	if (!w->was_direct && len >= DIRECT_MIN) {
		w->was_direct = true;
		set_direct(w, true);
	}
	if (w->is_direct && is_aligned(data, len))
		done = write_direct(w, data, len);
	/* What went wrong there shows again here, where it is an error of this way as well. */
	if (w->is_direct && (done < len || file_writer__is_slow(w->bytes, w->ns)))
		set_direct(w, false);
	return done < len ? fs__write_fd(w->fd, (const char *)data + done, len - done) : 0;
}
