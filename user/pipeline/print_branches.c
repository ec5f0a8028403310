// SPDX-License-Identifier: MIT
#include "pipeline/print_branches.h"

#include <errno.h>
#include <inttypes.h>

#include "decode/decode.h"
#include "target/code_map.h"

struct branch_printer {
	FILE *out;
	pid_t tid;
	struct selection *selection; /* selects what is printed; NULL: everything */
};

void print_branch(FILE *out, pid_t tid, const struct branch *b)
{
	fprintf(out, "%d %" PRIu64 " %s %" PRIx64 " %" PRIx64, tid, b->time_ns,
		branch_kind__name((enum branch_kind)b->kind), b->from, b->to);
	if (b->kind == BRANCH_GAP)
		fprintf(out, " %s", gap_reason__name((enum gap_reason)b->reason));
	fputc('\n', out);
}

static void print_note(const struct branch_printer *p, const struct pt_note *note)
{
	if (!p->selection || decode_filter__has_time(p->selection->filter, note->time_ns))
		fprintf(p->out, "%d %" PRIu64 " %s %" PRIx64 " %" PRIx64 "\n", note->tid,
			note->time_ns, pt_note__name((enum pt_note_kind)note->kind), note->ip,
			note->value);
}

static int take_branches(void *ctx, struct branch *v, size_t n)
{
	struct branch_printer *p = ctx;
	struct branch_batch batch = {v, n};
	int err = p->selection ? selection__take(p->selection, v, n, &batch) : 0;

	VEC_EACH_WHILE(&batch, b, !err) {
		struct pt_note note = branch__note(b, 0, p->tid);

		if (!branch__is_entry(b))
			print_branch(p->out, p->tid, b);
		else if (b->kind == ENTRY_NOTE)
			print_note(p, &note);
	}
	return err;
}

static int take_notes(void *ctx, const struct pt_note *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		print_note(ctx, &v[i]);
	return 0;
}

static int begin_printing(void *ctx, pid_t pid, pid_t tid, struct code_map *map)
{
	struct branch_printer *p = ctx;

	p->tid = tid;
	if (p->selection)
		selection__begin_thread(p->selection, map);
	return 0;
}

static int end_printing(void *ctx)
{
	return 0;
}

int recording__print_branches(struct recording *rec, const struct trace_filter *filter, FILE *out)
{
	struct images *images = images__new(rec);
	struct branch_printer printer = {.out = out};
	struct branch_receiver receiver = {.begin = begin_printing,
					   .take = take_branches,
					   .take_notes = take_notes,
					   .end = end_printing,
					   .ctx = &printer};
	struct decode_totals totals = {0}, selected = {0};
	struct filter_totals found = {0};
	struct filter_part part = {0};
	struct selection selection;
	bool is_filtered = trace_filter__is_set(filter);
	int err = images ? 0 : -ENOMEM;

	if (!err && is_filtered)
		err = trace_filter__apply(filter, rec, images, &part);
	selection__init(&selection, &part.decode, &selected, &found);
	if (is_filtered)
		printer.selection = &selection;
	if (!err)
		err = decode__threads(rec, images, true, &receiver, &totals);
	if (!err && is_filtered)
		err = filter_part__check(&part, &found);
	selection__fini(&selection);
	images__free(images);
	return err ? err : recording__check_cut(rec);
}

int last_branches__print(FILE *out, const struct mt_hit *hit, struct images *images)
{
	struct code_map *map = hit->n_branches ? code_map__new() : NULL;
	size_t next = 0;
	int err = 0;

	if (!hit->n_branches)
		return 0;
	err = map ? images__apply(images, (pid_t)hit->tgid, hit->time_ns, &next, map) : -ENOMEM;
	if (!err)
		fprintf(out, "the last branches before the hit (LBR), the newest first:\n");
	for (size_t i = 0; i < hit->n_branches && i < MT_BRANCHES_MAX && !err; i++) {
		uint64_t ips[] = {hit->branches[i].from, hit->branches[i].to};

		for (size_t k = 0; k < 2; k++) {
			struct code_place place;

			fputs(k ? " -> " : "  ", out);
			if (code_map__find(map, ips[k], &place))
				fprintf(out, "%s+0x%" PRIx64, place.function->name,
					ips[k] - place.entry);
			else
				fprintf(out, "%#" PRIx64, ips[k]);
		}
		fputc('\n', out);
	}
	code_map__free(map);
	return err;
}
