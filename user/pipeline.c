// SPDX-License-Identifier: MIT
#include "pipeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "make_trees.h"
#include "stack/stack.h"
#include "trace/text.h"
#include "trace/trace_writer.h"
#include "util/log.h"
#include "util/units.h"
#include "view/report.h"

#define REPORT_ROWS 10

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
					  .ip = recording__probe_of(rec, hit)};
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

	*decoded = (struct decoded){.images = images__new(rec), .behind_hit = -1};
	if (!decoded->images)
		err = -ENOMEM;
	if (!err)
		err = decoded__make_trees(decoded, rec, options);
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

static void print_hit(const struct hit_mark *hit, FILE *out)
{
	const char *name = hit->function ? hit->function->name : "the trigger";
	char value[UNITS_TEXT_SIZE];

	units__format_duration(value, hit->value_ns);
	if (hit->reason == MT_HIT_DELAY)
		fprintf(out, "hit %" PRIu64 " of %s, thread %d: %s after the one before\n",
			hit->sequence, name, hit->tid, value);
	else if (hit->reason == MT_HIT_DURATION)
		fprintf(out, "call %" PRIu64 " of %s, thread %d: took %s\n", hit->sequence, name,
			hit->tid, value);
	else
		fprintf(out, "hit %" PRIu64 " of %s, thread %d\n", hit->sequence, name, hit->tid);
}

static void print_lost(const struct decode_totals *totals, const struct recording *rec, FILE *out)
{
	char length[UNITS_TEXT_SIZE];
	uint64_t records = 0;

	for (int reason = GAP_NONE + 1; reason < GAP_BETWEEN; reason++)
		if (totals->gaps[reason])
			fprintf(out, "gaps: %" PRIu64 " (%s), %s\n", totals->gaps[reason],
				gap_reason__name((enum gap_reason)reason),
				units__format_duration(length, totals->gap_ns[reason]));
	if (totals->gaps[GAP_32_BIT])
		log__hint("32-bit code is not decoded: each time that a thread runs some is a gap");
	for (size_t i = 0; i < rec->losses.n; i++)
		records += rec->losses.v[i].records;
	if (totals->unknown_insns)
		fprintf(out,
			"left out: %" PRIu64
			" instructions of threads unknown, from before the first switches\n",
			totals->unknown_insns);
	if (records)
		fprintf(out,
			"lost: %" PRIu64
			" records of mappings and threads: code of those is not known\n",
			records);
}

/* Why the report lacks what it is about. */
static const char *explain_no_report(const struct decoded *decoded, const struct recording *rec)
{
	for (size_t i = 0; i < rec->aux.n; i++)
		if (rec->aux.v[i].wrapped)
			return "a larger -snapshot-size looks back further";
	for (int reason = GAP_NONE + 1; reason < GAP_BETWEEN; reason++)
		if (decoded->totals.gaps[reason])
			return "some of it is in a gap";
	return "it had begun before the recording did";
}

/* The one that the report is of. */
static const struct hit_mark *slowest_hit(const struct decoded *decoded)
{
	const struct hit_mark *slowest = &decoded->hits.v[0];

	for (size_t i = 1; i < decoded->hits.n; i++)
		if (decoded->hits.v[i].value_ns >= slowest->value_ns)
			slowest = &decoded->hits.v[i];
	return slowest;
}

void decoded__summarise(const struct decoded *decoded, const struct recording *rec, FILE *out)
{
	const struct decode_totals *t = &decoded->totals;
	char span[UNITS_TEXT_SIZE];
	size_t calls = 0, threads = 0;

	for (size_t i = 0; i < decoded->trees.n; i++) {
		calls += decoded->trees.v[i].calls.n;
		threads += !decoded->trees.v[i].strand;
	}
	for (size_t i = 0; i < decoded->hits.n; i++)
		print_hit(&decoded->hits.v[i], out);
	/* In text, nobody counts instructions. */
	fprintf(out, "the trace looks back %s: %" PRIu64 " %s, %zu slices, %zu thread%s\n",
		units__format_duration(span, t->last_ns - t->first_ns),
		t->insns ? t->insns : t->branches, t->insns ? "instructions" : "branches", calls,
		threads, threads == 1 ? "" : "s");
	print_lost(t, rec, out);
	if (!decoded->hits.n)
		return;
	/* Where the return decides, the probe's own instruction is not what it stopped at. */
	if (decoded->behind_hit >= 0 && rec->reason != MT_HIT_DURATION)
		fprintf(out, "frozen %s: %" PRId64 " branches after the hit, %s\n",
			rec->freeze ? rec->freeze : "at the hit", decoded->behind_hit,
			units__format_duration(span, decoded->behind_hit_ns));
	if (report__print(out, &(struct report_input){
				       .trees = decoded->trees.v,
				       .n_trees = decoded->trees.n,
				       .hit = slowest_hit(decoded),
				       .threshold_ns = rec->threshold_ns,
				       .top = REPORT_ROWS,
			       }) == -ENODATA)
		fprintf(out, "no report: the whole iteration is not in the trace: %s\n",
			explain_no_report(decoded, rec));
}
