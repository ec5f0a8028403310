// SPDX-License-Identifier: MIT
#include "capture/code/live_code.h"

#include <errno.h>

#include "capture/code/code_copy.h"
#include "capture/code/code_files.h"
#include "capture/code/data_maps.h"
#include "capture/code/patched_code.h"
#include "util/cleanup.h"

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
