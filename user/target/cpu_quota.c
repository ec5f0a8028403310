// SPDX-License-Identifier: MIT
#include "target/cpu_quota.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/label.h"
#include "util/units.h"

/* Whether "cpu" is among the words between commas. */
static bool has_cpu(const char *options)
{
	for (const char *at = options; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, "cpu", 3) && (at[3] == ',' || at[3] == '\0' || at[3] == '\n'))
			return true;
	}
	return false;
}

/* "4:cpu,cpuacct:/web"; of version 2 "0::/web". */
static bool read_path(FILE *in, char path[static PATH_MAX], bool *is_v2)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	bool found = false;

	*is_v2 = false;
	while (getline(&line, &size, in) > 0) {
		char *names = strchr(line, ':'), *at = names ? strchr(names + 1, ':') : NULL;
		bool is_unified;

		if (!at)
			continue;
		*at++ = '\0';
		at[strcspn(at, "\n")] = '\0';
		is_unified = !names[1];
		if (!(is_unified ? !found : has_cpu(names + 1)))
			continue;
		snprintf(path, PATH_MAX, "%s", at);
		*is_v2 = is_unified;
		found = true;
	}
	return found;
}

/* "36 25 0:31 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu" */
static bool read_mount(FILE *in, bool is_v2, char mount[static PATH_MAX])
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, in) > 0) {
		char *behind = strstr(line, " - "), type[32], options[1024], at[PATH_MAX];

		if (!behind || sscanf(behind, " - %31s %*s %1023s", type, options) != 2 ||
		    sscanf(line, "%*s %*s %*s %*s %4095s", at) != 1)
			continue;
		if (is_v2 ? strcmp(type, "cgroup2") != 0
			  : strcmp(type, "cgroup") != 0 || !has_cpu(options))
			continue;
		strcpy(mount, at);
		return true;
	}
	return false;
}

static bool read_numbers(const char *dir, const char *name, long long *a, long long *b)
{
	char path[2 * PATH_MAX];
	_cleanup_fclose_ FILE *in = NULL;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	in = fopen(path, "re");
	return in && fscanf(in, b ? "%lld %lld" : "%lld", a, b) == (b ? 2 : 1);
}

/* Microseconds; false where there is none. */
static bool read_quota(const char *dir, bool is_v2, long long *quota, long long *period)
{
	bool is_read = is_v2 ? read_numbers(dir, "cpu.max", quota, period)
			     : read_numbers(dir, "cpu.cfs_quota_us", quota, NULL) &&
				       read_numbers(dir, "cpu.cfs_period_us", period, NULL);

	return is_read && *quota > 0 && *period > 0;
}

static void describe(struct cpu_quota *out, const char *name, long long quota, long long period)
{
	char part[UNITS_TEXT_SIZE], whole[UNITS_TEXT_SIZE];

	snprintf(out->text, sizeof(out->text), "cgroup %.190s, quota %s of %s", name,
		 units__format_duration(part, 1000 * (uint64_t)quota),
		 units__format_duration(whole, 1000 * (uint64_t)period));
	label__clean_in_place(out->text);
}

int cpu_quota__find(const char *proc, pid_t pid, struct cpu_quota *out)
{
	char path[PATH_MAX], mount[PATH_MAX], dir[2 * PATH_MAX];
	_cleanup_fclose_ FILE *cgroups = NULL, *mounts = NULL;
	long long quota, period;
	bool is_v2;

	*out = (struct cpu_quota){0};
	snprintf(dir, sizeof(dir), "%s/%d/cgroup", proc, (int)pid);
	cgroups = fopen(dir, "re");
	snprintf(dir, sizeof(dir), "%s/self/mountinfo", proc);
	mounts = fopen(dir, "re");
	if (!cgroups || !mounts || !read_path(cgroups, path, &is_v2) ||
	    !read_mount(mounts, is_v2, mount))
		return -ENOENT;
	/* The nearest: what lies further up may have less left, which nobody tells. */
	for (;;) {
		char *slash = strrchr(path, '/');

		snprintf(dir, sizeof(dir), "%s%s", mount, path);
		if (read_quota(dir, is_v2, &quota, &period)) {
			describe(out, path, quota, period);
			return 0;
		}
		if (!slash || slash == path)
			return 0;
		*slash = '\0';
	}
}
