// SPDX-License-Identifier: MIT
#include "target/maps.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "util/cleanup.h"
#include "util/fs.h"
#include "util/vec.h"

typedef VEC(struct mapping) mapping_vec;

/* Reads digits at *p up to the `end` character and steps past it. */
static bool take_number(const char **p, int base, char end, uint64_t *value)
{
	char *stop;

	/* strtoull() also takes blanks and signs, which a maps file never has here. */
	if (**p == ' ' || **p == '-' || **p == '+')
		return false;
	errno = 0;
	*value = strtoull(*p, &stop, base);
	if (errno || stop == *p || *stop != end)
		return false;
	*p = stop + 1;
	return true;
}

/* Reads "r-xp " at *p and steps past it. */
static bool take_prot(const char **p, uint32_t *prot)
{
	static const char letters[3] = {'r', 'w', 'x'};
	static const uint32_t bits[3] = {PROT_READ, PROT_WRITE, PROT_EXEC};

	*prot = 0;
	for (int i = 0; i < 3; i++, (*p)++) {
		if (**p == letters[i])
			*prot |= bits[i];
		else if (**p != '-')
			return false;
	}
	if (((*p)[0] != 'p' && (*p)[0] != 's') || (*p)[1] != ' ')
		return false;
	*p += 2;
	return true;
}

/* seq_path(m, file, "\n") in fs/proc/task_mmu.c escapes the newline, and nothing else. */
static char *unescape(const char *text, size_t len)
{
	char *path = malloc(len + 1), *out = path;

	if (!path)
		return NULL;
	for (size_t i = 0; i < len;) {
		if (len - i >= 4 && !memcmp(text + i, "\\012", 4)) {
			*out++ = '\n';
			i += 4;
		} else {
			*out++ = text[i++];
		}
	}
	*out = '\0';
	return path;
}

/* Parses one line; `end` is its newline, or the end of the text. 0, -EINVAL or -ENOMEM. */
static int parse_line(const char *p, const char *end, struct mapping *m)
{
	uint64_t maj, min;

	if (!take_number(&p, 16, '-', &m->start) || !take_number(&p, 16, ' ', &m->end) ||
	    !take_prot(&p, &m->prot) || !take_number(&p, 16, ' ', &m->pgoff) ||
	    !take_number(&p, 16, ':', &maj) || !take_number(&p, 16, ' ', &min))
		return -EINVAL;
	m->maj = (uint32_t)maj;
	m->min = (uint32_t)min;
	/* Old kernels print no blank after the inode of an anonymous mapping. */
	if (!take_number(&p, 10, ' ', &m->ino)) {
		if (!take_number(&p, 10, *end, &m->ino))
			return -EINVAL;
		p = end;
	}
	if (p > end || m->end <= m->start)
		return -EINVAL;
	while (p < end && *p == ' ')
		p++;
	m->path = unescape(p, (size_t)(end - p));
	return m->path ? 0 : -ENOMEM;
}

int mappings__parse(struct mappings *maps, const char *text)
{
	mapping_vec vec = {0};
	int err = 0;

	while (*text && !err) {
		const char *end = strchrnul(text, '\n');
		struct mapping m;

		err = parse_line(text, end, &m);
		if (err)
			break;
		err = VEC_ADD(&vec, m);
		if (err)
			free(m.path);
		text = *end ? end + 1 : end;
	}
	maps->v = vec.v;
	maps->n = vec.n;
	if (err)
		mappings__fini(maps);
	return err;
}

int mappings__read(struct mappings *maps, pid_t pid)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int err = fs__read_proc(pid, "maps", &text, &len);

	*maps = (struct mappings){0};
	return err ? err : mappings__parse(maps, text);
}

void mappings__fini(struct mappings *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		free(maps->v[i].path);
	free(maps->v);
	*maps = (struct mappings){0};
}

size_t mapping_path__length(const char *path)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(path), cut = sizeof(deleted) - 1;

	return len > cut && !strcmp(path + len - cut, deleted) ? len - cut : len;
}

/*
 * Besides deleted files and /dev/shm, these are names that the kernel gives to memory (mm/shmem.c,
 * ipc/shm.c).
 */
bool mapping__is_memory(const struct mapping *mapping)
{
	static const char *const prefixes[] = {"[anon:",  "[anon_shmem:", "[heap]",
					       "[stack]", "/memfd:",	  "/dev/zero",
					       "/SYSV",	  "/dev/shm/",	  "//anon"};
	const char *path = mapping->path;

	return ARRAY_FIND(prefixes, e, !strncmp(path, *e, strlen(*e))) || !*path ||
	       path[mapping_path__length(path)];
}

const struct mapping *mappings__find(const struct mappings *maps, uint64_t addr)
{
	size_t n = VEC_PARTITION_POINT(maps, e, e->end <= addr);

	return n < maps->n && maps->v[n].start <= addr ? &maps->v[n] : NULL;
}

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
static void overlay_unescape(char *text)
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
	overlay_unescape(mount->root);
	overlay_unescape(mount->point);
	return true;
}

/* 1 + the length of the mount point ("/" counts 0) if it contains the path; 0 otherwise. */
static size_t covers(const struct mount *mount, const char *path)
{
	size_t len = strcmp(mount->point, "/") ? strlen(mount->point) : 0;

	if (strncmp(path, mount->point, len) || path[len] != '/')
		return 0;
	return len + 1;
}

static int add_layer(struct layer_paths *paths, const char *layer, const char *inside)
{
	/* Working directories of runtimes when they mount many layers, with relative names. */
	static const char *const bases[] = {
		"/var/lib/docker/overlay2/",
		"/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/",
		"/var/lib/containers/storage/overlay/",
	};
	bool is_absolute = *layer == '/';
	size_t n = !*layer ? 0 : is_absolute ? 1 : sizeof(bases) / sizeof(bases[0]);

	for (size_t i = 0; i < n; i++) {
		char path[PATH_MAX];
		int len = snprintf(path, sizeof(path), "%s%s%s", is_absolute ? "" : bases[i], layer,
				   inside);

		if (len >= (int)sizeof(path))
			continue;
		if (vec__grow(&paths->v, &paths->cap, paths->n, sizeof(*paths->v)))
			return -ENOMEM;
		strcpy(paths->v[paths->n++], path);
	}
	return 0;
}

/* Adds the layers that an option's value lists, separated by ':'; undoes overlayfs' own escapes. */
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

static int add_lower(struct layer_paths *paths, const struct mount *mount, const char *path)
{
	char inside[PATH_MAX], *option = mount->options, *end;
	size_t skip = covers(mount, path) - 1;
	bool is_last;
	int err = 0;

	snprintf(inside, sizeof(inside), "%s%s", strcmp(mount->root, "/") ? mount->root : "",
		 path + skip);
	overlay_unescape(mount->options);
	do {
		/* Commas in names are escaped too: "\," in an option. */
		for (end = option; *end && *end != ',';)
			end += *end == '\\' && end[1] ? 2 : 1;
		is_last = !*end;
		*end = '\0';
		if (!strncmp(option, "lowerdir=", 9))
			err = add_layers(paths, option + 9, inside);
		else if (!strncmp(option, "lowerdir+=", 10))
			err = add_layers(paths, option + 10, inside);
		option = end + 1;
	} while (!err && !is_last);
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
	/* If two mounts have the same point, the later one is on top. */
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
