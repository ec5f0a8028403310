// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <string.h>

#include "mtbpf_shared.h"
#include "util/units.h"
#include "view/report_internal.h"
#include "view/short_name.h"

void report__print_name(FILE *out, const struct row *row)
{
	char name[SHORT_NAME_SIZE];

	fprintf(out, "%s%s", short_name(name, row->name), row->suffix);
	if (row->inside)
		fprintf(out, " in %s", short_name(name, row->inside->name));
}

static void print_row(FILE *out, const struct report *r, const struct row *row)
{
	size_t ordinary = r->periods.n - 1;
	double calls = ordinary ? (double)row->ordinary_calls / (double)ordinary : 0;
	char slow[UNITS_TEXT_SIZE], usual[UNITS_TEXT_SIZE], extra[UNITS_TEXT_SIZE];
	char inclusive[UNITS_TEXT_SIZE];

	fprintf(out, "  %10s %10s %10s %10s  ",
		units__format_duration(extra, (uint64_t)row->extra_ns),
		units__format_duration(slow, row->slow_ns),
		units__format_duration(inclusive, row->inclusive_ns),
		units__format_duration(usual, report__mean(r, row->ordinary_ns)));
	if (!r->sampled)
		fprintf(out, "%7llu %9.1f  ", (unsigned long long)row->slow_calls, calls);
	report__print_name(out, row);
	blame__print_wait(out, &row->blame, row->inside);
	blame__print(out, &row->blame);
	fputc('\n', out);
}

static void print_rows(FILE *out, const struct report *r, size_t top)
{
	fprintf(out, "  %10s %10s %10s %10s  ", "extra", "slow", "inclusive", "ordinary");
	if (!r->sampled)
		fprintf(out, "%17s  ", "calls (ordinary)");
	fprintf(out, "function\n");
	for (size_t i = 0; i < r->rows.n && i < top && r->rows.v[i].extra_ns > 0; i++)
		print_row(out, r, &r->rows.v[i]);
}

void report__print_which(FILE *out, const struct report *r)
{
	if (r->is_of_several)
		fprintf(out, ", hit %" PRIu64 ",", r->hit.sequence);
}

static void print_request_head(FILE *out, const struct report *r)
{
	char text[UNITS_TEXT_SIZE];

	fprintf(out, "the request with key %#" PRIx64, r->hit.key);
	report__print_which(out, r);
	fprintf(out,
		" took %s, from thread %d to thread %d; what thread %d did meanwhile, for this "
		"request or for others:\n",
		units__format_duration(text, r->hit.value_ns), r->hit.since_tid, r->hit.tid,
		r->tree->tid);
}

static void print_head(FILE *out, const struct report *r)
{
	const struct period *slow = report__slow(r);
	uint64_t ns = slow->end_ns - slow->start_ns;
	char a[UNITS_TEXT_SIZE], b[UNITS_TEXT_SIZE], name[SHORT_NAME_SIZE];

	/* Without a threshold the iteration need not be slow. */
	fprintf(out, "the %s", ns > r->ordinary_ns ? "slow " : "");
	if (r->hit.reason == MT_HIT_REGION)
		fprintf(out, "region from -start to %s", short_name(name, hit_mark__name(&r->hit)));
	else
		fprintf(out, "iteration of %s", short_name(name, hit_mark__name(&r->hit)));
	report__print_which(out, r);
	fprintf(out, r->hit.reason == MT_HIT_STALL ? " has taken %s so far" : " took %s",
		units__format_duration(a, ns));
	if (r->n_ordinary)
		fprintf(out, ", an ordinary one %s (mean of %zu in the same lookback",
			units__format_duration(b, r->ordinary_ns), r->n_ordinary);
	if (r->n_ordinary && r->periods.n == 1)
		fprintf(out, ", none with stacks");
	else if (r->n_unseen > r->n_ordinary)
		fprintf(out, "; %zu more lack stacks", r->n_unseen);
	if (r->n_left_out)
		fprintf(out, "; %zu more %s slow", r->n_left_out,
			r->n_left_out == 1 ? "was" : "were");
	fprintf(out, "%s; where the time went:\n", r->n_ordinary ? ")" : "");
}

/* Parts that this source measures are shown even if they are 0. */
static bool is_shown(const struct report *r, enum part part)
{
	if (part == PART_CPU || r->slow.ns[part] || r->ordinary.ns[part])
		return true;
	if (!report__counts(r, part))
		return false;
	return r->sampled || part == PART_SYSCALL;
}

static void print_account(FILE *out, const struct report *r, const char *name,
			  const struct account *account)
{
	char text[UNITS_TEXT_SIZE];

	fprintf(out, "  %-9s", name);
	for (int i = 0, n = 0; i < PARTS; i++)
		if (is_shown(r, i))
			fprintf(out, "%s%s %s", n++ ? " · " : "", part__name(i),
				units__format_duration(text, account->ns[i]));
	fputc('\n', out);
}

/* Moves between CPUs are shown if there are this many more than usual. */
#define MOVES_MANY 4

/* Moves are never a reason, since their cost is not known. */
static void print_moves(FILE *out, const struct report *r)
{
	uint64_t slow = report__count_marks(r, true, MARK_MOVE);
	uint64_t usual = report__mean(r, report__count_marks(r, false, MARK_MOVE));

	if (slow < usual + MOVES_MANY || r->slow.ns[PART_CPU] <= r->ordinary.ns[PART_CPU])
		return;
	fprintf(out, "  it moved between CPUs %" PRIu64 " times", slow);
	if (r->periods.n > 1)
		fprintf(out, " (%" PRIu64 " in an ordinary iteration)", usual);
	fputc('\n', out);
}

static void print_accounts(FILE *out, const struct report *r)
{
	print_account(out, r, "slow", &r->slow);
	if (r->periods.n > 1)
		print_account(out, r, "ordinary", &r->ordinary);
	if (r->hit.counted & COUNTED_NOT_STOLEN && !r->slow.ns[PART_STOLEN])
		fprintf(out,
			"  stolen time is not known: this virtual machine has never been told of "
			"any\n");
	print_moves(out, r);
}

static void print_reasons(FILE *out, const struct report *r)
{
	struct reasons reasons;
	bool is_unnamed = false;

	if (r->hit.since_tid)
		fprintf(out, "reason: not known: a thread may work for several requests at once\n");

	if (!report__reasons(r, &reasons) && r->sampled)
		for (size_t i = 0; i < reasons.all.n; i++) {
			fprintf(out, "%s %s\n", i ? "   and:" : "reason:", reasons.all.v[i].text);
			is_unnamed |= strstr(reasons.all.v[i].text, "[jit+") != NULL;
		}
	if (is_unnamed)
		fprintf(out, "  hint: [jit+...] is code that a runtime has compiled; a perf map "
			     "names it: 'mtbpf list -pid PID' says how to get one\n");
	reasons__fini(&reasons);
}

void report__print(FILE *out, const struct report *r, size_t top)
{
	if (r->hit.since_tid)
		print_request_head(out, r);
	else
		print_head(out, r);
	print_accounts(out, r);
	print_rows(out, r, top);
	report__print_paths(out, r);
	print_reasons(out, r);
}
