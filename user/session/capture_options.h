/* SPDX-License-Identifier: MIT */
/* The options that attach, run, record and watch share. */
#ifndef MTBPF_SESSION_CAPTURE_OPTIONS_H
#define MTBPF_SESSION_CAPTURE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/source.h"
#include "session/probe/hit_reads.h"
#include "session/target.h"
#include "cli/options.h"
#include "util/units.h"

/* Options of -source sample. */
struct sample_options {
	int rate;		    /* in Hz; SAMPLE_RATE_AUTO: not given */
	const char *max_overhead;   /* "1%", "none"; NULL: not given */
	uint64_t max_overhead_ppm;  /* set by capture_options__check(); 0: no limit */
	bool insists;		    /* max_overhead is "none": keep a probe, whatever it costs */
	int unwind;		    /* UNWIND_... */
	uint64_t syscall_thresh_ns; /* 0: record none */
	struct option_list also;    /* functions whose calls are all recorded */
	uint64_t stack_copy;	    /* bytes to copy per sample; capture_options__check() sets it */
};

enum { UNWIND_AUTO, UNWIND_FP, UNWIND_DWARF, UNWIND_LBR };
extern const char *const unwind_names[];

#define SAMPLE_RATE_AUTO    (-1)
#define SAMPLE_RATE_DEFAULT 1000u
/* -max-overhead and the needed lookback do not lower the rate below this. */
#define SAMPLE_RATE_LEAST 10u

#define SAMPLE_DEFAULTS                                                                            \
	{                                                                                          \
		.rate = SAMPLE_RATE_AUTO                                                           \
	}

struct capture_options {
	struct target_options target;
	bool children; /* also record processes that the target forks from now on */
	struct option_list symbols;
	const char *condition, *key, *print; /* -if, -key and -print; NULL: not given */
	struct hit_reads reads;		     /* parsed from these by capture_options__check() */
	const char *start, *stop;	     /* probes of a region; NULL: record everything */
	bool requests;			     /* sets start and stop to a server's socket calls */
	struct threshold delay_thresh, duration_thresh;
	/* At most one of these is set. Without -delay-thresh they apply to calls or regions. */
	struct threshold cpu_thresh, off_cpu_thresh;
	struct mt_limits limits;
	int return_probes; /* enum return_probes */
	const char *output;
	struct option_list labels; /* KEY=VALUE */
	int source;		   /* SOURCE_...: index into source_names */
	uint64_t snapshot_size, max_memory;
	/* Stack bytes to copy at a hit; capture_options__check() replaces STACK_COPY_AUTO. */
	uint64_t stack_copy;
	bool no_stack_copy;
	uint64_t timeout_ns; /* 0: none */
	int multi_snapshot;  /* number of triggers to capture; 0: until Ctrl-C */
	struct sample_options sample;
	bool multi_thread, immediate_stop, kernel, power, portable;
	bool kernel_only; /* no user code; `kernel` is set as well */
	const char *resolution;
	struct pt_timing timing; /* parsed from resolution by capture_options__check() */
	int freeze_method;	 /* see source_config */
	const char *truth;	 /* soft: the file that gets the true stacks */
	bool no_ret_compression;
	bool no_inline; /* no slices for inlined functions */
	bool full;	/* `run`: record the whole run to disk */
	bool view;	/* then open the trace in Perfetto */
	bool strict;	/* lost data is an error */
	bool verbose, quiet;
};

/* Returns what -cpu-thresh or -off-cpu-thresh measures; MT_CPU_ALL without them. */
enum mt_cpu_measure capture_options__cpu_measure(const struct capture_options *o);

extern const char *const source_names[];
extern const char *const freeze_names[];

#define SNAPSHOT_SIZE_DEFAULT (4u << 20)
#define MAX_MEMORY_DEFAULT    (1u << 30)
#define STACK_COPY_AUTO	      UINT64_MAX

#define CAPTURE_DEFAULTS                                                                           \
	{                                                                                          \
		.snapshot_size = SNAPSHOT_SIZE_DEFAULT, .max_memory = MAX_MEMORY_DEFAULT,          \
		.stack_copy = STACK_COPY_AUTO, .sample = SAMPLE_DEFAULTS, .resolution = "normal",  \
		.multi_snapshot = 1                                                                \
	}

/* A row of a table of options; `field` is one of struct capture_options. */
#define OPTION_AS(name, alias, letter, kind, arg, field, help)                                     \
	{                                                                                          \
		name, alias, letter, kind, arg, help, offsetof(struct capture_options, field),     \
			NULL                                                                       \
	}
#define OPTION_VALUE(name, kind, arg, field, help) OPTION_AS(name, NULL, 0, kind, arg, field, help)
#define OPTION_FLAG(name, field, help)		   OPTION_VALUE(name, OPT_FLAG, NULL, field, help)
#define OPTION_CHOICE(name, arg, field, choices, help)                                             \
	{                                                                                          \
		name, NULL, 0, OPT_CHOICE, arg, help, offsetof(struct capture_options, field),     \
			choices                                                                    \
	}

#define OPTIONS_TARGET                                                                             \
	OPTION_AS("pid", NULL, 'p', OPT_STRING, "PID", target.pids,                                \
		  "the process, or several: 17,4; all of its threads, including later ones"),      \
		OPTION_AS("name", NULL, 'n', OPT_STRING, "GLOB", target.name,                      \
			  "all processes with this name, as shown by ps, or with this program "    \
			  "file name"),                                                            \
		OPTION_VALUE("container", OPT_STRING, "NAME", target.container,                    \
			     "a container (docker, podman, containerd, CRI-O) by its name or ID"), \
		OPTION_VALUE("k8s-pod", OPT_STRING, "NS/POD", target.pod,                          \
			     "a pod of this node; NS/POD/CONTAINER is one of its containers"),     \
		OPTION_VALUE("cgroup", OPT_STRING, "PATH", target.cgroup,                          \
			     "all processes in and below a cgroup (v2), one buffer per CPU")
#define CHILDREN_HELP	      "with -pid and -name: also record processes that they fork from now on"
#define OPTION_CHILDREN(help) OPTION_FLAG("children", children, help)
#define OPTION_SYMBOL                                                                              \
	OPTION_AS("symbol", "trigger", 's', OPT_LIST, "NAME", symbols,                             \
		  "the trigger: a function, a glob that matches one, lib.so:NAME, NAME+0x10, "     \
		  "line:FILE:N, addr:0x401234, usdt:PROVIDER:NAME, syscall:NAME, kernel:NAME, "    \
		  "jit:NAME, signal:SEGV, exit:nonzero, oom:, tracepoint:SYSTEM:NAME, . for the "  \
		  "program's own mtbpf_take_snapshot(), or ? to pick one; several as A,B or as "   \
		  "several options (default: .)")
#define OPTIONS_REGION                                                                             \
	OPTION_VALUE("start", OPT_STRING, "NAME", start,                                           \
		     "with -stop: record a thread only from its hit of NAME (as in -symbol; pt "   \
		     "and soft record all the time if NAME is in the kernel) ..."),                \
		OPTION_VALUE("stop", OPT_STRING, "NAME", stop,                                     \
			     "... to its next hit of this NAME; without -symbol that hit is the "  \
			     "trigger, and -duration-thresh is the time from -start to -stop")
#define OPTION_REQUESTS                                                                            \
	OPTION_FLAG("requests", requests,                                                          \
		    "for a server: -start after it has read from a socket and -stop when it "      \
		    "writes to one, by its system calls; needs no symbol")
#define OPTION_DELAY                                                                               \
	OPTION_VALUE("delay-thresh", OPT_THRESHOLD, "D", delay_thresh,                             \
		     "trigger when at least this much time passed since the thread's previous "    \
		     "hit: 10ms, or p99.9: longer than 99.9 % of them, learned while waiting")
#define OPTION_DURATION                                                                            \
	OPTION_VALUE("duration-thresh", OPT_THRESHOLD, "D", duration_thresh,                       \
		     "trigger when a call of the function takes at least this long: 10ms, or p99")
#define OPTION_IF                                                                                  \
	OPTION_VALUE("if", OPT_STRING, "TERMS", condition,                                         \
		     "count only hits for which this is true: 'arg1 > 100', 'retval < 0', "        \
		     "'arg1->state == 3', 'comm == \"worker\"', 'tid == 12'; up to four, "         \
		     "joined by &&")
#define OPTION_KEY                                                                                 \
	OPTION_VALUE("key", OPT_STRING, "VALUE", key,                                              \
		     "measure per request, not per thread: hits with the same VALUE are of one "   \
		     "request, in whichever thread: arg1, 'arg1->request'; arg1,arg2: arg1 at "    \
		     "-start, arg2 at -stop; in Go: goroutine")
#define OPTION_PRINT                                                                               \
	OPTION_VALUE("print", OPT_STRING, "VALUES", print,                                         \
		     "read these at the hit: 'str(arg1)', 'str(arg2->data, arg2->len)', arg3, "    \
		     "retval; up to four. They are in the trace, the report and the recording")
#define OPTIONS_CPU                                                                                \
	OPTION_VALUE("cpu-thresh", OPT_THRESHOLD, "D", cpu_thresh,                                 \
		     "trigger when a call has been on a CPU for at least this long, or p99; "      \
		     "with -start and -stop: the time between them; with -delay-thresh: between "  \
		     "two hits. With another threshold both must be met"),                         \
		OPTION_VALUE(                                                                      \
			"off-cpu-thresh", OPT_THRESHOLD, "D", off_cpu_thresh,                      \
			"like -cpu-thresh, for the time off the CPU: blocked, or waiting for one")
#define OPTION_STALL                                                                               \
	OPTION_VALUE("stall-thresh", OPT_DURATION, "D", limits.stall_thresh_ns,                    \
		     "trigger when a thread has been in a call of the function for this long, "    \
		     "and still is: a hang, a deadlock; with -delay-thresh: since its last hit; "  \
		     "with -start and -stop: since -start. With another threshold the first one "  \
		     "that is met triggers")
extern const char *const return_probe_names[];
#define OPTION_RETURN_PROBES                                                                       \
	OPTION_CHOICE(                                                                             \
		"return-probes", "HOW", return_probes, return_probe_names,                         \
		"how to measure durations: uretprobe (replaces return addresses, which crashes "   \
		"programs that read them, at an exception or in a garbage collector), ret-insns "  \
		"(probes on the return instructions, slower because they are single-stepped), or " \
		"auto (default): ret-insns if the program may read return addresses")
#define OPTION_MAX_HITS                                                                            \
	OPTION_VALUE("max-hits", OPT_INT, "N", limits.max_hits,                                    \
		     "end after N hits (if durations are measured: N returns), whether they "      \
		     "trigger or not, like 'perf trace --max-events'")
/* These limit which hits may trigger. */
#define OPTIONS_LIMITS                                                                             \
	OPTION_VALUE("after", OPT_DURATION, "D", limits.after_ns,                                  \
		     "do not trigger in the first D"),                                             \
		OPTION_VALUE("min-interval", OPT_DURATION, "D", limits.min_interval_ns,            \
			     "minimum time between two triggers (see -multi-snapshot)"),           \
		OPTION_VALUE("skip", OPT_INT, "N", limits.skip,                                    \
			     "ignore the first N hits that would trigger"),                        \
		OPTION_RETURN_PROBES, OPTION_MAX_HITS
#define OUTPUT_HELP                                                                                \
	"the trace: NAME.fxt.gz, .fxt or .fxt.zst; the recording is NAME.mtbpf beside it "         \
	"(default trace.fxt.gz)"
#define OPTION_OUTPUT(help) OPTION_AS("output", NULL, 'o', OPT_STRING, "FILE", output, help)
#define OPTION_FULL                                                                                \
	OPTION_FLAG("full-execution", full,                                                        \
		    "pt, soft: record the whole run to disk, without a trigger; -snapshot-size "   \
		    "is then the buffer for the disk: if it is full, pt loses data and reports "   \
		    "it, soft waits")
#define OPTION_VIEW	 OPTION_FLAG("view", view, VIEW_HELP)
#define OPTION_NO_INLINE OPTION_FLAG("no-inline", no_inline, NO_INLINE_HELP)
#define VIEW_HELP	 "then open the trace in Perfetto, like 'mtbpf view'"
#define MAX_MEMORY_HELP                                                                            \
	"memory limit for decoding (default: three quarters of the free memory); beyond it the "   \
	"oldest part of the trace is left out"
#define NO_INLINE_HELP "no slices for inlined functions"
#define STRICT_HELP    "exit with 4 if anything was lost: events, trace data, triggers, threads"
#define OPTION_STRICT  OPTION_FLAG("strict", strict, STRICT_HELP)
#define OPTIONS_LOG                                                                                \
	OPTION_AS("v", "verbose", 0, OPT_FLAG, NULL, verbose, "print more"),                       \
		OPTION_AS("q", "quiet", 0, OPT_FLAG, NULL, quiet,                                  \
			  "print only errors and the report")
#define OPTIONS_CAPTURE                                                                            \
	OPTION_CHOICE("source", "SOURCE", source, source_names,                                    \
		      "auto (default: pt if available, otherwise sample), pt (Intel PT), sample "  \
		      "(stacks by a timer; any machine) or soft (single-stepping; any machine, "   \
		      "far slower)"),                                                              \
		OPTION_VALUE("snapshot-size", OPT_SIZE, "SIZE", snapshot_size,                     \
			     "trace buffer per thread, or per CPU: determines the lookback "       \
			     "(default 4M)"),                                                      \
		OPTION_VALUE(                                                                      \
			"max-memory", OPT_SIZE, "SIZE", max_memory,                                \
			"limit for all buffers together, and again for decoding (default 1G)"),    \
		OPTION_VALUE("timeout", OPT_DURATION, "D", timeout_ns,                             \
			     "stop waiting after this long: takes the snapshot, exit code 3"),     \
		OPTION_VALUE("multi-snapshot", OPT_COUNT, "[N]", multi_snapshot,                   \
			     "capture N triggers into one trace (without N: until Ctrl-C)"),       \
		OPTION_FLAG("multi-thread", multi_thread,                                          \
			    "pt: record every thread, one buffer per thread (soft always does)"),  \
		OPTION_FLAG("trace-include-kernel", kernel,                                        \
			    "also trace the kernel: system calls, interrupts, page faults; "       \
			    "sample: kernel stacks"),                                              \
		OPTION_FLAG(                                                                       \
			"trace-kernel-only", kernel_only,                                          \
			"pt: only the kernel, no user code; the target may be a kernel thread"),   \
		OPTION_VALUE("label", OPT_LIST, "KEY=VALUE", labels,                               \
			     "label for the recording; 'mtbpf report DIR -label' selects by it"),  \
		OPTION_FLAG(                                                                       \
			"portable", portable,                                                      \
			"store the programs in the recording, to decode it on another machine"),   \
		OPTION_VALUE("stack-copy", OPT_SIZE, "SIZE", stack_copy,                           \
			     "bytes of the stack to copy, to find callers (default 16K at a hit, " \
			     "8K for a sample; at most 60K)"),                                     \
		OPTION_FLAG("no-stack-copy", no_stack_copy,                                        \
			    "store no memory of the program in the recording: callers by frame "   \
			    "pointer only"),                                                       \
		OPTION_VALUE("timer-resolution", OPT_STRING, "RESOLUTION", resolution,             \
			     "pt: low, normal, high, or custom:TERMS (perf's terms); finer times " \
			     "mean less lookback"),                                                \
		OPTION_FLAG("trace-power", power,                                                  \
			    "pt: power states of the CPUs: C-states and MWAIT"),                   \
		OPTION_FLAG("immediate-stop", immediate_stop,                                      \
			    "pt: require freezing in the kernel, at the hit"),                     \
		OPTION_CHOICE("freeze", "METHOD", freeze_method, freeze_names,                     \
			      "pt: how to freeze the trace: auto (the best that works), pause, "   \
			      "refresh or disable"),                                               \
		OPTION_VALUE("truth", OPT_STRING, "FILE", truth,                                   \
			     "soft: log the true stack after every call and return"),              \
		OPTION_FLAG("no-ret-compression", no_ret_compression,                              \
			    "soft: write every return in full")

#define OPTIONS_SAMPLE                                                                             \
	OPTION_VALUE("sample-rate", OPT_INT, "HZ", sample.rate,                                    \
		     "sample: stacks per second of a running thread (default 1000, or fewer if "   \
		     "they would cost more than 5 %)"),                                            \
		OPTION_VALUE("max-overhead", OPT_STRING, "P%", sample.max_overhead,                \
			     "sample: limit for the cost of stacks and probe hits, as a share of " \
			     "the target's CPU time; takes fewer stacks to stay below it "         \
			     "(default: only a probe that takes a fifth of the CPU time is "       \
			     "removed; none: not even that)"),                                     \
		OPTION_CHOICE("unwind", "HOW", sample.unwind, unwind_names,                        \
			      "sample: find callers by fp (frame pointers), dwarf (copies of the " \
			      "stack), lbr (recorded by the CPU), or auto (tries them; default)"), \
		OPTION_VALUE(                                                                      \
			"also", OPT_LIST, "NAME", sample.also,                                     \
			"sample: also record each call of these functions exactly (as -symbol; a " \
			"glob means all that match, at most 64); costs two probe hits per call"),  \
		OPTION_VALUE("syscall-thresh", OPT_DURATION, "D", sample.syscall_thresh_ns,        \
			     "sample: record system calls that take at least D, with exact "       \
			     "edges; costs every system call of every process half a microsecond")

/*
 * Sets the log level, and parses and checks the options together. 0, or -EINVAL after a message and
 * a hint.
 */
int capture_options__check(struct capture_options *options, const char *command);

#endif
