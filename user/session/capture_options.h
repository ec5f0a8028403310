/* SPDX-License-Identifier: MIT */
/* The options that attach, run, record and watch share. */
#ifndef MTBPF_SESSION_CAPTURE_OPTIONS_H
#define MTBPF_SESSION_CAPTURE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/source.h"
#include "session/probe/hit_filter.h"
#include "session/target.h"
#include "cli/options.h"
#include "util/threshold.h"

/* Options of -source sample. */
struct sample_options {
	int rate;		    /* in Hz; SAMPLE_RATE_AUTO: not given */
	const char *max_overhead;   /* "1%", "none"; NULL: not given */
	uint64_t max_overhead_ppm;  /* what capture_options__check() makes of it; 0: no limit */
	bool insists;		    /* "none": a probe stays, whatever it costs */
	int unwind;		    /* UNWIND_... */
	uint64_t syscall_thresh_ns; /* 0: none is noted */
	struct option_list also;    /* functions whose calls are recorded one by one */
};

enum { UNWIND_AUTO, UNWIND_FP, UNWIND_DWARF, UNWIND_LBR };
extern const char *const unwind_names[];

#define SAMPLE_RATE_AUTO    (-1)
#define SAMPLE_RATE_DEFAULT 1000u
/* -max-overhead, and what is to be looked back over, lower it no further. */
#define SAMPLE_RATE_LEAST 10u

#define SAMPLE_DEFAULTS                                                                            \
	{                                                                                          \
		.rate = SAMPLE_RATE_AUTO                                                           \
	}

struct capture_options {
	struct target_options target;
	bool children; /* of its processes, from now on */
	struct option_list symbols;
	const char *condition;	  /* -if; NULL: none */
	struct hit_filter filter; /* what capture_options__check() makes of it */
	const char *start, *stop; /* a region's; NULL: everything is recorded */
	struct threshold delay_thresh, duration_thresh;
	uint64_t stall_thresh_ns; /* 0: not given */
	/* At most one of them; without another threshold, of calls or regions. */
	struct threshold cpu_thresh, off_cpu_thresh;
	uint64_t after_ns, min_interval_ns; /* 0: triggers at any time */
	int return_probes;		    /* enum return_probes */
	int skip, max_hits;		    /* 0: none, and no end */
	const char *output;
	int source; /* index into source_names */
	uint64_t snapshot_size, max_memory;
	uint64_t stack_copy; /* bytes of the user stack at a hit */
	bool no_stack_copy;
	uint64_t timeout_ns; /* 0: none */
	int multi_snapshot;  /* how many triggers to capture; 0: until Ctrl-C */
	struct sample_options sample;
	bool multi_thread, immediate_stop, kernel, portable;
	bool kernel_only; /* with `kernel`: and not user code */
	const char *resolution;
	struct pt_timing timing; /* what capture_options__check() makes of it */
	int freeze_method;	 /* see source_config */
	const char *truth;	 /* soft: a file for the true stack */
	bool no_ret_compression;
	bool no_inline; /* of what is decoded */
	bool full;	/* `run`: no ring, but all of it */
	bool view;	/* show it when it is */
	bool strict;	/* what is lost is an error */
	bool verbose, quiet;
};

/* What -cpu-thresh and -off-cpu-thresh ask for. */
enum mt_cpu_measure capture_options__cpu_measure(const struct capture_options *o);

/* Soft is never chosen for the user: it changes what it measures. */
enum { SOURCE_AUTO, SOURCE_PT, SOURCE_SAMPLE, SOURCE_SOFT };
extern const char *const source_names[];
extern const char *const freeze_names[];

#define SNAPSHOT_SIZE_DEFAULT (4u << 20)
#define MAX_MEMORY_DEFAULT    (1u << 30)
#define STACK_COPY_DEFAULT    (16u << 10)

#define CAPTURE_DEFAULTS                                                                           \
	{                                                                                          \
		.snapshot_size = SNAPSHOT_SIZE_DEFAULT, .max_memory = MAX_MEMORY_DEFAULT,          \
		.stack_copy = STACK_COPY_DEFAULT, .sample = SAMPLE_DEFAULTS,                       \
		.resolution = "normal", .multi_snapshot = 1                                        \
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
		  "the process, or several: 17,4; all threads of it, later ones too"),             \
		OPTION_AS("name", NULL, 'n', OPT_STRING, "GLOB", target.name,                      \
			  "all processes with this name, as ps shows it, or whose file has it"),   \
		OPTION_VALUE("container", OPT_STRING, "NAME", target.container,                    \
			     "a container (docker, podman, containerd, CRI-O) by its name or ID"), \
		OPTION_VALUE("k8s-pod", OPT_STRING, "NS/POD", target.pod,                          \
			     "a pod of this node; NS/POD/CONTAINER is one of its containers"),     \
		OPTION_VALUE("cgroup", OPT_STRING, "PATH", target.cgroup,                          \
			     "all processes of a cgroup (v2) and below it, a buffer a CPU")
#define CHILDREN_HELP	      "with -pid and -name: what they fork from now on as well"
#define OPTION_CHILDREN(help) OPTION_FLAG("children", children, help)
#define OPTION_SYMBOL                                                                              \
	OPTION_AS("symbol", "trigger", 's', OPT_LIST, "NAME", symbols,                             \
		  "what triggers: a function, a glob of one, lib.so:NAME, NAME+0x10, "             \
		  "line:FILE:N, addr:0x401234, usdt:PROVIDER:NAME, or ? to pick one; "             \
		  "several: A,B, or once each, any of which hits; without: "                       \
		  "mtbpf_take_snapshot(), where the program calls it")
#define OPTIONS_REGION                                                                             \
	OPTION_VALUE("start", OPT_STRING, "NAME", start,                                           \
		     "with -stop: record a thread only from its hit of this on, which is "         \
		     "named as in -symbol"),                                                       \
		OPTION_VALUE("stop", OPT_STRING, "NAME", stop,                                     \
			     "to its next hit of this; without -symbol that is the trigger, and "  \
			     "-duration-thresh is from -start to -stop")
#define OPTION_DELAY                                                                               \
	OPTION_VALUE("delay-thresh", OPT_THRESHOLD, "D", delay_thresh,                             \
		     "trigger when a thread's hits lie at least this far apart: 10ms, or "         \
		     "p99.9: further than 99.9 % of them, learned meanwhile")
#define OPTION_DURATION                                                                            \
	OPTION_VALUE("duration-thresh", OPT_THRESHOLD, "D", duration_thresh,                       \
		     "trigger when a call of the function takes at least this long, or p99")
#define OPTION_IF                                                                                  \
	OPTION_VALUE("if", OPT_STRING, "TERMS", condition,                                         \
		     "count only hits of which this is true: '(int)arg1 > 100', "                  \
		     "'(int)retval < 0', 'comm == \"worker\"', 'tid == 12'; up to four, "          \
		     "joined by &&")
#define OPTIONS_CPU                                                                                \
	OPTION_VALUE("cpu-thresh", OPT_THRESHOLD, "D", cpu_thresh,                                 \
		     "trigger when a call has been on a CPU for at least this long, or p99; "      \
		     "with -start and -stop: the time between them; with -delay-thresh: between "  \
		     "two hits. Beside another threshold both must be met"),                       \
		OPTION_VALUE("off-cpu-thresh", OPT_THRESHOLD, "D", off_cpu_thresh,                 \
			     "the same of the time off the CPU: blocked, or waiting for a CPU")
#define OPTION_STALL                                                                               \
	OPTION_VALUE("stall-thresh", OPT_DURATION, "D", stall_thresh_ns,                           \
		     "trigger when a thread has been in a call of the function for this long, "    \
		     "and still is: a hang, a deadlock; with -delay-thresh: since its last hit; "  \
		     "with -start and -stop: since -start. Beside another threshold the first "    \
		     "that is met triggers")
extern const char *const return_probe_names[];
#define OPTION_RETURN_PROBES                                                                       \
	OPTION_CHOICE("return-probes", "HOW", return_probes, return_probe_names,                   \
		      "durations: auto (the default), uretprobe (replaces return "                 \
		      "addresses), or ret-insns (probes the return instructions: for Go, "         \
		      "and programs that look at their stack; slower, since they are "             \
		      "single-stepped)")
#define OPTION_MAX_HITS                                                                            \
	OPTION_VALUE("max-hits", OPT_INT, "N", max_hits,                                           \
		     "end after N hits (of durations: returns), triggers or not, as 'perf "        \
		     "trace --max-events' does")
/* What else decides whether a hit triggers. */
#define OPTIONS_LIMITS                                                                             \
	OPTION_VALUE("after", OPT_DURATION, "D", after_ns, "do not trigger in the first D"),       \
		OPTION_VALUE("min-interval", OPT_DURATION, "D", min_interval_ns,                   \
			     "at least this long between two triggers (see -multi-snapshot)"),     \
		OPTION_VALUE("skip", OPT_INT, "N", skip,                                           \
			     "let the first N that would trigger pass"),                           \
		OPTION_RETURN_PROBES, OPTION_MAX_HITS
#define OUTPUT_HELP                                                                                \
	"NAME.fxt.gz, .fxt or .fxt.zst; the recording is NAME.mtbpf beside it (trace.fxt.gz)"
#define OPTION_OUTPUT(help) OPTION_AS("output", NULL, 'o', OPT_STRING, "FILE", output, help)
#define OPTION_FULL                                                                                \
	OPTION_FLAG("full-execution", full,                                                        \
		    "pt, soft: record all of it, to disk while it runs, and trigger "              \
		    "nothing; -snapshot-size is then what waits for the disk: where that "         \
		    "is full, pt loses a stretch, which is said, and soft waits")
#define OPTION_VIEW	 OPTION_FLAG("view", view, VIEW_HELP)
#define OPTION_NO_INLINE OPTION_FLAG("no-inline", no_inline, NO_INLINE_HELP)
#define VIEW_HELP	 "then open the trace in Perfetto, as 'mtbpf view' does"
#define MAX_MEMORY_HELP                                                                            \
	"that decoding may take (three quarters of what is free); the oldest trace is left out "   \
	"where it does not do"
#define NO_INLINE_HELP "no slices for functions that the compiler put into others"
#define STRICT_HELP    "exit with 4 where anything was lost: events, trace, triggers, threads"
#define OPTION_STRICT  OPTION_FLAG("strict", strict, STRICT_HELP)
#define OPTIONS_LOG                                                                                \
	OPTION_AS("v", "verbose", 0, OPT_FLAG, NULL, verbose, "say more"),                         \
		OPTION_AS("q", "quiet", 0, OPT_FLAG, NULL, quiet,                                  \
			  "say only errors; the report stays")
#define OPTIONS_CAPTURE                                                                            \
	OPTION_CHOICE("source", "SOURCE", source, source_names,                                    \
		      "auto (the default: pt, or else sample), pt (Intel PT), sample "             \
		      "(stacks by the clock: any machine) or soft (single-stepping: any "          \
		      "machine, far slower)"),                                                     \
		OPTION_VALUE(                                                                      \
			"snapshot-size", OPT_SIZE, "SIZE", snapshot_size,                          \
			"bytes of trace kept a thread, or a CPU: how far back it looks (4M)"),     \
		OPTION_VALUE("max-memory", OPT_SIZE, "SIZE", max_memory,                           \
			     "of all buffers together, and of decoding beside them (1G)"),         \
		OPTION_VALUE("timeout", OPT_DURATION, "D", timeout_ns,                             \
			     "give up waiting after this long: snapshot, exit code 3"),            \
		OPTION_VALUE("multi-snapshot", OPT_COUNT, "[N]", multi_snapshot,                   \
			     "capture N triggers, or until Ctrl-C, into one trace"),               \
		OPTION_FLAG("multi-thread", multi_thread,                                          \
			    "pt: record every thread, a buffer each (soft always does)"),          \
		OPTION_FLAG("trace-include-kernel", kernel,                                        \
			    "the kernel as well: system calls, interrupts, page faults; sample: "  \
			    "its stacks"),                                                         \
		OPTION_FLAG("trace-kernel-only", kernel_only,                                      \
			    "pt: the kernel, and no user code; a kernel thread can be the "        \
			    "target, too"),                                                        \
		OPTION_FLAG("portable", portable,                                                  \
			    "the recording holds the programs too: to decode it on another "       \
			    "machine"),                                                            \
		OPTION_VALUE("stack-copy", OPT_SIZE, "SIZE", stack_copy,                           \
			     "bytes of the stack that are copied at a hit, to unwind it: 60K at "  \
			     "most (16K)"),                                                        \
		OPTION_FLAG("no-stack-copy", no_stack_copy,                                        \
			    "no memory of the program goes into the recording: callers by frame "  \
			    "pointer only"),                                                       \
		OPTION_VALUE("timer-resolution", OPT_STRING, "RESOLUTION", resolution,             \
			     "pt: low, normal, high, or custom:TERMS (perf\'s own); finer looks "  \
			     "less far back"),                                                     \
		OPTION_FLAG("immediate-stop", immediate_stop,                                      \
			    "pt: insist on freezing in the kernel, at the hit"),                   \
		OPTION_CHOICE("freeze", "METHOD", freeze_method, freeze_names,                     \
			      "pt: auto (the best there is), pause, refresh or disable"),          \
		OPTION_VALUE("truth", OPT_STRING, "FILE", truth,                                   \
			     "soft: log the true stack after every call and return"),              \
		OPTION_FLAG("no-ret-compression", no_ret_compression,                              \
			    "soft: write every return in full")

#define OPTIONS_SAMPLE                                                                             \
	OPTION_VALUE("sample-rate", OPT_INT, "HZ", sample.rate,                                    \
		     "sample: stacks a second and thread, while it runs (1000, or what "           \
		     "costs 5 %)"),                                                                \
		OPTION_VALUE(                                                                      \
			"max-overhead", OPT_STRING, "P%", sample.max_overhead,                     \
			"sample: fewer, where they and the probes' hits would cost more of "       \
			"the target's CPU time; measured here. Without: a probe that takes a "     \
			"fifth of it is removed; none: never"),                                    \
		OPTION_CHOICE("unwind", "HOW", sample.unwind, unwind_names,                        \
			      "sample: callers by fp (frame pointers), dwarf (from copies of the " \
			      "stack), lbr (as the CPU notes them), or auto: tried"),              \
		OPTION_VALUE("also", OPT_LIST, "NAME", sample.also,                                \
			     "sample: calls of these functions (as -symbol; all of a glob, 64 at " \
			     "most) are exact as well; costs the target two probes a call"),       \
		OPTION_VALUE("syscall-thresh", OPT_DURATION, "D", sample.syscall_thresh_ns,        \
			     "sample: system calls of at least that are slices, exact; costs "     \
			     "every process half a microsecond a call")

/* Sets the log level; parses and checks what belongs together. 0, or -EINVAL after a line and a
 * hint. */
int capture_options__check(struct capture_options *options, const char *command);

#endif
