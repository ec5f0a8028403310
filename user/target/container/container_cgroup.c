// SPDX-License-Identifier: MIT
#include "target/container/container_cgroup.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/vec.h"

#define ID_DIGITS 64

/*
 * What stands before an ID, by who made it: docker, containerd and CRI-O for a kubelet, podman (its
 * second where the container shares a systemd unit's cgroup: --cgroups=split, Quadlet), nerdctl.
 */
static const char *const prefixes[] = {"docker-",	  "cri-containerd-", "crio-", "libpod-",
				       "libpod-payload-", "nerdctl-",	     ""};

static bool is_id(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isxdigit((unsigned char)text[i]))
			return false;
	return len == ID_DIGITS;
}

static size_t length_without(const char *name, const char *suffix)
{
	size_t len = strlen(name), cut = strlen(suffix);

	return len > cut && !strcmp(name + len - cut, suffix) ? len - cut : len;
}

bool container_cgroup__is(const char *name, const char *id)
{
	size_t len = length_without(name, ".scope"), wanted = strlen(id);

	for (size_t i = 0; wanted && i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t skip = strlen(prefixes[i]);

		if (len < skip + wanted || strncmp(name, prefixes[i], skip) ||
		    strncasecmp(name + skip, id, wanted))
			continue;
		if (len == skip + wanted || is_id(name + skip, len - skip))
			return true;
	}
	return false;
}

static bool is_below_kubepods(const char *name)
{
	const char *at = strstr(name, "kubepods-");

	return at && (at == name || at[-1] == '-');
}

bool container_cgroup__is_pod(const char *name, const char *uid)
{
	size_t len = length_without(name, ".slice"), wanted = strlen(uid);
	const char *pod = len > wanted ? name + len - wanted : NULL;

	if (!pod || pod - name < 3 || strncmp(pod - 3, "pod", 3))
		return false;
	/*
	 * "pod" is the last part of the name, and its first where cgroupfs is the driver. A
	 * kubelet's own cgroup stands before it where it has one: "kubelet-kubepods-" in kind.
	 */
	if (pod - 3 != name && (pod[-4] != '-' || !is_below_kubepods(name)))
		return false;
	for (size_t i = 0; i < wanted; i++)
		if (pod[i] != uid[i] && !(pod[i] == '_' && uid[i] == '-'))
			return false;
	return true;
}

static int add_path(struct cgroup_paths *paths, const char *path)
{
	if (vec__grow(&paths->v, &paths->cap, paths->n, sizeof(*paths->v)))
		return -ENOMEM;
	snprintf(paths->v[paths->n++], sizeof(*paths->v), "%s", path);
	return 0;
}

struct search {
	struct cgroup_paths *paths;
	bool (*is)(const char *name, const char *what);
	const char *what;
	char path[PATH_MAX]; /* where it has come to */
};

static int walk(struct search *search)
{
	size_t len = strlen(search->path);
	DIR *dir = opendir(search->path);
	struct dirent *entry;
	int err = dir ? 0 : -errno;

	while (!err && (entry = readdir(dir))) {
		size_t room = sizeof(search->path) - len;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		if ((size_t)snprintf(search->path + len, room, "/%s", entry->d_name) >= room)
			continue;
		if (search->is(entry->d_name, search->what))
			err = add_path(search->paths, search->path);
		else if (walk(search) == -ENOMEM) /* one may go meanwhile */
			err = -ENOMEM;
		search->path[len] = '\0';
	}
	search->path[len] = '\0';
	if (dir)
		closedir(dir);
	return err;
}

int container_cgroup__find(struct cgroup_paths *paths, const char *top,
			   bool (*is)(const char *name, const char *what), const char *what)
{
	struct search search = {.paths = paths, .is = is, .what = what};

	snprintf(search.path, sizeof(search.path), "%s", top);
	return walk(&search);
}
