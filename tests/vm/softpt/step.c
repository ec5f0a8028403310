// SPDX-License-Identifier: GPL-2.0-only
/*
 * The trace unit. On its last way out of the kernel a traced task gets the trap flag; the trap
 * behind its next instruction tells where that went. The flag stands only while the task runs in
 * user code: whatever may copy its registers (fork, signal frames, ptrace, the switch to another
 * task) finds them as they were.
 */
#include "softpt.h"

#include <linux/kdebug.h>
#include <linux/sched/task_stack.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <linux/uprobes.h>
#include <asm/debugreg.h>
#include <asm/irq_regs.h>
#include <asm/processor-flags.h>
#include <asm/trapnr.h>
#include <asm/tsc.h>

#define MAX_INSN_LEN 15

static DEFINE_PER_CPU(unsigned long, steps);

unsigned long softpt_step__count(void)
{
	unsigned long sum = 0;
	int i;

	for_each_possible_cpu(i) sum += per_cpu(steps, i);
	return sum;
}

static struct pt_stream *stream_of(struct softpt_cpu *cpu)
{
	return &softpt_event(cpu->handle.event)->stream;
}

static void clear_trap_flag(struct softpt_cpu *cpu, struct pt_regs *regs)
{
	if (cpu->tf_ours)
		regs->flags &= ~X86_EFLAGS_TF;
	cpu->tf_ours = false;
	cpu->armed = false;
}

/* The SDM says that there is one; recordings of real CPUs have none. */
static bool int3_fup = true;
module_param(int3_fup, bool, 0644);
MODULE_PARM_DESC(int3_fup, "an int3 leaves a FUP before its TIP.PGD");

/* For tests that must notice a PMU which does not do its work. */
enum broken {
	BROKEN_CLOCK = 1, /* times run away by 1 % */
	BROKEN_TIP,	  /* one instruction of broken_every has no packet */
	BROKEN_VECTOR = 7,
};
static int broken;
module_param(broken, int, 0644);
MODULE_PARM_DESC(broken, "1: times run away by 1 %; 2: packets are missing; 3: a pause is ignored; "
			 "4: the newest 2 KB are missing; 5: a pause comes 200 instructions late; "
			 "6: a ring keeps its first 32 KB only; 7: events have another vector, and "
			 "PTWRITE another value");

static int broken_every = 1000;
module_param(broken_every, int, 0644);
MODULE_PARM_DESC(broken_every, "with broken=2: one instruction of so many has no packet");

int softpt_step__broken(void)
{
	return READ_ONCE(broken);
}

static u64 now_tsc(void)
{
	static u64 since;
	u64 now = rdtsc_ordered();

	if (READ_ONCE(broken) != BROKEN_CLOCK) {
		since = 0;
		return now;
	}
	if (!since)
		since = now;
	return now + (now - since) / 100;
}

/* The first that happens in user code is what has left it. */
static void note_event(struct softpt_cpu *cpu, u8 vector, bool has_address, u64 address)
{
	if (cpu->event.type)
		return;
	cpu->event = (struct pt_stream_event){.type = PT_CFE_INTR,
					      .vector = vector,
					      .has_address = has_address,
					      .address = address};
	if (READ_ONCE(broken) == BROKEN_VECTOR)
		cpu->event.vector ^= 1;
}

static void leave_how(struct softpt_cpu *cpu, u64 ip, bool tells_ip)
{
	struct pt_stream *stream = stream_of(cpu);

	if (stream->enabled) {
		if (softpt_event(cpu->handle.event)->ctl & CTL_EVENT)
			stream->event = cpu->event;
		pt_stream__time(stream, now_tsc());
		if (tells_ip)
			pt_stream__disable_async(stream, ip);
		else
			pt_stream__disable(stream);
	}
	if (cpu->task == current)
		clear_trap_flag(cpu, task_pt_regs(current));
}

/* The kernel was entered before the instruction at ip ran, and user code is left for good. */
static void leave(struct softpt_cpu *cpu, u64 ip)
{
	leave_how(cpu, ip, true);
}

/* The CPU whose user code `current` was. */
static struct softpt_cpu *armed_cpu(void)
{
	struct softpt_cpu *cpu = this_cpu_ptr(&softpt_cpus);

	return cpu->tracing && cpu->armed && cpu->task == current ? cpu : NULL;
}

/* The ranges of address filters. */
static bool lies_in(const struct softpt_event *e, u64 ip, bool stops)
{
	u32 i;

	for (i = 0; i < e->n_filters; i++)
		if (e->filters[i].stops == stops && ip >= e->filters[i].first &&
		    ip <= e->filters[i].last)
			return true;
	return false;
}

static bool is_traced(const struct softpt_event *e, u64 ip)
{
	return !e->stopped && (!e->has_ranges || lies_in(e, ip, false)) && !lies_in(e, ip, true);
}

/* The instruction goes where nothing is traced, and perhaps never again. */
static void leave_ranges(struct softpt_event *e, u64 to)
{
	pt_stream__leave_range(&e->stream, to);
	if (!lies_in(e, to, true))
		return;
	pt_stream__trace_stop(&e->stream);
	e->stopped = true;
}

/* uprobes run the probed instruction out of line, with a trap flag of their own. */
static bool is_out_of_line(void)
{
	return current->utask && current->utask->active_uprobe &&
	       current->utask->state == UTASK_SSTEP;
}

/* Called with interrupts off, behind everything else that may change the registers. */
static void on_return(struct user_return_notifier *notifier)
{
	struct softpt_cpu *cpu = container_of(notifier, struct softpt_cpu, on_return);
	struct pt_regs *regs = task_pt_regs(current);
	struct softpt_event *e;
	struct pt_stream *stream;

	if (!cpu->tracing)
		return;
	e = softpt_event(cpu->handle.event);
	stream = &e->stream;
	/* An interrupt or a fault; or the task goes on elsewhere: a handler, an rseq abort. */
	if (stream->enabled && (!cpu->stepped || regs->ip != cpu->ip))
		leave(cpu, cpu->ip);
	cpu->event.type = 0;
	if (!user_64bit_mode(regs))
		return;
	if (!stream->enabled && is_traced(e, regs->ip)) {
		pt_stream__time(stream, now_tsc());
		pt_stream__enable(stream, regs->ip);
	}
	cpu->task = current;
	cpu->ip = regs->ip;
	cpu->stepped = false;
	cpu->armed = true;
	if (!(regs->flags & X86_EFLAGS_TF)) {
		regs->flags |= X86_EFLAGS_TF;
		cpu->tf_ours = true;
	}
}

/* Whatever follows it in memory may not be there. */
static bool read_code(u64 ip, u8 *code)
{
	size_t on_page = PAGE_SIZE - offset_in_page(ip);

	memset(code, 0, MAX_INSN_LEN);
	if (!copy_from_user_nofault(code, (void __user *)ip, MAX_INSN_LEN))
		return true;
	return on_page < MAX_INSN_LEN && !copy_from_user_nofault(code, (void __user *)ip, on_page);
}

/* Stepping shows in pushed flags. */
static void hide_trap_flag(u64 sp)
{
	u16 flags;

	if (copy_from_user_nofault(&flags, (void __user *)sp, sizeof(flags)))
		return;
	flags &= ~X86_EFLAGS_TF;
	if (copy_to_user_nofault((void __user *)sp, &flags, sizeof(flags)))
		return;
}

/* Nothing can be written any more; what comes when there is room again begins anew. */
static void stop_at_full_buffer(struct softpt_cpu *cpu, struct pt_stream *stream)
{
	struct pt_stream_config config = stream->config;

	pt_stream__init(stream, &config, stream->emit, stream->ctx);
	cpu->tracing = false;
	user_return_notifier_unregister(&cpu->on_return);
}

static void stepped(struct softpt_cpu *cpu, struct pt_regs *regs)
{
	struct softpt_event *e = softpt_event(cpu->handle.event);
	struct pt_stream *stream = &e->stream;
	u8 code[MAX_INSN_LEN + 8];

	this_cpu_inc(steps);
	pt_stream__time(stream, now_tsc());
	if (!stream->enabled) {
		if (is_traced(e, regs->ip))
			pt_stream__enable(stream, regs->ip);
	} else if (!is_traced(e, regs->ip)) {
		leave_ranges(e, regs->ip);
	} else if (READ_ONCE(broken) == BROKEN_TIP &&
		   this_cpu_read(steps) % max(broken_every, 1) == 0) {
		; /* as if the instruction had not been a branch */
	} else if (!read_code(cpu->ip, code) ||
		   !softpt_branch__encode(stream, code, cpu->ip, regs->ip)) {
		pt_stream__disable_async(stream, cpu->ip);
	} else if (is_out_of_line()) {
		/* This trap is one of the kernel's own. */
		pt_stream__disable_async(stream, regs->ip);
	} else if (cpu->tf_ours && softpt_branch__is_pushf(code)) {
		hide_trap_flag(regs->sp);
	}
	cpu->ip = regs->ip;
	cpu->stepped = true;
	if (cpu->late && !--cpu->late)
		softpt_step__stop(cpu);
	else if (!softpt_aux__turn(cpu))
		stop_at_full_buffer(cpu, stream);
}

static void on_debug_trap(struct softpt_cpu *cpu, struct die_args *args)
{
	unsigned long *dr6 = (unsigned long *)args->err;
	bool ours = cpu->tf_ours && !test_thread_flag(TIF_SINGLESTEP);

	/* A breakpoint of the CPU: it comes before its instruction, and its event may pause. */
	if (!(*dr6 & DR_STEP)) {
		note_event(cpu, X86_TRAP_DB, false, 0);
		leave(cpu, args->regs->ip);
		return;
	}
	if (stream_of(cpu)->enabled || softpt_event(cpu->handle.event)->has_ranges)
		stepped(cpu, args->regs);
	clear_trap_flag(cpu, args->regs);
	/*
	 * exc_debug_user() sends SIGTRAP for what is left of either. At a step the bits of
	 * breakpoints mean nothing (hw_breakpoint_handler()): one at the next instruction comes
	 * when that begins.
	 */
	if (ours) {
		*dr6 &= ~(DR_STEP | DR_TRAP_BITS);
		current->thread.virtual_dr6 &= ~DR_STEP;
	}
}

/* True for a PTWRITE, which is an invalid opcode here: it has happened. */
static bool emulate_ptwrite(struct softpt_cpu *cpu, struct pt_regs *regs)
{
	struct softpt_event *e = cpu ? softpt_event(cpu->handle.event) : NULL;
	struct softpt_ptwrite write;
	u8 code[MAX_INSN_LEN + 8];

	if (!read_code(regs->ip, code) || !softpt_branch__is_ptwrite(code, regs, &write))
		return false;
	if (e && e->stream.enabled && e->ctl & CTL_PTW) {
		if (READ_ONCE(broken) == BROKEN_VECTOR)
			write.value ^= 1;
		pt_stream__time(&e->stream, now_tsc());
		pt_stream__ptwrite(&e->stream, write.value, write.is_wide,
				   e->ctl & CTL_FUP_ON_PTW ? regs->ip : 0);
	}
	regs->ip += write.len;
	if (!cpu)
		return true;
	cpu->ip = regs->ip;
	cpu->stepped = true;
	clear_trap_flag(cpu, regs);
	return true;
}

/*
 * Before uprobes: they stop at a trap flag that is not theirs and send SIGTRAP for it
 * (arch_uprobe_skip_sstep(), arch_uprobe_post_xol()).
 */
static int on_trap(struct notifier_block *block, unsigned long event, void *data)
{
	struct die_args *args = data;
	struct softpt_cpu *cpu;
	int done = NOTIFY_DONE;
	unsigned long flags;

	if (!args->regs || !user_mode(args->regs))
		return NOTIFY_DONE;
	local_irq_save(flags);
	cpu = armed_cpu();
	if (event == DIE_TRAP && args->trapnr == X86_TRAP_UD && emulate_ptwrite(cpu, args->regs)) {
		done = NOTIFY_STOP;
	} else if (cpu && event == DIE_DEBUG) {
		on_debug_trap(cpu, args);
	} else if (cpu && event == DIE_INT3) {
		note_event(cpu, X86_TRAP_BP, false, 0);
		leave_how(cpu, args->regs->ip - 1, int3_fup); /* the IP of the int3 itself */
	} else if (cpu && (event == DIE_TRAP || event == DIE_GPF)) {
		note_event(cpu, args->trapnr, false, 0);
	}
	local_irq_restore(flags);
	return done;
}

static struct notifier_block trap_notifier = {.notifier_call = on_trap, .priority = INT_MAX};

static void on_syscall(void *data, struct pt_regs *regs, long number)
{
	struct softpt_cpu *cpu;
	unsigned long flags;

	local_irq_save(flags);
	cpu = armed_cpu();
	if (cpu) {
		if (stream_of(cpu)->enabled) {
			pt_stream__time(stream_of(cpu), now_tsc());
			pt_stream__disable(stream_of(cpu));
		}
		cpu->event.type = 0;
		/* The syscall instruction left the flags there as well. */
		if (cpu->tf_ours)
			regs->r11 &= ~X86_EFLAGS_TF;
		clear_trap_flag(cpu, regs);
	}
	local_irq_restore(flags);
}

/* The registers go into the signal's frame next. */
static void on_signal(void *data, int sig, struct kernel_siginfo *info, struct k_sigaction *action)
{
	struct softpt_cpu *cpu;
	unsigned long flags;

	local_irq_save(flags);
	cpu = armed_cpu();
	if (cpu)
		leave(cpu, cpu->ip);
	local_irq_restore(flags);
}

/* Called with interrupts off. An event of the task alone is stopped behind this. */
static void on_switch(void *data, bool preempt, struct task_struct *prev, struct task_struct *next,
		      unsigned int prev_state)
{
	struct softpt_cpu *cpu = armed_cpu();

	if (cpu)
		leave(cpu, cpu->ip);
}

/* Interrupts and page faults in user code are noted before the kernel handles them. */
static void on_interrupt(void *data, int vector)
{
	struct pt_regs *regs = get_irq_regs();
	struct softpt_cpu *cpu;
	unsigned long flags;

	local_irq_save(flags);
	cpu = armed_cpu();
	if (cpu && regs && user_mode(regs))
		note_event(cpu, vector, false, 0);
	local_irq_restore(flags);
}

static void on_page_fault(void *data, unsigned long address, struct pt_regs *regs,
			  unsigned long error)
{
	struct softpt_cpu *cpu;
	unsigned long flags;

	local_irq_save(flags);
	cpu = armed_cpu();
	if (cpu)
		note_event(cpu, X86_TRAP_PF, true, address);
	local_irq_restore(flags);
}

void softpt_step__trace(struct softpt_cpu *cpu)
{
	cpu->late = 0;
	if (cpu->tracing)
		return;
	cpu->tracing = true;
	cpu->armed = false;
	cpu->event.type = 0;
	cpu->on_return.on_user_return = on_return;
	user_return_notifier_register(&cpu->on_return);
}

void softpt_step__stop(struct softpt_cpu *cpu)
{
	if (!cpu->tracing)
		return;
	leave(cpu, cpu->ip);
	cpu->tracing = false;
	user_return_notifier_unregister(&cpu->on_return);
}

static struct hook {
	const char *name;
	void *probe;
	struct tracepoint *tracepoint;
} hooks[] = {
	{"sys_enter", on_syscall},
	{"signal_deliver", on_signal},
	{"sched_switch", on_switch},
	{"page_fault_user", on_page_fault},
	{"local_timer_entry", on_interrupt},
	{"reschedule_entry", on_interrupt},
	{"call_function_entry", on_interrupt},
	{"call_function_single_entry", on_interrupt},
	{"irq_work_entry", on_interrupt},
};

/* None of them is exported by its name. */
static void find_tracepoint(struct tracepoint *tracepoint, void *data)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(hooks); i++)
		if (!strcmp(tracepoint->name, hooks[i].name))
			hooks[i].tracepoint = tracepoint;
}

static void remove_hooks(size_t n)
{
	while (n--)
		tracepoint_probe_unregister(hooks[n].tracepoint, hooks[n].probe, NULL);
	tracepoint_synchronize_unregister();
}

static int add_hooks(void)
{
	size_t i;
	int err;

	for_each_kernel_tracepoint(find_tracepoint, NULL);
	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		err = hooks[i].tracepoint
			      ? tracepoint_probe_register(hooks[i].tracepoint, hooks[i].probe, NULL)
			      : -ENOENT;
		if (err) {
			remove_hooks(i);
			return err;
		}
	}
	return 0;
}

int softpt_step__init(void)
{
	int err = add_hooks();

	if (err)
		return err;
	err = register_die_notifier(&trap_notifier);
	if (err)
		remove_hooks(ARRAY_SIZE(hooks));
	return err;
}

void softpt_step__exit(void)
{
	unregister_die_notifier(&trap_notifier);
	remove_hooks(ARRAY_SIZE(hooks));
}
