// SPDX-License-Identifier: MIT
#include "target/process_list.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fs.h"
#include "util/vec.h"

static void fini_entry(struct process_entry *entry)
{
	free(entry->program);
	free(entry->command);
}

void process_list__fini(struct process_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		fini_entry(&list->v[i]);
	VEC_FINI(list);
}

/* A file that was deleted, or replaced, still has the name that people know. */
static char *base_name(char *path)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(path), cut = sizeof(deleted) - 1;
	char *slash;

	if (len > cut && !strcmp(path + len - cut, deleted))
		path[len - cut] = '\0';
	slash = strrchr(path, '/');
	return strdup(slash ? slash + 1 : path);
}

/* 0; -ESRCH: it is gone, or a kernel thread; -ENOMEM. */
static int read_program(pid_t pid, struct process_entry *entry)
{
	char path[64], target[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0 && errno == ENOENT)
		return -ESRCH;
	/* Another user's: it is there, and its comm is known. */
	target[n < 0 ? 0 : n] = '\0';
	entry->program = base_name(target);
	return entry->program ? 0 : -ENOMEM;
}

/* Its arguments, as ps shows them. */
static int read_command(pid_t pid, struct process_entry *entry)
{
	char path[64];
	size_t len;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	err = fs__read(path, &entry->command, &len);
	if (err)
		return err == -ENOMEM ? err : -ESRCH;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)entry->command[i] < ' ')
			entry->command[i] = ' ';
	while (len && entry->command[len - 1] == ' ')
		entry->command[--len] = '\0';
	return 0;
}

static int read_entry(pid_t pid, struct process_entry *entry)
{
	int err;

	*entry = (struct process_entry){.pid = pid};
	if (pid == getpid() || !process__alive(pid))
		return -ESRCH;
	process__thread_name(pid, pid, entry->comm);
	err = read_program(pid, entry);
	return err ? err : read_command(pid, entry);
}

static int add(struct process_list *list, pid_t pid)
{
	struct process_entry entry, *slot;
	int err = read_entry(pid, &entry);

	slot = err ? NULL : VEC_PUSH(list);
	if (slot) {
		*slot = entry;
		return 0;
	}
	fini_entry(&entry);
	return err == -ESRCH ? 0 : -ENOMEM;
}

static int compare_entries(const void *a, const void *b)
{
	const struct process_entry *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

int process_list__read(struct process_list *list)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int err = 0;

	*list = (struct process_list){0};
	if (!proc)
		return -errno;
	while (!err && (entry = readdir(proc))) {
		pid_t pid = atoi(entry->d_name);

		if (pid > 0)
			err = add(list, pid);
	}
	closedir(proc);
	VEC_SORT(list, compare_entries);
	return err;
}

bool process_entry__matches(const struct process_entry *entry, const char *glob)
{
	return !fnmatch(glob, entry->comm, 0) || !fnmatch(glob, entry->program, 0);
}
