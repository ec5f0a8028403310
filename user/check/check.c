// SPDX-License-Identifier: MIT
#include "check/check.h"

#include <cpuid.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "capture/code/kernel_copy.h"
#include "capture/perf/perf_ring.h"
#include "capture/probe/uprobe_event.h"
#include "capture/pt/pmu.h"
#include "capture/pt/pt_source.h"
#include "capture/sample/sample_ring.h"
#include "capture/source.h"
#include "kernel/rights.h"
#include "session/capture_options.h"
#include "trigger/trigger.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/json.h"
#include "util/log.h"
#include "util/units.h"

void check_result__set(struct check_result *result, enum check_state state, const char *reason, ...)
{
	va_list ap;

	result->state = state;
	va_start(ap, reason);
	vsnprintf(result->reason, sizeof(result->reason), reason, ap);
	va_end(ap);
}

void check_result__remedy(struct check_result *result, const char *remedy, ...)
{
	va_list ap;

	va_start(ap, remedy);
	vsnprintf(result->remedy, sizeof(result->remedy), remedy, ap);
	va_end(ap);
}

void check_result__add_number(struct check_result *result, const char *name, int64_t number)
{
	if (result->n_facts < CHECK_MAX_FACTS)
		result->facts[result->n_facts++] =
			(struct check_fact){.name = name, .number = number};
}

void check_result__add_text(struct check_result *result, const char *name, const char *text)
{
	struct check_fact fact = {.name = name};

	snprintf(fact.text, sizeof(fact.text), "%.*s", (int)sizeof(fact.text) - 1, text);
	if (result->n_facts < CHECK_MAX_FACTS)
		result->facts[result->n_facts++] = fact;
}

/*
 * A check fills state, reason, remedy and facts of a result that is OK and empty. It prints
 * nothing and does not depend on other checks.
 */
struct check {
	const char *name;
	void (*run)(const struct check *check, struct check_result *result);
	bool needed;
	/* A capability (CAP_*), a freeze method (enum pt_freeze), or enum counting. */
	int which;
	const char *purpose; /* of a capability: what it is needed for */
};

int check__read_line(const char *path, char *line, size_t size)
{
	_cleanup_free_ char *text = NULL;
	size_t len, n = 0;
	int err = fs__read(path, &text, &len);

	if (err)
		return err;
	for (size_t i = 0; i < len && text[i] != '\n' && n + 1 < size; i++)
		if (text[i] >= ' ' && text[i] <= '~')
			line[n++] = text[i];
	line[n] = '\0';
	return 0;
}

/* "EACCES": errno by its name, which is shorter than its message. */
static const char *check__strerror(int err)
{
	const char *name = strerrorname_np(-err);

	return name ? name : strerror(-err);
}

static bool is_refusal(int err)
{
	return err == -EPERM || err == -EACCES;
}

/*
 * Sets the state to missing, with the reason "WHAT: EPERM". The remedy is used only if err is an
 * error of rights.
 */
static void set_missing(struct check_result *result, int err, const char *what, const char *remedy)
{
	check_result__set(result, CHECK_MISSING, "%s: %s", what, check__strerror(err));
	if (is_refusal(err))
		check_result__remedy(result, "%s", remedy);
}

/* ---- the kernel: version, BTF, lockdown, and -trace-include-kernel */

#define BTF "/sys/kernel/btf/vmlinux"

static void check_kernel(const struct check *check, struct check_result *result)
{
	unsigned int major = 0, minor = 0;
	struct utsname name;

	if (uname(&name)) {
		check_result__set(result, CHECK_LIMITED, "its version cannot be read");
		return;
	}
	check_result__add_text(result, "release", name.release);
	check_result__set(result, CHECK_OK, "Linux %s", name.release);
	if (sscanf(name.release, "%u.%u", &major, &minor) != 2 || major > 6 ||
	    (major == 6 && minor >= 1))
		return;
	/* BPF links on perf events came with 5.15. */
	check_result__set(result, CHECK_LIMITED,
			  major < 5 || (major == 5 && minor < 15)
				  ? "Linux %s is too old for triggers"
				  : "Linux %s: mtbpf has not been tested on it",
			  name.release);
	check_result__remedy(result, "6.1 or later");
}

static void check_btf(const struct check *check, struct check_result *result)
{
	if (!access(BTF, R_OK)) {
		check_result__set(result, CHECK_OK, BTF);
		return;
	}
	check_result__set(
		result, CHECK_LIMITED,
		"none: -stall-thresh, -cpu-thresh, -off-cpu-thresh and -children do not work");
	check_result__remedy(result, "a kernel with CONFIG_DEBUG_INFO_BTF");
}

/* security/security.c: lockdown_reasons: tracefs and kcore fall under confidentiality. */
static void check_lockdown(const struct check *check, struct check_result *result)
{
	char text[64];
	int err = check__read_line(LOCKDOWN_PATH, text, sizeof(text));

	if (err == -EACCES) {
		check_result__set(result, CHECK_LIMITED, "only root can read " LOCKDOWN_PATH);
		return;
	}
	if (err) {
		check_result__set(result, CHECK_OK, "not known: " LOCKDOWN_PATH " is missing");
		return;
	}
	check_result__add_text(result, "lockdown", text);
	switch (lockdown__parse(text)) {
	case LOCKDOWN_NONE:
		check_result__set(result, CHECK_OK, "none");
		break;
	case LOCKDOWN_INTEGRITY:
		check_result__set(result, CHECK_OK, "integrity: forbids nothing that is used here");
		break;
	case LOCKDOWN_CONFIDENTIALITY:
		check_result__set(result, CHECK_LIMITED,
				  "confidentiality: Intel PT can record only one thread");
		check_result__remedy(result, "boot with lockdown=integrity");
		break;
	default:
		check_result__set(result, CHECK_LIMITED, "unknown: %s", text);
	}
}

static void check_kernel_code(const struct check *check, struct check_result *result)
{
	const struct kernel_refusal *refusal = kernel_access__try(true);
	struct pt_pmu pmu;
	int err;

	if (refusal) {
		check_result__set(result, CHECK_MISSING, "%s", refusal->what);
		check_result__remedy(result, "%s", refusal->remedy);
		return;
	}
	if (pt_pmu__read(&pmu)) {
		check_result__set(result, CHECK_MISSING, "not tried: no intel_pt");
		return;
	}
	err = pt_probe__open(&pmu, true);
	if (!err)
		check_result__set(result, CHECK_OK,
				  "can be recorded, and read: "
				  "-trace-include-kernel");
	else if (err == -EOPNOTSUPP)
		check_result__set(result, CHECK_MISSING, "this PMU records user code only");
	else
		set_missing(result, err, "not recorded", "run as root (CAP_PERFMON)");
}

/* ---- virtual machines: hardly any hypervisor passes Intel PT to its guests */

#define DMI "/sys/class/dmi/id/"

/* CPUID leaf 40000000H: EBX, ECX, EDX. */
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

/* Leaf 1, ECX bit 31: only hypervisors set it. */
static bool vm__is_one(void)
{
	unsigned int eax, ebx, ecx = 0, edx;

	return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && ecx >> 31;
}

/* Finds the hypervisor's name by CPUID or, if that signature is unknown, as the kernel names it. */
static void find_name(char *name, size_t size)
{
	unsigned int eax, words[3];
	char signature[12];
	const char *known;

	__cpuid(0x40000000, eax, words[0], words[1], words[2]);
	memcpy(signature, words, sizeof(signature));
	known = vm__hypervisor(signature);
	if (known)
		snprintf(name, size, "%s", known);
	else if (check__read_line("/sys/hypervisor/type", name, size) || !name[0])
		snprintf(name, size, "an unknown hypervisor");
}

static void check_vm(const struct check *check, struct check_result *result)
{
	char name[40], product[84], vendor[40] = "", model[40] = "", *details;
	bool has_pt = !access(PT_PMU_PATH, F_OK);

	/*
	 * The vendor and the model from the firmware, "Amazon EC2 m5.large": they name the cloud,
	 * or the program that runs the virtual machine.
	 */
	check__read_line(DMI "sys_vendor", vendor, sizeof(vendor));
	check__read_line(DMI "product_name", model, sizeof(model));
	snprintf(product, sizeof(product), "%s%s%s", vendor, vendor[0] && model[0] ? " " : "",
		 model);
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
	details = strstr(product, " (");
	if (details)
		*details = '\0';
	check_result__set(result, has_pt ? CHECK_OK : CHECK_LIMITED, "%s%s%s: %s Intel PT", name,
			  product[0] ? ", " : "", product, has_pt ? "with" : "without");
	if (!has_pt)
		check_result__remedy(result, "run on bare metal");
}

/* ---- Intel PT: opening it, features of the CPU, freeze methods */

/* arch/x86/events/intel/pt.c: pt_caps[] */
static const char *const cap_names[] = {
	"psb_cyc",	 "mtc",		 "mtc_periods",		  "cycle_thresholds",
	"psb_periods",	 "topa_output",	 "topa_multiple_entries", "single_range_output",
	"output_subsys", "payloads_lip", "ip_filtering",	  "num_address_ranges",
	"cr3_filtering", "ptwrite",	 "power_event_trace",	  "event_trace",
	"tnt_disable",	 "max_subleaf",
};

static bool is_intel(void)
{
	unsigned int eax, ebx, ecx, edx;

	return __get_cpuid(0, &eax, &ebx, &ecx, &edx) && ebx == signature_INTEL_ebx &&
	       ecx == signature_INTEL_ecx && edx == signature_INTEL_edx;
}

static void check_intel_pt(const struct check *check, struct check_result *result)
{
	struct pt_pmu pmu;
	int err;

	if (pt_pmu__read(&pmu)) {
		check_result__set(result, CHECK_MISSING, "no PMU: %s",
				  vm__is_one() ? "a virtual machine"
				  : is_intel() ? "not in this CPU, kernel or BIOS setting"
					       : "the CPU is not Intel's");
		check_result__remedy(result, "-source sample");
		return;
	}
	check_result__add_number(result, "type", pmu.type);
	check_result__add_number(result, "max_nonturbo_ratio", pmu.max_nonturbo_ratio);
	check_result__add_number(result, "tsc_art_num", pmu.tsc_art_num);
	check_result__add_number(result, "tsc_art_den", pmu.tsc_art_den);
	err = pt_probe__open(&pmu, false);
	if (!err) {
		check_result__set(result, CHECK_OK, "the PMU is there, and can be opened");
		return;
	}
	set_missing(result, err, "cannot be opened", "run as root (CAP_PERFMON)");
	if (err == -EBUSY)
		check_result__remedy(result, "end the perf, mtbpf or debugger that uses it");
}

static uint32_t cap(const char *name)
{
	uint32_t value = 0;

	return pt_pmu__read_cap(name, &value) ? 0 : value;
}

/* "psb_cyc, mtc, topa, 2 address ranges": only features that matter to a recording. */
static void list_caps(char *list, size_t size)
{
	static const char *const listed[][2] = {
		{"psb_cyc", "psb_cyc"},
		{"mtc", "mtc"},
		{"topa_output", "topa"},
		{"topa_multiple_entries", "multiple entries"},
		{"ptwrite", "ptwrite"},
		{"event_trace", "event_trace"},
		{"power_event_trace", "power_event_trace"},
		{"ip_filtering", "ip_filtering"},
	};
	int n = 0;

	list[0] = '\0';
	for (size_t i = 0; i < sizeof(listed) / sizeof(listed[0]) && (size_t)n < size; i++)
		if (cap(listed[i][0]))
			n += snprintf(list + n, size - n, "%s%s", n ? ", " : "", listed[i][1]);
	if ((size_t)n < size)
		snprintf(list + n, size - n, "%s%u address ranges", n ? ", " : "",
			 cap("num_address_ranges"));
}

static void check_pt_caps(const struct check *check, struct check_result *result)
{
	char list[CHECK_TEXT_SIZE];
	struct pt_pmu pmu;

	if (pt_pmu__read(&pmu)) {
		check_result__set(result, CHECK_MISSING, "no intel_pt");
		return;
	}
	for (size_t i = 0; i < sizeof(cap_names) / sizeof(cap_names[0]); i++) {
		uint32_t value;

		if (!pt_pmu__read_cap(cap_names[i], &value))
			check_result__add_number(result, cap_names[i], value);
	}
	list_caps(list, sizeof(list));
	if (!cap("psb_cyc"))
		check_result__set(result, CHECK_LIMITED, "no cycle counts, times to 1 us only: %s",
				  list);
	else if (!cap("topa_multiple_entries"))
		check_result__set(result, CHECK_LIMITED, "snapshots of 4 MiB at most: %s", list);
	else
		check_result__set(result, CHECK_OK, "%s", list);
}

static void check_freeze(const struct check *check, struct check_result *result)
{
	enum pt_freeze freeze = (enum pt_freeze)check->which;
	struct pt_pmu pmu;
	int err;

	if (pt_pmu__read(&pmu)) {
		check_result__set(result, CHECK_MISSING, "not tried: no intel_pt");
		return;
	}
	err = pt_probe__freeze(&pmu, freeze);
	if (!err)
		check_result__set(result, CHECK_OK, "tried: %s", pt_freeze__name(freeze));
	else if (err == -EINVAL || err == -EOPNOTSUPP || err == -E2BIG)
		check_result__set(result, CHECK_MISSING, "not on this kernel: %s",
				  check__strerror(err));
	else if (err == -ENODATA)
		check_result__set(result, CHECK_MISSING, "tried: %s",
				  freeze == PT_FREEZE_DISABLE ? "the trace is empty"
							      : "the trace went on after the hit");
	else
		set_missing(result, err, "cannot be tried", "run as root");
	if (freeze == PT_FREEZE_PAUSE && err == -EINVAL)
		check_result__remedy(result, "Linux 6.13 or later has it, and Debian's 6.12");
}

/* ---- samples, and what the CPU adds to them */

static void check_sample(const struct check *check, struct check_result *result)
{
	uint64_t period_ns = sample_rate__period(SAMPLE_RATE_HIGHEST);
	int err = source_sample.probe();

	if (!err) {
		check_result__add_number(result, "max_rate", (int64_t)(1000000000 / period_ns));
		check_result__set(result, CHECK_OK, "tried: stacks by a timer, up to %u per second",
				  (unsigned int)(1000000000 / period_ns));
		return;
	}
	set_missing(result, err, "stacks cannot be sampled", "run as root (CAP_PERFMON)");
}

static const struct {
	const char *there, *instead;
} counted[] = {
	[COUNTING_CYCLES] = {"the hardware counts cycles", "samples use the kernel's clock"},
	[COUNTING_BRANCHES] = {"the CPU records the last branches",
			       "hits are shown without the branches before them"},
	[COUNTING_CALLS] = {"the CPU records calls: -unwind lbr",
			    "callers by frame pointers or copied stacks"},
};

/* Optional: most virtual machines lack these counters. */
static void check_counting(const struct check *check, struct check_result *result)
{
	int err = counting__try((enum counting)check->which);

	if (!err)
		check_result__set(result, CHECK_OK, "tried: %s", counted[check->which].there);
	else
		check_result__set(result, CHECK_MISSING, "not here (%s): %s", check__strerror(err),
				  counted[check->which].instead);
	if (is_refusal(err))
		check_result__remedy(result, "run as root");
}

/* Without the right to load programs, libbpf reports every helper as available. */
static void check_branch_snapshot(const struct check *check, struct check_result *result)
{
	if (!capability__has(CAP_BPF) && !capability__has(CAP_SYS_ADMIN)) {
		check_result__set(result, CHECK_MISSING, "not tried: no CAP_BPF");
		check_result__remedy(result, "run as root");
	} else if (trigger__has_branch_snapshot())
		check_result__set(result, CHECK_OK, "BPF programs may take the last branches");
	else {
		check_result__set(result, CHECK_MISSING, "no bpf_get_branch_snapshot() here");
		check_result__remedy(result, "Linux 5.16 or later");
	}
}

/* ---- the trigger: BPF programs, uprobes, and tracefs for uprobes of several threads */

/* Loads the programs, because version numbers say little. */
static void check_bpf(const struct check *check, struct check_result *result)
{
	struct trigger_config config = {.tgid = getpid(), .count_only = true};
	struct trigger *trigger = trigger__new(&config);
	int err = -errno;

	if (trigger) {
		check_result__add_text(result, "latch", trigger__latch_name(trigger));
		check_result__set(result, CHECK_OK, "the programs load; hit times are kept in %s",
				  trigger__latch_name(trigger));
		trigger__free(trigger);
		return;
	}
	set_missing(result, err, "the programs do not load", "run as root (CAP_BPF, CAP_PERFMON)");
	if (!is_refusal(err))
		check_result__remedy(result, "Linux 6.1 or later");
}

static void check_uprobe(const struct check *check, struct check_result *result)
{
	int err;

	if (access("/sys/bus/event_source/devices/uprobe/type", R_OK)) {
		check_result__set(result, CHECK_MISSING, "no uprobe PMU");
		check_result__remedy(result, "a kernel with CONFIG_UPROBE_EVENTS");
		return;
	}
	err = own_probe__try();
	if (!err)
		check_result__set(result, CHECK_OK, "tried: a probe of our own is hit");
	else if (err == -ENODATA)
		check_result__set(result, CHECK_MISSING,
				  "tried: a probe can be set, but is not hit");
	else
		set_missing(result, err, "no probe can be set", "run as root (CAP_SYS_ADMIN)");
}

static void check_tracefs(const struct check *check, struct check_result *result)
{
	const char *place;
	int err = tracefs_probe__try(&place);

	if (err) {
		check_result__set(result, CHECK_LIMITED, "Intel PT can record only one thread: %s",
				  check__strerror(err));
		check_result__remedy(result, is_refusal(err)
						     ? "run as root"
						     : "a kernel with CONFIG_UPROBE_EVENTS");
		return;
	}
	if (place)
		check_result__add_text(result, "place", place);
	check_result__set(result, CHECK_OK, "%s",
			  place ? place : "not mounted, but mtbpf can mount it for itself");
}

/* ---- rights: capabilities, settings of perf and ptrace, locked memory */

static void check_capability(const struct check *check, struct check_result *result)
{
	/* The kernel accepts CAP_SYS_ADMIN instead of these (include/linux/capability.h). */
	bool part = (check->which == CAP_BPF || check->which == CAP_PERFMON ||
		     check->which == CAP_CHECKPOINT_RESTORE) &&
		    capability__has(CAP_SYS_ADMIN);

	check_result__add_number(result, "number", check->which);
	check_result__add_number(result, "effective", capability__effective(check->which));
	if (capability__has(check->which)) {
		check_result__set(result, CHECK_OK, "for %s", check->purpose);
	} else if (part) {
		check_result__set(result, CHECK_OK, "for %s: CAP_SYS_ADMIN is enough",
				  check->purpose);
	} else if (capability__effective(check->which)) {
		check_result__set(result, CHECK_MISSING, "for %s", check->purpose);
		check_result__remedy(result, "leave the user namespace");
	} else {
		check_result__set(result, CHECK_MISSING, "for %s", check->purpose);
		check_result__remedy(result, geteuid() ? "run as root" : "have it granted");
	}
}

/*
 * Judges events of user code alone, on a task (include/linux/perf_event.h: perf_allow_*()). Debian
 * has values above 2: every event then needs CAP_SYS_ADMIN.
 */
enum check_state perf__judge(long paranoid, bool perfmon, bool admin)
{
	if (admin || (perfmon && paranoid <= 2))
		return CHECK_OK;
	return paranoid <= 2 ? CHECK_LIMITED : CHECK_MISSING;
}

static void check_perf(const struct check *check, struct check_result *result)
{
	char text[32];
	long paranoid;

	if (check__read_line("/proc/sys/kernel/perf_event_paranoid", text, sizeof(text))) {
		check_result__set(result, CHECK_MISSING, "no perf events in this kernel");
		return;
	}
	paranoid = fs__read_number("/proc/sys/kernel/perf_event_paranoid", 2);
	check_result__add_number(result, "perf_event_paranoid", paranoid);
	switch (perf__judge(paranoid, capability__has(CAP_PERFMON),
			    capability__has(CAP_SYS_ADMIN))) {
	case CHECK_OK:
		check_result__set(result, CHECK_OK,
				  "perf_event_paranoid is %ld, but does not apply to you",
				  paranoid);
		break;
	case CHECK_LIMITED:
		check_result__set(result, CHECK_LIMITED,
				  "perf_event_paranoid is %ld: own processes only", paranoid);
		check_result__remedy(result, "CAP_PERFMON");
		break;
	default:
		check_result__set(result, CHECK_MISSING,
				  "perf_event_paranoid is %ld: for CAP_SYS_ADMIN only", paranoid);
		check_result__remedy(result, "run as root");
	}
}

/* security/yama/yama_lsm.c: 1 descendants only, 2 only with the capability, 3 never. */
enum check_state ptrace__judge(long scope, bool capable)
{
	if (scope >= 3)
		return CHECK_MISSING;
	if (capable)
		return CHECK_OK;
	return scope == 2 ? CHECK_MISSING : CHECK_LIMITED;
}

static void check_ptrace(const struct check *check, struct check_result *result)
{
	long scope = fs__read_number("/proc/sys/kernel/yama/ptrace_scope", 0);
	enum check_state state = ptrace__judge(scope, capability__has(CAP_SYS_PTRACE));

	check_result__add_number(result, "ptrace_scope", scope);
	if (state == CHECK_OK)
		check_result__set(result, state, "any process can be looked at");
	else if (scope >= 3)
		check_result__set(result, state,
				  "yama's ptrace_scope 3 forbids ptrace for everybody");
	else if (scope == 2)
		check_result__set(result, state, "yama's ptrace_scope 2 wants CAP_SYS_PTRACE");
	else
		check_result__set(result, state, "%s only",
				  scope ? "what mtbpf starts itself (yama's ptrace_scope 1)"
					: "processes of this user");
	if (scope >= 3)
		check_result__remedy(result, "reboot with kernel.yama.ptrace_scope below 3");
	else if (state != CHECK_OK)
		check_result__remedy(result, "run as root");
}

static void check_memlock(const struct check *check, struct check_result *result)
{
	struct memlock_limits limits;
	char size[UNITS_TEXT_SIZE];
	uint64_t fits, threads;

	memlock__read(&limits);
	fits = memlock__fits(&limits);
	check_result__add_number(result, "perf_event_mlock_kb", (int64_t)limits.mlock_kb);
	if (limits.rlimit == UINT64_MAX)
		check_result__add_text(result, "rlimit_memlock", "unlimited");
	else
		check_result__add_number(result, "rlimit_memlock", (int64_t)limits.rlimit);
	if (fits == UINT64_MAX) {
		check_result__set(result, CHECK_OK, "any size can be locked%s",
				  limits.ipc_lock ? ": CAP_IPC_LOCK lifts the limit" : "");
		return;
	}
	threads = fits / pt_ring__locked_size(SNAPSHOT_SIZE_DEFAULT, false);
	units__format_size(size, fits);
	check_result__add_number(result, "fits", (int64_t)fits);
	check_result__add_number(result, "threads", (int64_t)threads);
	check_result__set(result, threads ? CHECK_LIMITED : CHECK_MISSING,
			  "%s can be locked: %llu ring%s of %s", size, (unsigned long long)threads,
			  threads == 1 ? "" : "s", BYTES(SNAPSHOT_SIZE_DEFAULT));
	check_result__remedy(result, "CAP_IPC_LOCK, ulimit -l%s",
			     threads ? "" : ", or a smaller -snapshot-size");
}

static bool is_on_path(const char *program)
{
	const char *dir = getenv("PATH");

	while (dir && *dir) {
		size_t len = strcspn(dir, ":");
		char path[512];

		snprintf(path, sizeof(path), "%.*s/%s", (int)len, dir, program);
		if (len && !access(path, X_OK))
			return true;
		dir += len + (dir[len] == ':');
	}
	return false;
}

static void check_fzf(const struct check *check, struct check_result *result)
{
	if (is_on_path("fzf")) {
		check_result__set(result, CHECK_OK,
				  "'mtbpf list -pid PID | fzf' lets you pick a function");
		return;
	}
	check_result__set(result, CHECK_LIMITED, "missing: with fzf, -symbol '?' is a search");
	check_result__remedy(result, "install fzf");
}

#define CAPABILITY(cap, what)                                                                      \
	{                                                                                          \
		.name = #cap, .run = check_capability, .which = cap, .purpose = what               \
	}

static const struct check checks[] = {
	{.name = "kernel", .run = check_kernel},
	{.name = "btf", .run = check_btf},
	{.name = "lockdown", .run = check_lockdown},
	{.name = "vm", .run = check_vm},
	{.name = "intel_pt", .run = check_intel_pt, .needed = true},
	{.name = "pt_caps", .run = check_pt_caps},
	{.name = "freeze_pause", .run = check_freeze, .which = PT_FREEZE_PAUSE},
	{.name = "freeze_refresh", .run = check_freeze, .which = PT_FREEZE_REFRESH},
	{.name = "freeze_disable", .run = check_freeze, .needed = true, .which = PT_FREEZE_DISABLE},
	{.name = "sample", .run = check_sample},
	{.name = "cycles", .run = check_counting, .which = COUNTING_CYCLES},
	{.name = "lbr", .run = check_counting, .which = COUNTING_BRANCHES},
	{.name = "lbr_stacks", .run = check_counting, .which = COUNTING_CALLS},
	{.name = "branch_snapshot", .run = check_branch_snapshot},
	{.name = "kernel_code", .run = check_kernel_code},
	{.name = "bpf", .run = check_bpf, .needed = true},
	{.name = "uprobe", .run = check_uprobe, .needed = true},
	{.name = "tracefs", .run = check_tracefs},
	{.name = "perf", .run = check_perf},
	{.name = "ptrace", .run = check_ptrace},
	{.name = "memlock", .run = check_memlock, .needed = true},
	CAPABILITY(CAP_SYS_ADMIN, "uprobes with Intel PT, or before Linux 6.11"),
	CAPABILITY(CAP_BPF, "BPF programs"),
	CAPABILITY(CAP_PERFMON, "Intel PT of other users' processes"),
	CAPABILITY(CAP_SYS_PTRACE, "other users' processes"),
	CAPABILITY(CAP_DAC_READ_SEARCH, "symbols from files that only others can read"),
	CAPABILITY(CAP_CHECKPOINT_RESTORE, "symbols of deleted and replaced files"),
	CAPABILITY(CAP_SYSLOG, "addresses in /proc/kallsyms"),
	CAPABILITY(CAP_IPC_LOCK, "larger traces than 'memlock' allows"),
	CAPABILITY(CAP_SYS_RESOURCE, "raising hard limits (open files)"),
	{.name = "fzf", .run = check_fzf},
};

_Static_assert(sizeof(checks) / sizeof(checks[0]) < CHECK_MAX_RESULTS, "room for all and attach");

static void add_word(char *list, size_t size, const char *word)
{
	size_t len = strlen(list);

	snprintf(list + len, size - len, "%s%s", len ? ", " : "", word);
}

/* Adds the result `attach`, which follows from the others. */
static void sum_up(struct check_report *report)
{
	struct check_result *sum = &report->results[report->n];
	char missing[CHECK_TEXT_SIZE] = "", by_samples[CHECK_TEXT_SIZE] = "";

	sum->name = "attach";
	for (size_t i = 0; i < report->n; i++) {
		const struct check_result *r = &report->results[i];

		if (r->state != CHECK_MISSING)
			continue;
		if (r->needed)
			add_word(missing, sizeof(missing), r->name);
		if (!strcmp(r->name, "sample") || !strcmp(r->name, "bpf") ||
		    !strcmp(r->name, "uprobe"))
			add_word(by_samples, sizeof(by_samples), r->name);
	}
	if (missing[0] && !by_samples[0])
		check_result__set(sum, CHECK_LIMITED,
				  "works with samples; missing for Intel PT: %s", missing);
	else if (missing[0])
		check_result__set(sum, CHECK_MISSING, "does not work: missing even for samples: %s",
				  by_samples);
	else
		check_result__set(sum, CHECK_OK, "works with Intel PT");
	report->n++;
}

static void run(const struct check *check, struct check_result *result)
{
	enum log_level level = log__level();

	*result = (struct check_result){.name = check->name, .needed = check->needed};
	log__set_level(LOG_SILENT);
	check->run(check, result);
	log__set_level(level);
}

bool check__one(const char *name, struct check_result *result)
{
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		if (!strcmp(checks[i].name, name)) {
			run(&checks[i], result);
			return true;
		}
	}
	return false;
}

struct check_report *check_report__new(void)
{
	struct check_report *report = calloc(1, sizeof(*report));

	if (!report)
		return NULL;
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		run(&checks[i], &report->results[report->n++]);
	sum_up(report);
	return report;
}

/* ---- the report */

void check_report__free(struct check_report *report)
{
	free(report);
}

bool check_report__good(const struct check_report *report)
{
	return !FIND_IN(report->results, report->n, result,
			result->needed && result->state == CHECK_MISSING);
}

static const char *const state_names[] = {
	[CHECK_OK] = "ok", [CHECK_LIMITED] = "limited", [CHECK_MISSING] = "missing"};

void check_report__print(const struct check_report *report, FILE *out)
{
	int width = 0;

	for (size_t i = 0; i < report->n; i++)
		if ((int)strlen(report->results[i].name) > width)
			width = (int)strlen(report->results[i].name);
	for (size_t i = 0; i < report->n; i++) {
		const struct check_result *r = &report->results[i];

		fprintf(out, "%-*s  %-7s  %s%s%s\n", width, r->name, state_names[r->state],
			r->reason, r->remedy[0] ? "; " : "", r->remedy);
	}
}

static void add_result(cJSON *array, const struct check_result *result)
{
	cJSON *object = json__append_object(array), *facts;

	cJSON_AddStringToObject(object, "name", result->name);
	cJSON_AddStringToObject(object, "state", state_names[result->state]);
	cJSON_AddStringToObject(object, "reason", result->reason);
	json__add_text_or_null(object, "remedy", result->remedy[0] ? result->remedy : NULL);
	cJSON_AddBoolToObject(object, "needed", result->needed);
	facts = cJSON_AddObjectToObject(object, "facts");
	for (size_t i = 0; i < result->n_facts; i++) {
		const struct check_fact *fact = &result->facts[i];

		if (fact->text[0])
			cJSON_AddStringToObject(facts, fact->name, fact->text);
		else
			cJSON_AddNumberToObject(facts, fact->name, (double)fact->number);
	}
}

char *check_report__json(const struct check_report *report)
{
	cJSON *array = cJSON_CreateArray();

	for (size_t i = 0; i < report->n; i++)
		add_result(array, &report->results[i]);
	return json__finish(array);
}
