// SPDX-License-Identifier: MIT
#include "view/status.h"

#include <stdio.h>
#include <unistd.h>

#include "util/log.h"
#include "util/units.h"

const char *status__format(char buf[static STATUS_TEXT_SIZE], const struct status_view *view)
{
	char text[4][UNITS_TEXT_SIZE];
	int n = snprintf(buf, STATUS_TEXT_SIZE, "%llu hits  %.1f/s", (unsigned long long)view->hits,
			 view->hits_per_s);

	if (view->delay_ns[2])
		n += snprintf(buf + n, STATUS_TEXT_SIZE - (size_t)n, "  p50 %s  p99 %s  max %s",
			      units__format_duration(text[0], view->delay_ns[0]),
			      units__format_duration(text[1], view->delay_ns[1]),
			      units__format_duration(text[2], view->delay_ns[2]));
	if (view->threshold_ns)
		snprintf(buf + n, STATUS_TEXT_SIZE - (size_t)n, "  threshold %s",
			 units__format_duration(text[3], view->threshold_ns));
	return buf;
}

static bool is_shown(void)
{
	return log__level() > LOG_QUIET && isatty(STDERR_FILENO);
}

void status__show(const struct status_view *view)
{
	char text[STATUS_TEXT_SIZE];

	if (is_shown())
		fprintf(stderr, "\r\033[K%s", status__format(text, view));
}

void status__end(void)
{
	if (is_shown())
		fputs("\r\033[K", stderr);
}
