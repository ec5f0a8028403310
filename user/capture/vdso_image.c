// SPDX-License-Identifier: MIT
#include "capture/vdso_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
