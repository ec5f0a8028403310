// SPDX-License-Identifier: MIT
#include "kernel/steal.h"

#include <cpuid.h>
#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/fs.h"

/* CPUID 1 ECX: set by hypervisors, and by no CPU. */
#define CPUID_GUEST (1u << 31)
/* Documentation/virt/kvm/x86/cpuid.rst: KVM_FEATURE_STEAL_TIME */
#define KVM_STEAL_TIME (1u << 5)
#define LEAF_NAME      0x40000000
#define LEAF_KVM       0x40000001

/* proc(5), /proc/stat: user nice system idle iowait irq softirq steal. */
static bool has_stolen(void)
{
	_cleanup_free_ char *text = NULL;
	unsigned long long steal = 0;
	size_t len;

	if (fs__read("/proc/stat", &text, &len))
		return false;
	return sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &steal) == 1 && steal;
}

static bool is_refused(void)
{
	_cleanup_free_ char *text = NULL;
	size_t len;

	return !fs__read("/proc/cmdline", &text, &len) && strstr(text, "no-steal-acc");
}

struct steal_facts steal__facts(void)
{
	struct steal_facts facts = {.is_refused = is_refused(), .any_stolen = has_stolen()};
	uint32_t a, b, c, d, name[3];

	if (!__get_cpuid(1, &a, &b, &c, &d))
		return facts;
	facts.is_guest = c & CPUID_GUEST;
	if (!facts.is_guest)
		return facts;
	__cpuid(LEAF_NAME, a, name[0], name[1], name[2]);
	memcpy(facts.hypervisor, name, sizeof(name));
	__cpuid(LEAF_KVM, facts.kvm_features, b, c, d);
	return facts;
}

bool steal__is_told(const struct steal_facts *facts)
{
	if (!facts->is_guest || facts->any_stolen)
		return true;
	if (facts->is_refused)
		return false;
	/* Xen's tell always (drivers/xen/time.c). */
	if (!strcmp(facts->hypervisor, "XenVMMXenVMM"))
		return true;
	return !strcmp(facts->hypervisor, "KVMKVMKVM") && facts->kvm_features & KVM_STEAL_TIME;
}
