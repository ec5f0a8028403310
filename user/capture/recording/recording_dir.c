// SPDX-License-Identifier: MIT
#include "capture/recording/recording_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/recording/perf_data.h"
#include "capture/code/live_code.h"
#include "util/cleanup.h"
#include "util/cut_files.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/meter.h"

static int path_in(char path[static PATH_MAX], const char *dir, const char *name)
{
	return snprintf(path, PATH_MAX, "%s/%s", dir, name) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

bool recording_dir__has(const char *dir, const char *name)
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

static int write_perf_maps(const struct recording *rec, const char *dir)
{
	char path[PATH_MAX];
	int err = 0;

	for (size_t i = 0; i < rec->perf_maps.n && !err; i++) {
		const struct rec_perf_map *map = &rec->perf_maps.v[i];
		char name[64];

		recording_perf_map__file(map->pid, name);
		err = path_in(path, dir, name);
		if (!err)
			err = fs__write(path, map->text, strlen(map->text));
	}
	return err;
}

static int write_images(const struct recording *rec, const char *dir)
{
	char path[PATH_MAX];
	int err = path_in(path, dir, "images");

	if (!err && mkdir(path, 0700) && errno != EEXIST)
		err = -errno;
	for (size_t i = 0; i < rec->images.n && !err; i++) {
		char name[32];

		recording_image__file(i, name);
		err = path_in(path, dir, name);
		if (!err)
			err = fs__write(path, rec->images.v[i].data, rec->images.v[i].size);
	}
	return err ? err : write_perf_maps(rec, dir);
}

static int write_meta(const struct recording *rec, const char *dir)
{
	_cleanup_free_ char *text = recording_meta__print(rec);
	char path[PATH_MAX];
	int err;

	if (!text)
		return -ENOMEM;
	err = path_in(path, dir, "meta.json");
	return err ? err : fs__write(path, text, strlen(text));
}

static int save(struct recording *rec, const char *path, struct meter *meter)
{
	int err = write_data(rec, path);

	meter__add(meter, recording__traced_bytes(rec));
	if (!err)
		err = write_images(rec, path);
	if (!err)
		err = recording_files__write(rec, path, meter);
	if (!err)
		err = recording_kernel__write(&rec->kernel, path);
	if (!err)
		err = write_meta(rec, path);
	return err;
}

int recording__save(struct recording *rec, const char *path)
{
	return save(rec, path, NULL);
}

int recording_dir__save(struct recording *rec, const char *path)
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
	int err = recording_dir__save(rec, path);

	if (!err)
		return 0;
	log__error("cannot write the recording %s: %s", path, strerror(-err));
	if (err == -ENOSPC || err == -EDQUOT)
		log__hint("the disk is full: -o chooses another place, -snapshot-size makes it "
			  "smaller; what is there is incomplete");
	else
		log__hint("what is there is incomplete; -o chooses another place");
	return err;
}

/* In a recording somebody sent, a link leads out of it, and a pipe waits for ever. */
static int read_file(const char *path, char **data, size_t *size)
{
	struct stat st;

	if (lstat(path, &st))
		return -errno;
	return S_ISREG(st.st_mode) ? fs__read(path, data, size) : -EINVAL;
}

static int read_image(void *ctx, const char *file, char **data, size_t *size)
{
	char path[PATH_MAX];
	int err = path_in(path, ctx, file);

	return err ? err : read_file(path, data, size);
}

static void hint_unread(int err, const char *otherwise)
{
	if (err == -EACCES)
		log__hint("with sudo it is root's: 'sudo chown -R $USER' that and the trace");
	else
		log__hint("%s", otherwise);
}

static int read_meta(struct recording *rec, const char *dir)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX];
	size_t len;
	int err = path_in(path, dir, "meta.json");

	if (!err)
		err = read_file(path, &text, &len);
	if (err == -ENOENT && !recording_dir__has(dir, "data")) {
		log__error("%s is no recording: there is no data in it", dir);
		log__hint("give the NAME.mtbpf that record, attach or run wrote");
		return -EINVAL;
	}
	if (err == -ENOENT) {
		log__error("%s is incomplete: it has no meta.json", dir);
		log__hint("mtbpf was killed, or the disk was full, before it was written");
		return -ENODATA;
	}
	if (!err)
		err = recording_meta__parse(rec, text, read_image, (void *)dir);
	if (!err)
		err = recording_files__open(rec, dir);
	if (err == -EPROTO) {
		log__error("%s was made by a newer mtbpf", dir);
		log__hint("this is " MTBPF_VERSION "; use the one that made it");
	} else if (err) {
		log__error("cannot read %s: %s", path, strerror(-err));
		hint_unread(err, "the recording is damaged: record again");
	}
	return err;
}

int recording__check_cut(const struct recording *rec)
{
	if (!cut_files__any())
		return 0;
	if (cut_files__first_in(rec->mapped.data, rec->mapped.size)) {
		log__error("the recording was cut short while it was read");
		log__hint(
			"is something still writing it? Decode it when that has ended, or a copy");
	} else {
		log__error("a program or library was cut short while its code was read");
		log__hint("decode once more when it is no longer being replaced");
	}
	return -EIO;
}

static int read_data(struct recording *rec, const char *path)
{
	const char *why = NULL;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	void *data;
	int err;

	if (fd < 0 || fstat(fd, &st)) {
		err = -errno;
		log__error("cannot open %s: %s", path, strerror(-err));
		hint_unread(err, "give the NAME.mtbpf that record, attach or run wrote");
		return err;
	}
	if (!S_ISREG(st.st_mode) || !st.st_size) {
		log__error("%s is no recording: it is empty, or no regular file", path);
		log__hint("give the NAME.mtbpf that record, attach or run wrote");
		return -EINVAL;
	}
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	rec->mapped.data = data;
	rec->mapped.size = (size_t)st.st_size;
	cut_files__survive();
	err = perf_data__read(rec, data, rec->mapped.size, &why);
	if (recording__check_cut(rec))
		return -EIO;
	if (err) {
		log__error("cannot read %s: %s", path, why);
		log__hint("mtbpf decode reads its own recordings, and perf.data of "
			  "'perf record -e intel_pt//u' (with the kernel: "
			  "-e intel_pt// --kcore)");
	}
	return err;
}

/* `perf record --kcore` makes these two. Where ours was not finished, images/ is there before. */
static bool is_perfs_own(const char *dir)
{
	return recording_dir__has(dir, "data") && recording_dir__has(dir, "kcore_dir") &&
	       !recording_dir__has(dir, "images") && !recording_dir__has(dir, "meta.json");
}

static int read_kernel(struct recording *rec, const char *dir)
{
	int err = recording_kernel__read(&rec->kernel, dir);

	if (err) {
		log__error("cannot read %s/kcore_dir: %s", dir, strerror(-err));
		log__hint("the recording is damaged: record again");
	}
	return err;
}

static int read_dir(struct recording *rec, const char *dir)
{
	char data[PATH_MAX];
	int err = path_in(data, dir, "data");

	if (!err && is_perfs_own(dir)) {
		rec->source = strdup("perf");
		err = rec->source ? 0 : -ENOMEM;
	} else if (!err) {
		err = read_meta(rec, dir);
	}
	if (!err)
		err = read_kernel(rec, dir);
	if (!err)
		err = read_data(rec, data);
	recording__settle_build_ids(rec);
	if (!err && is_perfs_own(dir))
		err = vdso_image__add_running(rec);
	return err;
}

int recording__read(struct recording *rec, const char *path)
{
	struct stat st;
	int err;

	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return read_dir(rec, path);
	rec->source = strdup("perf");
	err = rec->source ? read_data(rec, path) : -ENOMEM;
	return err ? err : vdso_image__add_running(rec);
}
