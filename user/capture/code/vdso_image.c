// SPDX-License-Identifier: MIT
#include "capture/code/vdso_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "target/elf/elf_image.h"

int vdso_image__add(struct recording *rec, const struct process *process)
{
	struct mappings own = {0};
	const struct mappings *maps = process ? &process->maps : &own;
	pid_t pid = process ? process->pid : getpid();
	int err = process ? 0 : mappings__read(&own, pid);

	for (size_t i = 0; i < maps->n && !err; i++) {
		const struct mapping *m = &maps->v[i];
		struct rec_image image = {.path = "[vdso]", .start = m->start, .is_elf = true};
		ssize_t n;

		if (strcmp(m->path, "[vdso]"))
			continue;
		image.data = malloc(m->end - m->start);
		n = image.data ? process__read_memory(pid, m->start, image.data, m->end - m->start)
			       : -ENOMEM;
		image.size = n > 0 ? (size_t)n : 0;
		if (n > 0)
			err = recording__add_image(rec, &image);
		free(image.data);
	}
	mappings__fini(&own);
	return err;
}

static bool has_build_id(const struct rec_image *vdso, const char *build_id)
{
	struct elf_image *image = elf_image__from_bytes(vdso->data, vdso->size, vdso->path);
	bool is_it = image && !strcmp(elf_image__build_id(image), build_id);

	elf_image__free(image);
	return is_it;
}

static bool runs_release(const char *release)
{
	struct utsname name;

	return release && !uname(&name) && !strcmp(name.release, release);
}

static const struct rec_map *find_map(const struct recording *rec)
{
	for (size_t i = 0; i < rec->maps.n; i++)
		if (!strcmp(rec->maps.v[i].path, "[vdso]"))
			return &rec->maps.v[i];
	return NULL;
}

static bool has_image(const struct recording *rec)
{
	for (size_t i = 0; i < rec->images.n; i++)
		if (!strcmp(rec->images.v[i].path, "[vdso]"))
			return true;
	return false;
}

int vdso_image__add_running(struct recording *rec)
{
	const struct rec_map *map = find_map(rec);
	struct recording own;
	bool is_ours;
	int err;

	if (!map || has_image(rec))
		return 0;
	recording__init(&own);
	err = vdso_image__add(&own, NULL);
	is_ours = own.images.n && (map->build_id[0] ? has_build_id(own.images.v, map->build_id)
						    : runs_release(rec->os_release));
	if (!err && is_ours)
		err = recording__add_image(rec, own.images.v);
	recording__fini(&own);
	return err;
}
