/* SPDX-License-Identifier: MIT */
/* The kernel's code as it is now, copied from /proc/kcore. */
#ifndef MTBPF_CAPTURE_CODE_KERNEL_COPY_H
#define MTBPF_CAPTURE_CODE_KERNEL_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/recording/recording.h"
#include "util/vec.h"

/*
 * Copies the kernel's code into an unnamed ELF file, and the texts of kallsyms and modules. Without
 * with_code the file only has the addresses of the code. `proc` is "/proc"; modules may be missing
 * there. 0, or -errno after one line and a hint; `kernel` is then empty.
 */
int kernel_copy__make(const char *proc, bool with_code, struct rec_kernel *kernel);

/* The results of trying to read the kernel's code and symbols on this machine. */
struct kernel_facts {
	int kallsyms_err;   /* of reading /proc/kallsyms: 0 or -errno */
	bool has_addresses; /* it shows addresses, not zeroes */
	long kptr_restrict; /* kernel.kptr_restrict */
	int kcore_err;	    /* of opening /proc/kcore: 0 or -errno */
	int lockdown;	    /* enum lockdown, or -errno */
};

/* Why the kernel cannot be read, and what helps. The functions return pointers to static ones. */
struct kernel_refusal {
	int err; /* -ENODEV: unsupported by this kernel; otherwise -errno */
	const char *what, *remedy;
};

/* NULL if the kernel can be read. */
const struct kernel_refusal *kernel_access__judge(const struct kernel_facts *facts);
/* Tries to read the symbols and, if with_code, the code. Prints nothing. */
const struct kernel_refusal *kernel_access__try(bool with_code);
/*
 * Like kernel_access__try(), but prints a line and a hint if the code, or without with_code the
 * symbols, cannot be read. 0 or -errno.
 */
int kernel_access__refuse(bool with_code);

/* A range of code addresses, [start, end), in whole pages. */
struct kernel_range {
	uint64_t start, end;
};
typedef VEC(struct kernel_range) kernel_range_vec;

/*
 * Finds the ranges from the texts of /proc/kallsyms and /proc/modules, ascending, with gaps between
 * them. 0; -ENODATA: the kernel's own text is not in kallsyms; -ENOMEM.
 */
int kernel_ranges__find(const char *kallsyms, const char *modules, kernel_range_vec *ranges);

#endif
