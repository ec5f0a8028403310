/* SPDX-License-Identifier: MIT */
/* A running process: names, threads, mappings, and its files and memory as *it* sees them. */
#ifndef MTBPF_TARGET_PROCESS_H
#define MTBPF_TARGET_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/maps.h"
#include "target/task_status.h"

struct process {
	pid_t pid;
	char comm[PROCESS_COMM_SIZE];
	char *exe; /* what /proc/PID/exe reads, in the target's mount namespace; a kernel thread's:
		      "" */
	bool is_kernel_thread;
	struct mappings maps;
};

/*
 * Looks at a process as it is now. Returns 0, or -errno after one line and a hint on stderr:
 * -ESRCH no such process, or a zombie; -EACCES; -ENOEXEC: a kernel thread. A tid that is not its
 * process's pid is refused (-EINVAL), naming the pid it belongs to.
 */
int process__open(struct process *process, pid_t pid);
/* The same, but a kernel thread will do, which has neither a file nor mappings. */
int process__open_any(struct process *process, pid_t pid);
void process__close(struct process *process);

/* The tids of all threads, ascending. *tids is freed by the caller. 0 or -errno. */
int process__threads(pid_t pid, pid_t **tids, size_t *n);
/* The name of one thread; "?" where it has gone. */
void process__thread_name(pid_t pid, pid_t tid, char name[static PROCESS_COMM_SIZE]);
/* The process that traces it with ptrace(2): a debugger, strace, another mtbpf. 0: none. */
pid_t process__tracer(pid_t pid);
/* True where a signal has stopped it (SIGSTOP, Ctrl-Z): until SIGCONT it runs nothing. */
bool process__stopped(pid_t pid);
/* True while pid exists and is no zombie. */
bool process__alive(pid_t pid);
/*
 * True if a child of the process runs the same file, as workers do that a server forks. False where
 * the kernel does not list children (no CONFIG_PROC_CHILDREN).
 */
bool process__has_workers(pid_t pid);
/* The same of any child. */
bool process__has_children(pid_t pid);

/*
 * Opens the file behind a mapping read-only: through /proc/PID/map_files, else /proc/PID/root +
 * path, never through the path as our own mount namespace sees it. Returns a descriptor the caller
 * closes, or -errno; -ENOENT for a mapping without a file ("[vdso]", anonymous).
 */
int process__open_mapping(pid_t pid, const struct mapping *mapping);
/*
 * A path that open(2) and the uprobe PMU accept for the same file; PATH_MAX bytes. 0 or -errno.
 */
int process__mapping_path(pid_t pid, const struct mapping *mapping, char *path, size_t size);

/* Reads len bytes at addr through /proc/PID/mem. The count read (short at a hole), or -errno. */
ssize_t process__read_memory(pid_t pid, uint64_t addr, void *buf, size_t len);

#endif
