/* SPDX-License-Identifier: MIT */
/* Why Intel PT cannot be had, and what helps: one line and a hint on stderr. */
#ifndef MTBPF_CAPTURE_PT_EXPLAIN_H
#define MTBPF_CAPTURE_PT_EXPLAIN_H

#include <stddef.h>

/* There is no intel_pt PMU: the most likely reason. */
void pt_explain__no_pmu(void);
/* Opening or mapping an event failed with -errno; aux_size: the AUX area asked for, 0: none. */
void pt_explain__open(int err, size_t aux_size);
/* A cgroup without the controller that perf looks for in it. */
void pt_explain__no_controller(const char *path);
/* Opening one with the kernel's code failed, where one without can be opened. */
void pt_explain__open_kernel(int err);

#endif
