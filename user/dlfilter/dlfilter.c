// SPDX-License-Identifier: MIT
/*
 * mtbpf-dlfilter.so: perf decodes, and hands each branch over without printing it.
 *
 *   perf script -i REC --itrace=be --dlfilter mtbpf-dlfilter.so --dlarg OUT.fxt
 */
#include "dlfilter/dlfilter_abi.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "perf/perf_line.h"
#include "perf/perf_threads.h"
#include "pipeline/output_name.h"
#include "stack/stack.h"
#include "trace/trace_writer.h"
#include "util/insn.h"
#include "util/log.h"
#include "util/units.h"

#define EXPORT __attribute__((visibility("default")))

/* The symbols that perf looks up. */
EXPORT struct dlfilter_fns perf_dlfilter_fns;
EXPORT int start(void **data, void *ctx);
EXPORT int filter_event(void *data, const struct dlfilter_sample *sample, void *ctx);
EXPORT int stop(void *data, void *ctx);
EXPORT const char *filter_description(const char **long_description);

#define KEEP_FROM_PRINTING 1

struct filter {
	struct perf_threads *threads;
	struct output_names names;
	uint64_t left_out; /* branches of threads too many */
	bool has_failed;   /* and has said why */
};

/* The same place, as long as these are: perf keeps what they point to. */
struct label {
	const char *sym, *dso;
	uint64_t offset;
};

const char *filter_description(const char **long_description)
{
	*long_description = "  --dlarg OUT.fxt: the trace to write, for https://ui.perfetto.dev";
	return "mtbpf " MTBPF_VERSION ": branches (--itrace=be) to a timeline of calls";
}

static int refuse(const char *why)
{
	log__error("mtbpf-dlfilter: %s", why);
	log__hint("perf script --itrace=be --dlfilter mtbpf-dlfilter.so --dlarg OUT.fxt");
	return -EINVAL;
}

static int refuse_memory(const char *doing, const char *name)
{
	log__error("out of memory while %s%s", doing, name);
	log__hint("'perf script --time START,END' takes a part of it");
	return -ENOMEM;
}

int start(void **data, void *ctx)
{
	struct filter *filter;
	int n = 0;
	char **args = perf_dlfilter_fns.args ? perf_dlfilter_fns.args(ctx, &n) : NULL;

	if (!args || n != 1)
		return refuse("it takes one --dlarg, the trace's name");
	filter = calloc(1, sizeof(*filter));
	if (!filter)
		return -ENOMEM;
	filter->threads = perf_threads__new(NULL, NULL);
	if (!filter->threads || output_names__from(&filter->names, args[0])) {
		perf_threads__free(filter->threads);
		free(filter);
		return -EINVAL;
	}
	*data = filter;
	return 0;
}

/* The name of a place, which perf knows. *is_known: it had it before. 0 or -ENOMEM. */
static int learn(struct named_image *image, uint64_t ip, const struct dlfilter_place *place,
		 bool *is_known)
{
	const struct named_spot *spot = named_image__spot(image, ip);
	struct label label = {0};
	struct named_place named = {.ip = ip, .has_offset = true};

	if (place && DLFILTER_HAS(place, dso)) {
		label = (struct label){place->sym, place->dso, place->sym ? place->symoff : 0};
		named.offset = label.offset;
		named.symbol = label.sym;
		named.symbol_len = label.sym ? strlen(label.sym) : 0;
		named.module = label.dso;
		named.module_len = label.dso ? strlen(label.dso) : 0;
	}
	*is_known = spot && spot->label_len == sizeof(label) &&
		    !memcmp(spot->label, &label, sizeof(label));
	if (!*is_known)
		return named_image__learn(image, &named, &label, sizeof(label));
	*is_known = spot->function && spot->is_followed;
	return 0;
}

static int learn_places(struct perf_thread *thread, const struct dlfilter_sample *sample, void *ctx)
{
	struct named_image *image = perf_thread__image(thread);
	const struct dlfilter_place *place;
	bool from_known = false, to_known = false;
	int err = 0;

	place = perf_dlfilter_fns.resolve_ip(ctx);
	if (place && DLFILTER_HAS(place, comm) && place->comm)
		perf_thread__set_comm(thread, place->comm, strlen(place->comm));
	if (sample->ip)
		err = learn(image, sample->ip, place, &from_known);
	if (sample->addr && !err) {
		place = sample->addr_correlates_sym ? perf_dlfilter_fns.resolve_addr(ctx) : NULL;
		err = learn(image, sample->addr, place, &to_known);
	}
	if (err || (from_known && to_known))
		return err;
	return perf_thread__follow(thread, &(struct perf_branch){.from = sample->ip,
								 .to = sample->addr,
								 .flags = sample->flags});
}

/* The length of the call instruction; 0: unknown. */
static uint8_t call_len(const struct dlfilter_sample *sample, void *ctx)
{
	const uint8_t *bytes;
	struct insn insn;
	uint32_t len = 0;

	if (!(sample->flags & PERF_IS_CALL) || !perf_dlfilter_fns.insn)
		return 0;
	bytes = perf_dlfilter_fns.insn(ctx, &len);
	if (!bytes || insn__decode(bytes, len, sample->ip, &insn))
		return 0;
	return insn.cls == INSN_CALL || insn.cls == INSN_CALL_INDIRECT ? insn.len : 0;
}

static int take(struct filter *filter, const struct dlfilter_sample *sample, void *ctx)
{
	struct perf_thread *thread = perf_threads__find(filter->threads, sample->pid, sample->tid);
	struct perf_branch branch = {.time_ns = sample->time,
				     .from = sample->ip,
				     .to = sample->addr,
				     .flags = sample->flags};
	int err;

	if (!thread && errno == EMFILE) {
		filter->left_out++;
		return 0;
	}
	err = thread ? learn_places(thread, sample, ctx) : -ENOMEM;
	if (err)
		return err;
	if (sample->insn_cnt <= UINT32_MAX)
		branch.n_insns = (uint32_t)sample->insn_cnt;
	branch.insn_len = call_len(sample, ctx);
	return perf_threads__branch(filter->threads, thread, &branch);
}

/* A sample of instructions may be at a branch, and then has its flags. */
static bool is_branch(const struct dlfilter_sample *sample)
{
	if (DLFILTER_HAS(sample, event) && sample->event && !strstr(sample->event, "branches"))
		return false;
	return sample->flags & PERF_IS_BRANCH && !(sample->flags & PERF_IS_NOT_TAKEN);
}

int filter_event(void *data, const struct dlfilter_sample *sample, void *ctx)
{
	struct filter *filter = data;
	int err = 0;

	if (!DLFILTER_HAS(sample, addr_correlates_sym))
		err = refuse("this perf hands over too little");
	else if (is_branch(sample))
		err = take(filter, sample, ctx);
	if (err == -ENOMEM)
		refuse_memory("decoding", "");
	filter->has_failed |= err != 0;
	return err ? err : KEEP_FROM_PRINTING;
}

static int write_trees(struct filter *filter, struct trace_writer *writer)
{
	struct call_tree tree;
	int err;

	while ((err = perf_threads__next_tree(filter->threads, &tree)) > 0) {
		if (tree.tid == tree.pid)
			trace_writer__process(writer, tree.pid, tree.comm);
		if (tree.calls.n)
			trace_writer__thread(writer, &tree);
		call_tree__fini(&tree);
	}
	return err;
}

static void summarise(const struct filter *filter, const struct trace_totals *written)
{
	const struct decode_totals *totals = &perf_threads__totals(filter->threads)->decode;
	char size[UNITS_TEXT_SIZE];

	log__info("%s: %" PRIu64 " branches, %" PRIu64 " slices, %s", filter->names.trace,
		  totals->branches, written->slices, units__format_size(size, written->bytes));
	for (int reason = GAP_NONE + 1; reason < GAP_REASONS; reason++)
		if (totals->gaps[reason])
			log__info("gaps: %" PRIu64 " (%s)", totals->gaps[reason],
				  gap_reason__name((enum gap_reason)reason));
	if (written->too_deep)
		log__warn("%" PRIu64 " slices are deeper than Perfetto shows and are left out",
			  written->too_deep);
	if (filter->left_out)
		log__warn("%" PRIu64 " branches are left out: the trace has too many threads",
			  filter->left_out);
}

static int write_trace(struct filter *filter)
{
	const struct decode_totals *totals = &perf_threads__totals(filter->threads)->decode;
	struct trace_options options = {.base_ns = totals->first_ns};
	struct trace_totals written;
	struct trace_writer *writer;
	int err;

	if (!totals->branches)
		return refuse("perf has decoded no branches");
	writer = trace_writer__open(filter->names.trace, &options);
	if (!writer)
		return -errno;
	err = write_trees(filter, writer);
	if (err) {
		trace_writer__abort(writer);
		return refuse_memory("writing ", filter->names.trace);
	}
	err = trace_writer__close(writer, &written);
	if (!err)
		summarise(filter, &written);
	return err;
}

int stop(void *data, void *ctx)
{
	struct filter *filter = data;
	int err = 0;

	/* perf ends what did not start, too. */
	if (!filter)
		return 0;
	if (!filter->has_failed)
		err = write_trace(filter);
	perf_threads__free(filter->threads);
	free(filter);
	return err;
}
