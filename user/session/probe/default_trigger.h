/* SPDX-License-Identifier: MIT */
/* The trigger that a program brings itself: include/mtbpf.h, or what magic-trace's library has. */
#ifndef MTBPF_SESSION_PROBE_DEFAULT_TRIGGER_H
#define MTBPF_SESSION_PROBE_DEFAULT_TRIGGER_H

#include <stdbool.h>

#include "mtbpf_shared.h"
#include "session/probe/programs.h"
#include "target/elf/elf_image.h"
#include "target/process.h"

/*
 * What -symbol is where it is not given: a function of the process, or, with exec_path, of a file
 * to be run; NULL where there is none. Prints nothing.
 */
const char *default_trigger__find(const struct process *process, const char *exec_path);

/* The same of the first of several programs that has one. */
const char *default_trigger__of(const struct programs *programs);

/* Whether a selector names one: it may be in several files, all of which are meant. */
bool default_trigger__is_stub(const char *symbol);

/* Whether it is the one that mtbpf_take_snapshot() calls; *args is what it is given then. */
bool default_trigger__is_library(const struct function *function, struct mt_args *args);

#endif
