// SPDX-License-Identifier: MIT
#include "view/summary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mtbpf_shared.h"
#include "util/cleanup.h"
#include "util/json.h"
#include "util/names.h"
#include "util/text.h"
#include "view/report_internal.h"

#define FUNCTIONS_MAX 30
/* Frames with less than this part of the slow iteration are left out. */
#define FRAME_SHARE 300
#define FRAMES_MAX  400
/* Threads beside the one that triggered. */
#define THREADS_MAX 7
/* A summary with more causes is damaged. */
#define CAUSES_MAX 16

/* Adds what -print has read as one line: "str(arg1) \"GET /\", arg2 5". */
static void add_print(cJSON *root, const struct hit_mark *hit)
{
	_cleanup_free_ char *print =
		TEXT_OF(out, for (uint32_t i = 0; i < hit->n_prints; i++)
				     fprintf(out, "%s%s %s", i ? ", " : "", hit->prints[i].name,
					     hit->prints[i].text));

	json__add_text(root, "print", print);
}

static void add_cause(cJSON *list, const struct reason *reason)
{
	cJSON *object = json__append_object(list), *path, *inlined = NULL;

	json__add_text(object, "kind", cause_kinds[reason->kind].key);
	json__add_number(object, "ns", reason->ns);
	json__add_text(object, "text", reason->text);
	json__add_text(object, "of", reason->of);
	json__add_text(object, "meanwhile", reason->meanwhile);
	path = cJSON_AddArrayToObject(object, "path");
	for (size_t i = 0; i < reason->path.n; i++) {
		json__append_text(path, reason->path.v[i].name);
		if (!reason->path.v[i].is_inlined)
			continue;
		if (!inlined)
			inlined = cJSON_AddArrayToObject(object, "inlined");
		cJSON_AddItemToArray(inlined, cJSON_CreateNumber((double)i));
	}
}

static int add_causes(cJSON *root, const struct report *r)
{
	cJSON *list = cJSON_AddArrayToObject(root, "causes");
	struct reasons reasons;
	int err = report__reasons(r, &reasons);

	for (size_t i = 0; i < reasons.all.n && !err; i++)
		add_cause(list, &reasons.all.v[i]);
	reasons__fini(&reasons);
	return err;
}

static void add_functions(cJSON *root, const struct report *r)
{
	cJSON *list = cJSON_AddArrayToObject(root, "functions");

	for (size_t i = 0; i < r->rows.n && i < FUNCTIONS_MAX; i++) {
		const struct row *row = &r->rows.v[i];
		cJSON *object = json__append_object(list);

		json__add_text(object, "name", row->name);
		if (row->suffix[0])
			cJSON_AddTrueToObject(object, "inlined");
		json__add_text(object, "in", row->inside ? row->inside->name : NULL);
		cJSON_AddNumberToObject(object, "extra_ns", (double)row->extra_ns);
		json__add_number(object, "slow_ns", row->slow_ns);
	}
}

/* Adds the paths in pre-order, without recursion, for which their tree may be too deep. */
static void add_frames(cJSON *root, const struct report *r)
{
	cJSON *list = cJSON_AddArrayToObject(root, "frames"), *frame;
	uint64_t least_ns = report__slow_ns(r) / FRAME_SHARE;
	uint32_t at = r->paths.v[0].first_child, depth = 0;
	size_t n = 0;

	while (at && n < FRAMES_MAX) {
		const struct path *path = &r->paths.v[at];
		bool is_shown = path->slow_ns && path->slow_ns >= least_ns;

		if (is_shown) {
			frame = cJSON_CreateArray();
			cJSON_AddItemToArray(list, frame);
			cJSON_AddItemToArray(frame, cJSON_CreateNumber(depth));
			json__append_text(frame, call__name(path->call));
			cJSON_AddItemToArray(frame, cJSON_CreateNumber((double)path->slow_ns));
			n++;
		}
		if (is_shown && path->first_child) {
			at = path->first_child;
			depth++;
			continue;
		}
		while (at && !r->paths.v[at].next) {
			at = r->paths.v[at].parent;
			depth -= at != 0;
		}
		at = at ? r->paths.v[at].next : 0;
	}
}

/* A thread's time in each stretch of the slow iteration, by what it did. */
struct bins {
	uint64_t start_ns, ns; /* of the iteration */
	uint64_t v[SUMMARY_BINS][ACCOUNT_PARTS];
	uint64_t cpu_ns;
};

static uint64_t bin_start(const struct bins *bins, uint64_t i)
{
	return bins->start_ns + (uint64_t)((__uint128_t)bins->ns * i / SUMMARY_BINS);
}

static void spend(struct bins *bins, enum account_part part, uint64_t from, uint64_t to)
{
	uint64_t end = bins->start_ns + bins->ns;

	from = from > bins->start_ns ? from : bins->start_ns;
	to = to < end ? to : end;
	if (from >= to)
		return;
	if (part == ACCOUNT_CPU)
		bins->cpu_ns += to - from;
	for (uint64_t i =
		     (uint64_t)((__uint128_t)(from - bins->start_ns) * SUMMARY_BINS / bins->ns);
	     i < SUMMARY_BINS && bin_start(bins, i) < to; i++) {
		uint64_t a = bin_start(bins, i), b = bin_start(bins, i + 1);

		a = a > from ? a : from;
		b = b < to ? b : to;
		if (a < b)
			bins->v[i][part] += b - a;
	}
}

/* Calls are in pre-order, so one pass suffices; parents lead to the other open calls. */
static void fill_bins(struct bins *bins, const struct report *r, const struct call_tree *tree)
{
	const struct call *calls = tree->calls.v;
	uint32_t open = CALL_NO_PARENT;
	uint64_t now = 0;

	for (size_t i = 0; i <= tree->calls.n; i++) {
		uint32_t parent = i < tree->calls.n ? calls[i].parent : CALL_NO_PARENT;

		for (; open != CALL_NO_PARENT && open != parent; open = calls[open].parent) {
			spend(bins, report__part_of(r, &calls[open]), now, calls[open].end_ns);
			now = calls[open].end_ns;
		}
		if (i == tree->calls.n)
			return;
		if (open != CALL_NO_PARENT)
			spend(bins, report__part_of(r, &calls[open]), now, calls[i].start_ns);
		now = calls[i].start_ns;
		open = (uint32_t)i;
	}
}

static void add_thread(cJSON *list, const struct call_tree *tree, const struct bins *bins,
		       bool is_slow)
{
	cJSON *object = json__append_object(list);
	char text[SUMMARY_BINS + 1] = "";

	json__add_text(object, "name", tree->coroutine ? tree->coroutine_name : tree->comm);
	json__add_number(object, "tid", (uint64_t)tree->tid);
	if (is_slow)
		cJSON_AddTrueToObject(object, "slow");
	/*
	 * Writes the letter of the part that has most of each stretch; a space if the thread is
	 * unknown there.
	 */
	for (size_t i = 0; i < SUMMARY_BINS; i++) {
		int most = -1;

		for (int part = 0; part < ACCOUNT_PARTS; part++)
			if (bins->v[i][part] && (most < 0 || bins->v[i][part] > bins->v[i][most]))
				most = part;
		text[i] = most < 0 ? ' ' : account_parts[most].letter;
	}
	json__add_text(object, "bins", text);
}

/* Adds the thread that triggered, then those of the others that ran the longest meanwhile. */
static int add_threads(cJSON *root, const struct report *r)
{
	cJSON *list = cJSON_AddArrayToObject(root, "threads");
	const struct period *slow = report__slow(r);
	const struct bins empty = {.start_ns = slow->start_ns, .ns = slow->end_ns - slow->start_ns};
	struct bins *bins = malloc(sizeof(*bins));
	uint64_t *cpu_ns = calloc(r->n_trees + 1, sizeof(*cpu_ns));

	if (!bins || !cpu_ns || !empty.ns)
		goto out;
	for (size_t i = 0; i < r->n_trees; i++) {
		*bins = empty;
		fill_bins(bins, r, &r->trees[i]);
		cpu_ns[i] = &r->trees[i] == r->tree ? UINT64_MAX : bins->cpu_ns;
	}
	for (int shown = 0; shown <= THREADS_MAX; shown++) {
		size_t most = 0;

		for (size_t i = 1; i < r->n_trees; i++)
			if (cpu_ns[i] > cpu_ns[most])
				most = i;
		if (!cpu_ns[most])
			break;
		*bins = empty;
		fill_bins(bins, r, &r->trees[most]);
		add_thread(list, &r->trees[most], bins, &r->trees[most] == r->tree);
		cpu_ns[most] = 0;
	}
out:
	free(cpu_ns);
	free(bins);
	return bins && cpu_ns ? 0 : -ENOMEM;
}

char *summary__make(const struct report *r, const struct summary_facts *facts)
{
	cJSON *root = cJSON_CreateObject(), *labels;
	const struct hit_mark *hit = facts->hit;
	uint64_t unix_ms = hit && hit->unix_ms ? hit->unix_ms : facts->unix_ms;
	char *text;
	int err = 0;

	json__add_number(root, "summary", SUMMARY_VERSION);
	json__add_text(root, "tool", "mtbpf " MTBPF_VERSION);
	json__add_number(root, "data_bytes", facts->data_bytes);
	json__add_text(root, "command", facts->command);
	json__add_text(root, "program", facts->program);
	json__add_text(root, "build_id", facts->build_id);
	if (unix_ms)
		json__add_number(root, "unix_ms", unix_ms);
	labels = cJSON_AddObjectToObject(root, "labels");
	for (size_t i = 0; i < facts->n_labels; i++)
		json__add_text(labels, facts->labels[i].key, facts->labels[i].value);
	if (hit)
		report__add_hit(root, hit);
	if (hit && hit->n_prints)
		add_print(root, hit);
	if (r) {
		report__add_account(root, r);
		if (r->sampled)
			cJSON_AddTrueToObject(root, "sampled");
		json__add_number(root, "slow_ns", report__slow_ns(r));
		json__add_number(root, "ordinary_ns", r->ordinary_ns);
		json__add_number(root, "ordinary_iterations", r->n_ordinary);
		err = add_causes(root, r);
		add_functions(root, r);
		add_frames(root, r);
		if (!err)
			err = add_threads(root, r);
	} else {
		json__add_text(root, "no_report", facts->no_report);
	}
	text = err ? NULL : cJSON_PrintUnformatted(root);
	cJSON_Delete(root);
	return text;
}

/* Reading: the file may come from anybody. */

/* 0 if it is not a positive number, or one from 9e18 on. */
static uint64_t number(const cJSON *item)
{
	double value = cJSON_IsNumber(item) ? item->valuedouble : 0;

	return value > 0 && value < 9e18 ? (uint64_t)value : 0;
}

static uint64_t number_of(const cJSON *object, const char *key)
{
	return number(json__item(object, key));
}

/* cJSON bounds how deep it reads (CJSON_NESTING_LIMIT): no recursion is deeper. */
static void clean(cJSON *item)
{
	for (; item; item = item->next) {
		if (item->string)
			label__clean_in_place(item->string);
		if (cJSON_IsString(item))
			label__clean_in_place(item->valuestring);
		clean(item->child);
	}
}

static bool is_inlined(const cJSON *list, int i)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, list)
		if (cJSON_IsNumber(item) && item->valueint == i)
			return true;
	return false;
}

static int parse_cause(struct summary *s, const cJSON *object)
{
	const char *kind = json__text(object, "kind"), *text = json__text(object, "text");
	const cJSON *inlined = json__item(object, "inlined"), *item;
	struct summary_cause *cause;
	int i = 0, err = 0;

	while (kind && i < CAUSE_KINDS && strcmp(kind, cause_kinds[i].key))
		i++;
	if (!kind || i == CAUSE_KINDS || !text || s->causes.n >= CAUSES_MAX)
		return -EINVAL;
	cause = VEC_PUSH(&s->causes);
	if (!cause)
		return -ENOMEM;
	*cause = (struct summary_cause){.kind = i,
					.ns = number_of(object, "ns"),
					.text = text,
					.of = json__text(object, "of"),
					.meanwhile = json__text(object, "meanwhile")};
	i = 0;
	cJSON_ArrayForEach(item, json__item(object, "path")) {
		const char *name = cJSON_GetStringValue(item);

		if (!name || i >= REASON_PATH_MAX)
			return -EINVAL;
		if (!err)
			err = VEC_ADD(&cause->path,
				      (struct summary_frame){name, is_inlined(inlined, i)});
		i++;
	}
	return err;
}

static int parse_function(struct summary *s, const cJSON *object)
{
	const cJSON *extra = json__item(object, "extra_ns");
	const char *name = json__text(object, "name");

	if (!name || !cJSON_IsNumber(extra) || !(extra->valuedouble > -9e18) ||
	    !(extra->valuedouble < 9e18) || s->functions.n >= FUNCTIONS_MAX)
		return -EINVAL;
	return VEC_ADD(
		&s->functions,
		(struct summary_function){.name = name,
					  .in = json__text(object, "in"),
					  .is_inlined = cJSON_IsTrue(json__item(object, "inlined")),
					  .extra_ns = (int64_t)extra->valuedouble,
					  .slow_ns = number_of(object, "slow_ns")});
}

int summary__parse(struct summary *s, const char *path, const char *text, uint64_t data_bytes)
{
	const cJSON *root, *account, *hit, *item;
	int err = 0;

	*s = (struct summary){.path = strdup(path)};
	if (!s->path)
		return -ENOMEM;
	s->root = cJSON_Parse(text);
	if (!cJSON_IsObject(s->root))
		return -EINVAL;
	if (number_of(s->root, "summary") != SUMMARY_VERSION)
		return -EPROTO;
	if (data_bytes && number_of(s->root, "data_bytes") != data_bytes)
		return -ESTALE;
	clean(s->root->child);
	root = s->root;
	account = json__item(root, "account");
	hit = json__item(root, "hit");
	s->no_report = json__text(root, "no_report");
	s->command = json__text(root, "command");
	s->program = json__text(root, "program");
	s->build_id = json__text(root, "build_id");
	s->host = summary__label(s, "host");
	s->function = json__text(hit, "function");
	s->trace_id = json__text(hit, "trace_id");
	s->print = json__text(root, "print");
	s->unix_ms = number_of(root, "unix_ms");
	s->slow_ns = number_of(root, "slow_ns");
	s->ordinary_ns = number_of(root, "ordinary_ns");
	for (int i = 0; i < ACCOUNT_PARTS; i++) {
		s->slow[i] = number_of(json__item(account, "slow"), account_parts[i].key);
		s->ordinary[i] = number_of(json__item(account, "ordinary"), account_parts[i].key);
	}
	cJSON_ArrayForEach(item, json__item(root, "causes"))
		if (!err)
			err = parse_cause(s, item);
	cJSON_ArrayForEach(item, json__item(root, "functions"))
		if (!err)
			err = parse_function(s, item);
	if (!err && !s->no_report && !s->slow_ns)
		err = -EINVAL;
	return err;
}

void summary__fini(struct summary *s)
{
	VEC_FINI_EACH(&s->causes, e, VEC_FINI(&e->path));
	VEC_FINI(&s->functions);
	cJSON_Delete(s->root);
	free(s->path);
}

const char *summary__label(const struct summary *s, const char *key)
{
	return json__text(json__item(s->root, "labels"), key);
}

bool summary__label_at(const struct summary *s, size_t i, struct summary_label *out)
{
	const cJSON *label = cJSON_GetArrayItem(json__item(s->root, "labels"), (int)i);

	*out = (struct summary_label){label ? label->string : NULL, cJSON_GetStringValue(label)};
	return out->key && out->value;
}

uint64_t summary__excess(const struct summary *s)
{
	return s->slow_ns > s->ordinary_ns ? s->slow_ns - s->ordinary_ns : 0;
}

bool summary__next_call(const struct summary *s, struct summary_call *call)
{
	const cJSON *frames = json__item(s->root, "frames"), *depth;
	uint64_t at;

	call->item = call->n++ ? call->item->next : frames ? frames->child : NULL;
	depth = cJSON_GetArrayItem(call->item, 0);
	call->name = cJSON_GetStringValue(cJSON_GetArrayItem(call->item, 1));
	call->ns = number(cJSON_GetArrayItem(call->item, 2));
	at = number(depth);
	/* Each frame's parent comes before it. */
	if (!cJSON_IsNumber(depth) || !call->name || at > (call->n > 1 ? call->depth + 1 : 0) ||
	    call->n > FRAMES_MAX)
		return false;
	call->depth = (uint32_t)at;
	return true;
}

bool summary__thread(const struct summary *s, size_t i, struct summary_thread *out)
{
	const cJSON *thread = cJSON_GetArrayItem(json__item(s->root, "threads"), (int)i);
	const char *bins = json__text(thread, "bins"), *name = json__text(thread, "name");

	if (i > THREADS_MAX || !bins || !name || strlen(bins) != SUMMARY_BINS)
		return false;
	*out = (struct summary_thread){.name = name,
				       .bins = bins,
				       .tid = number_of(thread, "tid"),
				       .is_slow = cJSON_IsTrue(json__item(thread, "slow"))};
	return true;
}
