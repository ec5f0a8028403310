// SPDX-License-Identifier: MIT
#include "pipeline/pipeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/make_trees.h"
#include "stack/stack.h"
#include "trace/fxt_trees.h"
#include "trace/text.h"
#include "trace/trace_writer.h"
#include "util/log.h"
#include "util/units.h"

/* The code as it was at the end, for addresses that come with the hits. */
static int name_hits(struct decoded *decoded, pid_t pid)
{
	struct code_map *map = code_map__new();
	size_t next = 0;
	int err = map ? images__apply(decoded->images, pid, UINT64_MAX, &next, map) : -ENOMEM;

	for (size_t i = 0; i < decoded->hits.n && !err; i++) {
		struct hit_mark *mark = &decoded->hits.v[i];
		struct code_place place;

		if (mark->pid == pid && code_map__find(map, mark->ip, &place))
			mark->function = place.function;
	}
	code_map__free(map);
	return err;
}

static int add_hits(struct decoded *decoded, const struct recording *rec)
{
	int err = 0;

	for (size_t i = 0; i < rec->hits.n; i++) {
		const struct mt_hit *hit = &rec->hits.v[i];
		struct hit_mark *mark = VEC_PUSH(&decoded->hits);

		if (!mark)
			return -ENOMEM;
		*mark = (struct hit_mark){.time_ns = hit->time_ns,
					  .value_ns = hit->value_ns,
					  .sequence = hit->sequence,
					  .reason = hit->reason,
					  .pid = (pid_t)hit->tgid,
					  .tid = (pid_t)hit->tid,
					  .ip = recording__probe_of(rec, hit),
					  .n_args = hit->n_args,
					  .args_read = hit->args_read,
					  .args_signed = hit->args_signed};
		memcpy(mark->args, hit->args, sizeof(mark->args));
	}
	for (size_t i = 0; i < decoded->hits.n && !err; i++)
		if (!decoded->hits.v[i].function)
			err = name_hits(decoded, decoded->hits.v[i].pid);
	return err;
}

int decoded__make(struct decoded *decoded, const struct recording *rec,
		  const struct tree_options *options)
{
	int err = 0;

	*decoded = (struct decoded){.images = images__new(rec),
				    .behind_hit = -1,
				    .is_sampled = recording__is_sampled(rec)};
	if (!decoded->images)
		err = -ENOMEM;
	if (!err)
		err = decoded->is_sampled ? decoded__make_sampled_trees(decoded, rec)
					  : decoded__make_trees(decoded, rec, options);
	if (!err)
		err = add_hits(decoded, rec);
	if (err == -ENOMEM) {
		log__error("out of memory while decoding");
		log__hint("a smaller -snapshot-size decodes to less");
	}
	return err;
}

void decoded__fini(struct decoded *decoded)
{
	for (size_t i = 0; i < decoded->trees.n; i++)
		call_tree__fini(&decoded->trees.v[i]);
	VEC_FINI(&decoded->trees);
	VEC_FINI(&decoded->hits);
	images__free(decoded->images);
	perf_threads__free(decoded->perf);
	if (decoded->fxt)
		fxt_trees__fini(decoded->fxt);
	free(decoded->fxt);
}

/* Of a cgroup there are several; each is called what its main thread is. */
static void name_processes(struct trace_writer *writer, const struct decoded *decoded,
			   const struct recording *rec)
{
	pid_t last = 0;

	if (rec->pid)
		trace_writer__process(writer, rec->pid, rec->command ? rec->command : "");
	for (size_t i = 0; i < decoded->trees.n; i++) {
		pid_t pid = decoded->trees.v[i].pid;

		if (pid != rec->pid && pid != last)
			trace_writer__process(writer, pid, decoded__thread_name(rec, pid));
		last = pid;
	}
}

int decoded__write_trace(const struct decoded *decoded, const struct recording *rec,
			 const char *path)
{
	/* Without a hit there is no report, which reads them again. */
	struct trace_options options = {.base_ns = decoded->totals.first_ns,
					.forget_calls = !decoded->hits.n};
	struct trace_writer *writer = trace_writer__open(path, &options);
	struct trace_totals totals;
	char size[UNITS_TEXT_SIZE];
	int err;

	if (!writer)
		return -errno;
	name_processes(writer, decoded, rec);
	for (size_t i = 0; i < decoded->trees.n; i++)
		trace_writer__thread(writer, &decoded->trees.v[i]);
	for (size_t i = 0; i < decoded->hits.n; i++)
		trace_writer__hit(writer, &decoded->hits.v[i]);
	err = trace_writer__close(writer, &totals);
	if (err)
		return err;
	if (totals.too_deep)
		log__warn("%" PRIu64
			  " slices lie deeper than Perfetto shows (512) and are left out",
			  totals.too_deep);
	log__info("%s: %" PRIu64 " slices, %s; open it in https://ui.perfetto.dev", path,
		  totals.slices, units__format_size(size, totals.bytes));
	return 0;
}

int decoded__write_text(const struct decoded *decoded, FILE *out)
{
	int err = 0;

	for (size_t i = 0; i < decoded->trees.n && !err; i++)
		err = trace_text__tree(out, &decoded->trees.v[i], decoded->totals.first_ns);
	return err;
}

int decoded__write_text_file(const struct decoded *decoded, const char *path)
{
	char size[UNITS_TEXT_SIZE];
	uint64_t bytes;
	int err = trace_text__write(path, decoded->trees.v, decoded->trees.n,
				    decoded->totals.first_ns, &bytes);

	if (!err)
		log__info("%s: a line a slice, %s", path, units__format_size(size, bytes));
	return err;
}
