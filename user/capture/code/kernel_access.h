/* SPDX-License-Identifier: MIT */
/* Whether the kernel's code and symbols can be read here: tracing it is of no use without them. */
#ifndef MTBPF_CAPTURE_CODE_KERNEL_ACCESS_H
#define MTBPF_CAPTURE_CODE_KERNEL_ACCESS_H

#include <stdbool.h>

/* What was tried, and found. */
struct kernel_facts {
	int kallsyms_err;   /* of reading /proc/kallsyms: 0 or -errno */
	bool has_addresses; /* it shows some, not zeroes */
	long kptr_restrict; /* kernel.kptr_restrict */
	int kcore_err;	    /* of opening /proc/kcore: 0 or -errno */
	int lockdown;	    /* enum lockdown, or -errno */
};

/* Why not, and what helps. Static. */
struct kernel_refusal {
	int err; /* -ENODEV: this kernel has it not; else -errno */
	const char *what, *remedy;
};

/* NULL where all is well. */
const struct kernel_refusal *kernel_access__judge(const struct kernel_facts *facts);
/* Tries it. Prints nothing. */
const struct kernel_refusal *kernel_access__try(void);
/* The same, with a line and a hint where it cannot, or, without the code, its symbols cannot: 0 or
 * -errno. */
int kernel_access__refuse(bool with_code);

#endif
