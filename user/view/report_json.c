// SPDX-License-Identifier: MIT
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "mtbpf_shared.h"
#include "util/units.h"
#include "view/report_internal.h"
#include "view/thread_places.h"

static void add_number(cJSON *object, const char *key, uint64_t number)
{
	cJSON_AddNumberToObject(object, key, (double)number);
}

/*
 * Numbers exactly; strings as they are shown, without the quotes; what could not be read is null.
 * "cut" has the names of strings that are longer.
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
		cJSON_AddItemToArray(cut, cJSON_CreateString(print->name));
	}
}

void report__add_hit(cJSON *root, const struct hit_mark *hit)
{
	cJSON *object = cJSON_AddObjectToObject(root, "hit");
	const char *reason = hit->reason == MT_HIT_DURATION ? "duration"
			     : hit->reason == MT_HIT_MARK   ? "mark"
			     : hit->reason == MT_HIT_REGION ? "region"
			     : hit->reason == MT_HIT_STALL  ? "stall"
							    : "delay";
	char moment[UNITS_MOMENT_SIZE], key[24];

	if (hit->function || hit->probe)
		cJSON_AddStringToObject(object, "function", hit_mark__name(hit));
	cJSON_AddStringToObject(object, "reason", reason);
	add_number(object, "value_ns", hit->value_ns);
	if (hit->cpu_measure == MT_CPU_ON)
		add_number(object, "on_cpu_ns", hit->value_ns - hit->off_cpu_ns);
	if (hit->cpu_measure == MT_CPU_OFF)
		add_number(object, "off_cpu_ns", hit->off_cpu_ns);
	if (hit->threshold_ns)
		add_number(object, "threshold_ns", hit->threshold_ns);
	if (hit->unix_ms)
		cJSON_AddStringToObject(object, "time", units__format_moment(moment, hit->unix_ms));
	if (hit->trace_id[0])
		cJSON_AddStringToObject(object, "trace_id", hit->trace_id);
	if (hit->since_tid) {
		snprintf(key, sizeof(key), "%#" PRIx64, hit->key);
		cJSON_AddStringToObject(object, "key", key);
		add_number(object, "since_tid", (uint64_t)hit->since_tid);
	}
	if (hit->n_prints)
		add_prints(object, hit);
	add_number(object, "sequence", hit->sequence);
	add_number(object, "pid", (uint64_t)hit->pid);
	add_number(object, "tid", (uint64_t)hit->tid);
}

static void add_blame(cJSON *object, const struct blame *blame)
{
	cJSON *list = NULL;

	for (size_t i = 0; i < BLAME_MAX; i++) {
		const struct blamed *b = &blame->names[i];
		cJSON *item;

		if (!b->by)
			continue;
		if (!list)
			list = cJSON_AddArrayToObject(object, blame->woken ? "woken_by" : "by");
		item = cJSON_CreateObject();
		cJSON_AddItemToArray(list, item);
		cJSON_AddStringToObject(item, "comm", b->by->comm);
		if (b->by->in)
			cJSON_AddStringToObject(item, "in", b->by->in);
		add_number(item, "tid", (uint64_t)b->by->tid);
		add_number(item, "ns", b->ns);
	}
}

static void add_waits(cJSON *object, const struct blame *blame)
{
	cJSON *list = blame->waits[0].for_ ? cJSON_AddArrayToObject(object, "waits") : NULL;

	for (size_t i = 0; i < BLAME_MAX && blame->waits[i].for_; i++) {
		cJSON *item = cJSON_CreateObject();
		char text[WAITS_FOR_SIZE];

		cJSON_AddItemToArray(list, item);
		cJSON_AddStringToObject(item, "for", waits_for__format(blame->waits[i].for_, text));
		add_number(item, "ns", blame->waits[i].ns);
	}
}

static void add_row(cJSON *rows, const struct report *r, const struct row *row)
{
	cJSON *object = cJSON_CreateObject();
	const struct waits_for *wait = blame__wait(&row->blame);
	char waits_for[WAITS_FOR_SIZE];

	cJSON_AddItemToArray(rows, object);
	cJSON_AddStringToObject(object, "name", row->name);
	if (row->suffix[0])
		cJSON_AddTrueToObject(object, "inlined");
	if (row->inside)
		cJSON_AddStringToObject(object, "in", row->inside->name);
	cJSON_AddNumberToObject(object, "extra_ns", (double)row->extra_ns);
	add_number(object, "slow_ns", row->slow_ns);
	add_number(object, "inclusive_ns", row->inclusive_ns);
	add_number(object, "ordinary_ns", report__mean(r, row->ordinary_ns));
	if (!r->sampled) {
		add_number(object, "slow_calls", row->slow_calls);
		add_number(object, "ordinary_calls", row->ordinary_calls);
	}
	if (wait)
		cJSON_AddStringToObject(object, "waits_for", waits_for__format(wait, waits_for));
	add_waits(object, &row->blame);
	add_blame(object, &row->blame);
}

static void add_parts(cJSON *object, const struct report *r, const struct account *account)
{
	for (int i = 0; i < PARTS; i++)
		if (account->ns[i] || report__counts(r, i))
			add_number(object, part__key(i), account->ns[i]);
}

/* Each account adds up to its iteration; the ordinary one to the mean of those with stacks. */
static void add_account(cJSON *object, const struct report *r)
{
	add_parts(cJSON_AddObjectToObject(object, "slow"), r, &r->slow);
	if (r->periods.n > 1)
		add_parts(cJSON_AddObjectToObject(object, "ordinary"), r, &r->ordinary);
}

static void add_moves(cJSON *root, const struct report *r)
{
	uint64_t slow = report__count_marks(r, true, MARK_MOVE);
	uint64_t usual = report__mean(r, report__count_marks(r, false, MARK_MOVE));
	cJSON *moves = slow || usual ? cJSON_AddObjectToObject(root, "moves_between_cpus") : NULL;

	if (!moves)
		return;
	add_number(moves, "slow", slow);
	add_number(moves, "ordinary", usual);
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
		cJSON_AddItemToArray(list, cJSON_CreateString(reasons.all.v[i].text));
	reasons__fini(&reasons);
}

int report__print_json(FILE *out, const struct report *r, const struct thread_places *threads)
{
	const struct period *slow = report__slow(r);
	cJSON *root = cJSON_CreateObject(), *rows;
	char *text;

	report__add_hit(root, &r->hit);
	add_number(root, "slow_ns", slow->end_ns - slow->start_ns);
	add_number(root, "ordinary_ns", r->ordinary_ns);
	add_number(root, "ordinary_iterations", r->n_ordinary);
	add_number(root, "ordinary_iterations_without_stacks", r->n_unseen);
	add_number(root, "other_slow_iterations", r->n_left_out);
	add_account(cJSON_AddObjectToObject(root, "account"), r);
	add_moves(root, r);
	add_reasons(root, r);
	if (threads)
		thread_places__add_json(root, threads);
	rows = cJSON_AddArrayToObject(root, "functions");
	for (size_t i = 0; i < r->rows.n; i++)
		add_row(rows, r, &r->rows.v[i]);
	text = cJSON_PrintUnformatted(root);
	cJSON_Delete(root);
	if (!text)
		return -ENOMEM;
	fprintf(out, "%s\n", text);
	cJSON_free(text);
	return 0;
}
