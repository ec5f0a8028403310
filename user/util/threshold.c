// SPDX-License-Identifier: MIT
#include "util/threshold.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/units.h"

#define MAX_PERCENT  99.9999
#define ABOVE_WANTED 10

static int parse_percent(const char *text, double *percent)
{
	size_t whole = strspn(text, "0123456789");
	size_t behind = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;
	size_t len = behind ? whole + 1 + behind : whole;

	if (!whole || text[len])
		return -EINVAL;
	*percent = strtod(text, NULL);
	if (*percent <= 0)
		return -EINVAL;
	return *percent <= MAX_PERCENT ? 0 : -ERANGE;
}

int threshold__parse(const char *text, struct threshold *threshold)
{
	struct threshold parsed = {0};
	int err = text[0] == 'p' || text[0] == 'P' ? parse_percent(text + 1, &parsed.percent)
						   : units__parse_duration(text, &parsed.ns);

	if (!err)
		*threshold = parsed;
	return err;
}

uint64_t threshold__needed(double percent)
{
	return (uint64_t)(ABOVE_WANTED * 100 / (100 - percent) + 0.5);
}

const char *threshold__format_percent(char buf[static THRESHOLD_TEXT_SIZE], double percent)
{
	snprintf(buf, THRESHOLD_TEXT_SIZE, "p%g", percent);
	return buf;
}
