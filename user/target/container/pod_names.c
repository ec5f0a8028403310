// SPDX-License-Identifier: MIT
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "target/container/names_internal.h"

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
