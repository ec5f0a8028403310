// SPDX-License-Identifier: MIT
#include "session/labels.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "target/container.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"

#define ID_SIZE 64

static int set(struct recording *rec, const char *key, const char *value)
{
	return (value && *value) ? recording__set_label(rec, key, value) : 0;
}

static int add_machine(struct recording *rec)
{
	struct utsname name;
	int err = set(rec, "mtbpf", MTBPF_VERSION);

	if (err || uname(&name))
		return err;
	err = set(rec, "host", name.nodename);
	return err ? err : set(rec, "kernel", name.release);
}

/* Finds a container's ID in a cgroup's path: the last run of exactly 64 hexadecimal digits. */
static const char *find_id(const char *cgroups, char id[static ID_SIZE + 1])
{
	const char *found = NULL;

	for (const char *at = cgroups; *at;) {
		size_t n = strspn(at, "0123456789abcdef");

		if (n == ID_SIZE)
			found = at;
		at += n ? n : 1;
	}
	if (!found)
		return NULL;
	memcpy(id, found, ID_SIZE);
	id[ID_SIZE] = '\0';
	return id;
}

static const char *name_of(const struct container_names *names, const char *id)
{
	for (size_t i = 0; i < names->n; i++)
		if (!strcmp(names->v[i].id, id) && strcmp(names->v[i].name, id))
			return names->v[i].name;
	return NULL;
}

/* "NAMESPACE/POD/CONTAINER" */
static int set_pod(struct recording *rec, const char *name)
{
	const char *last = name ? strrchr(name, '/') : NULL;
	_cleanup_free_ char *pod = last ? strndup(name, (size_t)(last - name)) : NULL;
	int err = last && !pod ? -ENOMEM : set(rec, "pod", pod);

	return err || !last ? err : set(rec, "container", last + 1);
}

int labels__add_container(struct recording *rec, const char *root, const char *cgroups)
{
	struct container_names names = {0}, pods = {0};
	_cleanup_free_ char *image = NULL;
	char id[ID_SIZE + 1];
	int err;

	if (!find_id(cgroups, id))
		return 0;
	err = set(rec, "container", id);
	if (!err)
		err = container_names__read(&names, root);
	if (!err)
		err = pod_names__read(&pods, root);
	if (!err)
		err = set(rec, "container", name_of(&names, id));
	if (!err)
		err = set_pod(rec, name_of(&pods, id));
	if (!err) {
		image = container_names__image(root, id);
		err = set(rec, "image", image);
	}
	container_names__fini(&names);
	container_names__fini(&pods);
	return err;
}

/* Adds the build id of the program: of the mapped file that is /proc/PID/exe. */
static int add_program(struct recording *rec, pid_t pid)
{
	char path[PATH_MAX];

	if (fs__read_proc_link(pid, "exe", path))
		return 0;
	for (size_t i = 0; i < rec->files.n; i++)
		if (!strcmp(rec->files.v[i].path, path))
			return set(rec, "build_id", rec->files.v[i].build_id);
	return 0;
}

static int add_user(struct recording *rec, const char *text)
{
	const char *equals = strchr(text, '=');
	_cleanup_free_ char *key = strndup(text, (size_t)(equals - text));

	return key ? recording__set_label(rec, key, equals + 1) : -ENOMEM;
}

int labels__add(struct recording *rec, const char *root, const struct option_list *users)
{
	pid_t pid = rec->hits.n ? (pid_t)rec->hits.v[rec->hits.n - 1].tgid : rec->pid;
	_cleanup_free_ char *cgroups = NULL;
	size_t size;
	int err = add_machine(rec);

	if (!err && !fs__read_proc(pid, "cgroup", &cgroups, &size))
		err = labels__add_container(rec, root, cgroups);
	if (!err)
		err = add_program(rec, pid);
	for (size_t i = 0; i < users->n && !err; i++)
		err = add_user(rec, users->v[i]);
	return err;
}

int labels__check(const struct option_list *users, const char *command)
{
	for (size_t i = 0; i < users->n; i++) {
		if (strchr(users->v[i], '=') && users->v[i][0] != '=')
			continue;
		log__error("%s: -label %s is not KEY=VALUE", command, users->v[i]);
		log__hint("for example -label zone=eu-1");
		return -EINVAL;
	}
	return 0;
}
