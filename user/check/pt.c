// SPDX-License-Identifier: MIT
/* Intel PT: whether it can be opened, what the CPU offers, and how a hit freezes it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "capture/pt/pt_ring.h"
#include "check/subjects.h"

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
	char line[64] = "";
	FILE *cpuinfo = fopen("/proc/cpuinfo", "re");
	bool intel = false;

	while (cpuinfo && !intel && fgets(line, sizeof(line), cpuinfo))
		intel = strstr(line, "GenuineIntel");
	if (cpuinfo)
		fclose(cpuinfo);
	return intel;
}

static void explain_no_pmu(struct check_result *result)
{
	check_result__set(result, CHECK_MISSING, "no PMU: %s",
			  vm__is_one() ? "a virtual machine"
			  : is_intel() ? "not in this CPU, kernel or BIOS setting"
				       : "the CPU is not Intel's");
	check_result__remedy(result, "-source sample");
}

static void explain_open(struct check_result *result, int err)
{
	check_result__set(result, CHECK_MISSING, "cannot be opened: %s", check__strerror(err));
	if (err == -EACCES || err == -EPERM)
		check_result__remedy(result, "run as root (CAP_PERFMON)");
	else if (err == -EBUSY)
		check_result__remedy(result, "end the perf, mtbpf or debugger that uses it");
}

void check_intel_pt(const struct check *check, struct check_result *result)
{
	struct pt_pmu pmu;
	int err;

	if (pt_pmu__read(&pmu)) {
		explain_no_pmu(result);
		return;
	}
	check_result__add_number(result, "type", pmu.type);
	check_result__add_number(result, "max_nonturbo_ratio", pmu.max_nonturbo_ratio);
	check_result__add_number(result, "tsc_art_num", pmu.tsc_art_num);
	check_result__add_number(result, "tsc_art_den", pmu.tsc_art_den);
	err = pt_probe__open(&pmu, false);
	if (err)
		explain_open(result, err);
	else
		check_result__set(result, CHECK_OK, "the PMU is there, and can be opened");
}

static uint32_t cap(const char *name)
{
	uint32_t value = 0;

	return pt_pmu__read_cap(name, &value) ? 0 : value;
}

/* "psb_cyc, mtc, topa, ip_filtering (2 ranges)": those that matter to what is recorded. */
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

void check_pt_caps(const struct check *check, struct check_result *result)
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

static void explain_freeze(enum pt_freeze freeze, struct check_result *result, int err)
{
	if (err == -EINVAL || err == -EOPNOTSUPP || err == -E2BIG)
		check_result__set(result, CHECK_MISSING, "not on this kernel: %s",
				  check__strerror(err));
	else if (err == -ENODATA)
		check_result__set(result, CHECK_MISSING, "tried: %s",
				  freeze == PT_FREEZE_DISABLE ? "the trace is empty"
							      : "the trace went on after the hit");
	else
		check_result__set(result, CHECK_MISSING, "cannot be tried: %s",
				  check__strerror(err));
	if (err == -EACCES || err == -EPERM)
		check_result__remedy(result, "run as root");
	else if (freeze == PT_FREEZE_PAUSE && err == -EINVAL)
		check_result__remedy(result, "Linux 6.13 or later has it");
}

void check_freeze(const struct check *check, struct check_result *result)
{
	enum pt_freeze freeze = (enum pt_freeze)check->which;
	struct pt_pmu pmu;
	int err;

	if (pt_pmu__read(&pmu)) {
		check_result__set(result, CHECK_MISSING, "not tried: no intel_pt");
		return;
	}
	err = pt_probe__freeze(&pmu, freeze);
	if (err)
		explain_freeze(freeze, result, err);
	else
		check_result__set(result, CHECK_OK, "tried: %s", pt_freeze__name(freeze));
}
