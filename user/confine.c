// SPDX-License-Identifier: MIT
#include "confine.h"

#include <errno.h>
#include <libgen.h>
#include <string.h>

#include "kernel/rights.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/vec.h"

void confine__reading(void)
{
	int err = capability__keep_for_files();

	if (err)
		log__debug("cannot give up capabilities: %s", strerror(-err));
}

typedef VEC(int) fd_vec;

static int add_roots(fd_vec *roots, const struct recording *rec)
{
	for (size_t i = 0; i < rec->roots.n; i++) {
		int *fd = rec->roots.v[i].is_owner ? VEC_PUSH(roots) : NULL;

		if (fd)
			*fd = rec->roots.v[i].fd;
		else if (rec->roots.v[i].is_owner)
			return -ENOMEM;
	}
	return 0;
}

void confine__decoding(const char *path, bool is_folder, const struct recording *const *recs,
		       size_t n)
{
	_cleanup_free_ char *place = path ? strdup(path) : NULL;
	fd_vec roots = {0};
	int err = path && !place ? -ENOMEM : 0;

	for (size_t i = 0; i < n && !err; i++)
		err = add_roots(&roots, recs[i]);
	if (!err)
		err = landlock__confine(place ? dirname(place) : NULL, is_folder, roots.v, roots.n);
	if (!err)
		err = capability__keep_for_our_files();
	if (err)
		log__debug("decoding is not confined: %s", strerror(-err));
	VEC_FINI(&roots);
}
