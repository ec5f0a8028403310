// SPDX-License-Identifier: MIT
/*
 * Mapped files in a recording's images/. Those with a build id lie as in perf's cache of them
 * (tools/perf/util/build-id.c: __dso__build_id_filename()): `perf --buildid-dir NAME.mtbpf/images`.
 */
#include "capture/recording/recording_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fs.h"
#include "util/meter.h"

#define HEX "0123456789abcdef"

/* FNV-1a: only that two files of one recording are told apart. */
static int hash_file(int fd, uint64_t *hash)
{
	uint8_t buf[65536];
	off_t at = 0;
	ssize_t n;

	*hash = 0xcbf29ce484222325;
	while ((n = pread(fd, buf, sizeof(buf), at)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			*hash = (*hash ^ buf[i]) * 0x100000001b3;
		at += n;
	}
	return n ? -errno : 0;
}

static int name_file(const struct rec_file *file, char **name)
{
	uint64_t hash;
	int err = 0, n;

	if (file->build_id[0]) {
		n = asprintf(name, "images/.build-id/%.2s/%s/elf", file->build_id,
			     file->build_id + 2);
	} else {
		err = hash_file(file->fd, &hash);
		if (err)
			return err;
		n = asprintf(name, "images/%016" PRIx64, hash);
	}
	if (n >= 0)
		return 0;
	*name = NULL;
	return -ENOMEM;
}

static int name_debug_file(const struct rec_file *file, char **name)
{
	const char *slash = strrchr(file->name, '/');
	int n = file->build_id[0]
			? asprintf(name, "%.*s/debug", (int)(slash - file->name), file->name)
			: asprintf(name, "%s.debug", file->name);

	if (n >= 0)
		return 0;
	*name = NULL;
	return -ENOMEM;
}

/* Whoever decodes it here finds the same file by its name. */
static bool is_found_again(const struct rec_file *file)
{
	struct stat held, there;

	return !fstat(file->fd, &held) && !stat(file->path, &there) &&
	       held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

static int put_file(int fd, const char *dir, const char *name)
{
	char path[PATH_MAX];
	int err;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	err = fs__make_parents(path, strlen(dir) + 1);
	if (!err)
		err = fs__copy(fd, path);
	/* The same file was mapped by another name as well. */
	return err == -EEXIST ? 0 : err;
}

static int put(struct rec_file *file, const char *dir)
{
	int err = name_file(file, &file->name);

	if (!err)
		err = put_file(file->fd, dir, file->name);
	if (err || file->debug_fd < 0)
		return err;
	err = name_debug_file(file, &file->debug_name);
	return err ? err : put_file(file->debug_fd, dir, file->debug_name);
}

static bool is_to_go(const struct recording *rec, const struct rec_file *file)
{
	return file->fd >= 0 && !file->name && (rec->portable || !is_found_again(file));
}

static uint64_t size_of(int fd)
{
	struct stat st;

	return fd < 0 || fstat(fd, &st) ? 0 : (uint64_t)st.st_size;
}

uint64_t recording_files__size(const struct recording *rec)
{
	uint64_t size = 0;

	for (size_t i = 0; i < rec->files.n; i++) {
		const struct rec_file *file = &rec->files.v[i];

		if (is_to_go(rec, file))
			size += size_of(file->fd) + size_of(file->debug_fd);
	}
	return size;
}

int recording_files__write(struct recording *rec, const char *dir, struct meter *meter)
{
	int err = 0;

	for (size_t i = 0; i < rec->files.n && !err; i++) {
		struct rec_file *file = &rec->files.v[i];

		if (!is_to_go(rec, file))
			continue;
		err = put(file, dir);
		meter__add(meter, size_of(file->fd) + size_of(file->debug_fd));
	}
	return err;
}

static bool take_hex(const char **text, size_t least)
{
	size_t n = strspn(*text, HEX);

	*text += n;
	return n >= least;
}

/* A name of ours: anything else in a recording somebody sent would leave it. */
bool recording_files__is_name(const char *name)
{
	if (strncmp(name, "images/", 7))
		return false;
	name += 7;
	if (!strncmp(name, ".build-id/", 10)) {
		name += 10;
		return take_hex(&name, 2) && *name++ == '/' && take_hex(&name, 1) &&
		       (!strcmp(name, "/elf") || !strcmp(name, "/debug"));
	}
	return take_hex(&name, 1) && (!*name || !strcmp(name, ".debug"));
}

/* Through no link, which leads out of the recording, and no pipe, which waits for ever. */
static int open_inside(int dir_fd, const char *name)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
	int fd = (int)syscall(SYS_openat2, dir_fd, name, &how, sizeof(how));
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

int recording_files__open(struct recording *rec, const char *dir)
{
	_cleanup_close_ int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir_fd < 0)
		return -errno;
	fs__allow_open_files(2 * rec->files.n);
	for (size_t i = 0; i < rec->files.n; i++) {
		struct rec_file *file = &rec->files.v[i];

		if (file->name && (file->fd = open_inside(dir_fd, file->name)) < 0)
			return file->fd;
		if (file->debug_name &&
		    (file->debug_fd = open_inside(dir_fd, file->debug_name)) < 0)
			return file->debug_fd;
	}
	return 0;
}
