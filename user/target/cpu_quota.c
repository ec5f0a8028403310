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

/* True if the comma-separated options have the word. */
static bool has_word(const char *options, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = options; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, word, n) && (at[n] == ',' || at[n] == '\0' || at[n] == '\n'))
			return true;
	}
	return false;
}

/* "4:cpu,cpuacct:/web"; of version 2 "0::/web". */
static bool read_path(FILE *in, const char *controller, char path[static PATH_MAX], bool *is_v2)
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
		if (!(is_unified ? !found : has_word(names + 1, controller)))
			continue;
		snprintf(path, PATH_MAX, "%s", at);
		*is_v2 = is_unified;
		found = true;
	}
	return found;
}

/* "36 25 0:31 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu" */
static bool read_mount(FILE *in, const char *controller, bool is_v2, char mount[static PATH_MAX])
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, in) > 0) {
		char *behind = strstr(line, " - "), type[32], options[1024], at[PATH_MAX];

		if (!behind || sscanf(behind, " - %31s %*s %1023s", type, options) != 2 ||
		    sscanf(line, "%*s %*s %*s %*s %4095s", at) != 1)
			continue;
		if (is_v2 ? strcmp(type, "cgroup2") != 0
			  : strcmp(type, "cgroup") != 0 || !has_word(options, controller))
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

/* The process's group of that controller: where it is mounted, and its path there. */
struct group {
	char mount[PATH_MAX], path[PATH_MAX];
	char dir[2 * PATH_MAX]; /* both, of the group or of one above */
	bool is_v2;
};

static int find_group(const char *proc, pid_t pid, const char *controller, struct group *group)
{
	_cleanup_fclose_ FILE *cgroups = NULL, *mounts = NULL;

	snprintf(group->dir, sizeof(group->dir), "%s/%d/cgroup", proc, (int)pid);
	cgroups = fopen(group->dir, "re");
	snprintf(group->dir, sizeof(group->dir), "%s/self/mountinfo", proc);
	mounts = fopen(group->dir, "re");
	if (!cgroups || !mounts || !read_path(cgroups, controller, group->path, &group->is_v2) ||
	    !read_mount(mounts, controller, group->is_v2, group->mount))
		return -ENOENT;
	snprintf(group->dir, sizeof(group->dir), "%s%s", group->mount, group->path);
	return 0;
}

/* False at the root. */
static bool go_up(struct group *group)
{
	char *slash = strrchr(group->path, '/');

	if (!slash || slash == group->path)
		return false;
	*slash = '\0';
	snprintf(group->dir, sizeof(group->dir), "%s%s", group->mount, group->path);
	return true;
}

int cpu_quota__find(const char *proc, pid_t pid, struct cpu_quota *out)
{
	long long quota, period;
	struct group group;
	int err = find_group(proc, pid, "cpu", &group);

	*out = (struct cpu_quota){0};
	if (err)
		return err;
	/* The nearest: what lies further up may have less left, which nobody tells. */
	do {
		if (read_quota(group.dir, group.is_v2, &quota, &period)) {
			describe(out, group.path, quota, period);
			return 0;
		}
	} while (go_up(&group));
	return 0;
}

/* A larger value means no limit: cgroup v1 has no word for that. */
#define MEMORY_MAX (1ll << 62)

static bool is_limited(const char *dir, const char *name)
{
	long long limit;

	return read_numbers(dir, name, &limit, NULL) && limit < MEMORY_MAX;
}

static bool has_memory_limit(const struct group *group)
{
	if (!group->is_v2)
		return is_limited(group->dir, "memory.limit_in_bytes");
	return is_limited(group->dir, "memory.max") || is_limited(group->dir, "memory.high");
}

int memory_limit__find(const char *proc, pid_t pid, struct cpu_quota *out)
{
	struct group group;
	int err = find_group(proc, pid, "memory", &group), n = 0;

	*out = (struct cpu_quota){0};
	if (err)
		return err;
	do {
		if (!has_memory_limit(&group))
			continue;
		if (!n++)
			snprintf(out->text, sizeof(out->text), "the limit of cgroup %.190s",
				 group.path);
	} while (go_up(&group));
	if (n > 1)
		strcat(out->text, ", or of one above it");
	label__clean_in_place(out->text);
	return 0;
}
