/* SPDX-License-Identifier: MIT */
/* Where the kernel's code lies: its own text, its modules', and what it makes as it runs. */
#ifndef MTBPF_CAPTURE_CODE_KERNEL_RANGES_H
#define MTBPF_CAPTURE_CODE_KERNEL_RANGES_H

#include <stdint.h>

#include "util/vec.h"

/* [start, end), whole pages. */
struct kernel_range {
	uint64_t start, end;
};
typedef VEC(struct kernel_range) kernel_range_vec;

/*
 * From the texts of /proc/kallsyms and /proc/modules: ascending, and none touches the next. 0;
 * -ENODATA: the kernel's own text is not in kallsyms; -ENOMEM.
 */
int kernel_ranges__find(const char *kallsyms, const char *modules, kernel_range_vec *ranges);

#endif
