// SPDX-License-Identifier: MIT
#include "pipeline/print_branches.h"

#include <errno.h>
#include <inttypes.h>

#include "decode/threads.h"

struct branch_printer {
	FILE *out;
	pid_t tid;
	struct selection *selection; /* before it; NULL: none */
};

void print_branch(FILE *out, pid_t tid, const struct branch *b)
{
	fprintf(out, "%d %" PRIu64 " %s %" PRIx64 " %" PRIx64, tid, b->time_ns,
		branch_kind__name((enum branch_kind)b->kind), b->from, b->to);
	if (b->kind == BRANCH_GAP)
		fprintf(out, " %s", gap_reason__name((enum gap_reason)b->reason));
	fputc('\n', out);
}

static int take_to_print(void *ctx, const struct branch *b)
{
	const struct branch_printer *p = ctx;

	print_branch(p->out, p->tid, b);
	return 0;
}

static int take_branch(void *ctx, const struct branch *b)
{
	struct branch_printer *p = ctx;

	return p->selection ? selection__branch(p->selection, b) : take_to_print(p, b);
}

static int begin_printing(void *ctx, pid_t pid, pid_t tid, struct code_map *map)
{
	struct branch_printer *p = ctx;

	p->tid = tid;
	if (p->selection)
		selection__begin_thread(p->selection, map, take_to_print, p);
	return 0;
}

static int end_printing(void *ctx)
{
	return 0;
}

static int print_all(struct recording *rec, struct images *images, struct branch_printer *printer)
{
	struct thread_taker taker = {.begin = begin_printing,
				     .branch = take_branch,
				     .end = end_printing,
				     .ctx = printer};
	struct decode_totals totals = {0};

	return decode__threads(rec, images, true, &taker, &totals);
}

static int print_part(struct recording *rec, const struct trace_filter *filter,
		      struct images *images, FILE *out)
{
	struct filter_totals found = {0};
	struct decode_totals totals = {0};
	struct selection selection;
	struct branch_printer printer = {.out = out, .selection = &selection};
	struct filter_part part;
	int err = trace_filter__apply(filter, rec, images, &part);

	selection__init(&selection, &part.decode, &totals, &found);
	if (!err)
		err = print_all(rec, images, &printer);
	return err ? err : filter_part__check(&part, &found);
}

int recording__print_branches(struct recording *rec, const struct trace_filter *filter, FILE *out)
{
	struct images *images = images__new(rec);
	struct branch_printer printer = {.out = out};
	int err = images ? 0 : -ENOMEM;

	if (!err && trace_filter__is_set(filter))
		err = print_part(rec, filter, images, out);
	else if (!err)
		err = print_all(rec, images, &printer);
	images__free(images);
	return err ? err : recording__check_cut(rec);
}
