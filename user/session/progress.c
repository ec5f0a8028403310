// SPDX-License-Identifier: MIT
#include "session/progress.h"

#include <stdarg.h>
#include <stdio.h>

#include "util/clock.h"
#include "util/log.h"
#include "util/units.h"

/* Appends what fits; returns the length. */
__attribute__((format(printf, 3, 4))) static size_t append(char *buf, size_t n, const char *fmt,
							   ...)
{
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(buf + n, STATUS_TEXT_SIZE - n, fmt, args);
	va_end(args);
	if (len < 0)
		return n;
	return (size_t)len < STATUS_TEXT_SIZE - n ? n + (size_t)len : STATUS_TEXT_SIZE - 1;
}

const char *status__format(char buf[static STATUS_TEXT_SIZE], const struct status_view *view)
{
	char text[3][UNITS_TEXT_SIZE], percent[THRESHOLD_TEXT_SIZE];
	unsigned long long learned = view->learned;
	size_t n = append(buf, 0, "%llu hits  %.1f/s", (unsigned long long)view->hits,
			  view->hits_per_s);

	if (view->delay_ns[2])
		n = append(buf, n, "  p50 %s  p99 %s  max %s",
			   units__format_duration(text[0], view->delay_ns[0]),
			   units__format_duration(text[1], view->delay_ns[1]),
			   units__format_duration(text[2], view->delay_ns[2]));
	threshold__format_percent(percent, view->percent);
	if (view->threshold_ns)
		n = append(buf, n, "  threshold %s", DURATION(view->threshold_ns));
	if (view->threshold_ns && view->percent > 0)
		n = append(buf, n, " (%s of %llu)", percent, learned);
	else if (view->percent > 0)
		n = append(buf, n, "  learning %s: %llu of %llu", percent, learned,
			   (unsigned long long)view->needed);
	if (view->let_pass)
		n = append(buf, n, "  %llu skipped by limits", (unsigned long long)view->let_pass);
	if (view->stalls)
		n = append(buf, n, "  %llu stalled", (unsigned long long)view->stalls);
	if (view->cost && *view->cost)
		append(buf, n, "  %s", view->cost);
	return buf;
}

void status__show(const struct status_view *view)
{
	char text[STATUS_TEXT_SIZE];

	log__line(status__format(text, view));
}

void progress__init(struct progress *progress, const struct capture_options *o)
{
	enum mt_cpu_measure measure = capture_options__cpu_measure(o);
	const struct threshold *t = measure == MT_CPU_ON		  ? &o->cpu_thresh
				    : measure == MT_CPU_OFF		  ? &o->off_cpu_thresh
				    : threshold__is_set(&o->delay_thresh) ? &o->delay_thresh
									  : &o->duration_thresh;

	*progress = (struct progress){.began_ns = clock__now_ns()};
	progress->last_ns = progress->began_ns;
	progress->has_terms = o->reads.filter.n;
	progress->threshold_ns = t->percent > 0 ? UINT64_MAX : t->ns;
	learner__init(&progress->learner, t->percent);
}

void progress__format_threshold(const struct progress *progress,
				char text[static THRESHOLD_TEXT_SIZE + UNITS_TEXT_SIZE])
{
	if (progress->learner.percent > 0)
		threshold__format_percent(text, progress->learner.percent);
	else
		units__format_duration(text, progress->threshold_ns);
}

static void learn(struct progress *progress, struct trigger *trigger, const struct mt_stats *stats,
		  uint64_t elapsed_ns)
{
	uint64_t threshold = learner__update(&progress->learner, stats, elapsed_ns);
	bool is_first = progress->threshold_ns == UINT64_MAX;
	char percent[THRESHOLD_TEXT_SIZE];

	/*
	 * While disarmed, a hit over the old threshold waits to be taken: the threshold stays as it
	 * is.
	 */
	if (!threshold || !trigger__is_armed(trigger))
		return;
	progress->threshold_ns = threshold;
	trigger__set_threshold(trigger, threshold);
	if (!is_first)
		return;
	log__end_line();
	log__info("threshold %s = %s (%llu values); armed, updating",
		  threshold__format_percent(percent, progress->learner.percent),
		  DURATION(threshold), (unsigned long long)progress->learner.learned);
}

static struct status_view view_of(const struct progress *progress, const struct mt_stats *stats,
				  uint64_t hits, uint64_t span_ns)
{
	struct status_view view = hit_status__view(stats, hits, span_ns);

	view.threshold_ns = progress->threshold_ns == UINT64_MAX ? 0 : progress->threshold_ns;
	view.percent = progress->learner.percent;
	view.learned = progress->learner.learned;
	view.needed = progress->learner.needed;
	return view;
}

void progress__look(struct progress *progress, struct trigger *trigger, uint64_t now_ns,
		    const char *cost)
{
	uint64_t elapsed_ns = now_ns - progress->last_ns;
	struct status_view view;
	struct mt_stats stats;

	progress->last_ns = now_ns;
	if (!trigger || trigger__stats(trigger, &stats))
		return;
	if (progress->learner.percent > 0)
		learn(progress, trigger, &stats, elapsed_ns);
	view = view_of(progress, &stats, stats.hits - progress->last_stats.hits, elapsed_ns);
	view.cost = cost;
	status__show(&view);
	progress->last_stats = stats;
}

bool progress__say(struct progress *progress, const struct trigger *trigger, const char *name)
{
	char text[STATUS_TEXT_SIZE];
	struct status_view view;
	struct mt_stats stats;

	if (!trigger || trigger__stats(trigger, &stats))
		return true;
	if (progress->learner.percent > 0)
		learner__update(&progress->learner, &stats, 0);
	view = view_of(progress, &stats, stats.hits, clock__now_ns() - progress->began_ns);
	if (stats.hits)
		log__info("%s: %s", name, status__format(text, &view));
	else if (progress->has_terms)
		log__info("%s: no hit matched -if; 'mtbpf watch' without -if shows whether there "
			  "are hits at all",
			  name);
	else
		log__info("%s: no hits; 'mtbpf watch' shows whether it is ever hit", name);
	return stats.hits || progress->has_terms;
}

struct status_view hit_status__view(const struct mt_stats *stats, uint64_t hits, uint64_t span_ns)
{
	return (struct status_view){
		.delay_ns = {mt_stats__percentile(stats, 50), mt_stats__percentile(stats, 99),
			     stats->max_ns},
		.hits = stats->hits,
		.let_pass = stats->let_pass,
		.stalls = stats->stalls,
		.hits_per_s = span_ns ? (double)hits * 1e9 / (double)span_ns : 0,
	};
}
