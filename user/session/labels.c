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

#define ID_SIZE 64

static int set(struct recording *rec, const char *key, const char *value)
{
	return (value && *value) ? recording__set_label(rec, key, value) : 0;
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
	const struct container_name *found =
		VEC_FIND(names, e, !strcmp(e->id, id) && strcmp(e->name, id));

	return found ? found->name : NULL;
}

int labels__add_container(struct recording *rec, const char *root, const char *cgroups)
{
	struct container_names names = {0}, pods = {0};
	_cleanup_free_ char *image = NULL, *pod = NULL;
	const char *name = NULL, *last;
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
	/* "NAMESPACE/POD/CONTAINER" */
	if (!err)
		name = name_of(&pods, id);
	last = name ? strrchr(name, '/') : NULL;
	if (last) {
		pod = strndup(name, (size_t)(last - name));
		err = pod ? set(rec, "pod", pod) : -ENOMEM;
		if (!err)
			err = set(rec, "container", last + 1);
	}
	if (!err) {
		image = container_names__image(root, id);
		err = set(rec, "image", image);
	}
	container_names__fini(&names);
	container_names__fini(&pods);
	return err;
}

int labels__add(struct recording *rec, const char *root, const struct option_list *users)
{
	pid_t pid = rec->hits.n ? (pid_t)rec->hits.v[rec->hits.n - 1].tgid : rec->pid;
	_cleanup_free_ char *cgroups = NULL;
	const struct rec_file *file = NULL;
	char path[PATH_MAX];
	struct utsname name;
	size_t size;
	int err = set(rec, "mtbpf", MTBPF_VERSION);

	if (!err && !uname(&name)) {
		err = set(rec, "host", name.nodename);
		if (!err)
			err = set(rec, "kernel", name.release);
	}
	if (!err && !fs__read_proc(pid, "cgroup", &cgroups, &size))
		err = labels__add_container(rec, root, cgroups);
	/* The build id of the program: of the mapped file that is /proc/PID/exe. */
	if (!err && !fs__read_proc_link(pid, "exe", path))
		file = VEC_FIND(&rec->files, e, !strcmp(e->path, path));
	if (file)
		err = set(rec, "build_id", file->build_id);
	for (size_t i = 0; i < users->n && !err; i++) {
		const char *equals = strchr(users->v[i], '=');
		_cleanup_free_ char *key = strndup(users->v[i], (size_t)(equals - users->v[i]));

		err = key ? recording__set_label(rec, key, equals + 1) : -ENOMEM;
	}
	return err;
}
