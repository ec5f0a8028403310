/* SPDX-License-Identifier: MIT */
/*
 * Finds probes by selector, in one process or in several: a function is then probed in each program
 * that has it.
 */
#ifndef MTBPF_SESSION_PROBE_FIND_PROBES_H
#define MTBPF_SESSION_PROBE_FIND_PROBES_H

#include <stdbool.h>
#include <stdint.h>

#include "mtbpf_shared.h"
#include "session/probe/probe.h"
#include "session/target.h"
#include "target/elf/elf_image.h"
#include "target/process.h"
#include "util/vec.h"

/* Processes that map the same code. */
struct program {
	struct process process;
	uint64_t code; /* hash of the mapped code */
	size_t n;      /* number of processes; `process` is the first by pid */
	bool is_probed;
};

struct programs {
	VEC(struct program) all;
	const struct target *target;
};

/*
 * Reads the target's current processes, except those that cannot be read. The target must outlive
 * the programs. Returns 0; -ESRCH after a message and a hint if no process is left; or -errno after
 * a message. Call programs__fini() in any case.
 */
int programs__open(struct programs *programs, const struct target *target);
void programs__fini(struct programs *programs);

/*
 * Calls fn for every place that the selector names: in the kernel, in the files of source's process
 * or program, or once in all of source->programs, of which it marks those that have it as probed.
 * If fn returns other than 0, stops and returns that; otherwise 0, or -errno after a message and a
 * hint (-ENOENT: no program has it).
 */
int probe__each(const struct probe_source *source, const char *symbol, probe_fn fn, void *ctx);
/* Like probe__each(), for all functions of files that match a glob, except those that cannot be
 * probed. */
int probe__each_function(const struct probe_source *source, const char *symbol, probe_fn fn,
			 void *ctx);

/* True if one of the programs has the symbol. Prints nothing. */
bool programs__have(const struct programs *programs, const char *symbol);
/* The first of the default triggers that any of the programs has; NULL: none. Prints nothing. */
const char *programs__default_trigger(const struct programs *programs);

/* Removes the programs that `others` also has. */
void programs__remove(struct programs *programs, const struct programs *others);

/* A process of the first probed program; if none is probed, of the first program. */
const struct process *programs__first(const struct programs *programs);
/* Returns the number of processes of programs that are not probed, and sets *first. */
size_t programs__unprobed(const struct programs *programs, const struct process **first);

/*
 * Finds the first of the default triggers for -symbol in the process or, with exec_path, in the
 * file that will be run. NULL without such a function. Prints nothing.
 */
const char *default_trigger__find(const struct process *process, const char *exec_path);

#endif
