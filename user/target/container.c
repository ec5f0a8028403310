// SPDX-License-Identifier: MIT
#include "target/container.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
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
	 * "pod" begins the last part of the name, or the whole name with the cgroupfs driver. A
	 * kubelet with its own cgroup puts that first: "kubelet-kubepods-" in kind.
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
	char path[PATH_MAX]; /* the current folder */
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
		else if (walk(search) == -ENOMEM) /* a folder may be removed meanwhile */
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

/*
 * Calls take() for each entry of the folder, until it returns non-zero. Returns that, or 0, also if
 * the folder is missing.
 */
static int container_names__each_entry(struct container_names *names, const char *path,
				       int (*take)(struct container_names *names, const char *path,
						   const char *entry))
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int err = 0;

	while (dir && !err && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			err = take(names, path, entry->d_name);
	if (dir)
		closedir(dir);
	return err;
}

/* PATH/ENTRY followed by `end`. NULL: out of memory. */
static char *join(const char *path, const char *entry, const char *end)
{
	char *text;

	return asprintf(&text, "%s/%s%s", path, entry, end) < 0 ? NULL : text;
}

static cJSON *read_json(const char *path)
{
	_cleanup_free_ char *text = NULL;
	size_t len;

	return fs__read(path, &text, &len) ? NULL : cJSON_Parse(text);
}

/* docker: "Name" is "/web". */
static int take_docker(struct container_names *names, const char *path, const char *id)
{
	_cleanup_free_ char *file = join(path, id, "/config.v2.json");
	const char *name;
	cJSON *json;
	int err = 0;

	if (!file)
		return -ENOMEM;
	json = read_json(file);
	name = json__text(json, "Name");
	if (name)
		err = container_names__add(names, name + (*name == '/'), id);
	cJSON_Delete(json);
	return err;
}

/* containers/storage, of podman and of CRI-O: [{"id": ..., "names": [...]}, ...] */
static int take_storage(struct container_names *names, const char *file)
{
	cJSON *json = read_json(file);
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

/* One folder per driver: "overlay-containers". Containers run with --rm are in a separate file. */
static int take_driver(struct container_names *names, const char *path, const char *folder)
{
	static const char *const files[] = {"/containers.json", "/volatile-containers.json"};
	size_t len = strlen(folder), suffix = strlen("-containers");
	int err = 0;

	if (len <= suffix || strcmp(folder + len - suffix, "-containers"))
		return 0;
	for (size_t i = 0; !err && i < sizeof(files) / sizeof(files[0]); i++) {
		_cleanup_free_ char *file = join(path, folder, files[i]);

		err = file ? take_storage(names, file) : -ENOMEM;
	}
	return err;
}

static int take_annotations(struct container_names *names, const char *file, const char *id)
{
	static const char *const keys[] = {"nerdctl/name", "io.kubernetes.cri.container-name"};
	cJSON *json = read_json(file);
	const cJSON *annotations = json__item(json, "annotations");
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *name = json__text(annotations, keys[i]);

		if (name)
			err = container_names__add(names, name, id);
	}
	cJSON_Delete(json);
	return err;
}

static int take_task(struct container_names *names, const char *path, const char *id)
{
	_cleanup_free_ char *file = join(path, id, "/config.json");
	int err = file ? container_names__add(names, id, id) : -ENOMEM;

	return err ? err : take_annotations(names, file, id);
}

static int take_namespace(struct container_names *names, const char *path, const char *name)
{
	_cleanup_free_ char *below = join(path, name, "");

	return below ? container_names__each_entry(names, below, take_task) : -ENOMEM;
}

/* State folders of containerd: its own, and that of k3s and RKE2. */
static const char *const containerd_states[] = {"/run/containerd", "/run/k3s/containerd"};

static int take_containerd(struct container_names *names, const char *root)
{
	char path[PATH_MAX];
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(containerd_states) / sizeof(*containerd_states);
	     i++) {
		snprintf(path, sizeof(path), "%s%s/io.containerd.runtime.v2.task", root,
			 containerd_states[i]);
		err = container_names__each_entry(names, path, take_namespace);
	}
	return err;
}

int container_names__read(struct container_names *names, const char *root)
{
	char path[PATH_MAX];
	int err;

	snprintf(path, sizeof(path), "%s/var/lib/docker/containers", root);
	err = container_names__each_entry(names, path, take_docker);
	snprintf(path, sizeof(path), "%s/var/lib/containers/storage", root);
	if (!err)
		err = container_names__each_entry(names, path, take_driver);
	return err ? err : take_containerd(names, root);
}

/* Neither a namespace nor a pod has a '_' in its name. */
static int take_pod(struct container_names *names, const char *path, const char *entry)
{
	char name[NAME_MAX + 1], *pod, *uid;

	snprintf(name, sizeof(name), "%s", entry);
	pod = strchr(name, '_');
	uid = pod ? strchr(pod + 1, '_') : NULL;
	if (!uid || !uid[1])
		return 0;
	*pod = '/';
	*uid++ = '\0';
	return container_names__add(names, name, uid);
}

/* "POD_NAMESPACE_CONTAINER-ID.log" */
static int take_log(struct container_names *names, const char *path, const char *entry)
{
	char pod[NAME_MAX + 1], name[2 * NAME_MAX], *space, *container, *id, *end;

	snprintf(pod, sizeof(pod), "%s", entry);
	space = strchr(pod, '_');
	container = space ? strchr(space + 1, '_') : NULL;
	id = container ? strrchr(container, '-') : NULL;
	end = id ? strchr(id, '.') : NULL;
	if (!end)
		return 0;
	*space++ = *container++ = *id++ = *end = '\0';
	snprintf(name, sizeof(name), "%s/%s/%s", space, pod, container);
	return container_names__add(names, name, id);
}

int pod_names__read(struct container_names *names, const char *root)
{
	char path[PATH_MAX];
	int err;

	snprintf(path, sizeof(path), "%s/var/log/pods", root);
	err = container_names__each_entry(names, path, take_pod);
	snprintf(path, sizeof(path), "%s/var/log/containers", root);
	return err ? err : container_names__each_entry(names, path, take_log);
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
	size_t n_known; /* names that are the one; they may all be stopped */
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

static bool is_in_file(const struct container_search *container_search, pid_t pid, const char *id)
{
	_cleanup_free_ char *text = NULL;
	char *part, *rest = NULL;
	size_t len;

	if (fs__read_proc(pid, "cgroup", &text, &len))
		return false;
	for (part = strtok_r(text, "/\n", &rest); part; part = strtok_r(NULL, "/\n", &rest))
		if (container_search->is(part, id))
			return true;
	return false;
}

/* Searches /proc/PID/cgroup, for cgroups of version 1, or of version 2 but not mounted here. */
static int find_processes(struct container_search *container_search, const char *id)
{
	struct process_list list;
	int err = process_list__read(&list);

	for (size_t i = 0; i < list.n && !err; i++)
		if (is_in_file(container_search, list.v[i].pid, id))
			err = pid_set__add(&container_search->pids, list.v[i].pid);
	process_list__fini(&list);
	return err;
}

/* The cgroups of one ID. */
static int find_cgroups(struct container_search *container_search, const char *id)
{
	size_t before = container_search->paths.n;
	int err = 0;

	for (size_t i = 0; i < N_ROOTS && !err && container_search->paths.n == before; i++) {
		char top[PATH_MAX];

		if (!top_of(roots[i], top))
			err = container_cgroup__find(&container_search->paths, top,
						     container_search->is, id);
		if (err != -ENOMEM)
			err = 0;
	}
	return !err && container_search->paths.n == before ? find_processes(container_search, id)
							   : err;
}

static bool is_seen(const struct container_names *names, size_t before)
{
	for (size_t i = 0; i < before; i++)
		if (!strcmp(names->v[i].id, names->v[before].id) &&
		    !strcmp(names->v[i].name, names->v[before].name))
			return true;
	return false;
}

static int find_named(struct container_search *container_search, const char *name)
{
	const struct container_names *names = &container_search->names;
	int err = 0;

	for (size_t i = 0; i < names->n && !err; i++) {
		if (strcmp(names->v[i].name, name) || is_seen(names, i))
			continue;
		container_search->n_known++;
		err = find_cgroups(container_search, names->v[i].id);
	}
	return err;
}

static int refuse_unknown(const struct container_search *container_search, const char *name)
{
	struct nearest nearest = {.word = name};
	const char *meant;

	for (size_t i = 0; i < container_search->names.n; i++)
		nearest__offer(&nearest, container_search->names.v[i].name);
	meant = nearest__result(&nearest);
	if (container_search->n_known)
		log__error("the %s '%s' exists here, but is not running", container_search->what,
			   name);
	else
		log__error("no %s '%s' is running here", container_search->what, name);
	if (container_search->n_known)
		log__hint("start it first, or let 'mtbpf record -dir' wait for it");
	else if (meant && strcmp(meant, name))
		log__hint("did you mean '%s'?", meant);
	else if (*container_search->what == 'p')
		log__hint("give NAMESPACE/POD, as 'kubectl get pods -A' lists them, on its node");
	else
		log__hint("give its ID or its name, as 'docker ps', 'podman ps' or 'crictl ps' "
			  "lists them");
	return -ESRCH;
}

static int refuse_many(const struct container_search *container_search, const char *name)
{
	log__error("'%s' names %zu %ss", name, container_search->paths.n, container_search->what);
	log__hint("give more digits of its ID, or -cgroup with one of:");
	for (size_t i = 0; i < container_search->paths.n && i < 10; i++)
		log__hint("  %s", container_search->paths.v[i]);
	return -ENOTUNIQ;
}

static int settle(struct container_search *container_search, const char *name,
		  struct container *container)
{
	if (container_search->paths.n > 1)
		return refuse_many(container_search, name);
	if (container_search->paths.n)
		snprintf(container->path, sizeof(container->path), "%s",
			 container_search->paths.v[0]);
	else if (container_search->pids.n)
		return pid_set__add_all(&container->pids, &container_search->pids);
	else
		return refuse_unknown(container_search, name);
	return 0;
}

static int find(struct container_search *container_search, const char *name,
		int (*read)(struct container_names *names, const char *root), bool by_id)
{
	int err = 0;

	for (size_t i = 0; i < N_ROOTS && !err; i++)
		err = read(&container_search->names, roots[i]);
	if (!err)
		err = find_named(container_search, name);
	if (!err && by_id && !container_search->n_known)
		err = find_cgroups(container_search, name);
	return err;
}

static void fini(struct container_search *container_search)
{
	container_names__fini(&container_search->names);
	VEC_FINI(&container_search->paths);
	pid_set__fini(&container_search->pids);
}

/* "containerd://ID": so kubectl shows it. */
static const char *without_scheme(const char *name)
{
	const char *scheme = strstr(name, "://");

	return scheme ? scheme + strlen("://") : name;
}

int container__find(struct container *container, const char *name)
{
	struct container_search container_search = {.is = container_cgroup__is,
						    .what = "container"};
	int err;

	name = without_scheme(name);
	err = find(&container_search, name, container_names__read, true);

	*container = (struct container){0};
	if (!err)
		err = settle(&container_search, name, container);
	fini(&container_search);
	return err;
}

int container__find_pod(struct container *container, const char *name)
{
	const char *slash = strchr(name, '/');
	bool is_of_pod = slash && strchr(slash + 1, '/');
	struct container_search container_search = {
		.is = is_of_pod ? container_cgroup__is : container_cgroup__is_pod, .what = "pod"};
	char full[NAME_MAX + sizeof("default/")];
	int err;

	snprintf(full, sizeof(full), "%s%s", slash ? "" : "default/", name);
	err = find(&container_search, full, pod_names__read, false);
	*container = (struct container){0};
	if (!err)
		err = settle(&container_search, full, container);
	fini(&container_search);
	return err;
}

static char *docker_image(const char *root, const char *id)
{
	char path[PATH_MAX];
	const char *image;
	char *copy;
	cJSON *json;

	snprintf(path, sizeof(path), "%s/var/lib/docker/containers/%s/config.v2.json", root, id);
	json = read_json(path);
	image = json__text(json__item(json, "Config"), "Image");
	copy = image ? strdup(image) : NULL;
	cJSON_Delete(json);
	return copy;
}

/* A bundle's config.json: what the kubelet, or nerdctl, noted in it. */
static char *bundle_image(const char *path)
{
	static const char *const keys[] = {"io.kubernetes.cri.image-name",
					   "io.kubernetes.cri-o.ImageName", "nerdctl/image"};
	cJSON *json = read_json(path);
	const cJSON *annotations = json__item(json, "annotations");
	char *copy = NULL;

	for (size_t i = 0; !copy && i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *image = json__text(annotations, keys[i]);

		copy = image ? strdup(image) : NULL;
	}
	cJSON_Delete(json);
	return copy;
}

static char *containerd_image(const char *root, const char *id)
{
	static const char *const namespaces[] = {"k8s.io", "default", "moby"};
	const size_t n = sizeof(namespaces) / sizeof(namespaces[0]);
	char path[PATH_MAX], *image = NULL;

	for (size_t i = 0; !image && i < sizeof(containerd_states) / sizeof(*containerd_states);
	     i++)
		for (size_t k = 0; !image && k < n; k++) {
			snprintf(path, sizeof(path),
				 "%s%s/io.containerd.runtime.v2.task/%s/%s/config.json", root,
				 containerd_states[i], namespaces[k], id);
			image = bundle_image(path);
		}
	return image;
}

static char *storage_image(const char *root, const char *id)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path),
		 "%s/var/lib/containers/storage/overlay-containers/%s/userdata/config.json", root,
		 id);
	return bundle_image(path);
}

char *container_names__image(const char *root, const char *id)
{
	char *image = docker_image(root, id);

	if (!image)
		image = containerd_image(root, id);
	return image ? image : storage_image(root, id);
}
