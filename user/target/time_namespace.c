// SPDX-License-Identifier: MIT
#include "target/time_namespace.h"

#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/fs.h"

int64_t time_namespace__parse(const char *text)
{
	const char *line = strstr(text, "monotonic");
	long long seconds, ns;

	if (!line || sscanf(line, "monotonic %lld %lld", &seconds, &ns) != 2)
		return 0;
	return (int64_t)((uint64_t)seconds * 1000000000u + (uint64_t)ns);
}

int64_t time_namespace__offset_ns(pid_t pid)
{
	_cleanup_free_ char *text = NULL;
	char path[64];
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/timens_offsets", (int)pid);
	return fs__read(path, &text, &len) ? 0 : time_namespace__parse(text);
}
