// SPDX-License-Identifier: MIT
#include "target/process.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "target/task_status.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/vec.h"

#include <limits.h>
#include <unistd.h>

static bool is_dead(const struct task_status *status)
{
	return status->state == 'Z' || status->state == 'X';
}

static int refuse_missing(pid_t pid)
{
	log__error("no process with pid %d", (int)pid);
	log__hint("'pgrep -a NAME' lists pids");
	return -ESRCH;
}

static int refuse_dead(pid_t pid, const struct task_status *status)
{
	if (status->threads > 1) {
		log__error("the main thread of process %d (%s) has exited", (int)pid, status->comm);
		log__hint("a process can be looked at only while its main thread runs");
	} else {
		log__error("process %d has exited (zombie)", (int)pid);
		log__hint("its parent has not collected its exit status yet; start it again");
	}
	return -ESRCH;
}

static int refuse_thread(pid_t tid, pid_t pid)
{
	log__error("%d is a thread of process %d", (int)tid, (int)pid);
	log__hint("use -pid %d", (int)pid);
	return -EINVAL;
}

static int refuse_kernel_thread(pid_t pid, const char *comm)
{
	log__error("%d (%s) is a kernel thread", (int)pid, comm);
	log__hint("without -trace-kernel-only (or -source sample -trace-include-kernel) only "
		  "programs in user space are recorded; 'pgrep -a NAME' lists them");
	return -ENOEXEC;
}

static int refuse_access(pid_t pid, const char *comm, int err)
{
	log__error("cannot look at process %d (%s): %s", (int)pid, comm, strerror(-err));
	if (err == -EACCES || err == -EPERM)
		log__hint("run as its user or as root; CAP_SYS_PTRACE will do too");
	return err == -EPERM ? -EACCES : err;
}

/* Refuses what is no process that could be traced. 0 or -errno, message printed. */
static int check_status(pid_t pid, struct task_status *status)
{
	int err = task_status__read(status, pid);

	if (err == -ESRCH)
		return refuse_missing(pid);
	if (err)
		return refuse_access(pid, "?", err);
	if (status->tgid != pid)
		return refuse_thread(pid, status->tgid);
	if (is_dead(status))
		return refuse_dead(pid, status);
	return 0;
}

/* What /proc/PID/exe reads, into *exe. 0 or -errno. */
static int read_exe(pid_t pid, char **exe)
{
	char path[64], target[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	target[n] = '\0';
	*exe = strdup(target);
	return *exe ? 0 : -ENOMEM;
}

static int open_kernel_thread(struct process *process)
{
	process->is_kernel_thread = true;
	process->exe = strdup("");
	return process->exe ? 0 : -ENOMEM;
}

static int open_process(struct process *process, pid_t pid, bool may_be_kernel)
{
	struct task_status status;
	int err;

	*process = (struct process){.pid = pid};
	err = check_status(pid, &status);
	if (err)
		return err;
	memcpy(process->comm, status.comm, sizeof(process->comm));
	if (!status.has_memory)
		return may_be_kernel ? open_kernel_thread(process)
				     : refuse_kernel_thread(pid, status.comm);
	err = read_exe(pid, &process->exe);
	if (!err)
		err = mappings__read(&process->maps, pid);
	/* An empty map is what an exiting process shows. */
	if (!err && !process->maps.n)
		err = -ESRCH;
	if (err) {
		process__close(process);
		return err == -ESRCH ? refuse_missing(pid) : refuse_access(pid, status.comm, err);
	}
	return 0;
}

int process__open(struct process *process, pid_t pid)
{
	return open_process(process, pid, false);
}

int process__open_any(struct process *process, pid_t pid)
{
	return open_process(process, pid, true);
}

void process__close(struct process *process)
{
	mappings__fini(&process->maps);
	free(process->exe);
	process->exe = NULL;
}

static void cleanup__closedir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

int process__threads(pid_t pid, pid_t **tids, size_t *n)
{
	__attribute__((cleanup(cleanup__closedir))) DIR *dir = NULL;
	VEC(pid_t) vec = {0};
	struct dirent *entry;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(dir))) {
		pid_t tid = atoi(entry->d_name), *slot;

		if (tid <= 0)
			continue;
		slot = VEC_PUSH(&vec);
		if (!slot) {
			VEC_FINI(&vec);
			return -ENOMEM;
		}
		*slot = tid;
	}
	if (!vec.n)
		return -ESRCH;
	VEC_SORT(&vec, compare_pids);
	*tids = vec.v;
	*n = vec.n;
	return 0;
}

void process__thread_name(pid_t pid, pid_t tid, char name[static PROCESS_COMM_SIZE])
{
	_cleanup_free_ char *text = NULL;
	char path[64];
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	task_comm__copy(name, fs__read(path, &text, &len) ? "?" : text);
}

pid_t process__tracer(pid_t pid)
{
	struct task_status status;

	return task_status__read(&status, pid) ? 0 : status.tracer;
}

bool process__stopped(pid_t pid)
{
	struct task_status status;

	return !task_status__read(&status, pid) && status.state == 'T';
}

/* exe NULL: whatever it runs. */
static bool has_child(pid_t pid, pid_t tid, const struct stat *exe)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64];
	int child;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tid);
	f = fopen(path, "re");
	while (f && fscanf(f, "%d", &child) == 1) {
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%d/exe", child);
		if (!exe ||
		    (!stat(path, &st) && st.st_dev == exe->st_dev && st.st_ino == exe->st_ino))
			return true;
	}
	return false;
}

static bool has_child_of_any(pid_t pid, const struct stat *exe)
{
	_cleanup_free_ pid_t *tids = NULL;
	size_t n = 0;

	if (process__threads(pid, &tids, &n))
		return false;
	for (size_t i = 0; i < n; i++)
		if (has_child(pid, tids[i], exe))
			return true;
	return false;
}

bool process__has_workers(pid_t pid)
{
	struct stat exe;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return !stat(path, &exe) && has_child_of_any(pid, &exe);
}

bool process__has_children(pid_t pid)
{
	return has_child_of_any(pid, NULL);
}

bool process__alive(pid_t pid)
{
	struct task_status status;

	/* A main thread that has exited is a zombie too; its process lives on in the others. */
	return !task_status__read(&status, pid) && (!is_dead(&status) || status.threads > 1);
}
