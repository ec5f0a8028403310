/* SPDX-License-Identifier: MIT */
/* The sources of recordings: one table of functions, implemented by each. */
#ifndef MTBPF_CAPTURE_SOURCE_H
#define MTBPF_CAPTURE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/pt/pmu.h"
#include "capture/recording/recording.h"
#include "capture/probe/uprobe_event.h"
#include "capture/code/live_code.h"
#include "target/cgroup.h"
#include "target/process.h"

struct source;

struct source_config {
	pid_t pid;		    /* the process; all of its threads are recorded */
	const struct pid_set *pids; /* it, and others: not for soft; NULL: it alone */
	bool children;		    /* what they fork from now on as well: not for soft */
	const struct cgroup
		*cgroup; /* instead: all threads in it, with one ring per CPU; not for soft */
	uint64_t snapshot_size; /* bytes per ring; rounded up to a power of two */
	uint64_t max_memory;	/* pt: bytes of all rings together */
	const struct uprobe_spec
		*probes; /* what triggers, any of them; and what starts and stops */
	size_t n_probes;
	/* Threads are recorded from the one to the other only; none: all the time. */
	const struct rec_place *starts, *stops;
	size_t n_starts, n_stops;
	uint8_t probed[UPROBES_INSN_SIZE]; /* the code at the probe */
	size_t first_hit;	 /* hits of the recording from here on are this snapshot's */
	bool multi_thread;	 /* pt: a ring for every thread; else for the main thread only */
	bool kernel;		 /* pt: the kernel's code as well; sample: its part of stacks */
	bool kernel_only;	 /* pt, with `kernel`: and no user code */
	struct pt_timing timing; /* pt */
	int freeze_method;	 /* pt: 1 + enum pt_freeze to insist on one; 0: the best there is */
	bool immediate_stop;	 /* pt: only methods that freeze in the kernel */
	int freeze_fd;	/* when readable, the source freezes at once, without a call; -1: unused */
	bool from_exec; /* pid is a child of ours that waits in SIGSTOP before its execve */
	bool return_probe;	  /* a return probe is set: code of the [uprobes] page runs */
	unsigned int sample_rate; /* sample: samples a second on a CPU */
	uint32_t sample_stack;	  /* sample: bytes of the stack to copy, in eights; 0: none */
	bool branches;		  /* sample: the CPU notes the last branches */
	bool sample_calls;	  /* sample: by cycles, with the calls that it notes */
	int sample_gate;	  /* sample: a BPF program that lets samples pass until the trigger;
				     -1: none */
	bool sample_by_cpu; /* sample: a ring per CPU, not per thread: the gate knows the target */
	bool sample_no_stacks;	 /* ... and its program takes the stacks of switches as well */
	size_t sample_log;	 /* sample: bytes beside each of these rings, for -max-memory */
	bool is_silent;		 /* sample: a trial, or the look-back has been printed already */
	const char *spool_dir;	 /* pt, soft: all is kept, on disk (struct spool); NULL: rings */
	const char *truth_path;	 /* soft: log the true stack there (tests); NULL: no */
	bool return_compression; /* soft: write compressed RETs, as CPUs do by default */
};

enum source_state {
	SOURCE_RUNNING,
	SOURCE_FROZEN, /* nothing is recorded any more; the target runs free */
	SOURCE_EXITED, /* the target is gone; what was recorded before stays */
};

#define SOURCE_TEXT_SIZE 96
struct source_ops {
	const char *name;
	/* Shown to the user when choosing it. */
	const char *about;
	bool samples; /* it sees stacks, not calls: entries and switches are logged beside it */
	bool steps; /* it traces one process, and finds the begin and end of regions without help */
	/*
	 * 0, or -errno after one line and a hint on stderr: this machine cannot do it. Cheap;
	 * touches no target. NULL: any machine can.
	 */
	int (*probe)(void);
	/* Prepares; the target is not touched yet. NULL with errno after a line and a hint. */
	struct source *(*open)(const struct source_config *config);
	/*
	 * The event on config->probes[i] that the trigger's gate belongs to, where the source needs
	 * one of its own to freeze by; it stays the source's. NULL, or -1: the caller opens one.
	 */
	int (*probe_event)(const struct source *source, size_t i);
	/* Starts recording. 0, or -errno after a line and a hint; the target is unchanged then. */
	int (*start)(struct source *source);
	/*
	 * After the freeze and the reading of a recording: prepares for another one, with the rings
	 * and events that there are; start() follows. In config only whom to record, the earlier
	 * hits, and what is printed may differ. 0, or -errno: close it and open another one. NULL:
	 * likewise.
	 */
	int (*resume)(struct source *source, const struct source_config *config);
	/*
	 * Before the start: a process to record as well, which was forked before the source's
	 * events were open. 0 or -errno. NULL: the source finds it.
	 */
	int (*add_process)(struct source *source, pid_t pid);
	/* A descriptor that becomes readable when the state may have changed. */
	int (*fd)(const struct source *source);
	enum source_state (*state)(struct source *source);
	/*
	 * Stops recording, unless it has; the target runs free when this returns. 0 or -errno after
	 * a line on stderr.
	 */
	int (*freeze)(struct source *source);
	/* Adds what was recorded to rec: threads, maps, PT bytes, clock. 0 or -errno, with a line.
	 */
	int (*read)(struct source *source, struct recording *rec);
	/*
	 * The recorded processes, children included; NULL, or NULL from it: the process, or the
	 * cgroup.
	 */
	const struct pid_set *(*pids)(const struct source *source);
	/* Sets the samples per second. NULL: unsupported. */
	void (*set_rate)(struct source *source, unsigned int hz);
	/* The memory of its rings, for people: "3 rings of 4.0 MiB". NULL: not shown. */
	const char *(*memory)(const struct source *source, char text[static SOURCE_TEXT_SIZE]);
	/*
	 * The shortest time that its rings look back, at the current rate of writing; UINT64_MAX:
	 * not known yet. NULL: not shown.
	 */
	uint64_t (*lookback_ns)(const struct source *source);
	/* The way it was or will be frozen, for people. */
	const char *(*freeze_name)(const struct source *source);
	/* Freezes if needed, and frees. NULL is fine. */
	void (*close)(struct source *source);
};

/* The size of a ring: the power of two that holds what is wanted, between two others. */
static inline size_t source__ring_size(uint64_t wanted, size_t least, size_t most)
{
	size_t size = least;

	while (size < wanted && size < most)
		size <<= 1;
	return size;
}

extern const struct source_ops source_pt;     /* Intel PT through perf */
extern const struct source_ops source_sample; /* stacks by the clock and at switches: any machine */
extern const struct source_ops
	source_soft; /* single-stepping: any machine, about 10^4 times slower */

#endif
