/* SPDX-License-Identifier: MIT */
/*
 * The processes and threads that a perf source records: what their sideband records have reported
 * so far, their rings, and the descriptors that wake waiters.
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

/* The first member of the struct in which a source keeps a ring: of one thread, or of one CPU. */
struct followed_ring {
	struct event_place place; /* cpu -1: a thread; otherwise a CPU */
	pid_t pid;		  /* for a thread: its process */
	pid_t now_tid;		  /* its thread's tid since an execve(2); 0: place.pid, as ever */
	uint64_t since_ns; /* when an execve(2) gave the thread its tid; 0: it had it always */
	bool ended;	   /* its thread has ended; the contents stay */
	int wakes;	   /* another descriptor that wakes mtbpf; -1: none */
	struct sideband_ring sideband;
};

typedef VEC(struct followed_ring *) followed_ring_vec;

/* The functions of a source that opens rings for what is followed. */
struct followed_ops {
	size_t ring_size; /* of the struct that begins with struct followed_ring */
	/* Opens the ring for this place, disabled. 0 or -errno. */
	int (*open_ring)(struct source *source, struct followed_ring *ring,
			 const struct event_place *place);
	void (*close_ring)(struct followed_ring *ring);
	/*
	 * Enables the ring of a thread that began after the start, and sets *time_ns to the current
	 * time. 0 or -errno.
	 */
	int (*enable_ring)(struct source *source, struct followed_ring *ring, uint64_t *time_ns);
	/* Ends recording in a ring. */
	void (*disable_ring)(struct followed_ring *ring);
	/*
	 * Called before the ring of an ended thread is closed to make room; saves its contents if
	 * needed. False: the ring must stay open. NULL: all rings may be closed.
	 */
	bool (*may_close)(struct source *source, struct followed_ring *ring);
	/* True if the memory allows this number of rings. */
	bool (*fits)(const struct source *source, size_t n);
	/* Handles the rings' sideband records, and follows new threads. 0 or -errno. */
	int (*look)(struct source *source);
};

/* The first member of a source's struct. */
struct followed {
	const struct source_config *config;
	const struct followed_ops *ops;
	bool main_only; /* record only the main threads */
	bool frozen;
	bool may_have_missed;	 /* threads may have started that no record reports */
	followed_ring_vec rings; /* one per thread, or one per CPU */
	struct sideband sideband;
	struct recording pending;		/* the records of the sideband so far */
	struct pid_set pids;			/* the recorded processes; empty for a cgroup */
	struct pid_set tids;			/* threads that have a ring and have not ended */
	VEC(struct followed_process) processes; /* processes that have not exited */
	struct pid_set left_out;		/* threads that began when the memory was full */
	uint64_t n_left_out;			/* number of these that have ended */
	uint64_t n_errors;			/* how often `look` failed and lost records */
	int epoll_fd;
};

/*
 * Follows config->pids, or a cgroup's processes. 0 or -errno: -ESRCH: none of them runs; call
 * followed__close() in any case. The sideband keeps pointers into *followed, which keeps config:
 * neither must move from now on. Prints nothing.
 */
int followed__open(struct followed *followed, const struct source_config *config,
		   const struct followed_ops *ops);
void followed__close(struct followed *followed);
/* Follows another target with the same rings. 0 or -errno, as followed__open(). */
int followed__reopen(struct followed *followed, const struct source_config *config);
/* Closes all rings, to open others. */
void followed__close_rings(struct followed *followed);

/* Makes epoll_fd readable when fd is. 0 or -errno. */
int followed__watch(struct followed *followed, int fd);

/*
 * Removes the events of threads that have ended, which would keep epoll_fd readable. Call it before
 * reading the events' records.
 */
void followed__forget_ended(struct followed *followed);

/* For the struct source_ops of a source that begins with struct followed. */
int followed__fd(const struct source *source);
enum source_state followed__state(struct source *source);
int followed__freeze(struct source *source);
const struct pid_set *followed__pids(const struct source *source);

/* Counts the threads, or the main threads, that are alive. 0 or -errno: -ESRCH: none. */
int followed__count(const struct followed *followed, size_t *n);
/*
 * Follows all threads, or all main threads, and opens their rings. Skips those that end meanwhile.
 * 0 or -errno: -ESRCH: none is left.
 */
int followed__add_threads(struct followed *followed);
/* Adds one ring per CPU in the set, at `place`; offline CPUs are skipped. 0 or -errno. */
int followed__add_cpus(struct followed *followed, const struct event_place *place,
		       const cpu_set_t *cpus);
/*
 * Sets the CPUs that the followed threads may run on now: the cpuset of `cgroup`, if that is not
 * NULL and has one; otherwise the threads' affinities. Sets every CPU of the machine if a cgroup is
 * followed or no thread is left.
 */
void followed__cpus(const struct followed *followed, const struct cgroup *cgroup, cpu_set_t *cpus);
/* True if one of the rings is that of a thread of this process. */
bool followed__has_ring(const struct followed *followed, pid_t pid);

/*
 * Records the current threads (or main threads) of all processes, and the processes' mappings (not
 * of a child before its execve). 0 or -errno.
 */
int followed__note(struct followed *followed, uint64_t time_ns);
/* Like followed__note(), for one process. It is not an error if it has ended. */
int followed__note_process(struct followed *followed, pid_t pid, uint64_t time_ns);
/*
 * True if a thread of the process has been recorded, by one of these functions or by the sideband.
 */
bool followed__knows(const struct followed *followed, pid_t pid);

/*
 * Follows the processes that config->add_targets() reports, too: those that were forked before the
 * events of their parent were open. 0 or -errno.
 */
int followed__add_targets(struct followed *followed);
/*
 * Opens and enables rings for the threads that the sideband has reported since the last call, and
 * for those that the sideband missed because their parent's events were not open yet. If the memory
 * is full, closes rings of threads that have ended. 0 or -errno.
 */
int followed__threads(struct followed *followed);

/* For rings by CPU: watches the processes that the sideband has reported. 0 or -errno. */
int followed__processes(struct followed *followed);

/*
 * Finishes reading a recording; err is the result so far. Adds what the sideband has reported, and
 * the code that the kernel runs in the target for return probes and single steps. If the kernel was
 * recorded, adds its symbols or all of its code. Reports threads that were left out, counts hits of
 * threads without a ring (DROP_HITS), and reports errors. 0 or -errno.
 */
int followed__finish_read(const struct followed *followed, int err, uint64_t time_ns,
			  bool with_kernel_code, struct recording *rec);

#endif
