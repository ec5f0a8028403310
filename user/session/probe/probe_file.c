// SPDX-License-Identifier: MIT
#include "session/probe/probe_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "target/overlay.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/vec.h"

static bool has_changed(const struct process *process, const struct probe *probe, uint8_t before)
{
	uint8_t now;

	return process__read_memory(process->pid, probe->ip, &now, 1) == 1 && now != before;
}

/*
 * 1: a probe in that file arrives in the process, at once, with its int3; 0: it does not. Where
 * somebody else's is there already nothing changes: its int3 tells that the file is the one.
 */
static int is_it(const struct probe *probe, const struct process *process, const char *path)
{
	struct uprobe_spec spec = {.path = path,
				   .offset = probe->offset,
				   .semaphore = probe->semaphore,
				   .pid = process->pid};
	_cleanup_close_ int fd = -1;
	uint8_t before;

	if (process__read_memory(process->pid, probe->ip, &before, 1) != 1)
		return -ESRCH;
	if (before != probe->code[0])
		return 1;
	fd = uprobe_event__open(&spec);
	return fd < 0 ? fd : has_changed(process, probe, before);
}

bool probe_file__is_same(const struct probe *other, const struct probe *found,
			 const struct process *process)
{
	if (other->offset != found->offset)
		return false;
	if (!strcmp(other->path, found->path) ||
	    (found->file.ino && other->file.ino == found->file.ino &&
	     other->file.maj == found->file.maj && other->file.min == found->file.min))
		return true;
	if (memcmp(other->code, found->code, sizeof(found->code)) ||
	    (!overlay__has(other->path) && !overlay__has(found->path)))
		return false;
	return is_it(found, process, other->path) == 1;
}

static int try_layers(struct probe *probe, const struct process *process,
		      const struct layer_paths *paths)
{
	static const char *const roots[] = {"", "/proc/1/root"};

	for (size_t i = 0; i < paths->n; i++) {
		for (size_t r = 0; r < sizeof(roots) / sizeof(roots[0]); r++) {
			char path[PATH_MAX];
			int got;

			if (snprintf(path, sizeof(path), "%s%s", roots[r], paths->v[i]) >=
				    (int)sizeof(path) ||
			    access(path, R_OK))
				continue;
			got = is_it(probe, process, path);
			if (got < 0)
				return got;
			if (!got)
				continue;
			snprintf(probe->path, sizeof(probe->path), "%s", path);
			return 0;
		}
	}
	return -ESTALE;
}

/*
 * The mapping's path begins where we see the root of its mount namespace, mountinfo's where the
 * process has its own: after a chroot they differ.
 */
static const char *path_inside(pid_t pid, const char *path)
{
	char link[64], root[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/root", (int)pid);
	n = readlink(link, root, sizeof(root));
	return n > 1 && !strncmp(path, root, (size_t)n) && path[n] == '/' ? path + n : path;
}

static int find_layer(struct probe *probe, const struct process *process,
		      const struct mapping *mapping)
{
	_cleanup_free_ char *mountinfo = NULL;
	struct layer_paths paths = {0};
	char path[64];
	size_t len;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)process->pid);
	err = fs__read(path, &mountinfo, &len);
	if (!err)
		err = overlay__lower_paths(&paths, mountinfo,
					   path_inside(process->pid, mapping->path));
	if (!err)
		err = try_layers(probe, process, &paths);
	VEC_FINI(&paths);
	return err;
}

int probe_file__settle(struct probe *probe, const struct process *process,
		       const struct mapping *mapping)
{
	int got, err;

	if (!overlay__has(probe->path))
		return 0;
	got = is_it(probe, process, probe->path);
	if (got)
		return got < 0 ? got : 0;
	err = find_layer(probe, process, mapping);
	if (!err) {
		log__info("%s was written to since process %d started: the probe is in what it "
			  "runs, %s",
			  mapping->path, process->pid, probe->path);
		return 0;
	}
	log__error("%s was written to since process %d started, and what it runs is in no layer of "
		   "the overlay that can be opened here",
		   mapping->path, process->pid);
	log__hint("restart the process, or run mtbpf where the overlay's layers are: on the host");
	return -ESTALE;
}
