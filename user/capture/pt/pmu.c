// SPDX-License-Identifier: MIT
#include "capture/pt/pmu.h"

#include <cpuid.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"

static FILE *open_attribute(const char *folder, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), PT_PMU_PATH "/%s%s", folder, name);
	return fopen(path, "re");
}

static struct pt_field read_field(const char *name)
{
	_cleanup_fclose_ FILE *f = open_attribute("format/", name);
	unsigned int low, high;
	int n = f ? fscanf(f, "config:%u-%u", &low, &high) : 0;

	if (n < 1 || low > 63)
		return (struct pt_field){0};
	if (n == 1)
		high = low;
	if (high < low || high > 63)
		return (struct pt_field){0};
	return (struct pt_field){(uint8_t)low, (uint8_t)(high - low + 1)};
}

static uint32_t read_number(const char *folder, const char *name, const char *format)
{
	_cleanup_fclose_ FILE *f = open_attribute(folder, name);
	unsigned int value;

	return f && fscanf(f, format, &value) == 1 ? value : 0;
}

int pt_pmu__read_cap(const char *name, uint32_t *value)
{
	_cleanup_fclose_ FILE *f = open_attribute("caps/", name);

	return f && fscanf(f, "%x", value) == 1 ? 0 : -ENOENT;
}

int pt_pmu__read(struct pt_pmu *pmu)
{
	_cleanup_fclose_ FILE *type = open_attribute("", "type");
	_cleanup_fclose_ FILE *ratio = NULL;

	*pmu = (struct pt_pmu){0};
	if (!type)
		return -errno;
	if (fscanf(type, "%u", &pmu->type) != 1)
		return -EINVAL;
	pmu->pt = read_field("pt");
	pmu->cyc = read_field("cyc");
	pmu->mtc = read_field("mtc");
	pmu->tsc = read_field("tsc");
	pmu->noretcomp = read_field("noretcomp");
	pmu->branch = read_field("branch");
	pmu->mtc_period = read_field("mtc_period");
	pmu->cyc_thresh = read_field("cyc_thresh");
	pmu->psb_period = read_field("psb_period");
	pmu->ptw = read_field("ptw");
	pmu->fup_on_ptw = read_field("fup_on_ptw");
	pmu->pwr_evt = read_field("pwr_evt");
	pmu->cap_ptwrite = read_number("caps/", "ptwrite", "%x");
	pmu->cap_power_events = read_number("caps/", "power_event_trace", "%x");
	pmu->cap_mtc = read_number("caps/", "mtc", "%x");
	pmu->cap_psb_cyc = read_number("caps/", "psb_cyc", "%x");
	pmu->cap_mtc_periods = read_number("caps/", "mtc_periods", "%x");
	pmu->cap_cycle_thresholds = read_number("caps/", "cycle_thresholds", "%x");
	pmu->cap_psb_periods = read_number("caps/", "psb_periods", "%x");
	pmu->max_nonturbo_ratio = read_number("", "max_nonturbo_ratio", "%u");
	ratio = open_attribute("", "tsc_art_ratio");
	if (ratio && fscanf(ratio, "%u:%u", &pmu->tsc_art_num, &pmu->tsc_art_den) != 2)
		pmu->tsc_art_num = pmu->tsc_art_den = 0;
	return 0;
}

/* CPUID 1: the errata go by it (libipt's pt_cpu_errata()). */
static void describe_cpu(struct rec_pt_config *out)
{
	unsigned int eax, ebx, ecx, edx, vendor;

	if (!__get_cpuid(0, &eax, &vendor, &ecx, &edx) || vendor != 0x756e6547 /* "Genu" */)
		return;
	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx))
		return;
	out->cpu_family = eax >> 8 & 0xf;
	out->cpu_model = eax >> 4 & 0xf;
	out->cpu_stepping = eax & 0xf;
	if (out->cpu_family == 0xf)
		out->cpu_family += eax >> 20 & 0xff;
	if (out->cpu_family == 6 || out->cpu_family >= 0xf)
		out->cpu_model += (eax >> 16 & 0xf) << 4;
}

void pt_pmu__describe(const struct pt_pmu *pmu, uint64_t config, struct rec_pt_config *out)
{
	uint64_t mtc_mask = (1ull << pmu->mtc_period.width) - 1;

	*out = (struct rec_pt_config){
		.config = config,
		.nom_freq = pmu->max_nonturbo_ratio,
		.tsc_ctc_num = pmu->tsc_art_num,
		.tsc_ctc_den = pmu->tsc_art_den,
		.mtc_freq = (uint32_t)(config >> pmu->mtc_period.shift & mtc_mask),
	};
	describe_cpu(out);
}
