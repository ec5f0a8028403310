// SPDX-License-Identifier: MIT
/* The report in one line: why the slow iteration was slow. */
#include <stdlib.h>

#include "util/units.h"
#include "view/report_internal.h"
#include "view/short_name.h"

/* So many page faults more than usual are worth a word. */
#define FAULTS_MANY 64
/* Of a path so many names are shown, the innermost. */
#define PATH_MAX_NAMES 6

/* What the excess is, by kinds of rows. */
struct excess {
	int64_t ns[ROW_OTHER + 1];
	const struct row *top[ROW_OTHER + 1];
};

static struct excess find_excess(const struct report *r)
{
	struct excess e = {0};

	for (size_t i = 0; i < r->rows.n && r->rows.v[i].extra_ns > 0; i++) {
		const struct row *row = &r->rows.v[i];

		e.ns[row->kind] += row->extra_ns;
		if (!e.top[row->kind])
			e.top[row->kind] = row;
	}
	return e;
}

static uint64_t count_faults(const struct report *r, bool slow, bool major)
{
	uint64_t n = 0;
	size_t p = 0;

	/* Both ascend. */
	for (size_t i = 0; i < r->tree->faults.n; i++) {
		const struct fault_mark *mark = &r->tree->faults.v[i];

		while (p < r->periods.n && mark->time_ns >= r->periods.v[p].end_ns)
			p++;
		if (p < r->periods.n && mark->time_ns >= r->periods.v[p].start_ns &&
		    (p + 1 == r->periods.n) == slow && mark->is_major == major)
			n += mark->n;
	}
	return n;
}

/* Where the slow iteration was in it for the longest at a time; NULL: nowhere. */
static const struct call *find_call(const struct report *r, const struct function *function)
{
	const struct period *slow = report__slow(r);
	const struct call *found = NULL;
	uint64_t longest = 0;

	for (size_t i = 0; i < r->tree->calls.n; i++) {
		const struct call *call = &r->tree->calls.v[i];
		uint64_t from = call->start_ns > slow->start_ns ? call->start_ns : slow->start_ns;
		uint64_t to = call->end_ns < slow->end_ns ? call->end_ns : slow->end_ns;

		if (call->function != function || to <= from || to - from <= longest)
			continue;
		found = call;
		longest = to - from;
	}
	return found;
}

/* "one_iter > slow_branch > work_us": not what was there before the iteration. */
static void print_path(FILE *out, const struct report *r, const struct call *call)
{
	const struct period *slow = report__slow(r);
	const struct call *path[PATH_MAX_NAMES] = {call};
	char name[SHORT_NAME_SIZE];
	size_t n = 1;

	while (n < PATH_MAX_NAMES && path[n - 1]->parent != CALL_NO_PARENT) {
		const struct call *parent = &r->tree->calls.v[path[n - 1]->parent];

		if (parent->start_ns < slow->start_ns)
			break;
		path[n++] = parent;
	}
	while (n-- > 0)
		fprintf(out, "%s%s", short_name(name, call__name(path[n])), n ? " > " : "");
}

static void print_where(FILE *out, const struct report *r, const struct function *function)
{
	const struct call *call = function ? find_call(r, function) : NULL;
	char name[SHORT_NAME_SIZE];

	if (call)
		print_path(out, r, call);
	else
		fprintf(out, "%s",
			function ? short_name(name, function->name) : "code that is not known");
}

/* True where they are what there is more of than usual. */
static bool print_faults(FILE *out, const struct report *r, const struct row *row, bool major)
{
	uint64_t slow = count_faults(r, true, major);
	uint64_t usual = report__mean(r, count_faults(r, false, major));

	if (slow < usual + (major ? 1 : FAULTS_MANY))
		return false;
	fprintf(out, "%llu%s page fault%s (%llu in an ordinary iteration), in ",
		(unsigned long long)slow, major ? " major" : "", slow == 1 ? "" : "s",
		(unsigned long long)usual);
	print_where(out, r, row->inside);
	return true;
}

static void print_cpu(FILE *out, const struct report *r, const struct excess *e)
{
	const struct row *kernel = e->top[ROW_KERNEL], *cpu = e->top[ROW_CPU];

	if (e->ns[ROW_KERNEL] > e->ns[ROW_CPU]) {
		if (print_faults(out, r, kernel, false))
			return;
		fprintf(out, "on the CPU, in the kernel, for ");
		print_where(out, r, kernel->inside);
		return;
	}
	fprintf(out, "on the CPU, in ");
	print_where(out, r, cpu->key);
}

static void print_blocked(FILE *out, const struct report *r, const struct row *row)
{
	if (!row->blame.wait && print_faults(out, r, row, true))
		return;
	fprintf(out, "blocked in ");
	print_where(out, r, row->inside);
	blame__print_wait(out, &row->blame, row->inside);
	blame__print(out, &row->blame);
}

static void print_waiting(FILE *out, const struct row *row)
{
	fprintf(out, "ready to run, but its CPU was taken");
	blame__print(out, &row->blame);
}

/* What most of the excess is; 0: there is none to speak of. */
static int64_t print(FILE *out, const struct report *r)
{
	struct excess e = find_excess(r);
	int64_t on_cpu = e.ns[ROW_CPU] + e.ns[ROW_KERNEL], ns = on_cpu;

	if (e.ns[ROW_BLOCKED] > ns)
		ns = e.ns[ROW_BLOCKED];
	if (e.ns[ROW_WAITING] > ns)
		ns = e.ns[ROW_WAITING];
	if (ns <= 0 || e.ns[ROW_OTHER] > ns)
		return 0;
	if (ns == on_cpu)
		print_cpu(out, r, &e);
	else if (ns == e.ns[ROW_BLOCKED])
		print_blocked(out, r, e.top[ROW_BLOCKED]);
	else
		print_waiting(out, e.top[ROW_WAITING]);
	return ns;
}

char *report__reason(const struct report *r)
{
	char *text = NULL, duration[UNITS_TEXT_SIZE];
	FILE *out;
	size_t size;
	int64_t ns;

	if (!r->sampled)
		return NULL;
	out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	ns = print(out, r);
	fprintf(out, "; %s more than usual", units__format_duration(duration, (uint64_t)ns));
	if (!fclose(out) && ns)
		return text;
	free(text);
	return NULL;
}
