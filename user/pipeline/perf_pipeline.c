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

static int refuse(const char *name, const struct perf_text_totals *totals)
{
	log__error("%s has %" PRIu64
		   " line%s, and no branch in it: neither a recording nor text of perf script",
		   name, totals->lines, totals->lines == 1 ? "" : "s");
	log__hint("text is what '" PERF_SCRIPT "' prints");
	return -EINVAL;
}

static int report(int err, const char *name)
{
	if (err == -ENOMEM) {
		log__error("out of memory while decoding %s", name);
		log__hint("'perf script --time START,END' prints a part of it");
	} else if (err) {
		log__error("cannot read %s: %s", name, strerror(-err));
		log__hint("text is what '" PERF_SCRIPT "' prints");
	}
	return err;
}

/* Of words alone, nothing is a call. */
static void warn_of_flags(const struct perf_text_totals *totals, uint64_t branches)
{
	if (totals->unknown_flags < branches)
		return;
	log__warn("no line says what kind of branch it has: all are taken for jumps");
	log__hint("text is what '" PERF_SCRIPT "' prints");
}

static int read_text(struct perf_threads *threads, int fd, const char *name,
		     struct perf_text_totals *totals)
{
	struct meter meter;
	uint64_t branches;
	int err;

	*totals = (struct perf_text_totals){0};
	meter__begin_file(&meter, "reading", fd);
	err = report(perf_text__read(threads, fd, totals, &meter), name);
	meter__end(&meter);
	if (err)
		return err;
	branches = perf_threads__totals(threads)->decode.branches;
	if (!branches)
		return refuse(name, totals);
	warn_of_flags(totals, branches);
	return 0;
}

static int name_thread(struct recording *rec, const struct call_tree *tree)
{
	struct rec_thread thread = {.pid = tree->pid, .tid = tree->tid};

	memcpy(thread.comm, tree->comm, sizeof(thread.comm));
	return recording__add_thread(rec, &thread);
}

int decoded__take_threads(struct decoded *decoded, struct recording *rec,
			  struct perf_threads *threads)
{
	struct call_tree tree;
	int err;

	while ((err = perf_threads__next_tree(threads, &tree)) > 0) {
		struct call_tree *slot = tree.calls.n ? VEC_PUSH(&decoded->trees) : NULL;

		if (!slot && tree.calls.n)
			err = -ENOMEM;
		if (!slot) {
			call_tree__fini(&tree);
		} else {
			*slot = tree;
			err = name_thread(rec, slot);
		}
		if (err < 0)
			break;
	}
	decoded->totals = perf_threads__totals(threads)->decode;
	return err ? err : decoded__settle_trees(decoded, true);
}

int decoded__make_from_text(struct decoded *decoded, struct recording *rec,
			    const struct perf_text_input *input, struct perf_text_totals *totals)
{
	int err;

	*decoded = (struct decoded){.behind_hit = -1, .perf = perf_threads__new(NULL, NULL)};
	if (!decoded->perf)
		return report(-ENOMEM, input->name);
	perf_threads__set_traps(decoded->perf, input->traps);
	err = read_text(decoded->perf, input->fd, input->name, totals);
	return err ? err : report(decoded__take_threads(decoded, rec, decoded->perf), input->name);
}

static void print_count(FILE *out, uint64_t n, const char *what)
{
	if (n)
		fprintf(out, "%s: %" PRIu64 "\n", what, n);
}

void perf_text__summarise(const struct perf_text_totals *totals, uint64_t moved, FILE *out)
{
	print_count(out, totals->unknown_flags,
		    "branches with flags that mean nothing here, taken for jumps");
	print_count(out, totals->other, "lines that are no branches, left out");
	print_count(out, totals->too_long, "lines too long to be branches, left out");
	print_count(out, totals->not_taken, "branches not taken, left out");
	print_count(out, totals->left_out, "branches of threads too many, left out");
	print_count(out, moved, "branches whose time lay before that of the one before them");
}

static int print_tapped(void *ctx, pid_t tid, const struct branch *branch)
{
	print_branch(ctx, tid, branch);
	return 0;
}

int perf_text__print_branches(int fd, const char *name, FILE *out)
{
	struct perf_threads *threads = perf_threads__new(print_tapped, out);
	struct perf_text_totals totals;
	int err = threads ? read_text(threads, fd, name, &totals) : report(-ENOMEM, name);

	perf_threads__free(threads);
	return err;
}
