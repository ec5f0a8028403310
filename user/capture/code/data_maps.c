// SPDX-License-Identifier: MIT
#include "capture/code/data_maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/recording/process_note.h"

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
