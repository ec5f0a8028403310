// SPDX-License-Identifier: MIT
#include "view/page.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/text.h"
#include "util/units.h"
#include "view/page_style.h"
#include "util/names.h"

/* Colours of causes; those that come after them share the last. */
#define COLOURS 8
/* Flame graphs leave out frames with less than this percentage of the iteration. */
#define FRAME_LEAST 0.3
#define ROW_HEIGHT  18
#define ROWS_MAX    48
/* A hot path shows at most HOT_MAX functions, each with at least 1/HOT_SHARE of the iteration. */
#define HOT_MAX	  12
#define HOT_SHARE 10

struct page {
	FILE *out;
	const struct patterns *p;
	const struct page_options *options;
	size_t *cause_of; /* of each summary: 1 + the pattern that is its main one; 0: none */
	bool *is_shown;	  /* of each summary: it has a section of its own */
};

/* Text */

/*
 * Returns the length of a mark that changes the direction of text, and could show a name as another
 * one; 0: no mark.
 */
static size_t direction_mark(const char *at)
{
	const unsigned char *s = (const unsigned char *)at;

	if (s[0] == 0xe2 && s[1] == 0x80 &&
	    ((s[2] >= 0xaa && s[2] <= 0xae) || s[2] == 0x8e || s[2] == 0x8f))
		return 3;
	return s[0] == 0xe2 && s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9 ? 3 : 0;
}

/* Prints text, escaped for HTML. Names come from a program, or from whoever wrote the summary. */
static void put(FILE *out, const char *text)
{
	static const char special[] = "&<>\"'";
	static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};

	while (*text) {
		const char *found = strchr(special, *text);
		size_t mark = direction_mark(text);

		if (mark)
			fputc('?', out);
		else if (found)
			fputs(names[found - special], out);
		else
			fputc(*text, out);
		text += mark ? mark : 1;
	}
}

/* "2026-11-21 10:00:00" or "2026-11-21 10:00:00 to 2026-11-21 12:00:00" */
static void put_span(FILE *out, uint64_t first_ms, uint64_t last_ms)
{
	char text[UNITS_MOMENT_SIZE];

	if (!first_ms) {
		fputs("at an unknown time", out);
		return;
	}
	units__format_moment(text, first_ms);
	fprintf(out, "%.10s %.8s", text, text + 11);
	if (last_ms == first_ms)
		return;
	units__format_moment(text, last_ms);
	fprintf(out, " to %.10s %.8s", text, text + 11);
}

/* Puts the text between two pieces of the page; nothing if it is NULL. */
static void put_in(FILE *out, const char *before, const char *text, const char *after)
{
	if (!text)
		return;
	fputs(before, out);
	put(out, text);
	fputs(after, out);
}

static void put_hosts(FILE *out, const char *const *hosts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put_in(out, i ? ", " : "", hosts[i], "");
}

static int put_title(FILE *out, const struct pattern *pattern)
{
	_cleanup_free_ char *text = TEXT_OF(title, pattern__print_title(title, pattern));

	if (!text)
		return -ENOMEM;
	put(out, text);
	return 0;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static size_t colour_of(size_t pattern)
{
	return pattern < COLOURS ? pattern : COLOURS - 1;
}

/* The table of causes */

static int put_pattern(const struct page *page, size_t i)
{
	const struct pattern *pattern = &page->p->all.v[i];
	FILE *out = page->out;
	size_t also = pattern->entries.n - pattern->n_main;
	double share = percent(pattern->lost_ns, page->p->lost_ns);

	fprintf(out,
		"<tr><td class=\"n\" data-l=\"extra\">%s</td><td data-l=\"share\"><svg "
		"class=\"bar\" width=\"100%%\" height=\"14\"><rect class=\"k%zu\" "
		"width=\"%.1f%%\" height=\"14\"/></svg> %.0f %%</td>",
		DURATION(pattern->lost_ns), colour_of(i), share > 100 ? 100 : share, share);
	fprintf(out, "<td class=\"n\" data-l=\"captures\">%zu", pattern->n_main);
	if (also)
		fprintf(out, "+%zu", also);
	fprintf(out,
		"</td><td class=\"n\" data-l=\"median\">%s</td><td class=\"n\" "
		"data-l=\"worst\">%s</td><td class=\"c\"><a href=\"#cause-%zu\">",
		DURATION(pattern->median_ns), DURATION(pattern->entries.v[0].cause->ns), i);
	if (put_title(out, pattern))
		return -ENOMEM;
	fprintf(out, "</a><small>");
	put_span(out, pattern->first_ms, pattern->last_ms);
	if (pattern->hosts.n)
		fputs("; ", out);
	put_hosts(out, pattern->hosts.v, pattern->hosts.n);
	fprintf(out, "</small></td></tr>\n");
	return 0;
}

/* Delays over time */

#define PLOT_HEIGHT 220
#define PLOT_BOTTOM 24

struct scale {
	uint64_t first_ms, last_ms;
	double low, high; /* log10 of nanoseconds, rounded to whole numbers */
};

static struct scale scale_of(const struct patterns *p)
{
	struct scale scale = {p->first_ms, p->last_ms, 19, 0};

	for (size_t i = 0; i < p->n; i++) {
		double log = log10((double)(summary__excess(&p->summaries[i]) ?: 1));

		if (p->summaries[i].no_report || log < 1)
			continue;
		scale.low = log < scale.low ? log : scale.low;
		scale.high = log > scale.high ? log : scale.high;
	}
	scale.low = floor(scale.low);
	scale.high = ceil(scale.high);
	if (scale.high <= scale.low)
		scale.high = scale.low + 1;
	return scale;
}

static double place_y(const struct scale *scale, uint64_t ns)
{
	double log = log10((double)(ns ?: 1));
	double part = (log - scale->low) / (scale->high - scale->low);

	part = part < 0 ? 0 : part > 1 ? 1 : part;
	return 8 + (1 - part) * (PLOT_HEIGHT - PLOT_BOTTOM - 8);
}

static void put_point(const struct page *page, const struct scale *scale, size_t i)
{
	const struct summary *s = &page->p->summaries[i];
	double span = (double)(scale->last_ms - scale->first_ms);
	FILE *out = page->out;

	if (s->no_report || !s->unix_ms)
		return;
	if (page->is_shown[i])
		fprintf(out, "<a href=\"#capture-%zu\">", i);
	/* Room for the axis is on the left. */
	fprintf(out, "<circle class=\"k%zu\" cx=\"%.2f%%\" cy=\"%.1f\" r=\"4\"><title>",
		page->cause_of[i] ? colour_of(page->cause_of[i] - 1) : COLOURS,
		span > 0 ? 18 + 80 * (double)(s->unix_ms - scale->first_ms) / span : 55,
		place_y(scale, summary__excess(s)));
	put_span(out, s->unix_ms, s->unix_ms);
	fprintf(out, ": %s", DURATION(summary__excess(s)));
	put_in(out, ", ", s->host, "");
	fprintf(out, "</title></circle>%s\n", page->is_shown[i] ? "</a>" : "");
}

static void put_plot(const struct page *page)
{
	struct scale scale = scale_of(page->p);
	char text[UNITS_MOMENT_SIZE];
	FILE *out = page->out;

	if (!page->p->first_ms || !page->p->n_reports)
		return;
	fprintf(out,
		"<h2>Delays over time</h2>\n<p class=\"note\">One point per capture: by how much "
		"longer than an ordinary iteration it took, in the colour of its largest cause; "
		"times are UTC.</p>\n<svg class=\"plot\" width=\"100%%\" height=\"%d\" "
		"role=\"img\">\n",
		PLOT_HEIGHT);
	for (double decade = scale.low; decade <= scale.high; decade++) {
		uint64_t ns = (uint64_t)pow(10, decade);
		double y = place_y(&scale, ns);

		fprintf(out,
			"<line class=\"axis\" x1=\"0%%\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/>"
			"<text x=\"3\" y=\"%.1f\">%s</text>\n",
			y, y, y < 20 ? y + 12 : y - 3, DURATION(ns));
	}
	units__format_moment(text, scale.first_ms);
	fprintf(out, "<text x=\"3\" y=\"%d\">%.16s</text>", PLOT_HEIGHT - 4, text);
	units__format_moment(text, scale.last_ms);
	if (scale.last_ms > scale.first_ms)
		fprintf(out, "<text x=\"100%%\" y=\"%d\" text-anchor=\"end\">%.16s</text>\n",
			PLOT_HEIGHT - 4, text);
	for (size_t i = 0; i < page->p->n; i++)
		put_point(page, &scale, i);
	fputs("</svg>\n", out);
}

/* The account */

static void put_bar(FILE *out, const char *name, const uint64_t parts[static ACCOUNT_PARTS],
		    uint64_t whole)
{
	double at = 0;

	fprintf(out, "<div class=\"row\"><span>%s</span><svg width=\"100%%\" height=\"18\">", name);
	for (int i = 0; i < ACCOUNT_PARTS; i++) {
		double width = percent(parts[i], whole);

		if (!parts[i])
			continue;
		fprintf(out,
			"<rect class=\"p%d\" x=\"%.2f%%\" width=\"%.2f%%\" "
			"height=\"18\"><title>%s %s</title></rect>",
			i, at, width, account_parts[i].name, DURATION(parts[i]));
		at += width;
	}
	fputs("</svg></div>\n", out);
}

/* Prints both bars to the scale of the longer one. */
static void put_account(FILE *out, const uint64_t slow[static ACCOUNT_PARTS],
			const uint64_t ordinary[static ACCOUNT_PARTS])
{
	uint64_t whole = 0, other = 0;

	for (int i = 0; i < ACCOUNT_PARTS; i++) {
		whole += slow[i];
		other += ordinary[i];
	}
	whole = other > whole ? other : whole;
	put_bar(out, "slow", slow, whole);
	if (other)
		put_bar(out, "ordinary", ordinary, whole);
	fputs("<p class=\"legend\">", out);
	for (int i = 0; i < ACCOUNT_PARTS; i++)
		if (slow[i] || ordinary[i]) {
			fprintf(out,
				"<span><svg width=\"10\" height=\"10\"><rect class=\"p%d\" "
				"width=\"10\" height=\"10\"/></svg> %s %s",
				i, account_parts[i].name, DURATION(slow[i]));
			if (other)
				fprintf(out, " (%s)", DURATION(ordinary[i]));
			fputs("</span> ", out);
		}
	fputs("</p>\n", out);
}

/* A flame graph */

static unsigned int hue_of(const char *name)
{
	unsigned int hash = 0;

	if (name[0] == '[')
		return 9;
	while (*name)
		hash = hash * 31 + (unsigned char)*name++;
	return hash % 6;
}

/* Prints the frames, or only counts their rows if `out` is NULL. Returns the number of rows. */
static uint32_t put_frames(FILE *out, const struct summary *s)
{
	uint64_t ends_ns[ROWS_MAX + 1] = {0}; /* by depth: where the next sibling begins */
	struct summary_call call = {0};
	uint32_t rows = 0;

	while (summary__next_call(s, &call)) {
		uint64_t from_ns;

		if (call.depth >= ROWS_MAX)
			continue;
		from_ns = ends_ns[call.depth];
		ends_ns[call.depth] += call.ns;
		ends_ns[call.depth + 1] = from_ns;
		if (percent(call.ns, s->slow_ns) < FRAME_LEAST)
			continue;
		rows = call.depth + 1 > rows ? call.depth + 1 : rows;
		if (!out)
			continue;
		fprintf(out,
			"<svg x=\"%.2f%%\" y=\"%u\" width=\"%.2f%%\" height=\"%d\"><rect "
			"class=\"f%u\" width=\"100%%\" height=\"%d\"/>",
			percent(from_ns, s->slow_ns), call.depth * ROW_HEIGHT,
			percent(call.ns, s->slow_ns), ROW_HEIGHT - 1, hue_of(call.name),
			ROW_HEIGHT - 1);
		put_in(out, "<text x=\"3\" y=\"13\">", SHORT_NAME(call.name), "</text>");
		put_in(out, "<title>", call.name, " ");
		fprintf(out, "%s</title></svg>\n", DURATION(call.ns));
	}
	return rows;
}

static void put_flames(FILE *out, const struct summary *s)
{
	uint32_t rows = put_frames(NULL, s);

	if (!rows)
		return;
	fprintf(out,
		"<h4>Where the time went: callers on top, the width is the time</h4>\n<svg "
		"class=\"flame\" width=\"100%%\" height=\"%u\">\n",
		rows * ROW_HEIGHT);
	put_frames(out, s);
	fputs("</svg>\n", out);
}

/* Prints the hot path: the first HOT_MAX functions that have at least a tenth of the iteration. */
static void put_hot_path(FILE *out, const struct summary *s)
{
	struct summary_call call = {0};
	size_t n = 0;

	while (n < HOT_MAX && summary__next_call(s, &call)) {
		if (call.ns < s->slow_ns / HOT_SHARE)
			continue;
		if (!n++)
			fputs("<h4>Hot path</h4>\n<pre>", out);
		fprintf(out, "%*s", (int)(call.depth < 20 ? call.depth : 20), "");
		put(out, SHORT_NAME(call.name));
		fprintf(out, "  %s\n", DURATION(call.ns));
	}
	if (n)
		fputs("</pre>\n", out);
}

/* The timeline */

static void put_thread(FILE *out, const struct summary_thread *thread)
{
	fprintf(out, "<div class=\"row\"><span%s>", thread->is_slow ? " class=\"slow\"" : "");
	put(out, thread->name);
	fprintf(out, " %" PRIu64 "</span><svg width=\"100%%\" height=\"14\">", thread->tid);
	for (int i = 0, n; i < SUMMARY_BINS; i += n) {
		int part = 0;

		while (part < ACCOUNT_PARTS && account_parts[part].letter != thread->bins[i])
			part++;
		for (n = 1; i + n < SUMMARY_BINS && thread->bins[i + n] == thread->bins[i]; n++)
			;
		if (part < ACCOUNT_PARTS)
			fprintf(out,
				"<rect class=\"p%d\" x=\"%.2f%%\" width=\"%.2f%%\" "
				"height=\"14\"><title>%s</title></rect>",
				part, 100.0 * i / SUMMARY_BINS, 100.0 * n / SUMMARY_BINS,
				account_parts[part].name);
	}
	fputs("</svg></div>\n", out);
}

static void put_timeline(FILE *out, const struct summary *s)
{
	struct summary_thread thread;

	if (!summary__thread(s, 0, &thread))
		return;
	fputs("<h4>The slow iteration, and what other threads did meanwhile</h4>\n", out);
	for (size_t i = 0; summary__thread(s, i, &thread); i++)
		put_thread(out, &thread);
	fprintf(out,
		"<div class=\"row\"><span></span><span class=\"ends\"><b>0</b><b>%s</b></span>"
		"</div>\n",
		DURATION(s->slow_ns));
}

/* Captures */

static void put_capture(const struct page *page, size_t i, size_t cause)
{
	const struct summary *s = &page->p->summaries[i];
	const char *link = page->options->link ? page->options->link(page->options->ctx, i) : NULL;
	FILE *out = page->out;

	fprintf(out,
		"<details class=\"capture\" id=\"capture-%zu\"><summary><i class=\"k%zu\"></i>", i,
		colour_of(cause));
	put_span(out, s->unix_ms, s->unix_ms);
	fprintf(out, " <b>%s</b>", DURATION(s->slow_ns));
	put_in(out, " ", s->function ? SHORT_NAME(s->function) : NULL, "");
	put_in(out, ", ", s->host, "");
	put_in(out, "</summary>\n<p><code>", s->path, "</code>");
	put_in(out, " <a class=\"open\" href=\"", link, "\">open in Perfetto</a>");
	put_in(out, "<br>trace id <code>", s->trace_id, "</code>");
	put_in(out, "<br><code>", s->print, "</code>");
	fputs("</p>\n<ul>", out);
	for (size_t k = 0; k < s->causes.n; k++) {
		put_in(out, "<li>", s->causes.v[k].text, "");
		put_in(out, "<br>while: ", s->causes.v[k].meanwhile, "");
		fputs("</li>", out);
	}
	fputs("</ul>\n", out);
	put_account(out, s->slow, s->ordinary);
	put_timeline(out, s);
	put_flames(out, s);
	put_hot_path(out, s);
	fputs("</details>\n", out);
}

static int put_cause(const struct page *page, size_t i)
{
	const struct pattern *pattern = &page->p->all.v[i];
	size_t left = 0;
	FILE *out = page->out;
	int err;

	fprintf(out, "<section id=\"cause-%zu\"><h3><i class=\"k%zu\"></i>", i, colour_of(i));
	err = put_title(out, pattern);
	fputs("</h3>\n", out);
	for (size_t k = 0; k < pattern->entries.n; k++) {
		size_t at = (size_t)(pattern->entries.v[k].summary - page->p->summaries);

		if (!page->is_shown[at])
			left++;
		else if (!pattern->entries.v[k].is_main)
			fprintf(out,
				"<p class=\"note\">also in <a href=\"#capture-%zu\">a "
				"capture</a> that has a larger cause</p>\n",
				at);
		else
			put_capture(page, at, i);
	}
	if (left)
		fprintf(out, "<p class=\"note\">%zu capture%s with a smaller excess left out</p>\n",
			left, left == 1 ? "" : "s");
	fputs("</section>\n", out);
	return err;
}

/*
 * Chooses the captures that get a section: one of each cause in turn, until there are
 * PAGE_CAPTURES_MAX.
 */
static void choose_shown(const struct page *page)
{
	size_t shown = 0;
	bool any = true;

	for (size_t k = 0; any && shown < PAGE_CAPTURES_MAX; k++) {
		any = false;
		VEC_EACH_WHILE(&page->p->all, pattern, shown < PAGE_CAPTURES_MAX) {
			if (k >= pattern->entries.n)
				continue;
			any = true;
			if (!pattern->entries.v[k].is_main)
				continue;
			page->is_shown[pattern->entries.v[k].summary - page->p->summaries] = true;
			shown++;
		}
	}
}

static void put_head(const struct page *page)
{
	const struct patterns *p = page->p;
	FILE *out = page->out;

	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "style-src 'sha256-" PAGE_STYLE_SHA256 "'; base-uri 'none'; form-action 'none'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta name=\"referrer\" content=\"no-referrer\">\n"
	      "<title>mtbpf: why it was slow</title>\n<style>" PAGE_STYLE "</style></head>\n"
	      "<body><header><h1>",
	      out);
	fprintf(out, "%s %sin %zu slow iteration%s</h1><p>", DURATION(p->lost_ns),
		p->n_timed == p->n_reports ? "more than ordinary " : "", p->n_reports,
		p->n_reports == 1 ? "" : "s");
	put_span(out, p->first_ms, p->last_ms);
	fputs(" UTC", out);
	if (p->hosts.n) {
		fprintf(out, "; %zu host%s: ", p->hosts.n, p->hosts.n == 1 ? "" : "s");
		put_hosts(out, p->hosts.v, p->hosts.n);
	}
	if (p->n > p->n_reports)
		fprintf(out, "; %zu more captures without a report", p->n - p->n_reports);
	fputs("</p></header>\n", out);
}

/* Prints each label with its values, and for each value the number of captures. */
static void put_labels(const struct page *page)
{
	const struct patterns *p = page->p;

	for (size_t i = 0; i < p->labels.n; i++) {
		const struct pattern_label *label = &p->labels.v[i];
		bool is_new = !i || strcmp(p->labels.v[i - 1].key, label->key);

		if (is_new)
			put_in(page->out, i ? "<br>" : "<p class=\"note\">", label->key, ": ");
		put_in(page->out, is_new ? "" : ", ", label->value, "");
		fprintf(page->out, " (%zu)", label->n);
	}
	if (p->labels.n)
		fputs("</p>\n", page->out);
}

static void put_functions(const struct page *page)
{
	const struct patterns *p = page->p;

	fputs("<h2>All slow iterations</h2>\n", page->out);
	put_account(page->out, p->slow, p->ordinary);
	fputs("<table "
	      "class=\"functions\"><thead><tr><th>extra</th><th>captures</th><th>function</th>"
	      "</tr></thead><tbody>\n",
	      page->out);
	for (size_t i = 0; i < p->functions.n && i < 10 && p->functions.v[i].extra_ns > 0; i++) {
		fprintf(page->out, "<tr><td class=\"n\">%s</td><td class=\"n\">%zu</td>",
			DURATION((uint64_t)p->functions.v[i].extra_ns), p->functions.v[i].n);
		put_in(page->out, "<td>", SHORT_NAME(p->functions.v[i].name), "</td></tr>\n");
	}
	fputs("</tbody></table>\n", page->out);
}

int page__print(FILE *out, const struct patterns *p, const struct page_options *options)
{
	struct page page = {.out = out,
			    .p = p,
			    .options = options,
			    .cause_of = calloc(p->n + 1, sizeof(*page.cause_of)),
			    .is_shown = calloc(p->n + 1, sizeof(*page.is_shown))};
	int err = page.cause_of && page.is_shown ? 0 : -ENOMEM;

	if (err)
		goto out;
	for (size_t i = 0; i < p->all.n; i++)
		VEC_EACH(&p->all.v[i].entries, entry)
			if (entry->is_main)
				page.cause_of[entry->summary - p->summaries] = i + 1;
	choose_shown(&page);
	put_head(&page);
	fputs("<h2>Causes</h2>\n<table class=\"causes\"><thead><tr><th>extra</th><th>share</th>"
	      "<th>captures</th><th>median</th><th>worst</th><th>cause</th></tr></thead><tbody>\n",
	      out);
	for (size_t i = 0; i < p->all.n && !err; i++)
		err = put_pattern(&page, i);
	if (err)
		goto out;
	fputs("</tbody></table>\n", out);
	put_plot(&page);
	put_functions(&page);
	put_labels(&page);
	fputs("<h2>Captures</h2>\n", out);
	for (size_t i = 0; i < p->all.n && !err; i++)
		err = put_cause(&page, i);
	fputs("<footer>mtbpf " MTBPF_VERSION "</footer></body></html>\n", out);
out:
	free(page.cause_of);
	free(page.is_shown);
	return err;
}
