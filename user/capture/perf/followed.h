/* SPDX-License-Identifier: MIT */
/*
 * The processes and threads that a perf source records: what their sideband records have told so
 * far, and the descriptors that wake waiters. The source owns the rings.
 */
#ifndef MTBPF_CAPTURE_PERF_FOLLOWED_H
#define MTBPF_CAPTURE_PERF_FOLLOWED_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/perf/event_place.h"
#include "capture/perf/sideband.h"
#include "capture/recording/recording.h"
#include "capture/source.h"
#include "target/process.h"

struct followed_process {
	pid_t pid;
	int fd; /* a pidfd(2) */
};

/* The functions of a source that opens rings for what is followed. */
struct followed_ops {
	/*
	 * Opens one there, and keeps it: of a thread, pid is its process. The descriptor of its
	 * sideband's event, or -errno.
	 */
	int (*open_ring)(struct source *source, const struct event_place *place, pid_t pid);
	/* A thread that is recorded has ended. */
	void (*ended)(struct source *source, pid_t tid);
	/* One began that is not. 0; -ESRCH it is gone already; another -errno: said of it. */
	int (*began)(struct source *source, pid_t pid, pid_t tid);
	/* Takes what the rings' sideband says, and follows whom it tells of. 0 or -errno. */
	int (*look)(struct source *source);
	/* Ends recording in all rings. */
	void (*disable)(struct source *source);
};

/* A source of perf events begins with it. */
struct followed {
	const struct source_config *config;
	const struct followed_ops *ops;
	bool frozen;
	struct sideband sideband;
	struct recording pending;		/* the records of the sideband so far */
	struct pid_set pids;			/* the recorded processes; empty for a cgroup */
	struct pid_set tids;			/* of those, the threads that are recorded */
	VEC(struct followed_process) processes; /* that have not exited */
	struct pid_set left_out;		/* threads that began when the memory was full */
	uint64_t n_left_out;			/* those of them that have ended */
	uint64_t n_errors;			/* times that what was told could not be kept */
	int epoll_fd;
};

/*
 * config->pids, or a cgroup's processes. 0 or -errno: -ESRCH none is there; followed__close() in
 * any case. Its sideband keeps pointers into it, and it keeps config: neither must be moved from
 * here on. Prints nothing.
 */
int followed__open(struct followed *followed, const struct source_config *config,
		   const struct followed_ops *ops);
void followed__close(struct followed *followed);

/* epoll_fd is readable when fd is. 0 or -errno. */
int followed__watch(struct followed *followed, int fd);

/* Events of threads that have ended no longer make epoll_fd readable. Before what they hold is
 * read. */
void followed__forget_ended(struct followed *followed);

/* As struct source_ops has them, of a source that begins with struct followed. */
int followed__fd(const struct source *source);
enum source_state followed__state(struct source *source);
int followed__freeze(struct source *source);
const struct pid_set *followed__pids(const struct source *source);

/* Counts the threads, or the processes, that are alive. 0 or -errno: -ESRCH none is. */
int followed__count(const struct followed *followed, bool main_only, size_t *n);
/* Follows the thread and opens its ring. 0 or -errno. */
int followed__add_thread(struct followed *followed, pid_t pid, pid_t tid);
/*
 * The same for all threads, or all main threads; those that end meanwhile are skipped. -ESRCH: none
 * is left.
 */
int followed__add_threads(struct followed *followed, bool main_only);
/* Adds one ring per CPU in the set, at `place`; offline CPUs are skipped. 0 or -errno. */
int followed__add_cpus(struct followed *followed, const struct event_place *place,
		       const cpu_set_t *cpus);
/*
 * The CPUs that the followed threads may run on now, by their affinity or by the cgroup's cpuset.
 * Every CPU of the machine if the cgroup lacks a cpuset, or if nothing is followed.
 */
void followed__cpus(const struct followed *followed, const struct cgroup *cgroup, cpu_set_t *cpus);
/* Says that memory is too small for this thread; it is tried again when another begins. */
void followed__leave_out(struct followed *followed, pid_t tid);

/*
 * Notes that this thread began; with a main thread the mappings, too: it may have executed another
 * program before its own events were open. 0 or -errno: -ESRCH.
 */
int followed__note_thread(struct followed *followed, pid_t pid, pid_t tid, uint64_t time_ns);

/*
 * Notes the current threads of all processes, or the main ones, and their mappings. Not the
 * mappings of before an execve. 0 or -errno.
 */
int followed__note(struct followed *followed, bool main_only, uint64_t time_ns);
/* The same for one process. It is not an error if it has ended. */
int followed__note_process(struct followed *followed, pid_t pid, uint64_t time_ns);
/* True if the process was noted. */
bool followed__knows(const struct followed *followed, pid_t pid);

/*
 * Hands over the threads that the sideband has reported since the last call, and threads that those
 * started unreported.
 */
void followed__threads(struct followed *followed);

/* For rings by CPU: watches the processes that the sideband has reported. 0 or -errno. */
int followed__processes(struct followed *followed);

/*
 * Ends the reading of a recording; err is the result so far. Adds what the sideband has reported;
 * the kernel's own code in the target, which runs at return probes and single-stepped ones; and, if
 * the kernel was recorded, its symbols or all of its code. Says which threads had to be left out,
 * and what failed. 0 or -errno.
 */
int followed__finish_read(const struct followed *followed, int err, uint64_t time_ns,
			  bool with_kernel_code, struct recording *rec);

#endif
