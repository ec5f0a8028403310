// SPDX-License-Identifier: MIT
#include "target/container/container.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/cgroup.h"
#include "target/container/container_cgroup.h"
#include "target/container/container_names.h"
#include "target/process_list.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/nearest.h"
#include "util/vec.h"

/* This machine as we see it, and as its first process does: we may be in a container too. */
static const char *const roots[] = {"", "/proc/1/root"};
#define N_ROOTS (sizeof(roots) / sizeof(roots[0]))

/* What has been found for one name. */
struct search {
	bool (*is)(const char *name, const char *what);
	const char *what; /* "container", "pod" */
	struct container_names names;
	struct cgroup_paths paths;
	struct pid_set pids;
	size_t n_known; /* names that are the one; they may all be stopped */
};

void container__fini(struct container *container)
{
	pid_set__fini(&container->pids);
}

/* Where cgroup2 is mounted, as seen from there. */
static int top_of(const char *root, char top[static PATH_MAX])
{
	_cleanup_free_ char *mountinfo = NULL;
	char path[PATH_MAX];
	size_t len;
	int err = fs__read(*root ? "/proc/1/mountinfo" : "/proc/self/mountinfo", &mountinfo, &len);

	if (!err)
		err = cgroup__locate(mountinfo, "", path);
	if (!err && snprintf(top, PATH_MAX, "%s%s", root, path) >= PATH_MAX)
		err = -ENAMETOOLONG;
	if (!err && top[strlen(top) - 1] == '/')
		top[strlen(top) - 1] = '\0';
	return err;
}

static bool is_in_file(const struct search *search, pid_t pid, const char *id)
{
	_cleanup_free_ char *text = NULL;
	char path[64], *part, *rest = NULL;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (fs__read(path, &text, &len))
		return false;
	for (part = strtok_r(text, "/\n", &rest); part; part = strtok_r(NULL, "/\n", &rest))
		if (search->is(part, id))
			return true;
	return false;
}

/* By the cgroups of version 1, or those of version 2 that are not mounted for us. */
static int find_processes(struct search *search, const char *id)
{
	struct process_list list;
	int err = process_list__read(&list);

	for (size_t i = 0; i < list.n && !err; i++)
		if (is_in_file(search, list.v[i].pid, id))
			err = pid_set__add(&search->pids, list.v[i].pid);
	process_list__fini(&list);
	return err;
}

/* The cgroups of one ID. */
static int find_cgroups(struct search *search, const char *id)
{
	size_t before = search->paths.n;
	int err = 0;

	for (size_t i = 0; i < N_ROOTS && !err && search->paths.n == before; i++) {
		char top[PATH_MAX];

		if (!top_of(roots[i], top))
			err = container_cgroup__find(&search->paths, top, search->is, id);
		if (err != -ENOMEM)
			err = 0;
	}
	return !err && search->paths.n == before ? find_processes(search, id) : err;
}

static bool is_seen(const struct container_names *names, size_t before)
{
	for (size_t i = 0; i < before; i++)
		if (!strcmp(names->v[i].id, names->v[before].id) &&
		    !strcmp(names->v[i].name, names->v[before].name))
			return true;
	return false;
}

static int find_named(struct search *search, const char *name)
{
	const struct container_names *names = &search->names;
	int err = 0;

	for (size_t i = 0; i < names->n && !err; i++) {
		if (strcmp(names->v[i].name, name) || is_seen(names, i))
			continue;
		search->n_known++;
		err = find_cgroups(search, names->v[i].id);
	}
	return err;
}

static int refuse_unknown(const struct search *search, const char *name)
{
	struct nearest nearest = {.word = name};
	const char *meant;

	for (size_t i = 0; i < search->names.n; i++)
		nearest__offer(&nearest, search->names.v[i].name);
	meant = nearest__result(&nearest);
	if (search->n_known)
		log__error("the %s '%s' exists here, but is not running", search->what, name);
	else
		log__error("no %s '%s' is running here", search->what, name);
	if (search->n_known)
		log__hint("start it first, or let 'mtbpf record -dir' wait for it");
	else if (meant && strcmp(meant, name))
		log__hint("did you mean '%s'?", meant);
	else if (*search->what == 'p')
		log__hint("give NAMESPACE/POD, as 'kubectl get pods -A' lists them, on its node");
	else
		log__hint("give its ID or its name, as 'docker ps', 'podman ps' or 'crictl ps' "
			  "lists them");
	return -ESRCH;
}

static int refuse_many(const struct search *search, const char *name)
{
	log__error("'%s' names %zu %ss", name, search->paths.n, search->what);
	log__hint("give more digits of its ID, or -cgroup with one of:");
	for (size_t i = 0; i < search->paths.n && i < 10; i++)
		log__hint("  %s", search->paths.v[i]);
	return -ENOTUNIQ;
}

static int settle(struct search *search, const char *name, struct container *container)
{
	if (search->paths.n > 1)
		return refuse_many(search, name);
	if (search->paths.n)
		snprintf(container->path, sizeof(container->path), "%s", search->paths.v[0]);
	else if (search->pids.n)
		return pid_set__add_all(&container->pids, &search->pids);
	else
		return refuse_unknown(search, name);
	return 0;
}

static int find(struct search *search, const char *name,
		int (*read)(struct container_names *names, const char *root), bool by_id)
{
	int err = 0;

	for (size_t i = 0; i < N_ROOTS && !err; i++)
		err = read(&search->names, roots[i]);
	if (!err)
		err = find_named(search, name);
	if (!err && by_id && !search->n_known)
		err = find_cgroups(search, name);
	return err;
}

static void fini(struct search *search)
{
	container_names__fini(&search->names);
	VEC_FINI(&search->paths);
	pid_set__fini(&search->pids);
}

/* "containerd://ID": so kubectl shows it. */
static const char *without_scheme(const char *name)
{
	const char *scheme = strstr(name, "://");

	return scheme ? scheme + strlen("://") : name;
}

int container__find(struct container *container, const char *name)
{
	struct search search = {.is = container_cgroup__is, .what = "container"};
	int err;

	name = without_scheme(name);
	err = find(&search, name, container_names__read, true);

	*container = (struct container){0};
	if (!err)
		err = settle(&search, name, container);
	fini(&search);
	return err;
}

int container__find_pod(struct container *container, const char *name)
{
	const char *slash = strchr(name, '/');
	bool is_of_pod = slash && strchr(slash + 1, '/');
	struct search search = {.is = is_of_pod ? container_cgroup__is : container_cgroup__is_pod,
				.what = "pod"};
	char full[NAME_MAX + sizeof("default/")];
	int err;

	snprintf(full, sizeof(full), "%s%s", slash ? "" : "default/", name);
	err = find(&search, full, pod_names__read, false);
	*container = (struct container){0};
	if (!err)
		err = settle(&search, full, container);
	fini(&search);
	return err;
}
