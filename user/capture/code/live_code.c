// SPDX-License-Identifier: MIT
#include "capture/code/live_code.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/code/code_copy.h"
#include "capture/code/patched_code.h"
#include "capture/recording/process_note.h"
#include "target/elf/debug_file.h"
#include "target/elf/elf_image.h"
#include "target/process.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"

static void note_elf(struct rec_file *file, pid_t pid, const struct elf_image *image, bool portable)
{
	char root[32];

	snprintf(file->build_id, sizeof(file->build_id), "%s", elf_image__build_id(image));
	if (!portable)
		return;
	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	file->debug_fd = debug_file__open(image, file->path, root);
}

static int note_mapping(struct recording *rec, pid_t pid, const struct mapping *m)
{
	struct rec_file file = {.path = m->path, .ino = m->ino, .debug_fd = -1};
	struct elf_image *image;

	file.fd = process__open_mapping(pid, m);
	if (file.fd < 0) {
		log__debug("%s cannot be opened: %s", m->path, strerror(-file.fd));
		return 0;
	}
	image = elf_image__open(file.fd, m->path);
	if (image)
		note_elf(&file, pid, image, rec->portable);
	/* Memory that has a name, and may change: code_copy.h. */
	if (!image && mapping__is_memory(m)) {
		close(file.fd);
		return 0;
	}
	elf_image__free(image);
	return recording__add_file(rec, &file);
}

int code_files__note(struct recording *rec, pid_t pid)
{
	struct mappings maps;
	int err = 0;

	if (mappings__read(&maps, pid))
		return 0;
	fs__allow_open_files(rec->files.n * 2 + maps.n);
	for (size_t i = 0; i < maps.n && !err; i++) {
		const struct mapping *m = &maps.v[i];

		if (m->prot & PROT_EXEC && m->ino && m->path[0] == '/' &&
		    !recording__find_file(rec, m->path, m->ino))
			err = note_mapping(rec, pid, m);
	}
	mappings__fini(&maps);
	return err;
}

static bool is_known(const struct recording *rec, pid_t pid, const struct mapping *m)
{
	for (size_t i = 0; i < rec->data_maps.n; i++) {
		const struct rec_map *known = &rec->data_maps.v[i];

		if (known->pid == pid && known->start == m->start && known->ino == m->ino)
			return true;
	}
	return false;
}

static int add(struct recording *rec, pid_t pid, const struct mapping *m)
{
	struct rec_map *out;
	char *path = strdup(m->path);

	out = path ? VEC_PUSH(&rec->data_maps) : NULL;
	if (!out) {
		free(path);
		return -ENOMEM;
	}
	*out = process_note__map(pid, m, 0);
	out->path = path;
	return 0;
}

int data_maps__take(struct recording *rec, pid_t pid)
{
	struct mappings maps;
	int err = 0;

	if (mappings__read(&maps, pid))
		return 0;
	for (size_t i = 0; i < maps.n && !err; i++) {
		const struct mapping *m = &maps.v[i];

		if ((m->prot & (PROT_READ | PROT_EXEC)) == PROT_READ && m->ino &&
		    recording__find_file(rec, m->path, m->ino) && !is_known(rec, pid, m))
			err = add(rec, pid, m);
	}
	mappings__fini(&maps);
	return err;
}

static int take(struct recording *rec, pid_t pid)
{
	size_t left = CODE_COPY_MAX;
	int err = code_files__note(rec, pid);

	/* Only stacks are unwound. */
	if (!err && rec->stacks.n)
		err = data_maps__take(rec, pid);
	for (size_t i = 0; i < rec->images.n; i++)
		if (rec->images.v[i].pid && rec->images.v[i].pid != pid)
			left -= rec->images.v[i].size;
	if (!err)
		err = code_copy__take(rec, pid, left);
	return err ? err : patched_code__take(rec, pid);
}

static int take_all(struct recording *rec, const pid_t *pids, size_t n)
{
	int err = 0;

	for (size_t i = 0; !err && i < n; i++)
		err = take(rec, pids[i]);
	return err;
}

int live_code__take(struct recording *rec, const struct pid_set *pids, const struct cgroup *cgroup)
{
	_cleanup_free_ pid_t *in_it = NULL;
	size_t n;
	int err;

	if (!cgroup)
		return take_all(rec, pids->v, pids->n);
	/* All in it may be gone by now, and it with them. */
	err = cgroup__processes(cgroup, &in_it, &n);
	if (err)
		return err == -ENOMEM ? err : 0;
	return take_all(rec, in_it, n);
}
