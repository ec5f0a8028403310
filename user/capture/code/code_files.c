// SPDX-License-Identifier: MIT
#include "capture/code/code_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/elf/debug_file.h"
#include "target/elf/elf_image.h"
#include "target/process.h"
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
