// SPDX-License-Identifier: MIT
#include "pipeline/print_branches.h"

#include <errno.h>
#include <inttypes.h>

#include "decode/threads.h"

struct branch_printer {
	FILE *out;
	pid_t tid;
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

static int begin_printing(void *ctx, pid_t pid, pid_t tid, struct code_map *map)
{
	struct branch_printer *p = ctx;

	p->tid = tid;
	return 0;
}

static int end_printing(void *ctx)
{
	return 0;
}

int recording__print_branches(const struct recording *rec, FILE *out)
{
	struct images *images = images__new(rec);
	struct branch_printer printer = {.out = out};
	struct thread_taker taker = {.begin = begin_printing,
				     .branch = take_to_print,
				     .end = end_printing,
				     .ctx = &printer};
	struct decode_totals totals = {0};
	int err = images ? decode__threads(rec, images, true, &taker, &totals) : -ENOMEM;

	images__free(images);
	return err ? err : recording__check_cut(rec);
}
