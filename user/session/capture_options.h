/* SPDX-License-Identifier: MIT */
/* The options that attach, run, record and watch share. */
#ifndef MTBPF_SESSION_CAPTURE_OPTIONS_H
#define MTBPF_SESSION_CAPTURE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/source.h"
#include "session/sample_options.h"
#include "session/target.h"
#include "cli/options.h"
#include "util/threshold.h"

struct capture_options {
	struct target_options target;
	bool children; /* of its processes, from now on */
	struct option_list symbols;
	const char *start, *stop; /* a region's; NULL: everything is recorded */
	struct threshold delay_thresh, duration_thresh;
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

#define OPTION(member) offsetof(struct capture_options, member)

#define OPTIONS_TARGET                                                                             \
	{"pid",                                                                                    \
	 NULL,                                                                                     \
	 'p',                                                                                      \
	 OPT_STRING,                                                                               \
	 "PID",                                                                                    \
	 "the process, or several: 17,4; all threads of it, later ones too",                       \
	 OPTION(target.pids),                                                                      \
	 NULL},                                                                                    \
		{"name",                                                                           \
		 NULL,                                                                             \
		 'n',                                                                              \
		 OPT_STRING,                                                                       \
		 "GLOB",                                                                           \
		 "all processes with this name, as ps shows it, or whose file has it",             \
		 OPTION(target.name),                                                              \
		 NULL},                                                                            \
		{"container",                                                                      \
		 NULL,                                                                             \
		 0,                                                                                \
		 OPT_STRING,                                                                       \
		 "NAME",                                                                           \
		 "a container (docker, podman, containerd, CRI-O) by its name or ID",              \
		 OPTION(target.container),                                                         \
		 NULL},                                                                            \
		{"k8s-pod",                                                                        \
		 NULL,                                                                             \
		 0,                                                                                \
		 OPT_STRING,                                                                       \
		 "NS/POD",                                                                         \
		 "a pod of this node; NS/POD/CONTAINER is one of its containers",                  \
		 OPTION(target.pod),                                                               \
		 NULL},                                                                            \
	{                                                                                          \
		"cgroup", NULL, 0, OPT_STRING, "PATH",                                             \
			"all processes of a cgroup (v2) and below it, a buffer a CPU",             \
			OPTION(target.cgroup), NULL                                                \
	}
#define CHILDREN_HELP "with -pid and -name: what they fork from now on as well"
#define OPTION_CHILDREN(help)                                                                      \
	{                                                                                          \
		"children", NULL, 0, OPT_FLAG, NULL, help, OPTION(children), NULL                  \
	}
#define OPTION_SYMBOL                                                                              \
	{                                                                                          \
		"symbol", "trigger", 's', OPT_LIST, "NAME",                                        \
			"what triggers: a function, a glob of one, lib.so:NAME, NAME+0x10, "       \
			"line:FILE:N, addr:0x401234, usdt:PROVIDER:NAME, or ? to pick one; "       \
			"several: A,B, or once each, any of which hits; "                          \
			"without: mtbpf_take_snapshot(), where the program calls it",              \
			OPTION(symbols), NULL                                                      \
	}
#define OPTIONS_REGION                                                                             \
	{"start",                                                                                  \
	 NULL,                                                                                     \
	 0,                                                                                        \
	 OPT_STRING,                                                                               \
	 "NAME",                                                                                   \
	 "with -stop: record a thread only from its hit of this on, which is named as in -symbol", \
	 OPTION(start),                                                                            \
	 NULL},                                                                                    \
	{                                                                                          \
		"stop", NULL, 0, OPT_STRING, "NAME",                                               \
			"to its next hit of this; without -symbol that is the trigger, and "       \
			"-duration-thresh is from -start to -stop",                                \
			OPTION(stop), NULL                                                         \
	}
#define OPTION_DELAY                                                                               \
	{                                                                                          \
		"delay-thresh", NULL, 0, OPT_THRESHOLD, "D",                                       \
			"trigger when a thread's hits lie at least this far apart: 10ms, or "      \
			"p99.9: further than 99.9 % of them, learned meanwhile",                   \
			OPTION(delay_thresh), NULL                                                 \
	}
#define OPTION_DURATION                                                                            \
	{                                                                                          \
		"duration-thresh", NULL, 0, OPT_THRESHOLD, "D",                                    \
			"trigger when a call of the function takes at least this long, or p99",    \
			OPTION(duration_thresh), NULL                                              \
	}
extern const char *const return_probe_names[];
#define OPTION_RETURN_PROBES                                                                       \
	{                                                                                          \
		"return-probes", NULL, 0, OPT_CHOICE, "HOW",                                       \
			"durations: auto (the default), uretprobe (replaces return addresses), "   \
			"or ret-insns (probes the return instructions: for Go, and programs "      \
			"that look at their stack; slower, since they are single-stepped)",        \
			OPTION(return_probes), return_probe_names                                  \
	}
#define OPTION_MAX_HITS                                                                            \
	{                                                                                          \
		"max-hits", NULL, 0, OPT_INT, "N",                                                 \
			"end after N hits (of durations: returns), triggers or not, as "           \
			"'perf trace --max-events' does",                                          \
			OPTION(max_hits), NULL                                                     \
	}
/* What else decides whether a hit triggers. */
#define OPTIONS_LIMITS                                                                             \
	{"after",	   NULL, 0, OPT_DURATION, "D", "do not trigger in the first D",            \
	 OPTION(after_ns), NULL},                                                                  \
		{"min-interval",                                                                   \
		 NULL,                                                                             \
		 0,                                                                                \
		 OPT_DURATION,                                                                     \
		 "D",                                                                              \
		 "at least this long between two triggers (see -multi-snapshot)",                  \
		 OPTION(min_interval_ns),                                                          \
		 NULL},                                                                            \
		{"skip",       NULL, 0, OPT_INT, "N", "let the first N that would trigger pass",   \
		 OPTION(skip), NULL},                                                              \
		OPTION_RETURN_PROBES, OPTION_MAX_HITS
#define OUTPUT_HELP                                                                                \
	"NAME.fxt.gz, .fxt or .fxt.zst; the recording is NAME.mtbpf beside it (trace.fxt.gz)"
#define OPTION_OUTPUT(help)                                                                        \
	{                                                                                          \
		"output", NULL, 'o', OPT_STRING, "FILE", help, OPTION(output), NULL                \
	}
#define OPTION_FULL                                                                                \
	{                                                                                          \
		"full-execution", NULL, 0, OPT_FLAG, NULL,                                         \
			"pt, soft: record all of it, to disk while it runs, and trigger nothing; " \
			"-snapshot-size is then what waits for the disk: where that is full, pt "  \
			"loses a stretch, which is said, and soft waits",                          \
			OPTION(full), NULL                                                         \
	}
#define OPTION_VIEW                                                                                \
	{                                                                                          \
		"view", NULL, 0, OPT_FLAG, NULL, VIEW_HELP, OPTION(view), NULL                     \
	}
#define OPTION_NO_INLINE                                                                           \
	{                                                                                          \
		"no-inline", NULL, 0, OPT_FLAG, NULL, NO_INLINE_HELP, OPTION(no_inline), NULL      \
	}
#define VIEW_HELP "then open the trace in Perfetto, as 'mtbpf view' does"
#define MAX_MEMORY_HELP                                                                            \
	"that decoding may take (three quarters of what is free); the oldest trace is left out "   \
	"where it does not do"
#define NO_INLINE_HELP "no slices for functions that the compiler put into others"
#define STRICT_HELP    "exit with 4 where anything was lost: events, trace, triggers, threads"
#define OPTION_STRICT                                                                              \
	{                                                                                          \
		"strict", NULL, 0, OPT_FLAG, NULL, STRICT_HELP, OPTION(strict), NULL               \
	}
#define OPTIONS_LOG                                                                                \
	{"v", "verbose", 0, OPT_FLAG, NULL, "say more", OPTION(verbose), NULL},                    \
	{                                                                                          \
		"q", "quiet", 0, OPT_FLAG, NULL, "say only errors; the report stays",              \
			OPTION(quiet), NULL                                                        \
	}
#define OPTIONS_CAPTURE                                                                              \
	{"source",                                                                                   \
	 NULL,                                                                                       \
	 0,                                                                                          \
	 OPT_CHOICE,                                                                                 \
	 "SOURCE",                                                                                   \
	 "auto (the default: pt, or else sample), pt (Intel PT), sample (stacks by the clock: "      \
	 "any "                                                                                      \
	 "machine) or soft (single-stepping: any machine, far slower)",                              \
	 OPTION(source),                                                                             \
	 source_names},                                                                              \
		{"snapshot-size",                                                                    \
		 NULL,                                                                               \
		 0,                                                                                  \
		 OPT_SIZE,                                                                           \
		 "SIZE",                                                                             \
		 "bytes of trace kept a thread, or a CPU: how far back it looks (4M)",               \
		 OPTION(snapshot_size),                                                              \
		 NULL},                                                                              \
		{"max-memory",                                                                       \
		 NULL,                                                                               \
		 0,                                                                                  \
		 OPT_SIZE,                                                                           \
		 "SIZE",                                                                             \
		 "of all buffers together, and of decoding beside them (1G)",                        \
		 OPTION(max_memory),                                                                 \
		 NULL},                                                                              \
		{"timeout",	     NULL, 0,                                                        \
		 OPT_DURATION,	     "D",  "give up waiting after this long: snapshot, exit code 3", \
		 OPTION(timeout_ns), NULL},                                                          \
		{"multi-snapshot",                                                                   \
		 NULL,                                                                               \
		 0,                                                                                  \
		 OPT_COUNT,                                                                          \
		 "[N]",                                                                              \
		 "capture N triggers, or until Ctrl-C, into one trace",                              \
		 OPTION(multi_snapshot),                                                             \
		 NULL},                                                                              \
		{"multi-thread",                                                                     \
		 NULL,                                                                               \
		 0,                                                                                  \
		 OPT_FLAG,                                                                           \
		 NULL,                                                                               \
		 "pt: record every thread, a buffer each (soft always does)",                        \
		 OPTION(multi_thread),                                                               \
		 NULL},                                                                              \
		{"trace-include-kernel",                                                             \
		 NULL,                                                                               \
		 0,                                                                                  \
		 OPT_FLAG,                                                                           \
		 NULL,                                                                               \
		 "the kernel as well: system calls, interrupts, page faults; sample: its stacks",    \
		 OPTION(kernel),                                                                     \
		 NULL},                                                                              \
		{"trace-kernel-only",                                                                \
		 NULL,                                                                               \
		 0,                                                                                  \
		 OPT_FLAG,                                                                           \
		 NULL,                                                                               \
		 "pt: the kernel, and no user code; a kernel thread can be the target, too",         \
		 OPTION(kernel_only),                                                                \
		 NULL},                                                                              \
		{"portable",                                                                         \
		 NULL,                                                                               \
		 0,                                                                                  \
		 OPT_FLAG,                                                                           \
		 NULL,                                                                               \
		 "the recording holds the programs too: to decode it on another machine",            \
		 OPTION(portable),                                                                   \
		 NULL},                                                                              \
		{"stack-copy",                                                                       \
		 NULL,                                                                               \
		 0,                                                                                  \
		 OPT_SIZE,                                                                           \
		 "SIZE",                                                                             \
		 "bytes of the stack that are copied at a hit, to unwind it: 60K at most (16K)",     \
		 OPTION(stack_copy),                                                                 \
		 NULL},                                                                              \
		{"no-stack-copy",                                                                    \
		 NULL,                                                                               \
		 0,                                                                                  \
		 OPT_FLAG,                                                                           \
		 NULL,                                                                               \
		 "no memory of the program goes into the recording: callers by frame pointer "       \
		 "only",                                                                             \
		 OPTION(no_stack_copy),                                                              \
		 NULL},                                                                              \
		{"timer-resolution",                                                                 \
		 NULL,                                                                               \
		 0,                                                                                  \
		 OPT_STRING,                                                                         \
		 "RESOLUTION",                                                                       \
		 "pt: low, normal, high, or custom:TERMS (perf\'s own); finer looks less far "       \
		 "back",                                                                             \
		 OPTION(resolution),                                                                 \
		 NULL},                                                                              \
		{"immediate-stop",                                                                   \
		 NULL,                                                                               \
		 0,                                                                                  \
		 OPT_FLAG,                                                                           \
		 NULL,                                                                               \
		 "pt: insist on freezing in the kernel, at the hit",                                 \
		 OPTION(immediate_stop),                                                             \
		 NULL},                                                                              \
		{"freeze",                                                                           \
		 NULL,                                                                               \
		 0,                                                                                  \
		 OPT_CHOICE,                                                                         \
		 "METHOD",                                                                           \
		 "pt: auto (the best there is), pause, refresh or disable",                          \
		 OPTION(freeze_method),                                                              \
		 freeze_names},                                                                      \
		{"truth",	NULL,	0,                                                           \
		 OPT_STRING,	"FILE", "soft: log the true stack after every call and return",      \
		 OPTION(truth), NULL},                                                               \
	{                                                                                            \
		"no-ret-compression", NULL, 0, OPT_FLAG, NULL, "soft: write every return in full",   \
			OPTION(no_ret_compression), NULL                                             \
	}

/* Sets the log level; parses and checks what belongs together. 0, or -EINVAL after a line and a
 * hint. */
int capture_options__check(struct capture_options *options, const char *command);

#endif
