/* SPDX-License-Identifier: MIT */
/* The programs of several processes: a function is probed in each program that has it. */
#ifndef MTBPF_SESSION_PROBE_PROGRAMS_H
#define MTBPF_SESSION_PROBE_PROGRAMS_H

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
 * the programs. Returns 0; -ESRCH after a message and a hint if there is not one; or -errno after a
 * message. Call programs__fini() in any case.
 */
int programs__open(struct programs *programs, const struct target *target);
void programs__fini(struct programs *programs);

/*
 * Calls fn once for every place that the selector names in any of source->programs, and marks those
 * programs as probed. `each` is probe__each() or probe__each_function(). A function that the user
 * picks in one program is looked up by its name in the others. Returns 0, a non-zero result of fn,
 * or -errno after a message and a hint (-ENOENT: no program has it).
 */
int programs__each(const struct probe_source *source, const char *symbol, probe_each_fn each,
		   probe_fn fn, void *ctx);
/* True if one of the programs has the symbol. Prints nothing. */
bool programs__have(const struct programs *programs, const char *symbol);

/* Removes the programs that `others` also has. */
void programs__remove(struct programs *programs, const struct programs *others);

/* A process of the first probed program; if none is probed, of the first program. */
const struct process *programs__first(const struct programs *programs);
/* Returns the number of processes of programs that are not probed, and sets *first. */
size_t programs__unprobed(const struct programs *programs, const struct process **first);

/* The default trigger: the function of include/mtbpf.h, or that of magic-trace's library. */

/*
 * Finds the default for -symbol: a function of the process or, with exec_path, of the file that
 * will be run. NULL without such a function. Prints nothing.
 */
const char *default_trigger__find(const struct process *process, const char *exec_path);

/* The same for several programs: the first of these functions that any of them has. */
const char *default_trigger__of(const struct programs *programs);

struct selectors;
/*
 * Replaces ".", magic-trace's name for the default trigger, by the function's name. 0; -EINVAL
 * after a line and a hint if the program lacks it; or -ENOMEM.
 */
int default_trigger__replace_dot(struct selectors *selectors, const struct probe_source *source);

/* True for the function's name; if several files have it, all of them are probed. */
bool default_trigger__is_stub(const char *symbol);

/* True if mtbpf_take_snapshot() calls this function; if so, sets *args to its arguments. */
bool default_trigger__is_library(const struct function *function, struct mt_args *args);

#endif
