// SPDX-License-Identifier: MIT
/*
 * libFuzzer: a perf.data file, sideband and samples too, to a recording. What could be read can be
 * written, and read again; and a tree can be made of it.
 */
#include "recording_bytes.h"
#include "tree_check.h"

#include "pipeline/pipeline.h"

static int read_copy(struct recording *rec, const uint8_t *data, size_t size)
{
	uint8_t *copy = fuzz__copy(data, size);
	const char *why = NULL;
	int err;

	recording__init(rec);
	err = perf_data__read(rec, copy, size, &why);
	CHECK(!err || why);
	free(copy);
	return err;
}

static void check_again(const struct recording *rec)
{
	struct recording again;
	size_t size;
	uint8_t *bytes = recording_bytes(rec, &size);

	read_copy(&again, bytes, size);
	recording__fini(&again);
	free(bytes);
}

/* No file is looked for: each would take its time, and be another one on another machine. */
static void forget_paths(struct recording *rec)
{
	for (size_t i = 0; i < rec->maps.n; i++)
		if (rec->maps.v[i].path[0] == '/')
			rec->maps.v[i].path[0] = '[';
}

static void make_trees(struct recording *rec)
{
	struct tree_options options = {.no_inline = true};
	struct decoded decoded;

	if (!decoded__make(&decoded, rec, &options))
		for (size_t i = 0; i < decoded.trees.n; i++)
			check_tree(&decoded.trees.v[i]);
	decoded__fini(&decoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct recording rec;

	if (!read_copy(&rec, data, size)) {
		check_again(&rec);
		forget_paths(&rec);
		make_trees(&rec);
	}
	recording__fini(&rec);
	return 0;
}
