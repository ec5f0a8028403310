// SPDX-License-Identifier: MIT
#include "target/symbols/perf_map.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/task_status.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/units.h"
#include "util/vec.h"

struct line {
	struct perf_map_entry entry;
	size_t number;
};
typedef VEC(struct line) line_vec;

/* The pid as the process itself sees it. */
static pid_t pid_inside(pid_t pid)
{
	struct task_status status;

	return !task_status__read(&status, pid) && status.pid_inside ? status.pid_inside : pid;
}

/* Anybody may write to /tmp: what another user put there is not the process's. */
static bool is_trusted(int fd, pid_t pid)
{
	struct stat map, process;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (fstat(fd, &map) || !S_ISREG(map.st_mode))
		return false;
	return !map.st_uid || (!stat(path, &process) && process.st_uid == map.st_uid);
}

/* A descriptor, or -1. */
static int open_trusted(const char *path, pid_t pid)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0 || is_trusted(fd, pid))
		return fd;
	close(fd);
	return -1;
}

/* By its own root and number, then by ours. */
static int open_map(pid_t pid, char *path, size_t size)
{
	int fd;

	snprintf(path, size, "/proc/%d/root/tmp/perf-%d.map", (int)pid, (int)pid_inside(pid));
	fd = open_trusted(path, pid);
	if (fd >= 0)
		return fd;
	snprintf(path, size, "/tmp/perf-%d.map", (int)pid);
	return open_trusted(path, pid);
}

bool perf_map__exists(pid_t pid)
{
	char path[64];
	_cleanup_close_ int fd = open_map(pid, path, sizeof(path));

	return fd >= 0;
}

char *perf_map__read(pid_t pid, size_t most)
{
	char path[64], *text, size[UNITS_TEXT_SIZE];
	_cleanup_close_ int fd = open_map(pid, path, sizeof(path));
	size_t len;
	int err;

	if (fd < 0)
		return NULL;
	err = fs__read_fd(fd, most, &text, &len);
	if (err == -EFBIG)
		log__warn("%s exceeds %s and is not read: JIT code is shown without function names",
			  path, units__format_size(size, most));
	return err ? NULL : text;
}

/* Digits, with or without 0x, up to a blank. */
static bool take_hex(const char **p, uint64_t *value)
{
	char *end;

	if (!isxdigit((unsigned char)**p))
		return false;
	errno = 0;
	*value = strtoull(*p, &end, 16);
	if (errno || *end != ' ')
		return false;
	*p = end + strspn(end, " ");
	return true;
}

static bool parse_line(const char *p, const char *end, struct perf_map_entry *entry)
{
	if (!take_hex(&p, &entry->start) || !take_hex(&p, &entry->size) || p >= end)
		return false;
	entry->name = p;
	entry->name_len = (size_t)(end - p);
	return entry->size && entry->start + entry->size > entry->start;
}

static int read_lines(const char *text, line_vec *lines)
{
	for (const char *p = text; *p;) {
		const char *end = strchrnul(p, '\n');
		struct line line = {.number = lines->n}, *slot;

		if (parse_line(p, end, &line.entry)) {
			slot = VEC_PUSH(lines);
			if (!slot)
				return -ENOMEM;
			*slot = line;
		}
		p = *end ? end + 1 : end;
	}
	return 0;
}

static int compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->entry.start != y->entry.start)
		return x->entry.start < y->entry.start ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* By start; what an older line says of an address that a newer one took is gone as a whole. */
static void drop_overwritten(line_vec *lines)
{
	size_t out = 0;

	for (size_t i = 0; i < lines->n; i++) {
		const struct line *line = &lines->v[i];

		while (out && line->number > lines->v[out - 1].number &&
		       lines->v[out - 1].entry.start + lines->v[out - 1].entry.size >
			       line->entry.start)
			out--;
		if (!out || lines->v[out - 1].entry.start + lines->v[out - 1].entry.size <=
				    line->entry.start)
			lines->v[out++] = *line;
	}
	lines->n = out;
}

int perf_map__parse(const char *text, struct perf_map_entry **entries, size_t *n)
{
	line_vec lines = {0};
	int err = read_lines(text, &lines);

	VEC_SORT(&lines, compare_lines);
	drop_overwritten(&lines);
	*n = lines.n;
	*entries = err ? NULL : malloc((lines.n + 1) * sizeof(**entries));
	for (size_t i = 0; *entries && i < lines.n; i++)
		(*entries)[i] = lines.v[i].entry;
	VEC_FINI(&lines);
	return *entries ? 0 : -ENOMEM;
}
