/* SPDX-License-Identifier: MIT */
/* The probe of one function: joins target (where it is) and trigger (which instruction). */
#ifndef MTBPF_SESSION_PROBE_PROBE_H
#define MTBPF_SESSION_PROBE_PROBE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/probe/uprobe_event.h"
#include "target/process.h"
#include "target/symbols/symbols.h"
#include "mtbpf_shared.h"
#include "trigger/exit_sites.h"
#include "trigger/probe_site.h"
#include "trigger/trigger.h"

struct probe {
	char path[PATH_MAX]; /* a name of the file that open(2) takes here */
	struct {
		uint64_t ino;
		uint32_t maj, min;
	} file;		       /* as the mappings of those that run it show it */
	uint64_t offset;       /* of the probed instruction */
	uint64_t entry_offset; /* of the function */
	uint64_t ip;	       /* run-time address; 0 where the program does not run yet */
	char name[256];	       /* the function's, for people */
	struct probe_site site;
	/* Where the function is left; or why that is not known, -errno. */
	struct exit_sites exits;
	int exits_err;
	bool is_go; /* of a program whose runtime walks its stacks, and takes no return probe */
	unsigned int go_minor; /* of that the version, 1.go_minor; 0: not known */
	bool is_inside;	       /* not the function's entry: "f+0x10", "addr:" */
	bool is_library;       /* mtbpf_hit() of mtbpf.h: it is given the time of the mark */
	struct mt_args args;   /* what is read at a hit */
	uint64_t semaphore;    /* file offset of a counter that the kernel raises; 0: none */
	uint8_t code[16];      /* at the probe; zeroes after the function's end */
	/*
	 * With a name: it is on a system call, in no file. Then `path` is its name, and `offset`
	 * its number.
	 */
	struct trigger_syscall syscall;
};

static inline bool probe__is_syscall(const struct probe *probe)
{
	return probe->syscall.name;
}

struct programs;

/* Where probes are looked up: in a process, in several, or, with exec_path, in a file to be run. */
struct probe_source {
	const struct process *process;
	const char *exec_path;
	struct programs *programs; /* NULL: they are not several */
};

typedef int (*probe_fn)(void *ctx, const struct probe *probe);

/* probe__each(), or probe__each_function(). */
typedef int (*probe_each_fn)(const struct probe_source *source, const char *symbol, probe_fn fn,
			     void *ctx);

/*
 * Calls fn for every place that the selector means: one of a function, which is chosen; all of a
 * USDT probe. Warns where each hit will cost a single-step. What fn returns but 0 ends it, and is
 * returned; 0; or -errno after a line and a hint.
 */
int probe__each(const struct probe_source *source, const char *symbol, probe_fn fn, void *ctx);
/* The same, but all functions that a glob matches; those that take no probe are left out of it. */
int probe__each_function(const struct probe_source *source, const char *symbol, probe_fn fn,
			 void *ctx);

/*
 * True if a probe that was found in the process is at the same place of the same file as another,
 * which would be hit there as well. For overlays that share a layer, only a trial probe can tell.
 */
bool probe__is_same(const struct probe *other, const struct probe *found,
		    const struct process *process);

#endif
