// SPDX-License-Identifier: MIT
/* The pattern of many captures: as text, as JSON, as CSV, as stacks, and against another one. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/json.h"
#include "util/text.h"
#include "util/units.h"
#include "util/vec.h"
#include "view/folded.h"
#include "view/pattern.h"
#include "util/names.h"

/* Limits of a line. Of a path, the innermost functions are printed. */
#define NAMES_MAX 6
#define HOSTS_MAX 4

const char *pattern__leaf(const struct pattern *pattern)
{
	return pattern->path.n ? pattern->path.v[pattern->path.n - 1].name : "";
}

void pattern__print_title(FILE *out, const struct pattern *pattern)
{
	const char *opening = cause_kinds[pattern->kind].opening;
	size_t n = pattern->path.n, first = n > NAMES_MAX ? n - NAMES_MAX : 0;

	fputs(opening ?: cause_kinds[pattern->kind].name, out);
	if (opening && !n)
		fprintf(out, "code that is not known");
	for (size_t i = first; i < n && opening; i++)
		fprintf(out, "%s%s", i > first ? " > " : "", SHORT_NAME(pattern->path.v[i].name));
	if (pattern->of && strcmp(pattern->of, pattern__leaf(pattern)))
		fprintf(out, "%s%s", pattern->kind == CAUSE_WAITING ? ", taken by " : ": ",
			pattern->of);
}

static void print_hosts(FILE *out, const char *const *hosts, size_t n)
{
	for (size_t i = 0; i < n && i < HOSTS_MAX; i++)
		fprintf(out, "%s%s", i ? ", " : "", hosts[i]);
	if (n > HOSTS_MAX)
		fprintf(out, " and %zu more", n - HOSTS_MAX);
}

static void print_span(FILE *out, uint64_t first_ms, uint64_t last_ms)
{
	if (!first_ms)
		fprintf(out, "at unknown times");
	else if (first_ms == last_ms)
		fprintf(out, "%s", MOMENT(first_ms));
	else
		fprintf(out, "%s to %s", MOMENT(first_ms), MOMENT(last_ms));
}

/* Values of a label that are shown. */
#define VALUES_MAX 4

/* "labels: image shop/web:1 (30), shop/web:2 (20); zone eu-1 (50)" */
static void print_labels(FILE *out, const struct patterns *p)
{
	const char *key = NULL;
	size_t n = 0;

	VEC_EACH(&p->labels, label) {
		bool is_new = !key || strcmp(key, label->key);

		n = is_new ? 0 : n + 1;
		if (is_new)
			fprintf(out, "%s%s ", key ? "; " : "labels: ", label->key);
		if (n < VALUES_MAX)
			fprintf(out, "%s%s (%zu)", n ? ", " : "", label->value, label->n);
		else if (n == VALUES_MAX)
			fprintf(out, ", ...");
		key = label->key;
	}
	if (key)
		fputc('\n', out);
}

static void print_pattern(FILE *out, const struct patterns *p, const struct pattern *pattern)
{
	const struct pattern_entry *worst = &pattern->entries.v[0];
	double share = p->lost_ns ? pattern->lost_ns * 100.0 / (double)p->lost_ns : 0;
	size_t also = pattern->entries.n - pattern->n_main;
	char count[48];

	/* "12+3": it is the largest cause of 12 captures, and a smaller cause of 3 others. */
	snprintf(count, sizeof(count), "%zu+%zu", pattern->n_main, also);
	if (!also)
		*strchr(count, '+') = '\0';
	fprintf(out, "  %10s %4u %% %8s %10s %10s  ", DURATION(pattern->lost_ns),
		(unsigned int)(share + 0.5), count, DURATION(pattern->median_ns),
		DURATION(worst->cause->ns));
	pattern__print_title(out, pattern);
	fprintf(out, "\n%49s", "");
	print_span(out, pattern->first_ms, pattern->last_ms);
	if (p->hosts.n > 1) {
		fprintf(out, "; ");
		print_hosts(out, pattern->hosts.v, pattern->hosts.n);
	}
	fprintf(out, "\n%49s%s\n", "", worst->summary->path);
	if (worst->cause->meanwhile)
		fprintf(out, "%49swhile: %s\n", "", worst->cause->meanwhile);
}

static void print_account(FILE *out, const char *name, const uint64_t parts[static ACCOUNT_PARTS],
			  const uint64_t others[static ACCOUNT_PARTS])
{
	fprintf(out, "  %-9s", name);
	for (int i = 0, n = 0; i < ACCOUNT_PARTS; i++)
		if (parts[i] || others[i])
			fprintf(out, "%s%s %s", n++ ? " · " : "", account_parts[i].name,
				DURATION(parts[i]));
	fputc('\n', out);
}

/* A capture may contain no ordinary iteration, or none with stacks. */
static void print_accounts(FILE *out, const struct patterns *p)
{
	if (p->n_compared == p->n_reports)
		fprintf(out, "all slow iterations, and as many ordinary ones:\n");
	else if (p->n_compared)
		fprintf(out,
			"all slow iterations, and one ordinary one from each of the %zu of %zu "
			"captures that contain some with stacks:\n",
			p->n_compared, p->n_reports);
	else
		fprintf(out, "all slow iterations; the captures contain no ordinary ones with "
			     "stacks to compare with:\n");
	print_account(out, "slow", p->slow, p->ordinary);
	if (p->n_compared)
		print_account(out, "ordinary", p->ordinary, p->slow);
}

/* Lists each reason for a missing cause once, with its number of captures. */
static void print_without_cause(FILE *out, const struct patterns *p)
{
	static const char is_none[] = "the iteration was not slower than ordinary ones";
	const char *said[8];
	size_t n_said = 0;

	for (size_t i = 0; i < p->n && n_said < 8; i++) {
		const struct summary *s = &p->summaries[i];
		const char *why = s->no_report ?: s->causes.n ? NULL : is_none;
		size_t n = 0, k = 0;

		while (why && k < n_said && strcmp(said[k], why))
			k++;
		if (!why || k < n_said)
			continue;
		said[n_said++] = why;
		for (size_t m = i; m < p->n; m++) {
			const char *other = p->summaries[m].no_report
						    ?: p->summaries[m].causes.n ? NULL
										: is_none;

			n += other && !strcmp(other, why);
		}
		fprintf(out, "no cause in %zu capture%s: %s; first: %s\n", n, n == 1 ? "" : "s",
			why, s->path);
	}
}

void patterns__print(FILE *out, const struct patterns *p, size_t top)
{
	fprintf(out, "%zu capture%s", p->n, p->n == 1 ? "" : "s");
	if (!p->n_reports) {
		fprintf(out, ", and no cause in any\n");
	} else {
		if (p->hosts.n) {
			fprintf(out, " of %zu host%s, ", p->hosts.n, p->hosts.n == 1 ? "" : "s");
			print_hosts(out, p->hosts.v, p->hosts.n);
		}
		fprintf(out, ", ");
		print_span(out, p->first_ms, p->last_ms);
		fprintf(out, "\n%s %s, by cause:\n", DURATION(p->lost_ns),
			p->n_timed == p->n_reports ? "more than ordinary iterations took"
			: p->n_timed ? "in slow iterations, less what ordinary ones took where "
				       "that is known"
				     : "in slow iterations");
		fprintf(out, "  %10s %6s %8s %10s %10s  %s\n", "extra", "share", "captures",
			"median", "worst", "cause, when, and the worst capture");
	}
	for (size_t i = 0; i < p->all.n; i++)
		print_pattern(out, p, &p->all.v[i]);
	if (p->n_reports) {
		print_accounts(out, p);
		fprintf(out, "  %10s %8s  function\n", "extra", "captures");
		if (p->functions.n < top)
			top = p->functions.n;
		for (size_t i = 0; i < top && p->functions.v[i].extra_ns > 0; i++)
			fprintf(out, "  %10s %8zu  %s\n",
				DURATION((uint64_t)p->functions.v[i].extra_ns), p->functions.v[i].n,
				SHORT_NAME(p->functions.v[i].name));
	}
	print_labels(out, p);
	print_without_cause(out, p);
}

/* JSON */

static void add_moment(cJSON *object, const char *key, uint64_t ms)
{
	if (ms)
		cJSON_AddStringToObject(object, key, MOMENT(ms));
}

static void add_hosts(cJSON *object, const char *const *hosts, size_t n)
{
	cJSON *list = cJSON_AddArrayToObject(object, "hosts");

	for (size_t i = 0; i < n; i++)
		json__append_text(list, hosts[i]);
}

static void add_title(cJSON *object, const struct pattern *pattern)
{
	char *title = TEXT_OF(out, pattern__print_title(out, pattern));
	cJSON *path = cJSON_AddArrayToObject(object, "path");

	cJSON_AddStringToObject(object, "cause", title ?: "");
	free(title);
	cJSON_AddStringToObject(object, "kind", cause_kinds[pattern->kind].key);
	json__add_text(object, "of", pattern->of);
	for (size_t i = 0; i < pattern->path.n; i++)
		json__append_text(path, pattern->path.v[i].name);
}

static void add_pattern(cJSON *list, const struct patterns *p, const struct pattern *pattern)
{
	cJSON *object = json__append_object(list);

	add_title(object, pattern);
	json__add_number(object, "captures", pattern->n_main);
	json__add_number(object, "also_in", pattern->entries.n - pattern->n_main);
	json__add_number(object, "lost_ns", pattern->lost_ns);
	cJSON_AddNumberToObject(object, "share",
				p->lost_ns ? (double)pattern->lost_ns / (double)p->lost_ns : 0);
	json__add_number(object, "median_ns", pattern->median_ns);
	json__add_number(object, "worst_ns", pattern->entries.v[0].cause->ns);
	add_hosts(object, pattern->hosts.v, pattern->hosts.n);
	add_moment(object, "first", pattern->first_ms);
	add_moment(object, "last", pattern->last_ms);
	cJSON_AddStringToObject(object, "example", pattern->entries.v[0].summary->path);
	cJSON_AddStringToObject(object, "reason", pattern->entries.v[0].cause->text);
	json__add_text(object, "meanwhile", pattern->entries.v[0].cause->meanwhile);
}

static void add_labels(cJSON *root, const struct patterns *p)
{
	cJSON *labels = cJSON_AddObjectToObject(root, "labels"), *values = NULL;

	for (size_t i = 0; i < p->labels.n; i++) {
		const struct pattern_label *label = &p->labels.v[i];

		if (!values || strcmp(p->labels.v[i - 1].key, label->key))
			values = cJSON_AddObjectToObject(labels, label->key);
		json__add_number(values, label->value, label->n);
	}
}

static void add_account(cJSON *parent, const char *name, const uint64_t parts[static ACCOUNT_PARTS])
{
	cJSON *object = cJSON_AddObjectToObject(parent, name);

	for (int i = 0; i < ACCOUNT_PARTS; i++)
		json__add_number(object, account_parts[i].key, parts[i]);
}

/* Adds each capture with the index of its largest cause, so that a script can group captures. */
static void add_captures(cJSON *root, const struct patterns *p)
{
	cJSON *list = cJSON_AddArrayToObject(root, "files");

	for (size_t i = 0; i < p->n; i++) {
		const struct summary *s = &p->summaries[i];
		cJSON *object = json__append_object(list);

		cJSON_AddStringToObject(object, "file", s->path);
		add_moment(object, "time", s->unix_ms);
		json__add_text(object, "host", s->host);
		json__add_text(object, "build_id", s->build_id);
		json__add_text(object, "trace_id", s->trace_id);
		json__add_text(object, "print", s->print);
		if (s->no_report)
			cJSON_AddStringToObject(object, "no_report", s->no_report);
		else
			json__add_number(object, "slow_ns", s->slow_ns);
		for (size_t k = 0; k < p->all.n; k++)
			for (size_t e = 0; e < p->all.v[k].entries.n; e++)
				if (p->all.v[k].entries.v[e].summary == s &&
				    p->all.v[k].entries.v[e].is_main)
					json__add_number(object, "cause", k);
	}
}

int patterns__print_json(FILE *out, const struct patterns *p)
{
	cJSON *root = cJSON_CreateObject(), *list, *account;

	json__add_number(root, "captures", p->n);
	json__add_number(root, "captures_without_report", p->n - p->n_reports);
	json__add_number(root, "lost_ns", p->lost_ns);
	add_hosts(root, p->hosts.v, p->hosts.n);
	add_labels(root, p);
	add_moment(root, "first", p->first_ms);
	add_moment(root, "last", p->last_ms);
	list = cJSON_AddArrayToObject(root, "causes");
	for (size_t i = 0; i < p->all.n; i++)
		add_pattern(list, p, &p->all.v[i]);
	account = cJSON_AddObjectToObject(root, "account");
	add_account(account, "slow", p->slow);
	if (p->n_compared)
		add_account(account, "ordinary", p->ordinary);
	list = cJSON_AddArrayToObject(root, "functions");
	for (size_t i = 0; i < p->functions.n; i++) {
		cJSON *object = json__append_object(list);

		cJSON_AddStringToObject(object, "name", p->functions.v[i].name);
		json__add_number(object, "captures", p->functions.v[i].n);
		cJSON_AddNumberToObject(object, "extra_ns", (double)p->functions.v[i].extra_ns);
	}
	add_captures(root, p);
	return json__print_line(out, root);
}

/* CSV */

/*
 * A spreadsheet takes text that begins with one of these characters for a formula, unless an
 * apostrophe comes first.
 */
static void print_field(FILE *out, const char *text)
{
	fputc('"', out);
	if (*text && strchr("=+-@\t\r", *text))
		fputc('\'', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

void patterns__print_csv(FILE *out, const struct patterns *p)
{
	fputs("cause,kind,function,of,captures,also_in,lost_ns,share,median_ns,worst_ns,hosts,"
	      "first,last,example\r\n",
	      out);
	VEC_EACH(&p->all, pattern) {
		char *title = TEXT_OF(text, pattern__print_title(text, pattern));

		print_field(out, title ?: "");
		fprintf(out, ",%s,", cause_kinds[pattern->kind].key);
		print_field(out, pattern__leaf(pattern));
		fputc(',', out);
		print_field(out, pattern->of ?: "");
		fprintf(out, ",%zu,%zu,%" PRIu64 ",%.4f,%" PRIu64 ",%" PRIu64 ",\"",
			pattern->n_main, pattern->entries.n - pattern->n_main, pattern->lost_ns,
			p->lost_ns ? (double)pattern->lost_ns / (double)p->lost_ns : 0.0,
			pattern->median_ns, pattern->entries.v[0].cause->ns);
		for (size_t i = 0; i < pattern->hosts.n; i++) {
			fputs(i ? " " : "", out);
			for (const char *at = pattern->hosts.v[i]; *at; at++)
				fputc(*at == '"' ? '\'' : *at, out);
		}
		fprintf(out, "\",%s,%s,", pattern->first_ms ? MOMENT(pattern->first_ms) : "",
			pattern->first_ms ? MOMENT(pattern->last_ms) : "");
		print_field(out, pattern->entries.v[0].summary->path);
		fputs("\r\n", out);
		free(title);
	}
}

/* Stacks */

#define FOLDED_DEPTH 512

struct folding {
	FILE *out;
	const char *command;
	const char *names[FOLDED_DEPTH];
	uint64_t self_ns[FOLDED_DEPTH]; /* of the open frames: time outside of their callees */
	uint32_t open;
};

static void close_to(struct folding *f, uint32_t depth)
{
	while (f->open > depth) {
		uint64_t ns = f->self_ns[--f->open];

		if (!ns)
			continue;
		folded__print_name(f->out, f->command);
		for (uint32_t i = 0; i <= f->open; i++) {
			fputc(';', f->out);
			folded__print_name(f->out, f->names[i]);
		}
		fprintf(f->out, " %" PRIu64 "\n", ns);
	}
}

void patterns__print_folded(FILE *out, const struct patterns *p)
{
	for (size_t i = 0; i < p->n; i++) {
		struct folding f = {.out = out, .command = p->summaries[i].command ?: "thread"};
		struct summary_call call = {0};

		while (summary__next_call(&p->summaries[i], &call)) {
			if (call.depth >= FOLDED_DEPTH)
				continue;
			close_to(&f, call.depth);
			if (call.depth && f.self_ns[call.depth - 1] >= call.ns)
				f.self_ns[call.depth - 1] -= call.ns;
			f.names[call.depth] = call.name;
			f.self_ns[call.depth] = call.ns;
			f.open = call.depth + 1;
		}
		close_to(&f, 0);
	}
}

/* Two sets */

enum change { CHANGE_CAME, CHANGE_WENT, CHANGE_MORE, CHANGE_LESS, CHANGE_NONE };

/* A cause's figures in one of the sets. */
struct side {
	size_t n; /* captures */
	uint64_t lost_ns, median_ns;
	const struct pattern_entry *worst; /* NULL: none */
};

struct change_of {
	const struct pattern *pattern;
	struct side sides[2];
	enum change change;
	double per_capture[2]; /* per set: time lost divided by its number of captures (ns) */
};

struct changes {
	size_t n_reports[2];
	VEC(struct change_of) all;
};

static const char *const change_names[] = {"came", "went", "more", "less", "same"};

/* The pattern's entries are sorted, largest first. */
static struct side side_of(const struct patterns *p, const struct pattern *pattern, size_t n_first,
			   bool is_second)
{
	struct side side = {0};
	size_t at = 0;

	for (size_t i = 0; i < pattern->entries.n; i++)
		side.n += ((size_t)(pattern->entries.v[i].summary - p->summaries) >= n_first) ==
			  is_second;
	VEC_EACH(&pattern->entries, entry) {
		if (((size_t)(entry->summary - p->summaries) >= n_first) != is_second)
			continue;
		if (!side.worst)
			side.worst = entry;
		side.lost_ns += entry->cause->ns;
		if (at == side.n / 2 || at == (side.n - 1) / 2)
			side.median_ns += entry->cause->ns / (side.n % 2 ? 1 : 2);
		at++;
	}
	return side;
}

/*
 * Counts vary by their square root: a difference below twice that is chance. Medians count as
 * different above a factor of 1.5, if both sets have at least three captures.
 */
static enum change compare(const struct change_of *c, const struct changes *changes)
{
	const struct side *a = &c->sides[0], *b = &c->sides[1];
	double scale = (double)changes->n_reports[1] / (double)(changes->n_reports[0] ?: 1);
	double expected = (double)a->n * scale, difference = (double)b->n - expected;
	double variance = (double)b->n + expected * scale;
	bool is_other_often = difference * difference > 4 * variance;
	double longer = (double)b->median_ns / (double)(a->median_ns ?: 1);
	bool is_other_long = a->n >= 3 && b->n >= 3 && (longer > 1.5 || longer < 1 / 1.5);
	double ratio = c->per_capture[0] > 0 ? c->per_capture[1] / c->per_capture[0] : 1;

	if (!a->n || !b->n)
		return a->n ? CHANGE_WENT : CHANGE_CAME;
	if (!is_other_often && !is_other_long)
		return CHANGE_NONE;
	return ratio > 1.5 ? CHANGE_MORE : ratio < 1 / 1.5 ? CHANGE_LESS : CHANGE_NONE;
}

static double size_of(const struct change_of *c)
{
	double d = c->per_capture[1] - c->per_capture[0];

	return d < 0 ? -d : d;
}

ORDER(by_change, struct change_of, COMPARE(x->change, y->change) ?: COMPARE(size_of(y), size_of(x)))

static const char *format_side(char buf[static 64], const struct side *side, double per_capture)
{
	if (!side->n)
		snprintf(buf, 64, "-");
	else
		snprintf(buf, 64, "%s in %zu", DURATION((uint64_t)per_capture), side->n);
	return buf;
}

static void print_changes(FILE *out, const struct changes *changes)
{
	fprintf(out,
		"captures with a report: %zu in A, %zu in B; extra time per capture, and "
		"captures with the cause:\n  %-6s %18s %18s  cause\n",
		changes->n_reports[0], changes->n_reports[1], "", "A", "B");
	VEC_EACH(&changes->all, c) {
		const struct pattern_entry *example = c->sides[1].worst ?: c->sides[0].worst;
		char a[64], b[64];

		fprintf(out, "  %-6s %18s %18s  ", change_names[c->change],
			format_side(a, &c->sides[0], c->per_capture[0]),
			format_side(b, &c->sides[1], c->per_capture[1]));
		pattern__print_title(out, c->pattern);
		fprintf(out, "\n%48s%s\n", "", example->summary->path);
	}
}

static void add_side(cJSON *object, const char *key, const struct side *side)
{
	cJSON *item = side->n ? cJSON_AddObjectToObject(object, key) : NULL;

	if (!item)
		return;
	json__add_number(item, "captures", side->n);
	json__add_number(item, "lost_ns", side->lost_ns);
	json__add_number(item, "median_ns", side->median_ns);
	json__add_number(item, "worst_ns", side->worst->cause->ns);
	cJSON_AddStringToObject(item, "example", side->worst->summary->path);
}

static int print_changes_json(FILE *out, const struct changes *changes)
{
	cJSON *root = cJSON_CreateObject(), *list;

	json__add_number(root, "captures_a", changes->n_reports[0]);
	json__add_number(root, "captures_b", changes->n_reports[1]);
	list = cJSON_AddArrayToObject(root, "changes");
	VEC_EACH(&changes->all, c) {
		cJSON *object = json__append_object(list);

		cJSON_AddStringToObject(object, "change", change_names[c->change]);
		add_title(object, c->pattern);
		add_side(object, "a", &c->sides[0]);
		add_side(object, "b", &c->sides[1]);
	}
	return json__print_line(out, root);
}

int patterns__print_difference(FILE *out, const struct patterns *p, size_t n_first, bool json)
{
	struct changes changes = {0};
	int err = 0;

	for (size_t i = 0; i < p->n; i++)
		changes.n_reports[i >= n_first] += !p->summaries[i].no_report;
	for (size_t i = 0; i < p->all.n && !err; i++) {
		struct change_of c = {.pattern = &p->all.v[i]};

		for (int k = 0; k < 2; k++) {
			c.sides[k] = side_of(p, c.pattern, n_first, k);
			c.per_capture[k] =
				(double)c.sides[k].lost_ns / (double)(changes.n_reports[k] ?: 1);
		}
		c.change = compare(&c, &changes);
		err = VEC_ADD(&changes.all, c);
	}
	VEC_SORT(&changes.all, by_change);
	if (!err && json)
		err = print_changes_json(out, &changes);
	else if (!err)
		print_changes(out, &changes);
	VEC_FINI(&changes.all);
	return err;
}
