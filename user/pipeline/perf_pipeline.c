// SPDX-License-Identifier: MIT
#include "pipeline/perf_pipeline.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "pipeline/make_trees.h"
#include "pipeline/print_branches.h"
#include "stack/stack.h"
#include "util/log.h"
#include "util/meter.h"

#define PERF_SCRIPT "perf script --itrace=be -F pid,tid,time,event,ip,sym,symoff,addr,dso,flags"
#define TEXT_HINT                                                                                  \
	"mtbpf reads the text of '" PERF_SCRIPT                                                    \
	"' (Intel PT), or of 'perf script' after 'perf record -g'"

static int report(int err, const char *name)
{
	if (err == -ENOMEM) {
		log__error("out of memory while decoding %s", name);
		log__hint("use 'perf script --time START,END' to print a part of it");
	} else if (err) {
		log__error("cannot read %s: %s", name, strerror(-err));
		log__hint(TEXT_HINT);
	}
	return err;
}

/* Reads all of the text. 0, or -errno after a line and a hint. */
static int read_text(struct perf_text *text, int fd, const char *name)
{
	const struct perf_text_totals *totals = &text->totals;
	struct meter meter;
	uint64_t branches;
	int err;

	meter__begin_file(&meter, "reading", fd);
	err = report(perf_text__read(text, fd, &meter), name);
	meter__end(&meter);
	if (err)
		return err;
	branches = perf_threads__totals(text->threads)->decode.branches;
	if (!branches && !perf_samples__totals(text->samples)->samples) {
		log__error("%s has %" PRIu64 " line%s, but no branches or stacks: it is neither a "
			   "recording nor text of perf script",
			   name, totals->lines, totals->lines == 1 ? "" : "s");
		log__hint(TEXT_HINT);
		return -EINVAL;
	}
	if (branches && totals->unknown_flags >= branches) {
		log__warn("no line gives the kind of its branch (call, return, ...): all branches "
			  "are treated as jumps");
		log__hint(TEXT_HINT);
	}
	return 0;
}

/* Ends all threads: takes their trees, names and totals. 0 or -ENOMEM. */
static int take_threads(struct decoded *decoded, struct recording *rec,
			struct perf_threads *threads)
{
	struct call_tree tree;
	int err;

	while ((err = perf_threads__next_tree(threads, &tree)) > 0) {
		struct rec_thread thread = {.pid = tree.pid, .tid = tree.tid};

		if (!tree.calls.n || VEC_ADD(&decoded->trees, tree)) {
			err = tree.calls.n ? -ENOMEM : 0;
			call_tree__fini(&tree);
		} else {
			memcpy(thread.comm, tree.comm, sizeof(thread.comm));
			err = recording__add_thread(rec, &thread);
		}
		if (err < 0)
			break;
	}
	decoded->totals = perf_threads__totals(threads)->decode;
	return err ? err : decoded__settle_trees(decoded, true);
}

int perf_text__refuse_filter(const char *name)
{
	log__error("-filter: %s is text, which cannot be filtered", name);
	log__hint("use 'perf script --time START,END' to print a part");
	return -EINVAL;
}

static int take_samples(struct decoded *decoded, struct recording *rec,
			struct perf_samples *samples)
{
	struct named_image *code;
	int err;

	decoded->is_sampled = true;
	decoded->images = images__new(rec);
	err = decoded->images ? perf_samples__finish(samples, rec, &code) : -ENOMEM;
	if (err)
		return err;
	images__set_code(decoded->images, code);
	return decoded__make_sampled_trees(decoded, rec, NULL);
}

int decoded__make_from_text(struct decoded *decoded, struct recording *rec,
			    const struct perf_text_input *input, struct perf_text_summary *summary)
{
	struct perf_text text = {.threads = perf_threads__new(NULL, NULL),
				 .samples = perf_samples__new(input->no_inline)};
	int err;

	*summary = (struct perf_text_summary){0};
	*decoded = (struct decoded){.behind_hit = -1, .perf = text.threads};
	if (!text.threads || !text.samples) {
		err = report(-ENOMEM, input->name);
		goto out;
	}
	perf_threads__set_traps(text.threads, input->traps);
	err = read_text(&text, input->fd, input->name);
	if (err)
		goto out;
	if (perf_threads__totals(text.threads)->decode.branches) {
		err = take_threads(decoded, rec, text.threads);
		text.totals.other += text.totals.sampled;
	} else {
		err = take_samples(decoded, rec, text.samples);
		summary->samples = *perf_samples__totals(text.samples);
		text.totals.other += summary->samples.without;
	}
	summary->text = text.totals;
	summary->moved = perf_threads__totals(text.threads)->moved;
	err = report(err, input->name);
out:
	perf_samples__free(text.samples);
	return err;
}

static void print_count(FILE *out, uint64_t n, const char *what)
{
	if (n)
		fprintf(out, "%s: %" PRIu64 "\n", what, n);
}

void perf_text__summarise(const struct perf_text_summary *summary, FILE *out)
{
	const struct perf_text_totals *totals = &summary->text;
	const struct perf_samples_totals *sampled = &summary->samples;

	if (sampled->samples && !sampled->outs)
		fprintf(out,
			"no context switches in the text: time off the CPU is not shown "
			"('perf record --switch-events', 'perf script --show-switch-events')\n");
	else if (sampled->samples && !sampled->ins)
		fprintf(out, "the text says when threads left their CPUs, but not when they came "
			     "back: a thread counts as off the CPU until its next sample\n");
	if (sampled->samples && !sampled->has_pids)
		fprintf(out, "the text lacks process ids: each thread counts as one process ('perf "
			     "script -F +pid')\n");
	print_count(out, totals->unknown_flags, "branches with unknown flags, treated as jumps");
	print_count(out, totals->other,
		    sampled->samples ? "lines that belong to no sample, left out"
				     : "lines without branches, ignored");
	print_count(out, totals->too_long,
		    sampled->samples ? "lines too long, left out"
				     : "lines too long to be branches, left out");
	print_count(out, totals->not_taken, "branches not taken, left out");
	print_count(out, totals->left_out,
		    "branches of threads beyond the limit of threads, "
		    "left out");
	print_count(out, sampled->left_out,
		    "samples of threads beyond the limit of threads, "
		    "left out");
	print_count(out, summary->moved,
		    "branches with an earlier time than the branch before them");
}

static int print_tapped(void *ctx, pid_t tid, const struct branch *branch)
{
	print_branch(ctx, tid, branch);
	return 0;
}

int perf_text__print_branches(int fd, const char *name, FILE *out)
{
	struct perf_text text = {.threads = perf_threads__new(print_tapped, out),
				 .samples = perf_samples__new(false)};
	int err = text.threads && text.samples ? read_text(&text, fd, name) : report(-ENOMEM, name);

	if (!err && !perf_threads__totals(text.threads)->decode.branches) {
		log__error("%s has samples, but no branches", name);
		log__hint("use -print calls, which prints the slices made from samples");
		err = -EINVAL;
	}
	perf_samples__free(text.samples);
	perf_threads__free(text.threads);
	return err;
}
