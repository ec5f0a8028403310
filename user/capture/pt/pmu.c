// SPDX-License-Identifier: MIT
#include "capture/pt/pmu.h"

#include <cpuid.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/log.h"

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

int pt_pmu__read_cap(const char *name, uint32_t *value)
{
	_cleanup_fclose_ FILE *f = open_attribute("caps/", name);

	return f && fscanf(f, "%x", value) == 1 ? 0 : -ENOENT;
}

int pt_pmu__read(struct pt_pmu *pmu)
{
	_cleanup_fclose_ FILE *type = open_attribute("", "type");
	_cleanup_fclose_ FILE *nonturbo = NULL;
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
	pmu->event = read_field("event");
	pt_pmu__read_cap("ptwrite", &pmu->cap_ptwrite);
	pt_pmu__read_cap("power_event_trace", &pmu->cap_power_events);
	pt_pmu__read_cap("event_trace", &pmu->cap_event_trace);
	pt_pmu__read_cap("mtc", &pmu->cap_mtc);
	pt_pmu__read_cap("psb_cyc", &pmu->cap_psb_cyc);
	pt_pmu__read_cap("mtc_periods", &pmu->cap_mtc_periods);
	pt_pmu__read_cap("cycle_thresholds", &pmu->cap_cycle_thresholds);
	pt_pmu__read_cap("psb_periods", &pmu->cap_psb_periods);
	nonturbo = open_attribute("", "max_nonturbo_ratio");
	if (nonturbo && fscanf(nonturbo, "%u", &pmu->max_nonturbo_ratio) != 1)
		pmu->max_nonturbo_ratio = 0;
	ratio = open_attribute("", "tsc_art_ratio");
	if (ratio && fscanf(ratio, "%u:%u", &pmu->tsc_art_num, &pmu->tsc_art_den) != 2)
		pmu->tsc_art_num = pmu->tsc_art_den = 0;
	return 0;
}

/* Reads CPUID 1, by which libipt selects the errata (pt_cpu_errata()). */
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

#define CUSTOM "custom:"

static const struct {
	const char *name;
	struct pt_timing timing;
} levels[] = {
	/* perf's own default period for MTC. */
	{"low", {.mtc = true, .mtc_period = 3}},
	{"normal", PT_TIMING_NORMAL},
	{"high", {.cyc = true, .mtc = true, .cyc_thresh = 1, .noretcomp = true}},
};

static int bad_term(const char *term)
{
	log__error("-timer-resolution: '%s' is not a valid setting of Intel PT", term);
	log__hint("cyc, cyc_thresh=N, mtc, mtc_period=N, psb_period=N, noretcomp, ptw, "
		  "fup_on_ptw, pwr_evt, event: as in "
		  "-timer-resolution " CUSTOM "cyc,cyc_thresh=1,mtc,mtc_period=3");
	return -EINVAL;
}

static int set_term(struct pt_timing *t, const char *name, unsigned int value)
{
	const struct {
		const char *name;
		bool *flag;
		unsigned int *number;
	} terms[] = {
		{"cyc", &t->cyc, NULL},
		{"mtc", &t->mtc, NULL},
		{"noretcomp", &t->noretcomp, NULL},
		{"ptw", &t->ptw, NULL},
		{"fup_on_ptw", &t->fup_on_ptw, NULL},
		{"pwr_evt", &t->pwr_evt, NULL},
		{"event", &t->event, NULL},
		{"cyc_thresh", NULL, &t->cyc_thresh},
		{"mtc_period", NULL, &t->mtc_period},
		{"psb_period", NULL, &t->psb_period},
	};

	for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++) {
		if (strcmp(terms[i].name, name))
			continue;
		if (value > (terms[i].flag ? 1 : 15))
			return -ERANGE;
		if (terms[i].flag)
			*terms[i].flag = value;
		else
			*terms[i].number = value;
		return 0;
	}
	return -ENOENT;
}

static int parse_term(struct pt_timing *timing, char *term)
{
	_cleanup_free_ char *whole = strdup(term);
	char *number = strchr(term, '=');
	unsigned long value = 1;
	char *end = "";

	if (!whole)
		return -ENOMEM;
	if (number) {
		*number++ = '\0';
		value = strtoul(number, &end, 0);
		if (*number < '0' || *number > '9')
			return bad_term(whole);
	}
	if (*end || value > 15 || set_term(timing, term, (unsigned int)value))
		return bad_term(whole);
	return 0;
}

int pt_timing__parse(const char *text, struct pt_timing *timing)
{
	bool is_custom = !strncmp(text, CUSTOM, strlen(CUSTOM));
	_cleanup_free_ char *copy = is_custom ? strdup(text + strlen(CUSTOM)) : NULL;
	char *rest = copy, *term;
	int err = 0;

	if (is_custom) {
		*timing = (struct pt_timing){.exact = true};
		if (!copy)
			return -ENOMEM;
		while (!err && (term = strsep(&rest, ",")))
			err = parse_term(timing, term);
		return err;
	}
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (strcmp(levels[i].name, text))
			continue;
		*timing = levels[i].timing;
		return 0;
	}
	log__error("unknown -timer-resolution '%s'", text);
	log__hint("low, normal, high, or " CUSTOM "TERMS, as " CUSTOM
		  "cyc,cyc_thresh=1,mtc,mtc_period=3");
	return -EINVAL;
}

/* The legal value nearest to the wanted one, the lower of two; 0 without legal values. */
static unsigned int nearest_legal(uint32_t legal, unsigned int wanted)
{
	for (unsigned int d = 0; d < 32; d++) {
		if (d <= wanted && legal >> (wanted - d) & 1)
			return wanted - d;
		if (wanted + d < 32 && legal >> (wanted + d) & 1)
			return wanted + d;
	}
	return 0;
}

/* Bit n of `legal`: value n is possible. */
static int check_legal(const char *name, uint32_t legal, unsigned int value)
{
	char list[16 * 3 + 1] = "";
	size_t n = 0;

	if (legal >> value & 1)
		return 0;
	for (unsigned int i = 0; i < 16; i++)
		if (legal >> i & 1)
			n += (size_t)snprintf(list + n, sizeof(list) - n, " %u", i);
	log__error("-timer-resolution: this CPU's Intel PT does not support %s=%u", name, value);
	log__hint("supported:%s", n ? list : " none at all");
	return -EINVAL;
}

static int check_exact(const struct pt_timing *t, const struct pt_pmu *pmu)
{
	const struct {
		const char *name;
		bool is_wanted, is_supported;
	} flags[] = {
		{"cyc", t->cyc, pmu->cap_psb_cyc && pmu->cyc.width},
		{"mtc", t->mtc, pmu->cap_mtc && pmu->mtc.width},
		{"noretcomp", t->noretcomp, pmu->noretcomp.width},
		{"ptw", t->ptw, pmu->cap_ptwrite && pmu->ptw.width},
		{"fup_on_ptw, which needs ptw", t->fup_on_ptw, t->ptw && pmu->fup_on_ptw.width},
		{"pwr_evt", t->pwr_evt, pmu->cap_power_events && pmu->pwr_evt.width},
		{"event", t->event, pmu->cap_event_trace && pmu->event.width},
	};
	int err;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (!flags[i].is_wanted || flags[i].is_supported)
			continue;
		log__error("-timer-resolution: this CPU's Intel PT does not support '%s'",
			   flags[i].name);
		log__hint("use low, normal or high, which adapt to the CPU");
		return -EINVAL;
	}
	/*
	 * pt_event_valid() accepts 0 for cyc_thresh and psb_period even if the mask lacks bit 0,
	 * but not for mtc_period.
	 */
	err = check_legal("cyc_thresh", pmu->cap_cycle_thresholds | 1, t->cyc_thresh);
	if (!err && (t->mtc || t->mtc_period))
		err = check_legal("mtc_period", pmu->cap_mtc_periods, t->mtc_period);
	if (!err)
		err = check_legal("psb_period", pmu->cap_psb_periods | 1, t->psb_period);
	return err;
}

static uint64_t put(struct pt_field field, uint64_t value)
{
	return field.width && !(value >> field.width) ? value << field.shift : 0;
}

static void fit(struct pt_timing *t, const struct pt_pmu *pmu)
{
	bool pwr_evt = t->pwr_evt;

	if (t->cyc && !(pmu->cap_psb_cyc && pmu->cyc.width)) {
		log__warn(pmu->cap_mtc ? "this CPU lacks cycle packets: times are only exact to "
					 "about 1 us"
				       : "this CPU lacks cycle packets and MTC packets: times are "
					 "known only at the sync points, some KiB of trace apart");
		*t = levels[0].timing;
		t->pwr_evt = pwr_evt;
	}
	t->mtc = t->mtc && pmu->cap_mtc;
	/* PTWRITE packets cost nothing in programs that do not use the instruction. */
	t->ptw = t->fup_on_ptw = pmu->cap_ptwrite && pmu->ptw.width;
	/* Event Trace costs a few bytes per interrupt. */
	t->event = pmu->cap_event_trace && pmu->event.width;
	t->mtc_period = nearest_legal(pmu->cap_mtc_periods, t->mtc_period);
	t->cyc_thresh = nearest_legal(pmu->cap_cycle_thresholds, t->cyc_thresh);
	/* PSBs as often as possible: a wrapped buffer loses everything before its first PSB. */
	t->psb_period = nearest_legal(pmu->cap_psb_periods, t->psb_period);
}

int pt_timing__config(const struct pt_timing *timing, const struct pt_pmu *pmu, uint64_t *config)
{
	struct pt_timing t = *timing;
	int err = 0;

	if (t.exact) {
		err = check_exact(&t, pmu);
	} else if (t.pwr_evt && !(pmu->cap_power_events && pmu->pwr_evt.width)) {
		log__error("-trace-power: this CPU's Intel PT does not record power events");
		log__hint("leave out -trace-power: the counter \"CPU MHz\" shows how fast any CPU "
			  "runs");
		err = -EINVAL;
	} else {
		fit(&t, pmu);
	}
	*config = put(pmu->tsc, 1) | put(pmu->noretcomp, t.noretcomp) | put(pmu->ptw, t.ptw) |
		  put(pmu->fup_on_ptw, t.fup_on_ptw) | put(pmu->pwr_evt, t.pwr_evt) |
		  put(pmu->event, t.event);
	/*
	 * Bit 0 (pt) makes the kernel obey `branch`, which is otherwise always on
	 * (arch/x86/events/intel/pt.c: pt_config()): sets both or neither.
	 */
	if (pmu->pt.width && pmu->branch.width)
		*config |= put(pmu->pt, 1) | put(pmu->branch, 1);
	if (t.mtc)
		*config |= put(pmu->mtc, 1) | put(pmu->mtc_period, t.mtc_period);
	if (t.cyc)
		*config |= put(pmu->cyc, 1) | put(pmu->cyc_thresh, t.cyc_thresh);
	if (pmu->cap_psb_cyc)
		*config |= put(pmu->psb_period, t.psb_period);
	return err;
}
