/* SPDX-License-Identifier: MIT */
/* Between the files of a session: what it holds, and its waiting. */
#ifndef MTBPF_SESSION_SESSION_INTERNAL_H
#define MTBPF_SESSION_SESSION_INTERNAL_H

#include "capture/source.h"
#include "session/gate.h"
#include "session/overhead.h"
#include "session/probe/probes.h"
#include "session/probe/programs.h"
#include "session/progress.h"
#include "session/session.h"
#include "target/process.h"

/* The unwinder of -source sample: frame pointers, copies of the stack, or the CPU's call stacks. */
struct unwind_choice {
	uint32_t stack; /* bytes of it to copy with each sample; 0: frame pointers will do */
	bool calls;	/* samples by the clock have the calls that the CPU noted instead */
};

struct recorder;
struct stalled_threads;

struct session {
	const struct capture_options *options;
	const struct session_start *start;
	struct process process; /* as it was at the start; not for `run` */
	bool has_process;
	struct programs programs;    /* none where it is one process */
	struct pid_set pids;	     /* of the target; none where it is a cgroup */
	const struct cgroup *cgroup; /* NULL: it is none */
	struct recording *rec;	     /* where the next snapshot goes */
	const struct source_ops *ops;
	struct source *source;
	struct gate gate;
	struct recorder *recorder;   /* of a source that samples, where the kernel can; else NULL */
	struct selectors symbols;    /* what triggers; none: nothing does */
	struct overhead overhead;    /* of source_sample: samples a second, ... */
	bool branches;		     /* of source_sample: the CPU notes the last ones */
	struct unwind_choice unwind; /* ... and what comes with them */
	struct probes probes;	     /* of these symbols */
	struct start_stop regions;
	struct probes also;  /* whose calls are recorded beside them */
	struct probes ready; /* where Go makes goroutines ready; may be empty */
	struct mt_go_offsets go_offsets;
	struct stalled_threads *stalled; /* of the last trigger, until they are settled; or NULL */
	enum mt_stall_from stall_from;	 /* with -stall-thresh: what it is the time of */
	bool replaced;			 /* see session__is_replaced() */
	pid_t *witnesses; /* of each probe: a process that runs what it is in; NULL: not yet */
	uint64_t look_ns; /* whether it is replaced is not looked at before */
	uint64_t snapshot_size; /* -snapshot-size, or what the threshold needs */
	bool is_short_said;	/* that the look-back does not fit the threshold */
	int epoll_fd, signal_fd;
	int command_fd;	      /* readable once the command has ended; -1: there is none */
	int snapshots;	      /* taken */
	int forward;	      /* `run`: a signal that its program is to have as well; 0: none */
	uint64_t deadline_ns; /* UINT64_MAX: none */
	uint64_t hold_ns;     /* not armed before; 0: at once */
	bool armed;
	/* Of the trigger: when the recording began, and when it was armed last. */
	struct mt_stats at_begin, at_arm;
	struct progress progress;
};

static inline bool session__measures_duration(const struct session *s)
{
	return threshold__is_set(&s->options->duration_thresh);
}

/* Whether the ends of calls are probed, or decide. */
static inline bool session__has_ends(const struct session *s)
{
	return session__measures_duration(s) ||
	       (s->options->stall_thresh_ns && s->stall_from == MT_STALL_CALL);
}

/* What hits are counted by; NULL where nothing triggers. */
static inline struct trigger *session__trigger(const struct session *s)
{
	return s->probes.all.n ? s->gate.trigger : NULL;
}

/* session_source.c */
/*
 * Intel PT, or else, unless it is asked for by name, samples; says so. NULL with errno after a line
 * and a hint: this machine cannot do what is asked for.
 */
const struct source_ops *source_choice__make(const struct capture_options *options);

/* Checks that the source can record n processes, of which this is the first; n is 0 for a cgroup.
 * 0, or -errno after a line and a hint. */
int source_choice__check(const struct source_ops *ops, const struct process *process, size_t n);
/*
 * Chooses the unwinder. -unwind auto tries for a tenth of a second on the process, and prints a
 * line if frame pointers do not suffice; process NULL: a program that is not started yet. 0, or
 * -errno after a line and a hint.
 */
int unwind_choice__make(const struct capture_options *options, const struct process *process,
			const struct cgroup *cgroup, struct unwind_choice *choice);
/* session_trigger.c: what triggers, as far as that is known before the target is. 0 or -errno. */
int session__choose_symbols(struct session *s);
/* Finds all probes, and, of several processes, s->process. 0, or -errno after a line and a hint. */
int session__find_trigger(struct session *s);
/*
 * session_target.c: true where some of the processes have gone, and others that were started since
 * have the function: of a cgroup, in a program that has no probe. Cheap, as long as all are there.
 */
bool session__is_replaced(struct session *s);
/*
 * True where a probe's code is copied with the recording, since no file has it: then the probe must
 * not be in it.
 */
bool session__probes_are_copied(const struct session *s);
/* overhead.c: what a hit costs here is measured, where there are probes. */
void session__measure_hits(struct session *s);
/* What is known of the cost before it begins: a line. */
void session__say_cost(const struct session *s);
/*
 * Once a second: counts what the target did, and keeps to -max-overhead. 0; or -EDQUOT after a line
 * and a hint: the probes take too much.
 */
int session__keep_cost(struct session *s, char text[static OVERHEAD_TEXT_SIZE]);
/* Sizes the ring for the threshold before recording begins; warns if that exceeds the limit. */
void session__fit_lookback(struct session *s);
/* True if the stacks of switches do not share a ring with those by the clock. */
bool session__has_stack_rings(const struct session *s);
/* While it runs: a warning, once, where the rings look back less than that. */
void session__check_lookback(struct session *s);
/*
 * stall.c: what -stall-thresh is the time of, once the probes are known. 0; or -EINVAL after a line
 * and a hint.
 */
int stall__choose(struct session *s);
/*
 * Where each thread of the process is whose thread has stalled: of the last hit, while it is still
 * there. 0 or -ENOMEM; what cannot be found out is said.
 */
int stall__take_threads(struct session *s);
/* Makes stacks of them, once the recording has its mappings. 0 or -ENOMEM. */
int stall__settle_threads(struct session *s);
void stalled_threads__free(struct stalled_threads *threads);

/* sampling.c: what a session with -source sample does beyond others. */

/* What the file is that a thread of the process waits for in this system call, if any. 0 or
 * -ENOMEM. */
int open_file__add(struct recording *rec, pid_t pid, uint32_t syscall, uint64_t arg);

/* Makes of the calls that the CPU noted the stacks that they mean. 0 or -ENOMEM. */
int sampling__settle_calls(struct recording *rec);

/*
 * Adds to rec, up to its freeze, when its threads ran, who woke and who replaced them, what system
 * calls they left their CPUs in, the files of these, and what interrupts, quotas and the hypervisor
 * took. The stacks of switches, of the samples from first_sample on, get the times of these. Of a
 * recorder that is NULL: nothing. 0 or -errno.
 */
int sampling__take_records(struct recorder *recorder, struct recording *rec, size_t first_sample);

#endif
