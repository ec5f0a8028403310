// SPDX-License-Identifier: GPL-2.0-only
/* What /sys/bus/event_source/devices/intel_pt/ shows, with the real driver's names and forms. */
#include "softpt.h"

#include <linux/sysfs.h>
#include <asm/tsc.h>

#define BUS_KHZ	    100000
#define CRYSTAL_KHZ 6000

PMU_FORMAT_ATTR(pt, "config:0");
PMU_FORMAT_ATTR(cyc, "config:1");
PMU_FORMAT_ATTR(pwr_evt, "config:4");
PMU_FORMAT_ATTR(fup_on_ptw, "config:5");
PMU_FORMAT_ATTR(mtc, "config:9");
PMU_FORMAT_ATTR(tsc, "config:10");
PMU_FORMAT_ATTR(noretcomp, "config:11");
PMU_FORMAT_ATTR(ptw, "config:12");
PMU_FORMAT_ATTR(branch, "config:13");
PMU_FORMAT_ATTR(mtc_period, "config:14-17");
PMU_FORMAT_ATTR(cyc_thresh, "config:19-22");
PMU_FORMAT_ATTR(psb_period, "config:24-27");
PMU_FORMAT_ATTR(event, "config:31");
PMU_FORMAT_ATTR(notnt, "config:55");

static struct attribute *format_attrs[] = {
	&format_attr_pt.attr,	      &format_attr_cyc.attr,	    &format_attr_pwr_evt.attr,
	&format_attr_fup_on_ptw.attr, &format_attr_mtc.attr,	    &format_attr_tsc.attr,
	&format_attr_noretcomp.attr,  &format_attr_ptw.attr,	    &format_attr_branch.attr,
	&format_attr_mtc_period.attr, &format_attr_cyc_thresh.attr, &format_attr_psb_period.attr,
	&format_attr_event.attr,      &format_attr_notnt.attr,	    NULL,
};

struct cap_attr {
	struct device_attribute attr;
	u32 value;
};

static ssize_t show_cap(struct device *dev, struct device_attribute *attr, char *page)
{
	return sysfs_emit(page, "%x\n", container_of(attr, struct cap_attr, attr)->value);
}

#define CAP(cap, number)                                                                           \
	static struct cap_attr cap_##cap = {                                                       \
		.attr = {.attr = {.name = #cap, .mode = 0444}, .show = show_cap},                  \
		.value = number,                                                                   \
	}

/* The periods are those of a Skylake. */
CAP(max_subleaf, 1);
CAP(cr3_filtering, 0);
CAP(psb_cyc, 1);
CAP(ip_filtering, 1);
CAP(mtc, 1);
CAP(ptwrite, 1);
CAP(power_event_trace, 0);
CAP(event_trace, 1);
CAP(tnt_disable, 0);
CAP(topa_output, 1);
CAP(topa_multiple_entries, 1);
CAP(single_range_output, 0);
CAP(output_subsys, 0);
CAP(payloads_lip, 0);
CAP(num_address_ranges, SOFTPT_FILTERS);
/* Not 0: an instruction takes a microsecond here, and MTC packets would fill the buffer. */
CAP(mtc_periods, 0x248);
CAP(cycle_thresholds, 0x1fff);
CAP(psb_periods, 0x3f);

static struct attribute *cap_attrs[] = {
	&cap_max_subleaf.attr.attr,
	&cap_cr3_filtering.attr.attr,
	&cap_psb_cyc.attr.attr,
	&cap_ip_filtering.attr.attr,
	&cap_mtc.attr.attr,
	&cap_ptwrite.attr.attr,
	&cap_power_event_trace.attr.attr,
	&cap_event_trace.attr.attr,
	&cap_tnt_disable.attr.attr,
	&cap_topa_output.attr.attr,
	&cap_topa_multiple_entries.attr.attr,
	&cap_single_range_output.attr.attr,
	&cap_output_subsys.attr.attr,
	&cap_payloads_lip.attr.attr,
	&cap_num_address_ranges.attr.attr,
	&cap_mtc_periods.attr.attr,
	&cap_cycle_thresholds.attr.attr,
	&cap_psb_periods.attr.attr,
	NULL,
};

void softpt_make_old(void)
{
	cap_ptwrite.value = cap_event_trace.value = 0;
	cap_ip_filtering.value = cap_num_address_ranges.value = 0;
}

u32 softpt_cap(enum softpt_cap cap)
{
	switch (cap) {
	case CAP_PSB_CYC:
		return cap_psb_cyc.value;
	case CAP_MTC:
		return cap_mtc.value;
	case CAP_MTC_PERIODS:
		return cap_mtc_periods.value;
	case CAP_CYCLE_THRESHOLDS:
		return cap_cycle_thresholds.value;
	case CAP_PSB_PERIODS:
		return cap_psb_periods.value;
	case CAP_PTWRITE:
		return cap_ptwrite.value;
	case CAP_EVENT_TRACE:
		return cap_event_trace.value;
	case CAP_ADDRESS_RANGES:
		return cap_num_address_ranges.value;
	}
	return 0;
}

u32 softpt_art_num(void)
{
	/* TMA packets have 9 bits for the ticks since the last of the crystal's. */
	return min_t(u32, DIV_ROUND_CLOSEST(tsc_khz * SOFTPT_ART_DEN, CRYSTAL_KHZ), 511);
}

u8 softpt_nonturbo_ratio(void)
{
	return DIV_ROUND_CLOSEST(tsc_khz, BUS_KHZ);
}

static ssize_t max_nonturbo_ratio_show(struct device *dev, struct device_attribute *attr,
				       char *page)
{
	return sysfs_emit(page, "%u\n", softpt_nonturbo_ratio());
}
static DEVICE_ATTR_RO(max_nonturbo_ratio);

static ssize_t tsc_art_ratio_show(struct device *dev, struct device_attribute *attr, char *page)
{
	return sysfs_emit(page, "%u:%u\n", softpt_art_num(), SOFTPT_ART_DEN);
}
static DEVICE_ATTR_RO(tsc_art_ratio);

static struct attribute *clock_attrs[] = {
	&dev_attr_max_nonturbo_ratio.attr,
	&dev_attr_tsc_art_ratio.attr,
	NULL,
};

static const struct attribute_group format_group = {.name = "format", .attrs = format_attrs};
static const struct attribute_group cap_group = {.name = "caps", .attrs = cap_attrs};
static const struct attribute_group clock_group = {.attrs = clock_attrs};

const struct attribute_group *softpt_groups[] = {&cap_group, &format_group, &clock_group, NULL};
