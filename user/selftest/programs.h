/* SPDX-License-Identifier: MIT */
/*
 * Programs whose calls are known exactly, for `mtbpf selftest` to trace. They run in a child of the
 * selftest, in turns, until it is killed.
 */
#ifndef MTBPF_SELFTEST_PROGRAMS_H
#define MTBPF_SELFTEST_PROGRAMS_H

#include "selftest/noted.h"

/*
 * Runs the programs of the mask (1 << enum program) until it is killed; never returns. At the end
 * of iteration k, from 1 on, it calls mtbpf_take_snapshot_with_arg(k): see include/mtbpf.h; with
 * PROGRAM_ANY_THREAD another thread than its first one does.
 * iterations[k % KEPT_ITERATIONS] is of k.
 */
_Noreturn void programs__run(struct program_log *log, unsigned int mask);

#endif
