/* SPDX-License-Identifier: MIT */
/* Whose an address is. */
#ifndef MTBPF_KERNEL_ADDRESS_H
#define MTBPF_KERNEL_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Linux has the upper half (Documentation/arch/x86/x86_64/mm.rst). */
static inline bool address__is_kernel(uint64_t ip)
{
	return ip >> 63;
}

#endif
