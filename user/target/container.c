// SPDX-License-Identifier: MIT
#include "target/container.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/cgroup.h"
#include "target/process.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/json.h"
#include "util/log.h"
#include "util/names.h"
#include "util/vec.h"

#define ID_DIGITS 64

/*
 * Prefixes of an ID, by runtime: docker, containerd and CRI-O for a kubelet, podman (its second if
 * the container shares a systemd unit's cgroup: --cgroups=split, Quadlet), nerdctl.
 */
static const char *const prefixes[] = {"docker-",	  "cri-containerd-", "crio-", "libpod-",
				       "libpod-payload-", "nerdctl-",	     ""};

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
		if (len == skip + wanted ||
		    (len == skip + ID_DIGITS &&
		     strspn(name + skip, "0123456789abcdefABCDEF") >= ID_DIGITS))
			return true;
	}
	return false;
}

bool container_cgroup__is_pod(const char *name, const char *uid)
{
	size_t len = length_without(name, ".slice"), wanted = strlen(uid);
	const char *pod = len > wanted ? name + len - wanted : NULL;
	const char *kubepods = strstr(name, "kubepods-");

	if (!pod || pod - name < 3 || strncmp(pod - 3, "pod", 3))
		return false;
	/*
	 * "pod" begins the last part of the name, or the whole name with the cgroupfs driver. A
	 * kubelet with its own cgroup puts that first: "kubelet-kubepods-" in kind.
	 */
	if (pod - 3 != name &&
	    (pod[-4] != '-' || !kubepods || (kubepods != name && kubepods[-1] != '-')))
		return false;
	for (size_t i = 0; i < wanted; i++)
		if (pod[i] != uid[i] && !(pod[i] == '_' && uid[i] == '-'))
			return false;
	return true;
}

int container_cgroup__find(struct cgroup_paths *paths, const char *top,
			   bool (*is)(const char *name, const char *what), const char *what)
{
	DIR *dir = opendir(top);
	struct dirent *entry;
	int err = dir ? 0 : -errno;

	while (!err && (entry = readdir(dir))) {
		_cleanup_free_ char *path = NULL;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		if (asprintf(&path, "%s/%s", top, entry->d_name) < 0) {
			path = NULL;
			err = -ENOMEM;
		} else if (strlen(path) >= PATH_MAX) {
			continue;
		} else if (!is(entry->d_name, what)) {
			/* A folder may be removed meanwhile. */
			if (container_cgroup__find(paths, path, is, what) == -ENOMEM)
				err = -ENOMEM;
		} else if (vec__grow(&paths->v, &paths->cap, paths->n, sizeof(*paths->v))) {
			err = -ENOMEM;
		} else {
			strcpy(paths->v[paths->n++], path);
		}
	}
	if (dir)
		closedir(dir);
	return err;
}

void container_names__fini(struct container_names *names)
{
	for (size_t i = 0; i < names->n; i++) {
		free(names->v[i].name);
		free(names->v[i].id);
	}
	VEC_FINI(names);
}

/* Copies both. 0 or -ENOMEM. */
static int container_names__add(struct container_names *names, const char *name, const char *id)
{
	struct container_name *slot = VEC_PUSH(names);

	if (!slot)
		return -ENOMEM;
	*slot = (struct container_name){.name = strdup(name), .id = strdup(id)};
	return slot->name && slot->id ? 0 : -ENOMEM;
}

static cJSON *read_json(const char *path)
{
	_cleanup_free_ char *text = NULL;
	size_t len;

	return fs__read(path, &text, &len) ? NULL : cJSON_Parse(text);
}

/*
 * Files below `root` that have names, as a pattern of glob(3). take() adds the names of one file,
 * or of its path, which it may change. 0 or -ENOMEM.
 */
struct name_source {
	const char *pattern;
	int (*take)(struct container_names *names, char *path);
};

static int read_names(struct container_names *names, const char *root,
		      const struct name_source *sources, size_t n)
{
	char pattern[PATH_MAX];
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		glob_t found = {0};

		snprintf(pattern, sizeof(pattern), "%s%s", root, sources[i].pattern);
		err = glob(pattern, GLOB_NOSORT, NULL, &found) == GLOB_NOSPACE ? -ENOMEM : 0;
		for (size_t k = 0; k < found.gl_pathc && !err; k++)
			err = sources[i].take(names, found.gl_pathv[k]);
		globfree(&found);
	}
	return err;
}

/* docker's ID/config.v2.json: "Name" is "/web". */
static int take_docker(struct container_names *names, char *path)
{
	cJSON *json = read_json(path);
	const char *name = json__text(json, "Name");
	int err = 0;

	*strrchr(path, '/') = '\0';
	if (name)
		err = container_names__add(names, name + (*name == '/'), strrchr(path, '/') + 1);
	cJSON_Delete(json);
	return err;
}

/* containers/storage, of podman and of CRI-O: [{"id": ..., "names": [...]}, ...] */
static int take_storage(struct container_names *names, char *path)
{
	cJSON *json = read_json(path);
	const cJSON *container, *name;
	int err = 0;

	cJSON_ArrayForEach(container, json) {
		const char *id = json__text(container, "id");

		cJSON_ArrayForEach(name, json__item(container, "names"))
			if (!err && id && cJSON_IsString(name))
				err = container_names__add(names, name->valuestring, id);
	}
	cJSON_Delete(json);
	return err;
}

/* The bundle of a container in containerd: the ID itself, and what its config.json adds. */
static int take_bundle(struct container_names *names, char *path)
{
	static const char *const keys[] = {"nerdctl/name", "io.kubernetes.cri.container-name"};
	const char *id = strrchr(path, '/') + 1;
	char file[PATH_MAX];
	cJSON *json;
	int err = container_names__add(names, id, id);

	snprintf(file, sizeof(file), "%s/config.json", path);
	json = read_json(file);
	for (size_t i = 0; !err && i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *name = json__text(json__item(json, "annotations"), keys[i]);

		if (name)
			err = container_names__add(names, name, id);
	}
	cJSON_Delete(json);
	return err;
}

int container_names__read(struct container_names *names, const char *root)
{
	/*
	 * podman has one folder per driver, such as "overlay-containers", and keeps containers that
	 * run with --rm in a separate file. containerd has one folder per namespace; k3s and RKE2
	 * have a containerd of their own.
	 */
	static const struct name_source sources[] = {
		{"/var/lib/docker/containers/*/config.v2.json", take_docker},
		{"/var/lib/containers/storage/*-containers/containers.json", take_storage},
		{"/var/lib/containers/storage/*-containers/volatile-containers.json", take_storage},
		{"/run/containerd/io.containerd.runtime.v2.task/*/*", take_bundle},
		{"/run/k3s/containerd/io.containerd.runtime.v2.task/*/*", take_bundle},
	};

	return read_names(names, root, sources, sizeof(sources) / sizeof(sources[0]));
}

/* "NAMESPACE_POD_UID": neither a namespace nor a pod has a '_' in its name. */
static int take_pod(struct container_names *names, char *path)
{
	char *name = strrchr(path, '/') + 1, *pod = strchr(name, '_');
	char *uid = pod ? strchr(pod + 1, '_') : NULL;

	if (!uid || !uid[1])
		return 0;
	*pod = '/';
	*uid++ = '\0';
	return container_names__add(names, name, uid);
}

/* "POD_NAMESPACE_CONTAINER-ID.log" */
static int take_log(struct container_names *names, char *path)
{
	char *pod = strrchr(path, '/') + 1, *space = strchr(pod, '_');
	char *container = space ? strchr(space + 1, '_') : NULL;
	char *id = container ? strrchr(container, '-') : NULL;
	char *end = id ? strchr(id, '.') : NULL, name[2 * NAME_MAX];

	if (!end)
		return 0;
	*space++ = *container++ = *id++ = *end = '\0';
	snprintf(name, sizeof(name), "%s/%s/%s", space, pod, container);
	return container_names__add(names, name, id);
}

int pod_names__read(struct container_names *names, const char *root)
{
	static const struct name_source sources[] = {
		{"/var/log/pods/*", take_pod},
		{"/var/log/containers/*", take_log},
	};

	return read_names(names, root, sources, sizeof(sources) / sizeof(sources[0]));
}

/* This machine as we see it, and as its first process does: we may be in a container too. */
static const char *const roots[] = {"", "/proc/1/root"};
#define N_ROOTS (sizeof(roots) / sizeof(roots[0]))

/* The search for one name and its results. */
struct container_search {
	bool (*is)(const char *name, const char *what);
	const char *what; /* "container", "pod" */
	struct container_names names;
	struct cgroup_paths paths;
	struct pid_set pids;
	size_t n_known; /* how many names match; all of these may be stopped */
};

void container__fini(struct container *container)
{
	pid_set__fini(&container->pids);
}

/* Finds the mount point of cgroup2, as seen from `root`. */
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

/*
 * Finds the cgroups of one ID; without any, the processes whose cgroup, by /proc/PID/cgroup,
 * is of that ID. 0 or -errno.
 */
static int find_cgroups(struct container_search *search, const char *id)
{
	size_t before = search->paths.n;
	struct process_list list;
	int err = 0;

	for (size_t i = 0; i < N_ROOTS && !err && search->paths.n == before; i++) {
		char top[PATH_MAX];

		if (!top_of(roots[i], top))
			err = container_cgroup__find(&search->paths, top, search->is, id);
		if (err != -ENOMEM)
			err = 0;
	}
	if (err || search->paths.n > before)
		return err;
	/* The cgroups are of version 1, or of version 2 but not mounted here. */
	err = process_list__read(&list);
	for (size_t i = 0; i < list.n && !err; i++) {
		_cleanup_free_ char *text = NULL;
		char *rest = NULL, *part = NULL;
		size_t len;

		if (!fs__read_proc(list.v[i].pid, "cgroup", &text, &len))
			part = strtok_r(text, "/\n", &rest);
		while (part && !search->is(part, id))
			part = strtok_r(NULL, "/\n", &rest);
		if (part)
			err = pid_set__add(&search->pids, list.v[i].pid);
	}
	process_list__fini(&list);
	return err;
}

/* Looks for the cgroups of each ID that has the name. */
static int find_named(struct container_search *search, const char *name)
{
	const struct container_names *names = &search->names;
	int err = 0;

	for (size_t i = 0; i < names->n && !err; i++) {
		size_t k = 0;

		if (strcmp(names->v[i].name, name))
			continue;
		while (k < i &&
		       (strcmp(names->v[k].id, names->v[i].id) || strcmp(names->v[k].name, name)))
			k++;
		if (k < i) /* both roots show it */
			continue;
		search->n_known++;
		err = find_cgroups(search, names->v[i].id);
	}
	return err;
}

static int refuse_unknown(const struct container_search *search, const char *name)
{
	struct nearest nearest = {.word = name};
	const char *meant;

	if (search->n_known) {
		log__error("the %s '%s' exists here, but is not running", search->what, name);
		log__hint("start it first, or let 'mtbpf record -dir' wait for it");
		return -ESRCH;
	}
	for (size_t i = 0; i < search->names.n; i++)
		nearest__offer(&nearest, search->names.v[i].name);
	meant = nearest__result(&nearest);
	log__error("no %s '%s' is running here", search->what, name);
	if (meant && strcmp(meant, name))
		log__hint("did you mean '%s'?", meant);
	else if (*search->what == 'p')
		log__hint("give NAMESPACE/POD, as 'kubectl get pods -A' shows it, and run mtbpf "
			  "on the pod's node");
	else
		log__hint("give the container's ID or name, as 'docker ps', 'podman ps' or "
			  "'crictl ps' shows it");
	return -ESRCH;
}

/*
 * Finds the container or pod of this name among the names that read() tells; if no name matches,
 * and by_id is set, the container with this ID. Frees the members of the search. 0, -ENOMEM, or
 * -errno after a line and a hint: -ESRCH, -ENOTUNIQ, or that of process_list__read().
 */
static int find(struct container *container, struct container_search *search, const char *name,
		int (*read)(struct container_names *names, const char *root), bool by_id)
{
	int err = 0;

	*container = (struct container){0};
	for (size_t i = 0; i < N_ROOTS && !err; i++)
		err = read(&search->names, roots[i]);
	if (!err)
		err = find_named(search, name);
	if (!err && by_id && !search->n_known)
		err = find_cgroups(search, name);

	if (!err && search->paths.n > 1) {
		log__error("'%s' names %zu %ss", name, search->paths.n, search->what);
		log__hint(by_id ? "give more digits of its ID, or -cgroup with one of:"
				: "give -cgroup with one of:");
		for (size_t i = 0; i < search->paths.n && i < 10; i++)
			log__hint("  %s", search->paths.v[i]);
		err = -ENOTUNIQ;
	} else if (!err && search->paths.n) {
		strcpy(container->path, search->paths.v[0]);
	} else if (!err && search->pids.n) {
		err = pid_set__add_all(&container->pids, &search->pids);
	} else if (!err) {
		err = refuse_unknown(search, name);
	}
	container_names__fini(&search->names);
	VEC_FINI(&search->paths);
	pid_set__fini(&search->pids);
	return err;
}

int container__find(struct container *container, const char *name)
{
	struct container_search search = {.is = container_cgroup__is, .what = "container"};
	const char *scheme = strstr(name, "://");

	/* kubectl shows an ID as "containerd://ID". */
	return find(container, &search, scheme ? scheme + strlen("://") : name,
		    container_names__read, true);
}

int container__find_pod(struct container *container, const char *name)
{
	const char *slash = strchr(name, '/');
	bool is_of_pod = slash && strchr(slash + 1, '/');
	struct container_search search = {
		.is = is_of_pod ? container_cgroup__is : container_cgroup__is_pod, .what = "pod"};
	char full[NAME_MAX + sizeof("default/")];

	snprintf(full, sizeof(full), "%s%s", slash ? "" : "default/", name);
	return find(container, &search, full, pod_names__read, false);
}

/* A container's config.json is in a namespace of containerd or of k3s', or in CRI-O's storage. */
#define TASKS "containerd/io.containerd.runtime.v2.task"

static const struct {
	const char *folder, *file; /* before and after the ID */
} bundles[] = {
	{"/run/" TASKS "/k8s.io", "config.json"},
	{"/run/" TASKS "/default", "config.json"},
	{"/run/" TASKS "/moby", "config.json"},
	{"/run/k3s/" TASKS "/k8s.io", "config.json"},
	{"/run/k3s/" TASKS "/default", "config.json"},
	{"/run/k3s/" TASKS "/moby", "config.json"},
	{"/var/lib/containers/storage/overlay-containers", "userdata/config.json"},
};

char *container_names__image(const char *root, const char *id)
{
	/* The kubelet, or nerdctl, writes these annotations. */
	static const char *const keys[] = {"io.kubernetes.cri.image-name",
					   "io.kubernetes.cri-o.ImageName", "nerdctl/image"};
	char path[PATH_MAX], *copy = NULL;
	const char *image;
	cJSON *json;

	snprintf(path, sizeof(path), "%s/var/lib/docker/containers/%s/config.v2.json", root, id);
	json = read_json(path);
	image = json__text(json__item(json, "Config"), "Image");
	if (image)
		copy = strdup(image);
	cJSON_Delete(json);
	for (size_t i = 0; !copy && i < sizeof(bundles) / sizeof(bundles[0]); i++) {
		snprintf(path, sizeof(path), "%s%s/%s/%s", root, bundles[i].folder, id,
			 bundles[i].file);
		json = read_json(path);
		for (size_t k = 0; !copy && k < sizeof(keys) / sizeof(keys[0]); k++) {
			image = json__text(json__item(json, "annotations"), keys[k]);
			copy = image ? strdup(image) : NULL;
		}
		cJSON_Delete(json);
	}
	return copy;
}
