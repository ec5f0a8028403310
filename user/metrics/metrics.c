// SPDX-License-Identifier: MIT
#include "metrics/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The text format, version 0.0.4: prometheus.io/docs/instrumenting/exposition_formats; names and
 * units by prometheus.io/docs/practices/naming.
 */

static const char *const skipped_names[N_SKIPPED] = {"rate", "limits", "busy", "size", "disk"};
static const char *const lost_names[N_LOST] = {"triggers", "trace", "records"};

static const char *const on_capture_names[N_ON_CAPTURE] = {"ok", "failed"};

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void number(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
	head(out, name, type, help);
	fprintf(out, "%s %" PRIu64 "\n", name, value);
}

static void labelled(FILE *out, const char *name, const char *label, const char *const *labels,
		     const uint64_t *values, int n)
{
	for (int i = 0; i < n; i++)
		fprintf(out, "%s{%s=\"%s\"} %" PRIu64 "\n", name, label, labels[i], values[i]);
}

/* Buckets are cumulative. Our last bucket also counts all larger values, so it has no upper end. */
static void histogram(FILE *out, const char *name, const struct mt_stats *stats)
{
	uint64_t count = 0;

	for (int i = 0; i < MT_HIST_BUCKETS - 1; i++) {
		count += stats->hist[i];
		fprintf(out, "%s_bucket{le=\"%.9g\"} %" PRIu64 "\n", name,
			(double)(1ull << (i + 1)) / 1e9, count);
	}
	count += stats->hist[MT_HIST_BUCKETS - 1];
	fprintf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, count);
	fprintf(out, "%s_sum %.9f\n%s_count %" PRIu64 "\n", name, (double)stats->sum_ns / 1e9, name,
		count);
}

static void print_hits(FILE *out, const struct metrics *m)
{
	const char *name = m->of_durations ? "mtbpf_duration_seconds" : "mtbpf_delay_seconds";

	number(out, "mtbpf_hits_total", "counter", "Hits of the trigger's function.",
	       m->stats.hits);
	number(out, "mtbpf_triggers_total", "counter", "Hits that froze a trace.",
	       m->stats.triggers);
	head(out, name, "histogram",
	     m->of_durations ? "Durations of calls of the function."
			     : "Time from one hit to the same thread's next.");
	histogram(out, name, &m->stats);
	head(out, "mtbpf_threshold_seconds", "gauge", "From which on a hit is a trigger.");
	if (m->threshold_ns == UINT64_MAX)
		fputs("mtbpf_threshold_seconds +Inf\n", out);
	else
		fprintf(out, "mtbpf_threshold_seconds %.9g\n", (double)m->threshold_ns / 1e9);
}

static void print_captures(FILE *out, const struct metrics *m)
{
	number(out, "mtbpf_captures_total", "counter", "Recordings made, of triggers.",
	       m->captures);
	number(out, "mtbpf_requests_total", "counter", "Recordings made on request, by SIGUSR1.",
	       m->requests);
	head(out, "mtbpf_captures_skipped_total", "counter",
	     "Hits over the threshold that left no recording.");
	labelled(out, "mtbpf_captures_skipped_total", "reason", skipped_names, m->skipped,
		 N_SKIPPED);
	head(out, "mtbpf_lost_total", "counter", "Data missing from recordings.");
	labelled(out, "mtbpf_lost_total", "what", lost_names, m->lost, N_LOST);
	head(out, "mtbpf_on_capture_total", "counter", "Runs of -on-capture's command.");
	labelled(out, "mtbpf_on_capture_total", "result", on_capture_names, m->on_capture,
		 N_ON_CAPTURE);
}

void metrics__add_cause(struct metrics *m, const struct metrics_cause *cause)
{
	struct metrics_cause *other = &m->causes[METRICS_CAUSES_MAX], *to = other;

	for (size_t i = 0; i < m->n_causes && to == other; i++)
		if (!strcmp(m->causes[i].kind, cause->kind) &&
		    !strcmp(m->causes[i].function, cause->function))
			to = &m->causes[i];
	if (to == other && m->n_causes < METRICS_CAUSES_MAX) {
		to = &m->causes[m->n_causes++];
		*to = *cause;
		to->ns = to->n = 0;
	}
	to->ns += cause->ns;
	to->n++;
}

/* A label's value: the format escapes these three. */
static void print_value(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			fputc('\\', out);
		if (*text == '\n')
			fputs("\\n", out);
		else
			fputc(*text, out);
	}
}

static void print_cause(FILE *out, const char *name, const struct metrics_cause *cause)
{
	bool is_other = !cause->kind[0];

	fprintf(out, "%s{kind=\"%s\",function=\"", name, is_other ? "other" : cause->kind);
	print_value(out, cause->function);
	fputs("\"} ", out);
}

static void print_causes(FILE *out, const struct metrics *m)
{
	head(out, "mtbpf_cause_seconds_total", "counter",
	     "Time of slow iterations beyond ordinary ones, by cause.");
	for (size_t i = 0; i <= METRICS_CAUSES_MAX; i++) {
		if (!m->causes[i].n)
			continue;
		print_cause(out, "mtbpf_cause_seconds_total", &m->causes[i]);
		fprintf(out, "%.9f\n", (double)m->causes[i].ns / 1e9);
	}
	head(out, "mtbpf_cause_captures_total", "counter", "Captures that had this cause.");
	for (size_t i = 0; i <= METRICS_CAUSES_MAX; i++) {
		if (!m->causes[i].n)
			continue;
		print_cause(out, "mtbpf_cause_captures_total", &m->causes[i]);
		fprintf(out, "%" PRIu64 "\n", m->causes[i].n);
	}
}

static void print_state(FILE *out, const struct metrics *m)
{
	head(out, "mtbpf_build_info", "gauge", "The version; its value is 1.");
	fputs("mtbpf_build_info{version=\"" MTBPF_VERSION "\"} 1\n", out);
	number(out, "mtbpf_attached", "gauge", "1 while the target is there, and watched.",
	       m->attached);
	number(out, "mtbpf_attaches_total", "counter", "Targets that were attached to.",
	       m->attaches);
	number(out, "mtbpf_recordings", "gauge", "Recordings in the folder.", m->recordings);
	number(out, "mtbpf_recordings_bytes", "gauge", "Their size.", m->recordings_bytes);
	if (!m->newest_unix_ms)
		return;
	head(out, "mtbpf_newest_recording_timestamp_seconds", "gauge",
	     "When the newest of them was taken.");
	fprintf(out, "mtbpf_newest_recording_timestamp_seconds %" PRIu64 ".%03u\n",
		m->newest_unix_ms / 1000, (unsigned int)(m->newest_unix_ms % 1000));
}

char *metrics__print(const struct metrics *m)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int failed;

	if (!out)
		return NULL;
	print_state(out, m);
	print_hits(out, m);
	print_captures(out, m);
	print_causes(out, m);
	failed = ferror(out);
	if (!fclose(out) && !failed)
		return text;
	free(text);
	return NULL;
}
