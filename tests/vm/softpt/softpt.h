/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A PMU named intel_pt whose trace comes from single-stepping: every user instruction of the traced
 * task traps, and the branch it made is written as Intel PT packets into the AUX buffer.
 *
 * What is known of a CPU changes only on that CPU with interrupts off.
 */
#ifndef SOFTPT_H
#define SOFTPT_H

#include <linux/perf_event.h>
#include <linux/user-return-notifier.h>

#include "pt_stream.h"

/* IA32_RTIT_CTL, Intel SDM vol. 3, table "IA32_RTIT_CTL MSR". */
#define CTL_PASSTHROUGH BIT_ULL(0)
#define CTL_CYC		BIT_ULL(1)
#define CTL_FUP_ON_PTW	BIT_ULL(5)
#define CTL_MTC		BIT_ULL(9)
#define CTL_TSC		BIT_ULL(10)
#define CTL_DISRETC	BIT_ULL(11)
#define CTL_PTW		BIT_ULL(12)
#define CTL_BRANCH	BIT_ULL(13)
#define CTL_MTC_PERIOD	GENMASK_ULL(17, 14)
#define CTL_CYC_THRESH	GENMASK_ULL(22, 19)
#define CTL_PSB_PERIOD	GENMASK_ULL(27, 24)
#define CTL_EVENT	BIT_ULL(31)

enum softpt_cap {
	CAP_PSB_CYC,
	CAP_MTC,
	CAP_MTC_PERIODS,
	CAP_CYCLE_THRESHOLDS,
	CAP_PSB_PERIODS,
	CAP_PTWRITE,
	CAP_EVENT_TRACE,
	CAP_ADDRESS_RANGES,
};

/* A range that is traced, or one that stops the trace (TraceStop). */
struct softpt_filter {
	u64 first, last;
	bool stops;
};
#define SOFTPT_FILTERS 2

/* What an AUX buffer is made of, and where in it we are. */
struct softpt_buffer {
	void **pages;
	u64 size;
	bool snapshot; /* overwrite mode */
	u64 at;	       /* offset of the next byte */
	u64 space;     /* bytes to the end of what may be written; not in overwrite mode */
	u64 written;   /* since perf_aux_output_begin() */
	u64 total;     /* since it was set up */
	bool lost;     /* packets did not fit */
};

/* An event: the stream goes on across being scheduled out and in. */
struct softpt_event {
	struct pt_stream stream;
	struct softpt_buffer *buffer; /* while it is started */
	u64 ctl;		      /* as this CPU's unit takes it */
	struct softpt_filter filters[SOFTPT_FILTERS];
	u32 n_filters;
	bool has_ranges; /* one of them is traced, and nothing else */
	bool stopped;	 /* by TraceStop, until it is started again */
};

struct softpt_cpu {
	struct perf_output_handle handle; /* .event: what is started here */
	bool may_pause;
	bool tracing; /* between TraceEn set and cleared */
	struct user_return_notifier on_return;
	/* The user code that runs, or ran until the kernel was entered. */
	struct task_struct *task;
	bool armed;   /* the next step trap of `task` tells what the instruction at ip did */
	bool tf_ours; /* we set its trap flag */
	bool stepped; /* the kernel was entered by nothing but our own trap */
	struct pt_stream_event event; /* what has taken the task out of user code */
	unsigned int late; /* a pause is due behind so many instructions; broken on purpose */
	u64 ip;
};

DECLARE_PER_CPU(struct softpt_cpu, softpt_cpus);

static inline struct softpt_event *softpt_event(struct perf_event *event)
{
	return event->pmu_private;
}

/* sysfs.c: format/, caps/ and the clock ratios. */
extern const struct attribute_group *softpt_groups[];
u32 softpt_cap(enum softpt_cap cap);
/* A CPU without Event Trace, PTWRITE and address filters. */
void softpt_make_old(void);
/*
 * Core crystal clock ticks are TSC ticks * den / num: CPUID leaf 15H, EBX and EAX. The encoder
 * wants whole TSC ticks.
 */
#define SOFTPT_ART_DEN 1
u32 softpt_art_num(void);
u8 softpt_nonturbo_ratio(void);

/* aux.c */
void *softpt_aux__setup(struct perf_event *event, void **pages, int nr_pages, bool snapshot);
void softpt_aux__free(void *buffer);
void softpt_aux__write(void *event, const u8 *bytes, unsigned int len);
/* Makes the CPU's handle ready for the event. 0, or -EINVAL where there is no room or no buffer. */
int softpt_aux__begin(struct softpt_cpu *cpu, struct perf_event *event);
void softpt_aux__end(struct softpt_cpu *cpu);
/* Hands over what is written where user space waits for it; false: there is no room to go on. */
bool softpt_aux__turn(struct softpt_cpu *cpu);

/* step.c */
int softpt_step__init(void);
void softpt_step__exit(void);
/* TraceEn. Packets come once a task returns to user code. */
void softpt_step__trace(struct softpt_cpu *cpu);
void softpt_step__stop(struct softpt_cpu *cpu);
unsigned long softpt_step__count(void);
/* What is broken on purpose; 0: nothing. */
#define SOFTPT_BROKEN_PAUSE 3
#define SOFTPT_BROKEN_END   4
#define SOFTPT_BROKEN_LATE  5
#define SOFTPT_LATE	    200 /* instructions */
#define SOFTPT_BROKEN_STALE 6
int softpt_step__broken(void);

/* branch.c: the packets of the instruction `code` at `from` that went to `to`; false: it cannot
 * have. */
bool softpt_branch__encode(struct pt_stream *stream, const u8 *code, u64 from, u64 to);
bool softpt_branch__is_pushf(const u8 *code);
/*
 * True for a PTWRITE, which no CPU of QEMU's has: its operand's value, 4 bytes or 8, and its
 * length.
 */
struct softpt_ptwrite {
	u64 value;
	bool is_wide;
	u8 len;
};
bool softpt_branch__is_ptwrite(const u8 *code, const struct pt_regs *regs,
			       struct softpt_ptwrite *out);

#endif
