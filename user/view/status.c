// SPDX-License-Identifier: MIT
#include "view/status.h"

#include <stdarg.h>
#include <stdio.h>

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

static size_t append_threshold(char *buf, size_t n, const struct status_view *view)
{
	char text[UNITS_TEXT_SIZE], percent[THRESHOLD_TEXT_SIZE];

	threshold__format_percent(percent, view->percent);
	if (view->threshold_ns)
		n = append(buf, n, "  threshold %s",
			   units__format_duration(text, view->threshold_ns));
	if (view->threshold_ns && view->percent > 0)
		return append(buf, n, " (%s of %llu)", percent, (unsigned long long)view->learned);
	if (view->percent > 0)
		return append(buf, n, "  learning %s: %llu of %llu", percent,
			      (unsigned long long)view->learned, (unsigned long long)view->needed);
	return n;
}

const char *status__format(char buf[static STATUS_TEXT_SIZE], const struct status_view *view)
{
	char text[3][UNITS_TEXT_SIZE];
	size_t n = append(buf, 0, "%llu hits  %.1f/s", (unsigned long long)view->hits,
			  view->hits_per_s);

	if (view->delay_ns[2])
		n = append(buf, n, "  p50 %s  p99 %s  max %s",
			   units__format_duration(text[0], view->delay_ns[0]),
			   units__format_duration(text[1], view->delay_ns[1]),
			   units__format_duration(text[2], view->delay_ns[2]));
	n = append_threshold(buf, n, view);
	if (view->let_pass)
		n = append(buf, n, "  %llu let pass", (unsigned long long)view->let_pass);
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

void status__end(void)
{
	log__end_line();
}
