// SPDX-License-Identifier: GPL-2.0-only
/* The PMU: what arch/x86/events/intel/pt.c does with a CPU's trace unit, done with step.c. */
#include "softpt.h"

#include <linux/bitfield.h>
#include <linux/module.h>
#include <linux/slab.h>

DEFINE_PER_CPU(struct softpt_cpu, softpt_cpus);

#ifdef PERF_EF_PAUSE
#define HAS_AUX_PAUSE true
#else
#define HAS_AUX_PAUSE false
#endif

static bool aux_pause = HAS_AUX_PAUSE;
module_param(aux_pause, bool, 0444);
MODULE_PARM_DESC(aux_pause, "offer PERF_PMU_CAP_AUX_PAUSE, where the kernel has it");

static atomic_t pauses;
module_param_named(pauses, pauses.counter, int, 0444);
MODULE_PARM_DESC(pauses, "how often an event was paused");

static unsigned long paused_ip;
module_param(paused_ip, ulong, 0444);
MODULE_PARM_DESC(paused_ip, "where the task that was paused last stood in user code");

static bool is_legal(enum softpt_cap cap, u64 value)
{
	return softpt_cap(cap) & BIT(value);
}

/* The rules of pt_event_valid(); a pt bit without a branch bit is for CPUs unlike ours. */
static bool config_is_valid(u64 config)
{
	const u64 known = CTL_PASSTHROUGH | CTL_CYC | CTL_MTC | CTL_TSC | CTL_DISRETC | CTL_BRANCH |
			  CTL_MTC_PERIOD | CTL_CYC_THRESH | CTL_PSB_PERIOD |
			  (softpt_cap(CAP_PTWRITE) ? CTL_PTW | CTL_FUP_ON_PTW : 0) |
			  (softpt_cap(CAP_EVENT_TRACE) ? CTL_EVENT : 0);
	u64 psb = FIELD_GET(CTL_PSB_PERIOD, config), thresh = FIELD_GET(CTL_CYC_THRESH, config);

	if (config & ~known)
		return false;
	if (!(config & CTL_PASSTHROUGH) != !(config & CTL_BRANCH))
		return false;
	if (psb && !is_legal(CAP_PSB_PERIODS, psb))
		return false;
	if (thresh && !is_legal(CAP_CYCLE_THRESHOLDS, thresh))
		return false;
	return !(config & CTL_MTC) || is_legal(CAP_MTC_PERIODS, FIELD_GET(CTL_MTC_PERIOD, config));
}

static void event_destroy(struct perf_event *event)
{
	kfree(event->pmu_private);
}

static int event_init(struct perf_event *event)
{
	u64 ctl = event->attr.config;
	/* Every packet has its CYC packet, whatever the threshold: more than a CPU writes, not
	 * less. */
	struct pt_stream_config config = {
		.psb_period = 2048u << FIELD_GET(CTL_PSB_PERIOD, ctl),
		/* perf record asks CPUID for the crystal's ratio, and QEMU has none to tell. */
		.tsc_interval = U64_MAX,
		.tsc_at_switch = true,
		.return_compression = !(ctl & CTL_DISRETC),
		.cbr = softpt_nonturbo_ratio(),
		.nom_freq = ctl & CTL_CYC ? softpt_nonturbo_ratio() : 0,
		.mtc_freq = FIELD_GET(CTL_MTC_PERIOD, ctl),
		.ctc_ticks = ctl & CTL_MTC ? softpt_art_num() : 0,
	};
	struct softpt_event *e;

	if (event->attr.type != event->pmu->type)
		return -ENOENT;
	if (!config_is_valid(event->attr.config))
		return -EINVAL;
	/* Kernel code cannot be stepped; better none than half of what was asked for. */
	if (!event->attr.exclude_kernel)
		return -EOPNOTSUPP;
	e = kzalloc(sizeof(*e), GFP_KERNEL);
	if (!e)
		return -ENOMEM;
	pt_stream__init(&e->stream, &config, softpt_aux__write, e);
	event->pmu_private = e;
	event->destroy = event_destroy;
	return 0;
}

static bool is_paused(struct perf_event *event)
{
#ifdef PERF_EF_PAUSE
	return READ_ONCE(event->hw.aux_paused);
#else
	return false;
#endif
}

static void start_tracing(struct softpt_cpu *cpu, struct perf_event *event)
{
	if (!is_paused(event))
		softpt_step__trace(cpu);
}

/* pt_event_addr_filters_validate(): ranges only, for PT has no trigger at a single address. */
static int filters_validate(struct list_head *filters)
{
	struct perf_addr_filter *filter;
	u32 n = 0;

	list_for_each_entry(filter, filters, entry)
	{
		if (!filter->size || filter->action == PERF_ADDR_FILTER_ACTION_START)
			return -EOPNOTSUPP;
		if (++n > softpt_cap(CAP_ADDRESS_RANGES))
			return -EOPNOTSUPP;
	}
	return 0;
}

/* pt_event_addr_filters_sync(): a file that is not mapped has no range yet, and nothing passes. */
static void filters_sync(struct perf_event *event)
{
	struct perf_addr_filters_head *head = perf_event_addr_filters(event);
	struct perf_addr_filter_range *range = event->addr_filter_ranges;
	struct softpt_event *e = softpt_event(event);
	struct perf_addr_filter *filter;

	e->n_filters = 0;
	e->has_ranges = false;
	if (!range)
		return;
	list_for_each_entry(filter, &head->list, entry)
	{
		bool stops = filter->action == PERF_ADDR_FILTER_ACTION_STOP;

		e->has_ranges |= !stops;
		if (e->n_filters < SOFTPT_FILTERS && range->start)
			e->filters[e->n_filters++] = (struct softpt_filter){
				range->start, range->start + range->size - 1, stops};
		range++;
	}
}

/* Of the CPUs that have fewer caps than sysfs tells, as the efficiency cores of a hybrid one. */
static unsigned long little;
module_param(little, ulong, 0644);
MODULE_PARM_DESC(little, "mask of CPUs whose unit writes no CYC, PTW, CFE and EVD packets");

static void start_unit(struct perf_event *event)
{
	struct softpt_event *e = softpt_event(event);

	e->ctl = event->attr.config;
	if (READ_ONCE(little) >> smp_processor_id() & 1)
		e->ctl &= ~(CTL_CYC | CTL_PTW | CTL_FUP_ON_PTW | CTL_EVENT);
	pt_stream__count_cycles(&e->stream, e->ctl & CTL_CYC ? softpt_nonturbo_ratio() : 0);
	e->stopped = false;
	perf_event_addr_filters_sync(event);
}

static void event_start(struct perf_event *event, int mode)
{
	struct softpt_cpu *cpu = this_cpu_ptr(&softpt_cpus);

#ifdef PERF_EF_PAUSE
	if (mode & PERF_EF_RESUME) {
		if (cpu->may_pause)
			start_tracing(cpu, event);
		return;
	}
#endif
	if (softpt_aux__begin(cpu, event)) {
		event->hw.state = PERF_HES_STOPPED;
		return;
	}
	event->hw.state = 0;
	/* Another event may have written into the same buffer meanwhile. */
	softpt_event(event)->stream.last_ip_known = false;
	start_unit(event);
	cpu->may_pause = true;
	start_tracing(cpu, event);
}

static void event_stop(struct perf_event *event, int mode)
{
	struct softpt_cpu *cpu = this_cpu_ptr(&softpt_cpus);

#ifdef PERF_EF_PAUSE
	if (mode & PERF_EF_PAUSE) {
		if (!cpu->may_pause || softpt_step__broken() == SOFTPT_BROKEN_PAUSE)
			return;
		atomic_inc(&pauses);
		paused_ip = instruction_pointer(task_pt_regs(current));
		if (softpt_step__broken() == SOFTPT_BROKEN_LATE)
			cpu->late = SOFTPT_LATE;
		else
			softpt_step__stop(cpu);
		return;
	}
#endif
	cpu->may_pause = false;
	softpt_step__stop(cpu);
	if (event->hw.state == PERF_HES_STOPPED)
		return;
	event->hw.state = PERF_HES_STOPPED;
	if (mode & PERF_EF_UPDATE && cpu->handle.event == event)
		softpt_aux__end(cpu);
}

static int event_add(struct perf_event *event, int mode)
{
	struct softpt_cpu *cpu = this_cpu_ptr(&softpt_cpus);

	if (cpu->handle.event)
		return -EBUSY;
	event->hw.state = PERF_HES_STOPPED;
	if (!(mode & PERF_EF_START))
		return 0;
	event_start(event, 0);
	return event->hw.state == PERF_HES_STOPPED ? -EINVAL : 0;
}

static void event_del(struct perf_event *event, int mode)
{
	event_stop(event, PERF_EF_UPDATE);
}

static void event_read(struct perf_event *event)
{
}

static struct pmu pmu = {
	.module = THIS_MODULE,
	.capabilities = PERF_PMU_CAP_EXCLUSIVE | PERF_PMU_CAP_ITRACE,
	.task_ctx_nr = perf_sw_context,
	.attr_groups = softpt_groups,
	.event_init = event_init,
	.add = event_add,
	.del = event_del,
	.start = event_start,
	.stop = event_stop,
	.read = event_read,
	.setup_aux = softpt_aux__setup,
	.free_aux = softpt_aux__free,
	.addr_filters_validate = filters_validate,
	.addr_filters_sync = filters_sync,
};

static bool old;
module_param(old, bool, 0444);
MODULE_PARM_DESC(old, "a CPU without Event Trace, PTWRITE and address filters");

static int show_steps(char *page, const struct kernel_param *param)
{
	return sysfs_emit(page, "%lu\n", softpt_step__count());
}
static const struct kernel_param_ops steps_ops = {.get = show_steps};
module_param_cb(steps, &steps_ops, NULL, 0444);
MODULE_PARM_DESC(steps, "instructions stepped");

static int __init softpt_init(void)
{
	int err = softpt_step__init();

	if (err)
		return err;
#ifdef PERF_EF_PAUSE
	if (aux_pause)
		pmu.capabilities |= PERF_PMU_CAP_AUX_PAUSE;
#else
	aux_pause = false;
#endif
	if (old)
		softpt_make_old();
	pmu.nr_addr_filters = softpt_cap(CAP_ADDRESS_RANGES);
	err = perf_pmu_register(&pmu, "intel_pt", -1);
	if (err)
		softpt_step__exit();
	return err;
}
module_init(softpt_init);

static void __exit softpt_exit(void)
{
	perf_pmu_unregister(&pmu);
	softpt_step__exit();
}
module_exit(softpt_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Intel Processor Trace in software, for tests");
