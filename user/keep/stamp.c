// SPDX-License-Identifier: MIT
#include "keep/stamp.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SUFFIX ".mtbpf"

uint64_t stamp__now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

const char *stamp__format(char buf[static STAMP_SIZE], uint64_t unix_ms)
{
	time_t seconds = (time_t)(unix_ms / 1000);
	struct tm tm;
	size_t n;

	gmtime_r(&seconds, &tm);
	n = strftime(buf, STAMP_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + n, STAMP_SIZE - n, ".%03uZ", (unsigned int)(unix_ms % 1000));
	return buf;
}

int stamp__name(char *buf, size_t size, const char *process, uint64_t unix_ms)
{
	char stamp[STAMP_SIZE];
	int n = snprintf(buf, size, "%s-%s" SUFFIX, process, stamp__format(stamp, unix_ms));

	if (n < 0 || (size_t)n >= size)
		return -ENAMETOOLONG;
	for (char *c = buf; c < buf + strlen(process); c++)
		if (!isalnum((unsigned char)*c) && (!strchr("-.", *c) || c == buf))
			*c = '_';
	return 0;
}

static bool parse_time(const char *text, uint64_t *unix_ms)
{
	struct tm tm = {0};
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S.", &tm);
	char again[STAMP_SIZE];

	if (!end)
		return false;
	*unix_ms = (uint64_t)timegm(&tm) * 1000 + strtoul(end, NULL, 10) % 1000;
	/* Numbers out of range, and what else was more or less than is written. */
	return !strncmp(stamp__format(again, *unix_ms), text, STAMP_SIZE - 1);
}

bool stamp__parse(const char *file, uint64_t *unix_ms)
{
	size_t len = strlen(file), tail = 1 + (STAMP_SIZE - 1) + strlen(SUFFIX);
	const char *at = file + len - tail;

	return len > tail && file[0] != '.' && *at == '-' &&
	       !strcmp(file + len - strlen(SUFFIX), SUFFIX) && parse_time(at + 1, unix_ms);
}
