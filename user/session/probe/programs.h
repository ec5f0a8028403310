/* SPDX-License-Identifier: MIT */
/* The programs of several processes: a function is probed in each that has it. */
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

/* Of the processes that have the same code mapped, the first, by pid. */
struct program {
	struct process process;
	uint64_t code; /* a hash of what is mapped */
	size_t n;      /* so many processes */
	bool is_probed;
};

struct programs {
	VEC(struct program) all;
	const struct target *target;
};

/*
 * Looks at the target's processes as they are now, and leaves out those that cannot be looked at.
 * The target must outlive them. 0; -ESRCH after a line and a hint: there are none; or -errno after
 * a line. programs__fini() in any case.
 */
int programs__open(struct programs *programs, const struct target *target);
void programs__fini(struct programs *programs);

/*
 * Calls fn for every place that the selector means in any of the programs, each once, and marks
 * those as probed; `each` is probe__each(), or probe__each_function(). What the user has picked in
 * one is looked up by its name in the others. 0; what fn returns but 0; or -errno after a line and
 * a hint, -ENOENT where none has it.
 */
int programs__each(struct programs *programs, const char *symbol, probe_each_fn each, probe_fn fn,
		   void *ctx);
/* Whether one of them has it. Prints nothing. */
bool programs__have(const struct programs *programs, const char *symbol);

/* Takes those out that others have as well. */
void programs__remove(struct programs *programs, const struct programs *others);

/* The first that is probed, or the first of all. */
const struct process *programs__first(const struct programs *programs);
/* Of those that are not: how many processes, and the first of them. */
size_t programs__unprobed(const struct programs *programs, const struct process **first);

/* The trigger that a program brings itself: include/mtbpf.h, or what magic-trace's library has. */

/*
 * Finds the default for -symbol: a function of the process or, with exec_path, of the file that
 * will be run. NULL if it has none. Prints nothing.
 */
const char *default_trigger__find(const struct process *process, const char *exec_path);

/* The same of the first of several programs that has one. */
const char *default_trigger__of(const struct programs *programs);

struct selectors;
/*
 * Puts the default in the place of ".", which is magic-trace's name for it. 0; -EINVAL after a line
 * and a hint: there is none; -ENOMEM.
 */
int default_trigger__replace_dot(struct selectors *selectors, const struct probe_source *source);

/* True for the name of a library's stub, which may be in several files: all of them are meant. */
bool default_trigger__is_stub(const char *symbol);

/* True if mtbpf_take_snapshot() calls this function; *args is set to its arguments then. */
bool default_trigger__is_library(const struct function *function, struct mt_args *args);

#endif
