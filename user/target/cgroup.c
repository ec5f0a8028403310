// SPDX-License-Identifier: MIT
#include "target/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/names.h"
#include "util/units.h"
#include "util/vec.h"

typedef VEC(pid_t) pid_vec;

int cgroup__locate(const char *mountinfo, const char *name, char path[static PATH_MAX])
{
	char line[2 * PATH_MAX], mount_point[PATH_MAX];

	if (name[0] == '/')
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX ? 0 : -ENAMETOOLONG;
	while (*mountinfo) {
		size_t len = strcspn(mountinfo, "\n");
		const char *type;

		/* "ID PARENT MAJ:MIN ROOT MOUNTPOINT OPTIONS [TAGS...] - TYPE SOURCE OPTIONS" */
		snprintf(line, sizeof(line), "%.*s", (int)len, mountinfo);
		type = strstr(line, " - ");
		if (type && !strncmp(type + 3, "cgroup2 ", 8) &&
		    sscanf(line, "%*s %*s %*s %*s %4095s", mount_point) == 1)
			return snprintf(path, PATH_MAX, "%s/%s", mount_point, name) < PATH_MAX
				       ? 0
				       : -ENAMETOOLONG;
		mountinfo += len + (mountinfo[len] == '\n');
	}
	return -ENOENT;
}

int cgroup__open(struct cgroup *cgroup, const char *name)
{
	_cleanup_free_ char *mountinfo = NULL;
	const char *inside = name + strspn(name, "/"), *path = cgroup->path;
	struct statfs fs = {0};
	size_t len;
	int err = fs__read("/proc/self/mountinfo", &mountinfo, &len);

	cgroup->fd = -1;
	if (!err)
		err = cgroup__locate(mountinfo, name, cgroup->path);
	if (err == -ENOENT) {
		log__error("no cgroup v2 hierarchy is mounted here");
		log__hint("-cgroup needs cgroup v2 (boot with systemd.unified_cgroup_hierarchy=1); "
			  "or record processes: -pid PID or -name NAME");
		return -EINVAL;
	}
	if (!err && (cgroup->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		err = -errno;
	/* The name may be as /proc/PID/cgroup writes it: from the root of the hierarchy. */
	if (err == -ENOENT && *inside && !cgroup__locate(mountinfo, inside, cgroup->path)) {
		cgroup->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		err = cgroup->fd < 0 ? -errno : 0;
	}
	if (!err && fstatfs(cgroup->fd, &fs))
		err = -errno;
	if (!err && fs.f_type == CGROUP2_SUPER_MAGIC)
		return 0;
	cgroup__close(cgroup);
	if (err) {
		if (strcmp(name, path))
			log__error("cannot open the cgroup '%s' (%s): %s", name, path,
				   strerror(-err));
		else
			log__error("cannot open the cgroup '%s': %s", name, strerror(-err));
		log__hint("/proc/PID/cgroup shows the cgroup of a process after '0::', "
			  "'systemd-cgls' lists all");
		return -EINVAL;
	}
	if (fs.f_type == CGROUP_SUPER_MAGIC)
		log__error("%s is a version 1 cgroup", path);
	else
		log__error("%s is not a cgroup", path);
	log__hint("use a cgroup of the v2 hierarchy, as /proc/PID/cgroup shows it after '0::'");
	return -EINVAL;
}

void cgroup__close(struct cgroup *cgroup)
{
	if (cgroup->fd >= 0)
		close(cgroup->fd);
	cgroup->fd = -1;
}

/* Closes dir. A cgroup that is removed meanwhile counts as empty. */
static int walk(int dir, pid_vec *pids)
{
	DIR *entries = fdopendir(dir);
	struct dirent *entry;
	int fd, pid, err = 0;
	FILE *procs;

	if (!entries) {
		close(dir);
		return -ENOMEM;
	}
	/* A threaded cgroup does not list its processes: reading fails with EOPNOTSUPP. */
	fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	procs = fd < 0 ? NULL : fdopen(fd, "r");
	while (!err && procs && fscanf(procs, "%d", &pid) == 1)
		/* 0: of a pid namespace that we do not see into. */
		if (pid)
			err = VEC_ADD(pids, pid);
	/* Not kept open during the recursion. */
	if (procs)
		fclose(procs);
	while (!err && (entry = readdir(entries))) {
		int below;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		below = openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (below >= 0)
			err = walk(below, pids);
	}
	closedir(entries);
	return err;
}

ORDER(compare_pids, pid_t, COMPARE(*x, *y))

int cgroup__processes(const struct cgroup *cgroup, pid_t **pids, size_t *n)
{
	pid_vec vec = {0};
	int dir = openat(cgroup->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = dir < 0 ? -errno : walk(dir, &vec);

	if (err) {
		VEC_FINI(&vec);
		return err;
	}
	VEC_SORT(&vec, compare_pids);
	*pids = vec.v;
	*n = vec.n;
	return 0;
}

#define LEVELS_MAX 64

int cgroup__cpus(const struct cgroup *cgroup, cpu_set_t *cpus)
{
	static const char name[] = "cpuset.cpus.effective";
	char path[3 * LEVELS_MAX + sizeof(name)] = "", text[4096] = "", *at = text;
	int fd = -1;

	for (size_t len = 0; fd < 0 && len < (size_t)3 * LEVELS_MAX; len += 3) {
		memcpy(path + len, name, sizeof(name));
		fd = openat(cgroup->fd, path, O_RDONLY | O_CLOEXEC);
		memcpy(path + len, "../", 3);
	}
	if (fd < 0)
		return -errno;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	/* cpuset(7), "List format": "0-3,7". */
	CPU_ZERO(cpus);
	while (*at >= '0' && *at <= '9') {
		unsigned long first = strtoul(at, &at, 10), last = first;

		if (*at == '-')
			last = strtoul(at + 1, &at, 10);
		for (unsigned long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
			CPU_SET(cpu, cpus);
		at += *at == ',';
	}
	return CPU_COUNT(cpus) ? 0 : -ENOENT;
}

bool cgroup__populated(const struct cgroup *cgroup)
{
	int fd = openat(cgroup->fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	char text[128] = "";
	ssize_t n;

	/* The root has no such file, and is never empty. */
	if (fd < 0)
		return faccessat(cgroup->fd, "cgroup.procs", F_OK, 0) == 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 0 && strstr(text, "populated 1");
}

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

/*
 * Reads the path of the controller's cgroup: from "4:cpu,cpuacct:/web", or, if no line names the
 * controller, from that of version 2, "0::/web". False: there is neither.
 */
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

/*
 * Reads the hierarchy's mount point from a line like "36 25 0:31 / /sys/fs/cgroup/cpu rw,relatime
 * shared:9 - cgroup cgroup rw,cpu". False: it is not mounted.
 */
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

/* The process's cgroup for that controller: mount point and path. */
struct group {
	char mount[PATH_MAX], path[PATH_MAX];
	char dir[2 * PATH_MAX]; /* `mount` and `path` joined, or the directory of a cgroup above */
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
	long long quota, period; /* microseconds */
	struct group group;
	int err = find_group(proc, pid, "cpu", &group);

	*out = (struct cpu_quota){0};
	if (err)
		return err;
	/* Takes the nearest quota; the kernel does not tell which level was reached. */
	do {
		bool is_read =
			group.is_v2 ? read_numbers(group.dir, "cpu.max", &quota, &period)
				    : read_numbers(group.dir, "cpu.cfs_quota_us", &quota, NULL) &&
					      read_numbers(group.dir, "cpu.cfs_period_us", &period,
							   NULL);

		if (!is_read || quota <= 0 || period <= 0)
			continue;
		snprintf(out->text, sizeof(out->text), "cgroup %.190s, quota %s of %s", group.path,
			 DURATION(1000 * (uint64_t)quota), DURATION(1000 * (uint64_t)period));
		label__clean_in_place(out->text);
		return 0;
	} while (go_up(&group));
	return 0;
}

/* A larger value means no limit: cgroup v1 cannot express "max". */
#define MEMORY_MAX (1ll << 62)

static bool is_limited(const char *dir, const char *name)
{
	long long limit;

	return read_numbers(dir, name, &limit, NULL) && limit < MEMORY_MAX;
}

int memory_limit__find(const char *proc, pid_t pid, struct cpu_quota *out)
{
	struct group group;
	int err = find_group(proc, pid, "memory", &group), n = 0;

	*out = (struct cpu_quota){0};
	if (err)
		return err;
	do {
		if (group.is_v2 ? !is_limited(group.dir, "memory.max") &&
					  !is_limited(group.dir, "memory.high")
				: !is_limited(group.dir, "memory.limit_in_bytes"))
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
