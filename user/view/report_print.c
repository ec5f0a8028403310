// SPDX-License-Identifier: MIT
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mtbpf_shared.h"
#include "util/json.h"
#include "util/units.h"
#include "view/report.h"
#include "view/report_internal.h"
#include "util/names.h"
#include "view/thread_places.h"

/* Prints "f", "f [inlined]", or "[blocked] in f". */
static void print_name(FILE *out, const struct row *row)
{
	fprintf(out, "%s%s", SHORT_NAME(row->name), row->suffix);
	if (row->inside)
		fprintf(out, " in %s", SHORT_NAME(row->inside->name));
}

static void print_rows(FILE *out, const struct report *r, size_t top)
{
	size_t ordinary = r->periods.n - 1;

	fprintf(out, "  %10s %10s %10s %10s  ", "extra", "slow", "inclusive", "ordinary");
	if (!r->sampled)
		fprintf(out, "%17s  ", "calls (ordinary)");
	fprintf(out, "function\n");
	VEC_EACH_WHILE(&r->rows, row, top-- && row->extra_ns > 0) {
		fprintf(out, "  %10s %10s %10s %10s  ", DURATION((uint64_t)row->extra_ns),
			DURATION(row->slow_ns), DURATION(row->inclusive_ns),
			DURATION(report__mean(r, row->ordinary_ns)));
		if (!r->sampled)
			fprintf(out, "%7llu %9.1f  ", (unsigned long long)row->slow_calls,
				ordinary ? (double)row->ordinary_calls / (double)ordinary : 0);
		print_name(out, row);
		off_cpu__print_wait(out, &row->off_cpu, row->inside);
		off_cpu__print(out, &row->off_cpu);
		fputc('\n', out);
	}
}

/* Prints ", hit 9," if there are other hits. */
static void print_which(FILE *out, const struct report *r)
{
	if (r->is_of_several)
		fprintf(out, ", hit %" PRIu64 ",", r->hit.sequence);
}

static void print_request_head(FILE *out, const struct report *r)
{
	fprintf(out, "the request with key %#" PRIx64, r->hit.key);
	print_which(out, r);
	fprintf(out,
		" took %s, from thread %d to thread %d; what thread %d did meanwhile, for this "
		"request or for others:\n",
		DURATION(r->hit.value_ns), r->hit.since_tid, r->hit.tid, r->tree->tid);
}

static void print_head(FILE *out, const struct report *r)
{
	const struct period *slow = report__slow(r);
	uint64_t ns = slow->end_ns - slow->start_ns;
	char a[UNITS_TEXT_SIZE];

	/* Without a threshold the iteration need not be slow. */
	fprintf(out, "the %s", ns > r->ordinary_ns ? "slow " : "");
	if (r->hit.reason == MT_HIT_REGION)
		fprintf(out, "region from -start to %s", SHORT_NAME(hit_mark__name(&r->hit)));
	else
		fprintf(out, "iteration of %s", SHORT_NAME(hit_mark__name(&r->hit)));
	print_which(out, r);
	fprintf(out, r->hit.reason == MT_HIT_STALL ? " has taken %s so far" : " took %s",
		units__format_duration(a, ns));
	if (r->n_ordinary)
		fprintf(out, ", an ordinary one %s (mean of %zu in the same lookback",
			DURATION(r->all_ordinary_ns), r->n_all_ordinary);
	if (r->n_ordinary && r->periods.n == 1)
		fprintf(out, ", none with stacks");
	else if (r->n_unseen)
		fprintf(out, "; the table below averages the %zu of them that have stacks, mean %s",
			r->n_ordinary, DURATION(r->ordinary_ns));
	if (r->n_left_out)
		fprintf(out, "; %zu more %s slow", r->n_left_out,
			r->n_left_out == 1 ? "was" : "were");
	fprintf(out, "%s; where the time went:\n", r->n_ordinary ? ")" : "");
}

/* Parts that this source measures are shown even if they are 0. */
static bool is_shown(const struct report *r, enum account_part part)
{
	if (part == ACCOUNT_CPU || r->slow.ns[part] || r->ordinary.ns[part])
		return true;
	if (!report__counts(r, part))
		return false;
	return r->sampled || part == ACCOUNT_SYSCALL;
}

static void print_account(FILE *out, const struct report *r, const char *name,
			  const struct account *account)
{
	fprintf(out, "  %-9s", name);
	for (int i = 0, n = 0; i < ACCOUNT_PARTS; i++)
		if (is_shown(r, i))
			fprintf(out, "%s%s %s", n++ ? " · " : "", account_parts[i].name,
				DURATION(account->ns[i]));
	fputc('\n', out);
}

/* A pool's other threads may do the same work, but only one thread's iterations are compared. */
static void print_others(FILE *out, const struct report *r)
{
	const char *thread = r->tree->coroutine ? "coroutine" : "thread";

	if (!r->n_others)
		return;
	fprintf(out, "  %s of the same %s; other %ss had %zu ordinary one%s, mean %s\n",
		r->periods.n > 1
			? "compared only with iterations"
			: "not compared: the lookback lacks ordinary iterations with stacks",
		thread, thread, r->n_others, r->n_others == 1 ? "" : "s", DURATION(r->others_ns));
}

/* Moves between CPUs are shown if there are this many more than usual. */
#define MOVES_MANY 4

static void print_accounts(FILE *out, const struct report *r)
{
	uint64_t moves = report__count_marks(r, true, MARK_MOVE, NULL);
	uint64_t usual = report__mean(r, report__count_marks(r, false, MARK_MOVE, NULL));

	print_account(out, r, "slow", &r->slow);
	if (r->periods.n > 1)
		print_account(out, r, "ordinary", &r->ordinary);
	print_others(out, r);
	if (r->hit.counted & COUNTED_NOT_STOLEN && !r->slow.ns[ACCOUNT_STOLEN])
		fprintf(out, "  stolen time is not known: the hypervisor has never reported any to "
			     "this machine\n");
	/* Moves are never a reason, since their cost is not known. */
	if (moves < usual + MOVES_MANY || r->slow.ns[ACCOUNT_CPU] <= r->ordinary.ns[ACCOUNT_CPU])
		return;
	fprintf(out, "  the thread moved between CPUs %" PRIu64 " times", moves);
	if (r->periods.n > 1)
		fprintf(out, " (%" PRIu64 " in an ordinary iteration)", usual);
	fputc('\n', out);
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
			if (reasons.all.v[i].meanwhile)
				fprintf(out, " while: %s\n", reasons.all.v[i].meanwhile);
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

/*
 * Adds "print": numbers exactly, strings as they are shown but without the quotes, null for what
 * could not be read. "cut" lists the names of strings that were longer.
 */
static void add_prints(cJSON *hit_object, const struct hit_mark *hit)
{
	cJSON *object = cJSON_AddObjectToObject(hit_object, "print"), *cut = NULL;

	for (uint32_t i = 0; i < hit->n_prints; i++) {
		const struct hit_printed *print = &hit->prints[i];
		char text[PRINTED_SIZE];

		if (print->value.kind == MT_PRINT_NONE) {
			cJSON_AddNullToObject(object, print->name);
		} else if (print->value.kind == MT_PRINT_NUMBER) {
			cJSON_AddRawToObject(object, print->name, print->text);
		} else {
			snprintf(text, sizeof(text), "%.*s",
				 (int)(strrchr(print->text, '"') - print->text - 1),
				 print->text + 1);
			cJSON_AddStringToObject(object, print->name, text);
		}
		if (!print->value.is_cut)
			continue;
		if (!cut)
			cut = cJSON_AddArrayToObject(hit_object, "cut");
		json__append_text(cut, print->name);
	}
}

static const char *reason_of(const struct hit_mark *hit)
{
	return hit->reason == MT_HIT_DURATION ? "duration"
	       : hit->reason == MT_HIT_MARK   ? "mark"
	       : hit->reason == MT_HIT_REGION ? "region"
	       : hit->reason == MT_HIT_STALL  ? "stall"
	       : hit->reason == MT_HIT_DELAY  ? "delay"
					      : "none";
}

void report__add_hit(cJSON *root, const struct hit_mark *hit)
{
	cJSON *object = cJSON_AddObjectToObject(root, "hit");
	char key[24];

	if (hit->function || hit->probe)
		cJSON_AddStringToObject(object, "function", hit_mark__name(hit));
	cJSON_AddStringToObject(object, "reason", reason_of(hit));
	json__add_number(object, "value_ns", hit->value_ns);
	if (hit->cpu_measure == MT_CPU_ON)
		json__add_number(object, "on_cpu_ns", hit->value_ns - hit->off_cpu_ns);
	if (hit->cpu_measure == MT_CPU_OFF)
		json__add_number(object, "off_cpu_ns", hit->off_cpu_ns);
	if (hit->threshold_ns)
		json__add_number(object, "threshold_ns", hit->threshold_ns);
	if (hit->unix_ms)
		cJSON_AddStringToObject(object, "time", MOMENT(hit->unix_ms));
	if (hit->trace_id[0])
		cJSON_AddStringToObject(object, "trace_id", hit->trace_id);
	if (hit->since_tid) {
		snprintf(key, sizeof(key), "%#" PRIx64, hit->key);
		cJSON_AddStringToObject(object, "key", key);
		json__add_number(object, "since_tid", (uint64_t)hit->since_tid);
	}
	if (hit->n_prints)
		add_prints(object, hit);
	json__add_number(object, "sequence", hit->sequence);
	json__add_number(object, "pid", (uint64_t)hit->pid);
	json__add_number(object, "tid", (uint64_t)hit->tid);
}

/* Adds what it waited for, and who kept it off the CPU. */
static void add_off_cpu(cJSON *object, const struct off_cpu *off_cpu)
{
	const struct waits_for *wait = off_cpu__wait(off_cpu);
	char text[WAITS_FOR_SIZE];
	cJSON *list = NULL, *item;

	if (wait)
		cJSON_AddStringToObject(object, "waits_for", waits_for__format(wait, text));
	if (off_cpu->waits[0].wait)
		list = cJSON_AddArrayToObject(object, "waits");
	for (size_t i = 0; i < OFF_CPU_MAX && off_cpu->waits[i].wait; i++) {
		item = json__append_object(list);
		cJSON_AddStringToObject(item, "for",
					waits_for__format(off_cpu->waits[i].wait, text));
		json__add_number(item, "ns", off_cpu->waits[i].ns);
	}
	if (off_cpu->names[0].by)
		list = cJSON_AddArrayToObject(object, off_cpu->woken ? "woken_by" : "by");
	for (size_t i = 0; i < OFF_CPU_MAX && off_cpu->names[i].by; i++) {
		const struct off_cpu_sum *b = &off_cpu->names[i];

		item = json__append_object(list);
		cJSON_AddStringToObject(item, "comm", b->by->comm);
		if (b->by->in)
			cJSON_AddStringToObject(item, "in", b->by->in);
		json__add_number(item, "tid", (uint64_t)b->by->tid);
		json__add_number(item, "ns", b->ns);
	}
}

static void add_row(cJSON *rows, const struct report *r, const struct row *row)
{
	cJSON *object = json__append_object(rows);

	cJSON_AddStringToObject(object, "name", row->name);
	if (row->suffix[0])
		cJSON_AddTrueToObject(object, "inlined");
	if (row->inside)
		cJSON_AddStringToObject(object, "in", row->inside->name);
	cJSON_AddNumberToObject(object, "extra_ns", (double)row->extra_ns);
	json__add_number(object, "slow_ns", row->slow_ns);
	json__add_number(object, "inclusive_ns", row->inclusive_ns);
	json__add_number(object, "ordinary_ns", report__mean(r, row->ordinary_ns));
	if (!r->sampled) {
		json__add_number(object, "slow_calls", row->slow_calls);
		json__add_number(object, "ordinary_calls", row->ordinary_calls);
	}
	add_off_cpu(object, &row->off_cpu);
}

static void add_parts(cJSON *object, const struct report *r, const struct account *account)
{
	for (int i = 0; i < ACCOUNT_PARTS; i++)
		if (account->ns[i] || report__counts(r, i))
			json__add_number(object, account_parts[i].key, account->ns[i]);
}

void report__add_account(cJSON *root, const struct report *r)
{
	cJSON *object = cJSON_AddObjectToObject(root, "account");

	add_parts(cJSON_AddObjectToObject(object, "slow"), r, &r->slow);
	if (r->periods.n > 1)
		add_parts(cJSON_AddObjectToObject(object, "ordinary"), r, &r->ordinary);
}

static void add_reasons(cJSON *root, const struct report *r)
{
	struct reasons reasons;
	cJSON *list = NULL;

	if (!report__reasons(r, &reasons) && r->sampled && reasons.all.n) {
		cJSON_AddStringToObject(root, "reason", reasons.all.v[0].text);
		list = cJSON_AddArrayToObject(root, "reasons");
	}
	for (size_t i = 0; list && i < reasons.all.n; i++)
		json__append_text(list, reasons.all.v[i].text);
	/* Only the "meanwhile" of the largest cause that has one is printed. */
	for (size_t i = 0; list && i < reasons.all.n; i++)
		if (reasons.all.v[i].meanwhile) {
			json__add_text(root, "meanwhile", reasons.all.v[i].meanwhile);
			break;
		}
	reasons__fini(&reasons);
}

int report__print_json(FILE *out, const struct report *r, const struct thread_places *threads)
{
	uint64_t moves = report__count_marks(r, true, MARK_MOVE, NULL);
	uint64_t usual_moves = report__mean(r, report__count_marks(r, false, MARK_MOVE, NULL));
	cJSON *root = cJSON_CreateObject(), *object;

	report__add_hit(root, &r->hit);
	json__add_number(root, "slow_ns", report__slow_ns(r));
	json__add_number(root, "ordinary_ns", r->ordinary_ns);
	json__add_number(root, "ordinary_iterations", r->n_ordinary);
	json__add_number(root, "ordinary_iterations_without_stacks", r->n_unseen);
	json__add_number(root, "all_ordinary_ns", r->all_ordinary_ns);
	json__add_number(root, "other_slow_iterations", r->n_left_out);
	json__add_number(root, "iterations_of_other_threads", r->n_others);
	json__add_number(root, "other_threads_ns", r->others_ns);
	report__add_account(root, r);
	if (moves || usual_moves) {
		object = cJSON_AddObjectToObject(root, "moves_between_cpus");
		json__add_number(object, "slow", moves);
		json__add_number(object, "ordinary", usual_moves);
	}
	add_reasons(root, r);
	if (threads)
		thread_places__add_json(root, threads);
	object = cJSON_AddArrayToObject(root, "functions");
	for (size_t i = 0; i < r->rows.n; i++)
		add_row(object, r, &r->rows.v[i]);
	return json__print_line(out, root);
}

/* A function in two reports, matched by its name. */
struct pair {
	const struct row *a, *b; /* NULL: not in that report */
	int64_t more_ns;	 /* b minus a */
};

static int compare_rows(const struct row *x, const struct row *y)
{
	int order = strcmp(x->name, y->name);

	if (!order)
		order = strcmp(x->suffix, y->suffix);
	if (order || (!x->inside && !y->inside))
		return order;
	if (!x->inside || !y->inside)
		return x->inside ? 1 : -1;
	return strcmp(x->inside->name, y->inside->name);
}

static int by_name(const void *a, const void *b)
{
	return compare_rows(*(const struct row *const *)a, *(const struct row *const *)b);
}

/* Rows sorted by name; the caller frees them. NULL: out of memory. */
static const struct row **sorted(const struct report *r)
{
	const struct row **rows = calloc(r->rows.n + 1, sizeof(const struct row *));

	for (size_t i = 0; rows && i < r->rows.n; i++)
		rows[i] = &r->rows.v[i];
	if (rows)
		qsort(rows, r->rows.n, sizeof(*rows), by_name);
	return rows;
}

static const struct row *row_of(const struct pair *pair)
{
	return pair->b ? pair->b : pair->a;
}

static int by_size(const void *a, const void *b)
{
	int64_t x = llabs(((const struct pair *)a)->more_ns);
	int64_t y = llabs(((const struct pair *)b)->more_ns);

	return x < y ? 1 : x > y ? -1 : compare_rows(row_of(a), row_of(b));
}

static void print_pair(FILE *out, const struct pair *pair)
{
	char sign[UNITS_TEXT_SIZE + 1];

	snprintf(sign, sizeof(sign), "%c%s", pair->more_ns < 0 ? '-' : '+',
		 DURATION((uint64_t)llabs(pair->more_ns)));
	fprintf(out, "  %11s %10s %10s  ", sign, DURATION(pair->a ? pair->a->slow_ns : 0),
		DURATION(pair->b ? pair->b->slow_ns : 0));
	print_name(out, row_of(pair));
	fputc('\n', out);
}

static void print_set(FILE *out, const char *which, const struct report *r)
{
	fprintf(out, "%s: the slow iteration of %s", which, SHORT_NAME(hit_mark__name(&r->hit)));
	print_which(out, r);
	fprintf(out, " took %s", DURATION(report__slow_ns(r)));
	if (r->periods.n > 1)
		fprintf(out, ", an ordinary one %s", DURATION(r->ordinary_ns));
	fputc('\n', out);
}

int report__print_difference(FILE *out, const struct report *a, const struct report *b, size_t top)
{
	const struct row **of_a = sorted(a), **of_b = sorted(b);
	VEC(struct pair) pairs = {0};
	int err = of_a && of_b ? 0 : -ENOMEM;

	/* Matches the two sorted arrays, which end in NULL. */
	for (const struct row **x = of_a, **y = of_b; !err && (*x || *y);) {
		int order = !*x ? 1 : !*y ? -1 : compare_rows(*x, *y);
		struct pair pair = {.a = order <= 0 ? *x++ : NULL, .b = order >= 0 ? *y++ : NULL};

		pair.more_ns =
			(int64_t)((pair.b ? pair.b->slow_ns : 0) - (pair.a ? pair.a->slow_ns : 0));
		err = VEC_ADD(&pairs, pair);
	}
	if (err)
		goto out;
	VEC_SORT(&pairs, by_size);
	print_set(out, "A", a);
	print_set(out, "B", b);
	fprintf(out, "  %11s %10s %10s  function (self time in its slow iteration)\n", "B - A", "A",
		"B");
	for (size_t i = 0; i < pairs.n && i < top && pairs.v[i].more_ns; i++)
		print_pair(out, &pairs.v[i]);
	if (!pairs.n || !pairs.v[0].more_ns)
		fprintf(out, "  no function differs in self time between A and B\n");
out:
	VEC_FINI(&pairs);
	free(of_a);
	free(of_b);
	return err;
}
