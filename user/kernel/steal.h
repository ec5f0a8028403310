/* SPDX-License-Identifier: MIT */
/* Tells if the hypervisor reports stolen time to this machine. */
#ifndef MTBPF_KERNEL_STEAL_H
#define MTBPF_KERNEL_STEAL_H

#include <stdbool.h>
#include <stdint.h>

/* From CPUID, /proc/stat and /proc/cmdline. */
struct steal_facts {
	bool is_guest;
	char hypervisor[13];   /* "KVMKVMKVM"; "" where it gives no name */
	uint32_t kvm_features; /* CPUID 0x40000001 EAX, of KVM */
	bool is_refused;       /* by the kernel's command line: no-steal-acc */
	bool any_stolen;       /* since it was started */
};

struct steal_facts steal__facts(void);
/* False where stolen time may pass without a trace: a guest that was never told of any. */
bool steal__is_told(const struct steal_facts *facts);

#endif
