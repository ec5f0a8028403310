/* SPDX-License-Identifier: MIT */
/* A source of recordings is a table of functions (struct source_ops); here is the list of them. */
#ifndef MTBPF_CAPTURE_SOURCE_H
#define MTBPF_CAPTURE_SOURCE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "capture/pt/pmu.h"
#include "capture/recording/recording.h"
#include "capture/probe/uprobe_event.h"
#include "capture/code/live_code.h"
#include "target/cgroup.h"
#include "target/process.h"
#include "util/log.h"

struct source;

struct source_config {
	pid_t pid;		    /* the process, with all of its threads; pt: see multi_thread */
	const struct pid_set *pids; /* that process and others, not for soft; NULL: only pid */
	bool children;		    /* also record children forked from now on; not for soft */
	/*
	 * With children: adds all processes whose hits trigger, which includes children that no
	 * record reports because they were forked before the events of their parent were open. 0
	 * or -errno. NULL: such children are not found.
	 */
	int (*add_targets)(void *ctx, struct pid_set *pids);
	void *targets_ctx;
	const struct cgroup
		*cgroup;	/* instead of pid: its threads, one ring per CPU; not for soft */
	uint64_t snapshot_size; /* bytes per ring; rounded up to a power of two */
	uint64_t max_memory;	/* pt, sample: bytes of all rings together */
	const struct uprobe_spec *probes; /* of the trigger, and of -start and -stop */
	size_t n_probes;
	/* -start and -stop: a thread is recorded from a start to a stop; without starts, always. */
	const struct rec_place *starts, *stops;
	size_t n_starts, n_stops;
	uint8_t probed[UPROBES_INSN_SIZE]; /* the code at the probe */
	size_t first_hit;		   /* index of this snapshot's first hit in the recording */
	bool multi_thread;	 /* pt: one ring per thread; otherwise only the main thread */
	bool kernel;		 /* pt: also the kernel's code; sample: also its part of stacks */
	bool kernel_only;	 /* pt, with `kernel`: no user code */
	struct pt_timing timing; /* pt */
	int freeze_method;	 /* pt: 1 + enum pt_freeze to insist on one; 0: the best there is */
	bool immediate_stop;	 /* pt: only methods that freeze in the kernel */
	int freeze_fd;		 /* soft: freezes when this is readable; -1: unused */
	bool from_exec;		 /* pid is our child, which waits for a byte before its execve */
	bool return_probe;	 /* a return probe is set: code of the [uprobes] page runs */
	unsigned int sample_rate; /* sample: samples per second of CPU time */
	uint32_t sample_stack;	  /* sample: stack bytes to copy, a multiple of 8; 0: none */
	bool branches;		  /* sample: the CPU records the last branches */
	bool sample_calls;	  /* sample: by cycles, with the calls that the CPU records */
	int sample_gate;	  /* sample: a BPF program that lets samples pass until the trigger;
				     -1: none */
	int sample_switch_gate;	  /* sample: the same for stacks of switches; 0: sample_gate */
	bool sample_by_cpu;	  /* sample: one ring per CPU; sample_gate selects the target */
	bool sample_no_stacks;	  /* with sample_by_cpu: BPF takes the stacks of switches */
	size_t sample_log;	  /* sample: bytes of log and stacks per ring, for -max-memory */
	bool is_silent;		  /* do not print the lookback */
	const char *spool_dir;	 /* pt, soft: keep everything on disk (struct spool); NULL: rings */
	const char *truth_path;	 /* soft: file for the true stack (tests); NULL: none */
	bool return_compression; /* soft: write compressed RETs, as CPUs do by default */
};

enum source_state {
	SOURCE_RUNNING,
	SOURCE_FROZEN, /* recording has ended; the target runs freely */
	SOURCE_EXITED, /* the target has ended; the recording stays */
};

#define SOURCE_TEXT_SIZE 96
struct source_ops {
	const char *name;
	/* Shown to the user when this source is chosen. */
	const char *about;
	bool samples; /* records stacks, not calls; entries and switches are logged in addition */
	bool steps;   /* traces one process, and finds the region's begin and end itself */
	/*
	 * Checks whether this machine supports the source, cheaply and without touching a target.
	 * 0, or -errno after one line and a hint on stderr. NULL: every machine supports it.
	 */
	int (*probe)(void);
	/* Prepares; the target is not touched yet. NULL with errno after a line and a hint. */
	struct source *(*open)(const struct source_config *config);
	/*
	 * The event on config->probes[i] to which the trigger must be attached, if the source
	 * freezes by an event of its own. The source keeps the descriptor. NULL, or -1: the caller
	 * opens an event.
	 */
	int (*probe_event)(const struct source *source, size_t i);
	/* Starts recording. 0, or -errno after a line and a hint; the target is unchanged then. */
	int (*start)(struct source *source);
	/*
	 * After a recording was frozen and read: prepares the same rings and events for another
	 * recording. Call start() next. In config, only the target, first_hit and is_silent may
	 * differ. 0, or -errno: close the source and open another one. NULL: not supported.
	 */
	int (*resume)(struct source *source, const struct source_config *config);
	/* Returns a descriptor that becomes readable when the state may have changed. */
	int (*fd)(const struct source *source);
	enum source_state (*state)(struct source *source);
	/*
	 * Stops recording if it still runs. The target runs freely when this returns. 0 or -errno
	 * after a line on stderr.
	 */
	int (*freeze)(struct source *source);
	/*
	 * Adds the recorded data to rec: threads, maps, PT bytes or samples, clock. 0 or -errno,
	 * with a line.
	 */
	int (*read)(struct source *source, struct recording *rec);
	/*
	 * The recorded processes, including children. If the function or its result is NULL, the
	 * processes are those that the source was opened for.
	 */
	const struct pid_set *(*pids)(const struct source *source);
	/* Sets the samples per second. NULL: unsupported. */
	void (*set_rate)(struct source *source, unsigned int hz);
	/*
	 * A description of the rings' memory: "a ring of 4.0 MiB for each CPU (8), 32 MiB in all".
	 * NULL: not shown.
	 */
	const char *(*memory)(const struct source *source, char text[static SOURCE_TEXT_SIZE]);
	/*
	 * The shortest lookback of the rings at the current rate of writing; UINT64_MAX: not known
	 * yet. NULL: not shown.
	 */
	uint64_t (*lookback_ns)(const struct source *source);
	/* A description of how the rings were or will be frozen. */
	const char *(*freeze_name)(const struct source *source);
	/* Freezes if needed, and frees. NULL is fine. */
	void (*close)(struct source *source);
};

/* The size of a ring: the power of two that holds `wanted`, limited to `least` and `most`. */
static inline size_t source__ring_size(uint64_t wanted, size_t least, size_t most)
{
	size_t size = least;

	while (size < wanted && size < most)
		size <<= 1;
	return size;
}

/* Reports why a snapshot could not be read. Returns err. */
static inline int source__refuse_read(const char *what, int err)
{
	log__error("cannot read %s: %s", what, strerror(-err));
	log__hint(err == -ENOMEM ? "use a smaller -snapshot-size, or record fewer processes"
				 : "'mtbpf check' shows what works on this machine");
	return err;
}

/*
 * Every source, as EACH(NUMBER, name): -source NAME chooses source_NAME, and SOURCE_NUMBER is its
 * number. pt is Intel PT through perf; sample takes stacks by the clock and at switches, on any
 * machine; soft single-steps, on any machine, about 10^4 times slower.
 */
#define SOURCES(EACH) EACH(PT, pt) EACH(SAMPLE, sample) EACH(SOFT, soft)

/* SOURCE_AUTO never chooses soft, which slows the target down. */
#define SOURCE_NUMBER(number, name) , SOURCE_##number
enum { SOURCE_AUTO SOURCES(SOURCE_NUMBER) };
#undef SOURCE_NUMBER

#define SOURCE_OPS(number, name) extern const struct source_ops source_##name;
SOURCES(SOURCE_OPS)
#undef SOURCE_OPS

#endif
