// SPDX-License-Identifier: MIT
#include "target/container/container_names.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/container/names_internal.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/vec.h"

void container_names__fini(struct container_names *names)
{
	for (size_t i = 0; i < names->n; i++) {
		free(names->v[i].name);
		free(names->v[i].id);
	}
	VEC_FINI(names);
}

int container_names__add(struct container_names *names, const char *name, const char *id)
{
	struct container_name *slot = VEC_PUSH(names);

	if (!slot)
		return -ENOMEM;
	*slot = (struct container_name){.name = strdup(name), .id = strdup(id)};
	return slot->name && slot->id ? 0 : -ENOMEM;
}

int container_names__each_entry(struct container_names *names, const char *path,
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

/* PATH/ENTRY and what is behind it. NULL: no memory. */
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

static const char *text_of(const cJSON *object, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
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
	name = text_of(json, "Name");
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

	cJSON_ArrayForEach(container, json)
	{
		const char *id = text_of(container, "id");

		cJSON_ArrayForEach(name, cJSON_GetObjectItemCaseSensitive(
						 container, "names")) if (!err && id &&
									  cJSON_IsString(name))
			err = container_names__add(names, name->valuestring, id);
	}
	cJSON_Delete(json);
	return err;
}

/* A folder per driver: "overlay-containers". What is run with --rm is in a file of its own. */
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
	const cJSON *annotations = cJSON_GetObjectItemCaseSensitive(json, "annotations");
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *name = text_of(annotations, keys[i]);

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

/* Where containerd keeps its state: its own place, and k3s's and RKE2's. */
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

static char *docker_image(const char *root, const char *id)
{
	char path[PATH_MAX];
	const char *image;
	char *copy;
	cJSON *json;

	snprintf(path, sizeof(path), "%s/var/lib/docker/containers/%s/config.v2.json", root, id);
	json = read_json(path);
	image = text_of(cJSON_GetObjectItemCaseSensitive(json, "Config"), "Image");
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
	const cJSON *annotations = cJSON_GetObjectItemCaseSensitive(json, "annotations");
	char *copy = NULL;

	for (size_t i = 0; !copy && i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *image = text_of(annotations, keys[i]);

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
