/* SPDX-License-Identifier: MIT */
/*
 * Processes: what /proc tells of one (state, threads, mappings, and its files and memory as it sees
 * them), sets of pids, and the list of all.
 */
#ifndef MTBPF_TARGET_PROCESS_H
#define MTBPF_TARGET_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/maps.h"

#define PROCESS_COMM_SIZE 16

struct task_status {
	pid_t tgid;
	char state; /* 'R', 'S', ..., 'Z' zombie, 'X' dead */
	bool has_memory;
	pid_t tracer; /* 0: none */
	unsigned int threads;
	pid_t pid_inside; /* in its own pid namespace; 0: not told */
	char comm[PROCESS_COMM_SIZE];
};

/* 0 or -errno: -ESRCH if the task does not exist. */
int task_status__read(struct task_status *status, pid_t pid);
/* Like task_status__read(), from the file's text. -ESRCH: not such a text. */
int task_status__parse(struct task_status *status, const char *text);

/* time_namespaces(7): a process may see another CLOCK_MONOTONIC than the kernel's. */

/* Nanoseconds that the process's CLOCK_MONOTONIC is ahead of the kernel's; 0 if unknown. */
int64_t time_namespace__offset_ns(pid_t pid);
/* Like time_namespace__offset_ns(), from the text of a timens_offsets file. */
int64_t time_namespace__parse(const char *text);

/* Some processes, by pid. */

struct pid_set {
	pid_t *v; /* ascending, each once */
	size_t n, cap;
};

void pid_set__fini(struct pid_set *set);

/* 0, also if it is in the set already, or -ENOMEM. */
int pid_set__add(struct pid_set *set, pid_t pid);
/* Does nothing if it is not in the set. */
void pid_set__remove(struct pid_set *set, pid_t pid);
bool pid_set__has(const struct pid_set *set, pid_t pid);
/* 0 or -ENOMEM: only some of them were added. */
int pid_set__add_all(struct pid_set *to, const struct pid_set *from);

/*
 * Adds the pids of a text like "17,4,19". 0; -EINVAL: a part is not a whole number; -ERANGE: one is
 * too large; -ENOMEM. Zeroes are left out.
 */
int pid_set__parse(struct pid_set *set, const char *text);

/* A running process: names, threads, mappings, and its files and memory as *it* sees them. */

struct process {
	pid_t pid;
	char comm[PROCESS_COMM_SIZE];
	char *exe; /* what /proc/PID/exe reads, in the target's mount namespace; a kernel thread's:
		      "" */
	bool is_kernel_thread;
	struct mappings maps;
};

/*
 * Reads the process's current state. Returns 0, or -errno after one line and a hint on stderr:
 * -ESRCH not found, or a zombie; -EACCES; -ENOEXEC: it belongs to the kernel. A tid that differs
 * from its process's pid is refused (-EINVAL), naming that pid.
 */
int process__open(struct process *process, pid_t pid);
/* Like process__open(), but also accepts kernel threads, which have neither a file nor mappings. */
int process__open_any(struct process *process, pid_t pid);
void process__close(struct process *process);

/* The tids of all threads, ascending. *tids is freed by the caller. 0 or -errno. */
int process__threads(pid_t pid, pid_t **tids, size_t *n);
/* The name of one thread; "?" if it has ended. */
void process__thread_name(pid_t pid, pid_t tid, char name[static PROCESS_COMM_SIZE]);
/* The process that traces it with ptrace(2): a debugger, strace, another mtbpf. 0: none. */
pid_t process__tracer(pid_t pid);
/* True if a signal has stopped it (SIGSTOP, Ctrl-Z): it does not run until SIGCONT. */
bool process__stopped(pid_t pid);
/* True while the process lives: its main thread may be a zombie if others still run. */
bool process__alive(pid_t pid);
/*
 * True if a child of the process runs the same file, as workers do that a server forks. False where
 * the kernel does not list children (no CONFIG_PROC_CHILDREN).
 */
bool process__has_workers(pid_t pid);
/*
 * True if the process has a child that is not in `known`; otherwise like process__has_workers().
 * only_older: only children that are older than this process count.
 */
bool process__has_unknown_child(pid_t pid, const struct pid_set *known, bool only_older);

/*
 * Opens a mapping's file read-only: through /proc/PID/map_files, otherwise /proc/PID/root + path,
 * never through the path in our own mount namespace. Returns a descriptor the caller closes, or
 * -errno; -ENOENT for a mapping without a file ("[vdso]", anonymous).
 */
int process__open_mapping(pid_t pid, const struct mapping *mapping);
/*
 * A path that open(2) and the uprobe PMU accept for the same file; PATH_MAX bytes. 0 or -errno.
 */
int process__mapping_path(pid_t pid, const struct mapping *mapping, char *path, size_t size);

/* Reads len bytes at addr through /proc/PID/mem. The count read (short at a hole), or -errno. */
ssize_t process__read_memory(pid_t pid, uint64_t addr, void *buf, size_t len);

/* A list of processes, to find one by its name or to pick one. */

struct process_entry {
	pid_t pid;
	char comm[PROCESS_COMM_SIZE]; /* without blanks at its end */
	char *program;		      /* the base name of its file; "" if it cannot be read */
	char *command;		      /* its arguments, separated by blanks, or "" */
};

struct process_list {
	struct process_entry *v; /* ascending by pid */
	size_t n, cap;
};

/*
 * Every process that may be traced: kernel threads, zombies, processes that /proc hides from this
 * user, and this process itself are left out. 0, or -errno after a line and a hint if the list
 * would be incomplete; process_list__fini() in any case.
 */
int process_list__read(struct process_list *list);
void process_list__fini(struct process_list *list);

/* True if its comm, or its program's base name, matches (fnmatch(3)). */
bool process_entry__matches(const struct process_entry *entry, const char *glob);

#endif
