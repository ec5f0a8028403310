// SPDX-License-Identifier: MIT
/* Whether this is a virtual machine, and whose: hardly any hands Intel PT to its guests. */
#include <cpuid.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/pt/pmu.h"
#include "check/subjects.h"

#define DMI "/sys/class/dmi/id/"

/* What leaf 40000000H holds in EBX, ECX, EDX. */
static const struct {
	char signature[13];
	const char *name;
} hypervisors[] = {
	{"KVMKVMKVM\0\0\0", "KVM"},	{"Linux KVM Hv", "KVM"},
	{"TCGTCGTCGTCG", "QEMU TCG"},	{"Microsoft Hv", "Hyper-V"},
	{"VMwareVMware", "VMware"},	{"XenVMMXenVMM", "Xen"},
	{"VBoxVBoxVBox", "VirtualBox"}, {"prl hyperv  ", "Parallels"},
	{" lrpepyh  vr", "Parallels"},	{"bhyve bhyve ", "bhyve"},
	{"ACRNACRNACRN", "ACRN"},	{"QNXQVMBSQG\0\0", "QNX"},
};

const char *vm__hypervisor(const char signature[static 12])
{
	for (size_t i = 0; i < sizeof(hypervisors) / sizeof(hypervisors[0]); i++)
		if (!memcmp(hypervisors[i].signature, signature, 12))
			return hypervisors[i].name;
	return NULL;
}

/* Leaf 1, ECX bit 31: no CPU sets it. */
bool vm__is_one(void)
{
	unsigned int eax, ebx, ecx = 0, edx;

	return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && ecx >> 31;
}

static void read_signature(char signature[static 13])
{
	unsigned int eax, words[3];

	__cpuid(0x40000000, eax, words[0], words[1], words[2]);
	memcpy(signature, words, 12);
	signature[12] = '\0';
}

/* By CPUID; where that says nothing known, by what the kernel found. */
static void find_name(char *name, size_t size)
{
	char signature[13];
	const char *known;

	read_signature(signature);
	known = vm__hypervisor(signature);
	if (known)
		snprintf(name, size, "%s", known);
	else if (check__read_line("/sys/hypervisor/type", name, size) || !name[0])
		snprintf(name, size, "an unknown hypervisor");
}

/* "Amazon EC2 m5.large": what cloud or program, as the firmware tells. */
static void find_product(char *product, size_t size)
{
	char vendor[40] = "", model[40] = "";

	check__read_line(DMI "sys_vendor", vendor, sizeof(vendor));
	check__read_line(DMI "product_name", model, sizeof(model));
	snprintf(product, size, "%s%s%s", vendor, vendor[0] && model[0] ? " " : "", model);
}

static void cut_at(char *text, const char *what)
{
	char *found = strstr(text, what);

	if (found)
		*found = '\0';
}

void check_vm(const struct check *check, struct check_result *result)
{
	char name[40], product[84];
	bool has_pt = !access(PT_PMU_PATH, F_OK);

	find_product(product, sizeof(product));
	if (product[0])
		check_result__add_text(result, "product", product);
	check_result__add_number(result, "is_vm", vm__is_one());
	if (!vm__is_one()) {
		check_result__set(result, CHECK_OK, "bare metal%s%s", product[0] ? ": " : "",
				  product);
		return;
	}
	find_name(name, sizeof(name));
	check_result__add_text(result, "hypervisor", name);
	/* "QEMU Standard PC (i440FX + PIIX, 1996)": the model's name is enough. */
	cut_at(product, " (");
	check_result__set(result, has_pt ? CHECK_OK : CHECK_LIMITED, "%s%s%s: %s Intel PT", name,
			  product[0] ? ", " : "", product, has_pt ? "with" : "without");
	if (!has_pt)
		check_result__remedy(result, "run on bare metal");
}
