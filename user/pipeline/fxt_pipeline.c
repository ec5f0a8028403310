// SPDX-License-Identifier: MIT
/* Converts a trace file back to the data that a report needs. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "pipeline/pipeline.h"
#include "trace/fxt_trees.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/meter.h"

/* The trees move over; their functions stay. */
static int take_over(struct decoded *decoded, struct fxt_trees *fxt)
{
	for (size_t i = 0; i < fxt->trees.n; i++) {
		struct call_tree *tree = VEC_PUSH(&decoded->trees);

		if (!tree)
			return -ENOMEM;
		*tree = fxt->trees.v[i];
		fxt->trees.v[i] = (struct call_tree){0};
	}
	for (size_t i = 0; i < fxt->hits.n; i++) {
		struct hit_mark *hit = VEC_PUSH(&decoded->hits);

		if (!hit)
			return -ENOMEM;
		*hit = fxt->hits.v[i];
	}
	decoded->is_sampled = fxt->is_sampled;
	decoded->totals.first_ns = fxt->first_ns;
	decoded->totals.last_ns = fxt->last_ns;
	return 0;
}

static int refuse(const char *path, int err, bool is_trace)
{
	if (err == -EBADMSG && !is_trace)
		return err;
	if (err == -EBADMSG) {
		log__error("%s: the trace is damaged or truncated", path);
		log__hint("decode the recording again: mtbpf decode NAME.mtbpf");
		return -EIO;
	}
	log__error("cannot read %s: %s", path, strerror(-err));
	log__hint("one made with sudo belongs to root; a trace is named NAME.fxt, .fxt.gz or "
		  ".fxt.zst");
	return err;
}

static int read_trees(struct fxt_trees *trees, int fd)
{
	struct meter meter;
	int err;

	meter__begin_file(&meter, "reading", fd);
	err = fxt_trees__read(trees, fd, &meter);
	meter__end(&meter);
	return err;
}

int decoded__make_from_fxt(struct decoded *decoded, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : 0;

	*decoded = (struct decoded){.behind_hit = -1};
	if (!err) {
		decoded->fxt = calloc(1, sizeof(*decoded->fxt));
		err = decoded->fxt ? read_trees(decoded->fxt, fd) : -ENOMEM;
	}
	if (!err)
		err = take_over(decoded, decoded->fxt);
	return err ? refuse(path, err, decoded->fxt && decoded->fxt->tracks.n) : 0;
}
