// SPDX-License-Identifier: MIT
#include "target/overlay.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "util/vec.h"

/* Where runtimes stand when they mount with relative names, which they do when there are many. */
static const char *const bases[] = {
	"/var/lib/docker/overlay2",
	"/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots",
	"/var/lib/containers/storage/overlay",
};

bool overlay__has(const char *path)
{
	struct statfs fs;

	return !statfs(path, &fs) && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

/* "ID PARENT MAJ:MIN ROOT POINT OPTIONS [TAGS...] - TYPE SOURCE OPTIONS", taken apart. */
struct mount {
	char *root, *point, *type, *options;
};

/* fs/proc_namespace.c: mangle() writes blanks and backslashes in octal. */
static void unescape(char *text)
{
	char *out = text;

	while (*text) {
		unsigned int code;

		if (text[0] == '\\' && sscanf(text + 1, "%3o", &code) == 1 && code < 256 &&
		    strspn(text + 1, "01234567") >= 3) {
			*out++ = (char)code;
			text += 4;
		} else {
			*out++ = *text++;
		}
	}
	*out = '\0';
}

static bool parse_mount(char *line, struct mount *mount)
{
	char *rest = NULL, *field = strtok_r(line, " ", &rest);
	int n = 0;

	*mount = (struct mount){0};
	for (; field && strcmp(field, "-"); field = strtok_r(NULL, " ", &rest), n++) {
		if (n == 3)
			mount->root = field;
		if (n == 4)
			mount->point = field;
	}
	mount->type = strtok_r(NULL, " ", &rest);
	if (!mount->type || !strtok_r(NULL, " ", &rest))
		return false;
	mount->options = strtok_r(NULL, " ", &rest);
	if (!mount->options || !mount->point)
		return false;
	unescape(mount->root);
	unescape(mount->point);
	return true;
}

/* How much of the path is the mount point; 0: it does not lie there. */
static size_t covers(const struct mount *mount, const char *path)
{
	size_t len = strcmp(mount->point, "/") ? strlen(mount->point) : 0;

	if (strncmp(path, mount->point, len) || path[len] != '/')
		return 0;
	return len + 1;
}

static int add(struct layer_paths *paths, const char *base, const char *layer, const char *inside)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s%s%s%s", base, *base ? "/" : "", layer, inside) >=
	    (int)sizeof(path))
		return 0;
	if (vec__grow(&paths->v, &paths->cap, paths->n, sizeof(*paths->v)))
		return -ENOMEM;
	strcpy(paths->v[paths->n++], path);
	return 0;
}

static int add_layer(struct layer_paths *paths, const char *layer, const char *inside)
{
	int err = 0;

	if (*layer == '/')
		return add(paths, "", layer, inside);
	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]) && !err && *layer; i++)
		err = add(paths, bases[i], layer, inside);
	return err;
}

/* The value of one option to its end, with the escapes of overlayfs itself undone. */
static int add_layers(struct layer_paths *paths, char *value, const char *inside)
{
	char *layer = value, *out = value;
	int err = 0;

	for (char *in = value; !err; in++) {
		if (*in == '\\' && in[1]) {
			*out++ = *++in;
		} else if (*in && *in != ':') {
			*out++ = *in;
		} else {
			bool is_end = !*in;

			*out = '\0';
			err = add_layer(paths, layer, inside);
			if (is_end)
				break;
			out = layer = in + 1;
		}
	}
	return err;
}

/* Commas in names are escaped too: "\," in an option. */
static char *next_option(char **rest)
{
	char *option = *rest, *end = option;

	if (!option)
		return NULL;
	while (*end && *end != ',')
		end += *end == '\\' && end[1] ? 2 : 1;
	*rest = *end ? end + 1 : NULL;
	*end = '\0';
	return option;
}

static int add_lower(struct layer_paths *paths, const struct mount *mount, const char *path)
{
	char inside[PATH_MAX], *rest = mount->options, *option;
	size_t skip = covers(mount, path) - 1;
	int err = 0;

	snprintf(inside, sizeof(inside), "%s%s", strcmp(mount->root, "/") ? mount->root : "",
		 path + skip);
	unescape(mount->options);
	while (!err && (option = next_option(&rest))) {
		if (!strncmp(option, "lowerdir=", 9))
			err = add_layers(paths, option + 9, inside);
		else if (!strncmp(option, "lowerdir+=", 10))
			err = add_layers(paths, option + 10, inside);
	}
	return err;
}

int overlay__lower_paths(struct layer_paths *paths, const char *mountinfo, const char *path)
{
	char *text = strdup(mountinfo), *rest = NULL;
	struct mount best = {0};
	size_t most = 0;
	int err = 0;

	if (!text)
		return -ENOMEM;
	/* Of two on the same point the later one is on top. */
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct mount mount;
		size_t len = parse_mount(line, &mount) ? covers(&mount, path) : 0;

		if (len && len >= most) {
			most = len;
			best = mount;
		}
	}
	if (most && !strcmp(best.type, "overlay"))
		err = add_lower(paths, &best, path);
	free(text);
	return err;
}
