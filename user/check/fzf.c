// SPDX-License-Identifier: MIT
/* fzf, a program that picks one of many lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check/subjects.h"

static bool is_on_path(const char *program)
{
	const char *dir = getenv("PATH");

	while (dir && *dir) {
		size_t len = strcspn(dir, ":");
		char path[512];

		snprintf(path, sizeof(path), "%.*s/%s", (int)len, dir, program);
		if (len && !access(path, X_OK))
			return true;
		dir += len + (dir[len] == ':');
	}
	return false;
}

void check_fzf(const struct check *check, struct check_result *result)
{
	if (is_on_path("fzf")) {
		check_result__set(result, CHECK_OK, "'mtbpf list -pid PID | fzf' picks a function");
		return;
	}
	check_result__set(result, CHECK_LIMITED, "not there to pick a function from 'mtbpf list'");
	check_result__remedy(result, "install fzf");
}
