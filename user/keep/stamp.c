// SPDX-License-Identifier: MIT
#include "keep/stamp.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/clock.h"
#include "util/units.h"

#define SUFFIX ".mtbpf"

uint64_t stamp__now_ms(void)
{
	return clock__unix_ns() / 1000000;
}

int stamp__name(char *buf, size_t size, const char *process, uint64_t unix_ms)
{
	char stamp[UNITS_MOMENT_SIZE];
	int n = snprintf(buf, size, "%s-%s" SUFFIX, process, units__format_moment(stamp, unix_ms));

	if (n < 0 || (size_t)n >= size)
		return -ENAMETOOLONG;
	for (char *c = buf; c < buf + strlen(process); c++)
		if (!isalnum((unsigned char)*c) && (!strchr("-.", *c) || c == buf))
			*c = '_';
	return 0;
}

bool stamp__parse(const char *file, uint64_t *unix_ms)
{
	size_t len = strlen(file), tail = 1 + (UNITS_MOMENT_SIZE - 1) + strlen(SUFFIX);
	const char *at = file + len - tail;

	return len > tail && file[0] != '.' && *at == '-' &&
	       !strcmp(file + len - strlen(SUFFIX), SUFFIX) &&
	       !units__parse_moment(at + 1, unix_ms);
}
