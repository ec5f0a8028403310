/* SPDX-License-Identifier: MIT */
/* Shared by the files of a session. */
#ifndef MTBPF_SESSION_SESSION_INTERNAL_H
#define MTBPF_SESSION_SESSION_INTERNAL_H

#include "capture/sample/sample_cost.h"
#include "capture/source.h"
#include "session/capture_options.h"
#include "session/gate.h"
#include "session/probe/probes.h"
#include "session/probe/find_probes.h"
#include "session/progress.h"
#include "target/process.h"

/* The unwinder of -source sample: frame pointers, copies of the stack, or the CPU's call stacks. */
struct unwind_choice {
	uint32_t stack; /* bytes of the stack to copy per sample; 0: use frame pointers */
	bool calls;	/* timed samples use the CPU's call stack (LBR) instead */
};

/* The cost of recording, and the rate that follows from it. */
struct overhead {
	struct sample_cost cost;   /* measured before recording */
	unsigned int hz;	   /* current rate */
	unsigned int first_hz;	   /* rate at the start */
	unsigned int most_hz;	   /* a higher rate makes the lookback too short; 0: no limit */
	unsigned int limit_hz;	   /* the kernel's limit, if it lowered the rate; otherwise 0 */
	struct sample_load seen;   /* the target's load counters at the last look */
	struct sample_load recent; /* a decaying sum: each update halves the older load */
	bool is_measured;	   /* the cost and the load, or the cost is known not to be */
	bool is_near_told;	   /* overhead__say_near() has warned */
	bool is_broken;		   /* no rate keeps -max-overhead; this has been reported */
	/* The counters at the last read, and their change per second. */
	struct overhead_counts {
		uint64_t time_ns, cpu_ns, switches, stacks, hits, go_waits;
	} counted, in_second;
	unsigned int n_dear; /* consecutive looks at which the probes cost too much */
};

#define OVERHEAD_TEXT_SIZE 192

struct recorder;
struct stalled_threads;

struct session {
	const struct capture_options *options;
	const struct session_start *start;
	/* As it was at the start; not set for `run`, cgroups and several processes. */
	struct process process;
	bool has_process;
	struct programs programs;    /* the programs of a cgroup or of several processes */
	struct pid_set pids;	     /* the target's processes; empty for a cgroup */
	const struct cgroup *cgroup; /* only for cgroups; NULL: other targets */
	struct recording *rec;	     /* receives the next snapshot */
	const struct source_ops *ops;
	struct source *source;
	struct gate gate;
	struct recorder *recorder;   /* with samples, if the kernel supports it; otherwise NULL */
	struct selectors symbols;    /* symbols that trigger; may be empty */
	struct overhead overhead;    /* of source_sample */
	bool branches;		     /* of source_sample: record last branches (LBR) at a hit */
	struct unwind_choice unwind; /* of source_sample */
	struct probes probes;	     /* of `symbols` */
	struct start_stop regions;
	struct probes also; /* other functions whose calls are recorded (-also) */
	struct go_waits go_waits;
	/*
	 * The threads read at the last stall, until stall__settle_threads() has stored them;
	 * otherwise NULL.
	 */
	struct stalled_threads *stalled;
	enum mt_stall_from stall_from; /* what -stall-thresh measures */
	/* By is_replaced(): processes have exited, and new ones have the function but no probe. */
	bool replaced;
	bool has_jit_moved; /* jit_probe__check() has warned */
	/* Per probe: a process that maps its file. NULL: not needed so far. */
	pid_t *mapped_by;
	uint64_t look_ns;	/* time of the next check for replaced processes */
	uint64_t snapshot_size; /* -snapshot-size, or what the threshold needs */
	bool is_short_said;	/* a too short lookback has been reported */
	int epoll_fd, signal_fd;
	int command_fd; /* readable once the command has ended; -1: no command */
	int snapshots;	/* snapshots taken */
	int forward;	/* signal to pass on to the child: the program of `run`, or the command; 0:
			   none */
	uint64_t deadline_ns; /* UINT64_MAX: no limit */
	uint64_t hold_ns;     /* do not arm before this time; 0: arm at once */
	bool armed;
	/* The trigger's counters when the recording began, and at the last arming. */
	struct mt_stats at_begin, at_arm;
	struct progress progress;
};

static inline bool session__measures_duration(const struct session *s)
{
	return threshold__is_set(&s->options->duration_thresh);
}

/* True if the trigger needs the ends of calls: to measure durations, or to find stalled calls. */
static inline bool session__has_ends(const struct session *s)
{
	return session__measures_duration(s) ||
	       (s->options->limits.stall_thresh_ns && s->stall_from == MT_STALL_CALL);
}

/* The trigger that counts hits; NULL if nothing triggers. */
static inline struct trigger *session__trigger(const struct session *s)
{
	return s->probes.all.n ? s->gate.trigger : NULL;
}

/* session.c: wakes the session when fd is readable. 0 or -errno. */
int session__watch_fd(struct session *s, int fd);

/* session_open.c: each returns 0, or -errno after a message and a hint. */
/* Loads the trigger for the probes, and watches its hits. */
int session__open_gate(struct session *s);
/*
 * Opens the source, or resumes that of the last snapshot; attaches the gate and starts. With
 * samples it also opens the recorder.
 */
int session__open_source(struct session *s);
/* Does nothing if the source is not open. */
void session__close_source(struct session *s);

/* session_trigger.c */
/*
 * The first of the trigger's probes at whose hits user space has to freeze Intel PT; NULL: the
 * kernel can at all of them.
 */
const struct probe *session__find_unfrozen(const struct session *s);

/* session_open.c */
/*
 * Returns the source that the options name. The default is Intel PT; without Intel PT it is
 * samples, after a message. NULL with errno after a message and a hint if this machine lacks the
 * source.
 */
const struct source_ops *source_choice__make(const struct capture_options *options);

/* Checks that the source can record n processes (0: a cgroup); `process` is the first one. 0, or
 * -errno after a line and a hint. */
int source_choice__check(const struct source_ops *ops, const struct process *process, size_t n);
/*
 * Chooses the unwinder. -unwind auto records the process for 0.1 to 0.3 s to find out, and says so
 * if frame pointers do not suffice. process is NULL if the program is not started yet. 0, or -errno
 * after a line and a hint.
 */
int unwind_choice__make(const struct capture_options *options, const struct process *process,
			const struct cgroup *cgroup, struct unwind_choice *choice);
/* session_trigger.c: sets the symbols that trigger, before probes are found. 0 or -errno. */
int session__choose_symbols(struct session *s);
/* jit_probe__check() for all of a session's probes; warns. */
bool session__has_jit_moved(const struct session *s);
/* Finds all probes and, with several processes, s->process. 0, or -errno after a message and a
 * hint. */
int session__find_trigger(struct session *s);
/* Says what the source records and what the session waits for. */
void session__say_waiting(const struct session *s);
/* session_cost.c */

/*
 * Returns the sampling rate in Hz: -sample-rate or 1000; but less, down to SAMPLE_RATE_LEAST, if it
 * would cost more than -max-overhead or, without both options, more than 5 % of a thread's time.
 */
unsigned int overhead__rate(const struct sample_options *options, const struct sample_cost *cost,
			    const struct sample_load *load);

/* Reports why the cost of samples, which -max-overhead needs, could not be measured. Returns err.
 */
int overhead__refuse(const struct sample_options *options, int err);
/*
 * Measures the cost of samples with `stack` bytes of stack copy, and with kernel frames if `kernel`
 * is set, and the load of the processes (none if the program is not started yet). Stores the cost
 * and the rate in *overhead, which the caller has zeroed. 0, or -errno after a line and a hint;
 * without -max-overhead always 0, if need be with unknown costs.
 */
int overhead__measure(const struct sample_options *options, uint32_t stack, bool kernel,
		      const struct pid_set *pids, struct overhead *overhead);
/* Prints what was measured and the rate, which session__fit_lookback() may have lowered. */
void overhead__say_rate(const struct overhead *overhead, const struct sample_options *options);

/*
 * Warns once if the threshold (0: none; UINT64_MAX: not known yet) is so small that a call may be
 * over it only because a stack was taken in it.
 */
void overhead__say_near(struct overhead *o, uint64_t threshold_ns);

/*
 * Takes new load counters. If o->hz is far from what -max-overhead allows, changes it and returns
 * true. Warns once if -max-overhead cannot be kept.
 */
bool overhead__take(struct overhead *o, const struct sample_options *options,
		    const struct sample_load *now);

struct lookback_need {
	unsigned int hz;  /* current rate */
	uint64_t back_ns; /* lookback of the rings at this rate */
	/* The larger of -stall-thresh and the trigger's threshold; 0: none, or not learned yet. */
	uint64_t threshold_ns;
	uint64_t need_ns;   /* lookback needed: twice the threshold */
	double clock_share; /* share of timed samples in what is written; switches are the rest */
	uint64_t size;	    /* ring size needed */
};

/*
 * Returns the rate below hz at which the rings look back as far as needed. 0 if there is no such
 * rate, or if a call as long as the threshold would have fewer than 50 stacks at it.
 */
unsigned int overhead__rate_to_look_back(const struct lookback_need *need);

/* Prints the final rate if it differs from the first. */
void overhead__say(const struct overhead *o, const struct sample_options *options);

/* Measures the cost of a hit, if there are probes. */
void session__measure_hits(struct session *s);
/* Prints what is known of the cost before recording begins. */
void session__say_cost(const struct session *s);
/*
 * Call once a second: measures the target's load, formats the cost into text ("" if it is not
 * known), and adapts the rate to -max-overhead. Returns 0, or -EDQUOT after a message and a hint:
 * the probes cost too much.
 */
int session__keep_cost(struct session *s, char text[static OVERHEAD_TEXT_SIZE]);
/*
 * Sizes the ring for the threshold before recording begins. If the ring would be too large, lowers
 * the sampling rate or warns.
 */
void session__fit_lookback(struct session *s);
/* True if the stacks of context switches are written to separate rings. */
bool session__has_stack_rings(const struct session *s);
/*
 * While recording: if the rings look back too little for the threshold, lowers the sampling rate or
 * warns once.
 */
void session__check_lookback(struct session *s);
/*
 * stall.c: sets s->stall_from, what -stall-thresh measures. Call it when the probes are known. 0,
 * or -EINVAL after a line and a hint.
 */
int stall__choose(struct session *s);
/*
 * If the last hit is a stall: reads the registers and the stacks of all threads of its process,
 * which must still run. 0 or -ENOMEM; other errors are printed as warnings.
 */
int stall__take_threads(struct session *s);
/*
 * Unwinds the stacks that stall__take_threads() has read. The recording must have its mappings. 0
 * or -ENOMEM.
 */
int stall__settle_threads(struct session *s);
void stalled_threads__free(struct stalled_threads *threads);

/* sampling.c: for -source sample. */

/* Adds the name of the file or socket that the system call's descriptor `arg` refers to, if it has
 * one that is still open. 0 or -ENOMEM. */
int open_file__add(struct recording *rec, pid_t pid, uint32_t syscall, uint64_t arg);

/* Replaces call addresses from the CPU's call stacks (LBR) by return addresses. 0 or -ENOMEM. */
int sampling__settle_calls(struct recording *rec);

/*
 * Adds the recorder's logs to rec, up to its freeze: when threads ran, which threads woke or
 * replaced them, the system calls (with their files) in which they left their CPUs, and the time
 * lost to interrupts, quotas and the hypervisor. Samples from first_sample on that are stacks of
 * switches get the time of their switch. Does nothing if recorder is NULL. 0 or -errno.
 */
int sampling__take_records(struct recorder *recorder, struct recording *rec, size_t first_sample);

#endif
