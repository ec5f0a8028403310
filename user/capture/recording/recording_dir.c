// SPDX-License-Identifier: MIT
#include "capture/recording/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/code/live_code.h"
#include "capture/recording/perf_data.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/signals.h"
#include "util/log.h"
#include "util/meter.h"

static int path_in(char path[static PATH_MAX], const char *dir, const char *name)
{
	return snprintf(path, PATH_MAX, "%s/%s", dir, name) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static bool has_entry(const char *dir, const char *name)
{
	char path[PATH_MAX];

	return !path_in(path, dir, name) && !access(path, F_OK);
}

static int write_data(const struct recording *rec, const char *dir)
{
	char path[PATH_MAX];
	int fd, err = path_in(path, dir, "data");
	FILE *out;

	if (err)
		return err;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out)
		return -errno;
	errno = 0;
	perf_data__write(rec, out);
	err = ferror(out) ? -(errno ? errno : EIO) : 0;
	if (fclose(out) && !err)
		err = -errno;
	return err;
}

static int write_file(const char *dir, const char *name, const void *data, size_t size)
{
	char path[PATH_MAX];
	int err = path_in(path, dir, name);

	return err ? err : fs__write(path, data, size);
}

static int write_images(const struct recording *rec, const char *dir)
{
	char path[PATH_MAX], name[64];
	int err = path_in(path, dir, "images");

	if (!err && mkdir(path, 0700) && errno != EEXIST)
		err = -errno;
	for (size_t i = 0; i < rec->images.n && !err; i++) {
		recording_image__file(i, name);
		err = write_file(dir, name, rec->images.v[i].data, rec->images.v[i].size);
	}
	for (size_t i = 0; i < rec->perf_maps.n && !err; i++) {
		recording_perf_map__file(rec->perf_maps.v[i].pid, name);
		err = write_file(dir, name, rec->perf_maps.v[i].text,
				 strlen(rec->perf_maps.v[i].text));
	}
	return err;
}

/* FNV-1a: it only has to tell apart the files of one recording. */
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

static int put_file(int fd, const char *dir, const char *name)
{
	char path[PATH_MAX];
	int err = path_in(path, dir, name);

	if (!err)
		err = fs__make_parents(path, strlen(dir) + 1);
	if (!err)
		err = fs__copy(fd, path);
	/* EEXIST: the same file, mapped under another name, has been copied already. */
	return err == -EEXIST ? 0 : err;
}

static int put_named(int fd, const char *dir, const char *base, const char *suffix, char **name)
{
	if (asprintf(name, "%s%s", base, suffix) < 0) {
		*name = NULL;
		return -ENOMEM;
	}
	return put_file(fd, dir, *name);
}

/*
 * Puts a mapped file into images/. Files with a build id are placed as in perf's build id cache
 * (tools/perf/util/build-id.c: __dso__build_id_filename()): `perf --buildid-dir NAME.mtbpf/images`.
 */
static int put(struct rec_file *file, const char *dir)
{
	bool has_id = file->build_id[0];
	char base[64];
	uint64_t hash;
	int err = has_id ? 0 : hash_file(file->fd, &hash);

	if (err)
		return err;
	if (has_id)
		snprintf(base, sizeof(base), "images/.build-id/%.2s/%s", file->build_id,
			 file->build_id + 2);
	else
		snprintf(base, sizeof(base), "images/%016" PRIx64, hash);
	err = put_named(file->fd, dir, base, has_id ? "/elf" : "", &file->name);
	if (err || file->debug_fd < 0)
		return err;
	return put_named(file->debug_fd, dir, base, has_id ? "/debug" : ".debug",
			 &file->debug_name);
}

/*
 * True if the file is to be copied into images/: always in a portable recording, otherwise if its
 * path does not lead to it any more.
 */
static bool is_to_go(const struct recording *rec, const struct rec_file *file)
{
	struct stat held, there;

	if (file->fd < 0 || file->name)
		return false;
	return rec->portable || fstat(file->fd, &held) || stat(file->path, &there) ||
	       held.st_dev != there.st_dev || held.st_ino != there.st_ino;
}

static uint64_t size_of(int fd)
{
	struct stat st;

	return fd < 0 || fstat(fd, &st) ? 0 : (uint64_t)st.st_size;
}

uint64_t recording_files__size(const struct recording *rec)
{
	uint64_t size = 0;

	VEC_EACH(&rec->files, file)
		if (is_to_go(rec, file))
			size += size_of(file->fd) + size_of(file->debug_fd);
	return size;
}

/*
 * Writes the kernel's code, if it was traced: kcore_dir/, in perf's own layout
 * (tools/perf/util/data.c).
 */
static int write_kernel(const struct rec_kernel *kernel, const char *dir)
{
	char path[PATH_MAX];
	int err;

	if (!kernel->kallsyms)
		return 0;
	err = path_in(path, dir, "kcore_dir");
	if (!err && mkdir(path, 0700) && errno != EEXIST)
		err = -errno;
	if (!err)
		err = write_file(dir, "kcore_dir/kallsyms", kernel->kallsyms,
				 strlen(kernel->kallsyms));
	if (!err)
		err = write_file(dir, "kcore_dir/modules", kernel->modules,
				 strlen(kernel->modules));
	if (!err)
		err = put_file(kernel->kcore, dir, "kcore_dir/kcore");
	return err;
}

static int save(struct recording *rec, const char *path, struct meter *meter)
{
	_cleanup_free_ char *text = NULL;
	int err = write_data(rec, path);

	meter__add(meter, recording__traced_bytes(rec));
	if (!err)
		err = write_images(rec, path);
	VEC_EACH_WHILE(&rec->files, file, !err) {
		if (!is_to_go(rec, file))
			continue;
		err = put(file, path);
		meter__add(meter, size_of(file->fd) + size_of(file->debug_fd));
	}
	if (!err)
		err = write_kernel(&rec->kernel, path);
	if (!err)
		text = recording_meta__print(rec);
	if (!err)
		err = text ? write_file(path, "meta.json", text, strlen(text)) : -ENOMEM;
	return err;
}

int recording__save(struct recording *rec, const char *path)
{
	return save(rec, path, NULL);
}

static int save_metered(struct recording *rec, const char *path)
{
	const struct meter_work work = {"writing the recording", METER_BYTES,
					recording__traced_bytes(rec) + recording_files__size(rec)};
	struct meter meter;
	int err;

	meter__begin(&meter, &work);
	err = save(rec, path, &meter);
	meter__end(&meter);
	return err;
}

int recording__write(struct recording *rec, const char *path)
{
	int err = save_metered(rec, path);

	if (!err)
		return 0;
	log__error("cannot write the recording %s: %s", path, strerror(-err));
	if (err == -ENOSPC || err == -EDQUOT)
		log__hint("the disk is full, and the recording incomplete: choose another path "
			  "with -o, or a smaller -snapshot-size");
	else
		log__hint("the recording is incomplete; choose another path with -o");
	return err;
}

/*
 * An untrusted recording may contain links that lead out of it, and pipes that block: reads
 * neither.
 */
static int open_inside(const char *dir, const char *name)
{
	_cleanup_close_ int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
	int fd;

	if (dir_fd < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, dir_fd, name, &how, sizeof(how));
	/* Before Linux 5.6 only the last part of the name can be kept from being a link. */
	if (fd < 0 && errno == ENOSYS)
		fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	return fs__only_regular(fd);
}

static int read_inside(void *dir, const char *name, char **data, size_t *size)
{
	_cleanup_close_ int fd = open_inside(dir, name);

	return fd < 0 ? fd : fs__read_fd(fd, SIZE_MAX, data, size);
}

static void hint_unread(int err, const char *otherwise)
{
	if (err == -EACCES)
		log__hint("a recording made with sudo belongs to root: 'sudo chown -R $USER' the "
			  "recording and the trace");
	else
		log__hint("%s", otherwise);
}

static int read_meta(struct recording *rec, const char *dir)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int err = read_inside((void *)dir, "meta.json", &text, &len);

	if (err == -ENOENT && !has_entry(dir, "data")) {
		log__error("%s is not a recording: it contains neither meta.json nor data", dir);
		log__hint("name the NAME.mtbpf that record, attach or run wrote");
		return -EINVAL;
	}
	if (err == -ENOENT) {
		log__error("%s is incomplete: meta.json is missing", dir);
		log__hint("mtbpf was killed or the disk was full; record again");
		return -ENODATA;
	}
	if (!err)
		err = recording_meta__parse(rec, text, read_inside, (void *)dir);
	fs__allow_open_files(2 * rec->files.n);
	VEC_EACH_WHILE(&rec->files, file, !err) {
		if (file->name && (file->fd = open_inside(dir, file->name)) < 0)
			err = file->fd;
		else if (file->debug_name &&
			 (file->debug_fd = open_inside(dir, file->debug_name)) < 0)
			err = file->debug_fd;
	}
	if (err == -EPROTO) {
		log__error("%s was made by a newer mtbpf", dir);
		log__hint("this is mtbpf " MTBPF_VERSION
			  "; use the version that made the recording");
	} else if (err) {
		log__error("cannot read %s/meta.json: %s", dir, strerror(-err));
		hint_unread(err, "the recording is damaged: record again");
	}
	return err;
}

int recording__check_cut(const struct recording *rec)
{
	if (!cut_files__any())
		return 0;
	if (cut_files__first_in(rec->mapped.data, rec->mapped.size)) {
		log__error("the recording was truncated while it was read");
		log__hint("another process may be writing it: decode it later, or decode a copy");
	} else {
		log__error("a program or library was truncated while its code was read");
		log__hint("decode again when it is no longer being replaced");
	}
	return -EIO;
}

static int refuse_open(const char *path, int err)
{
	log__error("cannot open %s: %s", path, strerror(-err));
	hint_unread(err, "name the NAME.mtbpf that record, attach or run wrote");
	return err;
}

static int read_data(struct recording *rec, const char *path)
{
	const char *why = NULL;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	void *data;
	int err;

	if (fd < 0 || fstat(fd, &st))
		return refuse_open(path, -errno);
	if (!S_ISREG(st.st_mode) || !st.st_size) {
		log__error("%s is not a recording: it is empty or not a regular file", path);
		log__hint("name the NAME.mtbpf that record, attach or run wrote");
		return -EINVAL;
	}
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return refuse_open(path, -errno);
	rec->mapped.data = data;
	rec->mapped.size = (size_t)st.st_size;
	cut_files__survive();
	err = perf_data__read(rec, data, rec->mapped.size, &why);
	if (recording__check_cut(rec))
		return -EIO;
	if (err) {
		log__error("cannot read %s: %s", path, why);
		log__hint("mtbpf decode reads its own recordings, and perf.data of 'perf record -e "
			  "intel_pt//u' (with the kernel: -e intel_pt// --kcore) or 'perf record "
			  "-g'");
	}
	return err;
}

/*
 * True for a directory of `perf record --kcore`: it has data and kcore_dir. An unfinished recording
 * of mtbpf that has both also has images/, which is made before kcore_dir.
 */
static bool is_perfs_own(const char *dir)
{
	return has_entry(dir, "data") && has_entry(dir, "kcore_dir") && !has_entry(dir, "images") &&
	       !has_entry(dir, "meta.json");
}

static int read_kernel(struct recording *rec, const char *dir)
{
	struct rec_kernel *kernel = &rec->kernel;
	size_t len;
	int err;

	if (!has_entry(dir, "kcore_dir"))
		return 0;
	err = read_inside((void *)dir, "kcore_dir/kallsyms", &kernel->kallsyms, &len);
	if (!err) {
		kernel->kcore = open_inside(dir, "kcore_dir/kcore");
		err = kernel->kcore < 0 ? kernel->kcore : 0;
	}
	if (!err)
		err = read_inside((void *)dir, "kcore_dir/modules", &kernel->modules, &len);
	if (err) {
		log__error("cannot read %s/kcore_dir: %s", dir, strerror(-err));
		hint_unread(err, "the recording is damaged: record again");
	}
	return err;
}

int recording__read(struct recording *rec, const char *path)
{
	char data[PATH_MAX];
	struct stat st;
	bool is_dir = !stat(path, &st) && S_ISDIR(st.st_mode);
	bool is_perf = !is_dir || is_perfs_own(path);
	int err = is_dir ? path_in(data, path, "data") : 0;

	if (is_perf && !err) {
		rec->source = strdup("perf");
		err = rec->source ? 0 : -ENOMEM;
	}
	if (err)
		return refuse_open(path, err);
	if (!is_perf)
		err = read_meta(rec, path);
	if (!err && is_dir)
		err = read_kernel(rec, path);
	if (!err)
		err = read_data(rec, is_dir ? data : path);
	recording__settle_build_ids(rec);
	if (err || !is_perf)
		return err;
	err = vdso_image__add_running(rec);
	return err ? refuse_open(path, err) : 0;
}

/*
 * True if nothing is at the path, or what may be moved out of the way: a recording, complete or
 * not, or a regular file. Removes an empty directory.
 */
static bool may_go(const char *path)
{
	struct stat st;

	if (lstat(path, &st))
		return true;
	if (!S_ISDIR(st.st_mode))
		return S_ISREG(st.st_mode);
	return has_entry(path, "data") || has_entry(path, "images") ||
	       has_entry(path, "meta.json") || !rmdir(path);
}

/*
 * Removes an older `old` (PATH.old) if something is at path, which the caller then renames to it.
 * Returns 1 if something is there, 0 if not, or -errno: -EEXIST it is not a recording.
 */
static int make_way(const char *path, char old[static PATH_MAX])
{
	struct stat st;

	if (snprintf(old, PATH_MAX, "%s.old", path) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (!may_go(path))
		return -EEXIST;
	if (lstat(path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!may_go(old))
		return -EEXIST;
	fs__remove_dir(old);
	return 1;
}

static int refuse(const char *path, int err)
{
	if (err == -EEXIST)
		log__error("cannot create the recording %s: it or %s.old exists and is not a "
			   "recording",
			   path, path);
	else
		log__error("cannot create the recording %s: %s", path, strerror(-err));
	if (err == -EEXIST)
		log__hint("choose another name with -o");
	else if (err == -ENOSPC || err == -EDQUOT)
		log__hint("the disk is full: choose another path with -o");
	else
		log__hint("choose another path with -o");
	return err;
}

int recording_dir__create(const char *path)
{
	char old[PATH_MAX];
	int err = make_way(path, old);

	if (err > 0)
		err = rename(path, old) ? -errno : 0;
	if (!err && mkdir(path, 0700))
		err = -errno;
	return err ? refuse(path, err) : 0;
}

int recording__write_whole(struct recording *rec, const char *path)
{
	char partial[PATH_MAX], old[PATH_MAX];
	sigset_t before;
	int err;

	if (snprintf(partial, sizeof(partial), "%s.part.XXXXXX", path) >= (int)sizeof(partial))
		return refuse(path, -ENAMETOOLONG);
	/* Signals are blocked, so that their handler knows of each partial folder that exists. */
	interrupts__block(&before);
	err = mkdtemp(partial) ? 0 : -errno;
	if (!err)
		stop__set_partial(partial);
	interrupts__unblock(&before);
	if (err)
		return refuse(path, err);
	err = save_metered(rec, partial);
	/*
	 * Below, the partial folder is renamed or removed, and another process may use its name:
	 * the signal handler must no longer remove it.
	 */
	interrupts__block(&before);
	stop__set_partial(NULL);
	if (!err)
		err = make_way(path, old);
	if (err >= 0)
		err = fs__put_in_place(partial, path, old);
	if (err)
		fs__remove_dir(partial);
	interrupts__unblock(&before);
	return err ? refuse(path, err) : 0;
}
