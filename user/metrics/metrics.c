// SPDX-License-Identifier: MIT
#include "metrics/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/http.h"
#include "util/log.h"
#include "util/vec.h"

/*
 * The text format, version 0.0.4: prometheus.io/docs/instrumenting/exposition_formats; names and
 * units by prometheus.io/docs/practices/naming. OpenMetrics 1.0.0 (IETF,
 * draft-richih-opsawg-openmetrics) differs in three things: the name of a counter's family lacks
 * "_total", samples of counters may have exemplars, and "# EOF" is the last line.
 */

struct printer {
	FILE *out;
	enum metrics_format format;
};

static const char *const skipped_names[N_SKIPPED] = {"rate", "limits", "busy", "size", "disk"};
static const char *const lost_names[N_LOST] = {"triggers", "trace", "records"};

static const char *const on_capture_names[N_ON_CAPTURE] = {"ok", "failed"};

#define TOTAL "_total"

static void head(const struct printer *p, const char *name, const char *type, const char *help)
{
	size_t n = strlen(name);

	if (p->format == METRICS_OPEN && !strcmp(type, "counter"))
		n -= strlen(TOTAL);
	fprintf(p->out, "# HELP %.*s %s\n# TYPE %.*s %s\n", (int)n, name, help, (int)n, name, type);
}

static void number(const struct printer *p, const char *name, const char *type, const char *help,
		   uint64_t value)
{
	head(p, name, type, help);
	fprintf(p->out, "%s %" PRIu64 "\n", name, value);
}

/* Completes the line of one sample. */
static void end_sample(const struct printer *p, const struct metrics_exemplar *exemplar,
		       double value)
{
	if (p->format == METRICS_OPEN && exemplar->trace_id[0])
		fprintf(p->out, " # {trace_id=\"%s\"} %.9g %" PRIu64 ".%03u", exemplar->trace_id,
			value, exemplar->unix_ms / 1000, (unsigned int)(exemplar->unix_ms % 1000));
	fputc('\n', p->out);
}

static void labelled(const struct printer *p, const char *name, const char *label,
		     const char *const *labels, const uint64_t *values, int n)
{
	for (int i = 0; i < n; i++)
		fprintf(p->out, "%s{%s=\"%s\"} %" PRIu64 "\n", name, label, labels[i], values[i]);
}

static void print_hits(const struct printer *p, const struct metrics *m)
{
	const char *name = m->cpu_measure == MT_CPU_ON	  ? "mtbpf_on_cpu_seconds"
			   : m->cpu_measure == MT_CPU_OFF ? "mtbpf_off_cpu_seconds"
			   : m->of_durations		  ? "mtbpf_duration_seconds"
							  : "mtbpf_delay_seconds";
	uint64_t count = 0;

	number(p, "mtbpf_hits_total", "counter", "Hits of the trigger's function.", m->stats.hits);
	number(p, "mtbpf_triggers_total", "counter", "Hits that froze a trace.", m->stats.triggers);
	head(p, name, "histogram",
	     m->cpu_measure == MT_CPU_ON    ? "Time on the CPU within what is measured."
	     : m->cpu_measure == MT_CPU_OFF ? "Time off the CPU within what is measured."
	     : m->of_durations		    ? "Durations of calls of the function."
					    : "Time from one hit to the same thread's next.");
	/*
	 * Buckets are cumulative. Our last bucket also counts all larger values, so its upper end
	 * is +Inf.
	 */
	for (int i = 0; i < MT_HIST_BUCKETS - 1; i++) {
		count += m->stats.hist[i];
		fprintf(p->out, "%s_bucket{le=\"%.9g\"} %" PRIu64 "\n", name,
			(double)(1ull << (i + 1)) / 1e9, count);
	}
	count += m->stats.hist[MT_HIST_BUCKETS - 1];
	fprintf(p->out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, count);
	fprintf(p->out, "%s_sum %.9f\n%s_count %" PRIu64 "\n", name, (double)m->stats.sum_ns / 1e9,
		name, count);
	head(p, "mtbpf_threshold_seconds", "gauge", "From which on a hit is a trigger.");
	if (m->threshold_ns == UINT64_MAX)
		fputs("mtbpf_threshold_seconds +Inf\n", p->out);
	else
		fprintf(p->out, "mtbpf_threshold_seconds %.9g\n", (double)m->threshold_ns / 1e9);
}

void metrics__add_cause(struct metrics *m, const struct metrics_cause *cause)
{
	struct metrics_cause *to =
		FIND_IN(m->causes, m->n_causes, e,
			!strcmp(e->kind, cause->kind) && !strcmp(e->function, cause->function));

	if (!to && m->n_causes < METRICS_CAUSES_MAX) {
		to = &m->causes[m->n_causes++];
		*to = *cause;
		to->ns = to->n = 0;
	}
	to = to ?: &m->causes[METRICS_CAUSES_MAX];
	to->ns += cause->ns;
	to->n++;
	if (cause->exemplar.trace_id[0])
		to->exemplar = cause->exemplar;
}

static void print_cause(const struct printer *p, const char *name,
			const struct metrics_cause *cause)
{
	bool is_other = !cause->kind[0];

	fprintf(p->out, "%s{kind=\"%s\",function=\"", name, is_other ? "other" : cause->kind);
	/* The format escapes \, " and newline in a label's value. */
	for (const char *c = cause->function; *c; c++) {
		if (*c == '\\' || *c == '"')
			fputc('\\', p->out);
		if (*c == '\n')
			fputs("\\n", p->out);
		else
			fputc(*c, p->out);
	}
	fputs("\"} ", p->out);
}

static void print_causes(const struct printer *p, const struct metrics *m)
{
	head(p, "mtbpf_cause_seconds_total", "counter",
	     "Time of slow iterations beyond ordinary ones, by cause.");
	for (size_t i = 0; i <= METRICS_CAUSES_MAX; i++) {
		if (!m->causes[i].n)
			continue;
		print_cause(p, "mtbpf_cause_seconds_total", &m->causes[i]);
		fprintf(p->out, "%.9f", (double)m->causes[i].ns / 1e9);
		end_sample(p, &m->causes[i].exemplar, (double)m->causes[i].exemplar.ns / 1e9);
	}
	head(p, "mtbpf_cause_captures_total", "counter", "Captures that had this cause.");
	for (size_t i = 0; i <= METRICS_CAUSES_MAX; i++) {
		if (!m->causes[i].n)
			continue;
		print_cause(p, "mtbpf_cause_captures_total", &m->causes[i]);
		fprintf(p->out, "%" PRIu64 "\n", m->causes[i].n);
	}
}

char *metrics__print(const struct metrics *m, enum metrics_format format)
{
	char *text = NULL;
	size_t size;
	struct printer p = {open_memstream(&text, &size), format};
	int failed;

	if (!p.out)
		return NULL;
	head(&p, "mtbpf_build_info", "gauge", "The version; its value is 1.");
	fputs("mtbpf_build_info{version=\"" MTBPF_VERSION "\"} 1\n", p.out);
	number(&p, "mtbpf_attached", "gauge", "1 while the target is there, and watched.",
	       m->attached);
	number(&p, "mtbpf_attaches_total", "counter", "Targets that were attached to.",
	       m->attaches);
	number(&p, "mtbpf_recordings", "gauge", "Recordings in the folder.", m->recordings);
	number(&p, "mtbpf_recordings_bytes", "gauge", "Their size.", m->recordings_bytes);
	if (m->newest_unix_ms) {
		head(&p, "mtbpf_newest_recording_timestamp_seconds", "gauge",
		     "When the newest of them was taken.");
		fprintf(p.out, "mtbpf_newest_recording_timestamp_seconds %" PRIu64 ".%03u\n",
			m->newest_unix_ms / 1000, (unsigned int)(m->newest_unix_ms % 1000));
	}
	print_hits(&p, m);
	head(&p, "mtbpf_captures_total", "counter", "Recordings made, of triggers.");
	fprintf(p.out, "mtbpf_captures_total %" PRIu64, m->captures);
	end_sample(&p, &m->capture, 1);
	number(&p, "mtbpf_requests_total", "counter", "Recordings made on request, by SIGUSR1.",
	       m->requests);
	head(&p, "mtbpf_captures_skipped_total", "counter",
	     "Triggers and requests (SIGUSR1) that left no recording.");
	labelled(&p, "mtbpf_captures_skipped_total", "reason", skipped_names, m->skipped,
		 N_SKIPPED);
	head(&p, "mtbpf_lost_total", "counter", "Data missing from recordings.");
	labelled(&p, "mtbpf_lost_total", "what", lost_names, m->lost, N_LOST);
	head(&p, "mtbpf_on_capture_total", "counter", "Runs of -on-capture's command.");
	labelled(&p, "mtbpf_on_capture_total", "result", on_capture_names, m->on_capture,
		 N_ON_CAPTURE);
	print_causes(&p, m);
	if (format == METRICS_OPEN)
		fputs("# EOF\n", p.out);
	failed = ferror(p.out);
	if (!fclose(p.out) && !failed)
		return text;
	free(text);
	return NULL;
}

/* The best quality that an Accept header gives a type (RFC 9110, 12.5.1); 0: not accepted. */
static double quality_of(const char *accept, const char *type)
{
	size_t n = strlen(type);
	double best = 0;

	while (*accept) {
		size_t length = strcspn(accept, ",");
		const char *at = accept + strspn(accept, " \t"), *end = accept + length;
		double quality = 1;

		if (!strncasecmp(at, type, n) && strchr(",; \t", at[n])) {
			for (at += n; (at = memchr(at, ';', (size_t)(end - at)));) {
				at++;
				at += strspn(at, " \t");
				if (!strncasecmp(at, "q=", 2))
					quality = strtod(at + 2, NULL);
			}
			best = quality > best ? quality : best;
		}
		accept = end + (*end == ',');
	}
	return best;
}

enum metrics_format metrics__choose_format(const char *accept)
{
	double open = accept ? quality_of(accept, "application/openmetrics-text") : 0;

	return open > 0 && open >= quality_of(accept, "text/plain") ? METRICS_OPEN : METRICS_TEXT;
}

static const char *const types[] = {
	[METRICS_TEXT] = "text/plain; version=0.0.4",
	[METRICS_OPEN] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/* A client that sends nothing for this long is disconnected. */
#define TIMEOUT_S	10u
#define CONNECTIONS_MAX 16u

struct metrics_server {
	struct http_server *http;
	struct listener listener;
	pthread_mutex_t lock; /* for metrics */
	struct metrics metrics;
};

static void answer(void *ctx, const struct http_request *request, struct http_answer *answer)
{
	struct metrics_server *server = ctx;
	enum metrics_format format =
		metrics__choose_format(http_request__header(request, "Accept"));
	struct metrics metrics;

	if (strcmp(request->method, "GET") && strcmp(request->method, "HEAD")) {
		http_answer__say(answer, 405, "GET only\n");
		http_answer__add_header(answer, "Allow", "GET, HEAD");
		return;
	}
	if (strcmp(request->path, "/metrics")) {
		http_answer__say(answer, 404, "there is only /metrics\n");
		return;
	}
	pthread_mutex_lock(&server->lock);
	metrics = server->metrics;
	pthread_mutex_unlock(&server->lock);
	answer->own_text = metrics__print(&metrics, format);
	if (!answer->own_text)
		return;
	answer->size = strlen(answer->own_text);
	answer->status = 200;
	answer->type = types[format];
	http_answer__add_header(answer, "Vary", "Accept");
}

struct metrics_server *metrics_server__start(const char *address)
{
	struct metrics_server *server = calloc(1, sizeof(*server));
	const struct http_options options = {.answer = answer,
					     .ctx = server,
					     .connections_max = CONNECTIONS_MAX,
					     .timeout_s = TIMEOUT_S};
	int err;

	if (!server)
		return NULL;
	pthread_mutex_init(&server->lock, NULL);
	err = listener__open(&server->listener, address);
	if (!err) {
		server->http = http_server__start(&server->listener, &options);
		if (server->http) {
			log__info("metrics: %s%s", server->listener.url,
				  server->listener.port ? "/metrics" : "");
			return server;
		}
		err = -EIO;
		log__error("-metrics: cannot answer at %s", server->listener.url);
		log__hint("raise the limit of processes (ulimit -u), or free memory");
	} else if (err == -EINVAL) {
		log__error("-metrics: '%s' is neither a loopback address with a port nor a unix "
			   "socket",
			   address);
		log__hint("use -metrics 127.0.0.1:9464 or -metrics unix:/run/mtbpf.sock");
	} else {
		log__error("-metrics: cannot listen on %s: %s", address, strerror(-err));
		log__hint(err == -EADDRINUSE
				  ? "choose another one: a process, perhaps another mtbpf, uses it"
				  : "choose another one");
	}
	metrics_server__stop(server);
	errno = -err;
	return NULL;
}

void metrics_server__stop(struct metrics_server *server)
{
	if (!server)
		return;
	http_server__stop(server->http);
	listener__close(&server->listener);
	pthread_mutex_destroy(&server->lock);
	free(server);
}

void metrics_server__set(struct metrics_server *server, const struct metrics *metrics)
{
	if (!server)
		return;
	pthread_mutex_lock(&server->lock);
	server->metrics = *metrics;
	pthread_mutex_unlock(&server->lock);
}
