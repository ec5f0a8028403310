// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>

#include "decode/images_internal.h"
#include "target/symbols/jit_image.h"
#include "util/cleanup.h"

static const char *find_perf_map(const struct recording *rec, pid_t pid)
{
	for (size_t i = 0; i < rec->perf_maps.n; i++)
		if (rec->perf_maps.v[i].pid == pid)
			return rec->perf_maps.v[i].text;
	return NULL;
}

struct elf_image *jit__open(const struct recording *rec, pid_t pid)
{
	_cleanup_free_ struct jit_piece *pieces = calloc(rec->images.n + 1, sizeof(*pieces));
	size_t n = 0;

	if (!pieces)
		return NULL;
	for (size_t i = 0; i < rec->images.n; i++) {
		const struct rec_image *image = &rec->images.v[i];

		if (image->pid == pid)
			pieces[n++] = (struct jit_piece){image->start, image->data, image->size};
	}
	return jit_image__new(pieces, n, find_perf_map(rec, pid));
}
