/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Writes the user stack of a thread that leaves a CPU into that CPU's byte ring. */
#ifndef MTBPF_SWITCH_STACK_BPF_H
#define MTBPF_SWITCH_STACK_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "kernel.bpf.h"
#include "logs.bpf.h"
#include "mtbpf_shared.h"

/* Size of the ring per CPU in bytes, a power of two; 0: perf takes the stacks. */
const volatile __u64 stacks_size;
/* The most bytes of the user stack to copy; 0: only follow frame pointers. */
const volatile __u32 stack_copy;

/* The rings: one value per CPU, indexed by mt_cpu.slot - 1. User space sets the sizes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 8);
} stacks SEC(".maps");

/* __USER_CS of 64-bit code: arch/x86/include/asm/segment.h. */
#define USER_CS	   0x33
#define PAGE_BYTES 4096
/* Lower addresses are not frames: the default vm.mmap_min_addr is at least this. */
#define LOWEST_FRAME 4096

struct walk {
	struct mt_stack *stack;
	u64 at;
	bool is_64;
	/* The newest call with a return probe of any tool; NULL: none. */
	struct return_instance *probed;
	u64 trampoline; /* the address that such calls return to */
};

static __always_inline void find_return_probes(struct walk *walk, struct task_struct *task)
{
	walk->probed = BPF_CORE_READ(task, utask, return_instances);
	if (walk->probed)
		walk->trampoline = BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
}

/* The return address that a return probe replaced. Probed tail calls share it (`chained`). */
static __always_inline u64 take_caller(struct walk *walk)
{
	struct return_instance *probed = walk->probed;
	u64 caller = BPF_CORE_READ(probed, orig_ret_vaddr);
	bool chained = true;

	for (int i = 0; i < 8 && chained && probed; i++) {
		chained = BPF_CORE_READ(probed, chained);
		probed = BPF_CORE_READ(probed, next);
	}
	walk->probed = probed;
	return caller;
}

/* Reads the saved frame pointer and the return address of 64-bit or 32-bit code. */
static __always_inline bool read_frame(const struct walk *walk, u64 frame[2])
{
	u32 narrow[2];

	if (walk->is_64)
		return !bpf_probe_read_user(frame, 16, (void *)walk->at);
	if (bpf_probe_read_user(narrow, sizeof(narrow), (void *)walk->at))
		return false;
	frame[0] = narrow[0];
	frame[1] = narrow[1];
	return true;
}

static long walk_frame(u32 i, struct walk *walk)
{
	u64 frame[2];

	if (i >= MT_STACK_IPS - 1 || walk->at < LOWEST_FRAME || !read_frame(walk, frame))
		return 1;
	if (walk->probed && frame[1] == walk->trampoline)
		frame[1] = take_caller(walk);
	walk->stack->ips[i + 1] = frame[1];
	walk->stack->n_ips = i + 2;
	if (frame[0] == walk->at)
		return 1;
	walk->at = frame[0];
	return 0;
}

/*
 * Follows frame pointers like perf_callchain_user(), in a third of the time. With a plain loop
 * instead of bpf_loop() the verifier takes seconds.
 */
static __always_inline void walk_frames(struct mt_stack *stack, struct task_struct *task,
					const struct pt_regs *regs)
{
	struct walk walk = {.stack = stack, .at = regs->bp, .is_64 = regs->cs == USER_CS};

	find_return_probes(&walk, task);
	stack->ips[0] = regs->ip;
	stack->n_ips = 1;
	bpf_loop(MT_STACK_IPS - 1, walk_frame, &walk, 0);
}

/*
 * The copy ends where the thread's frames end: in the main thread at mm->start_stack; in others at
 * struct pthread, which the C library puts at the end of the stack. The FS base points to it.
 */
static __always_inline u32 bytes_to_copy(struct task_struct *task, u64 sp)
{
	u64 first = task->mm->start_stack, fs = task->thread.fsbase, most = stack_copy;

	if (first > sp && first - sp < most)
		most = first - sp;
	else if (fs > sp && fs - sp < most)
		most = fs - sp;
	return (most + 7) & ~7ull;
}

/* The copy of a stack, page by page. */
struct stack_copy {
	struct mt_stack *stack;
	u64 sp;
	u32 at;	    /* of the copy in `stack` */
	u32 copied; /* bytes so far */
	u32 left;
};

static long copy_page(u32 i, struct stack_copy *copy)
{
	u32 n = PAGE_BYTES - ((copy->sp + copy->copied) & (PAGE_BYTES - 1));
	u32 to = copy->at + copy->copied;

	n = n < copy->left ? n : copy->left;
	/* The compiler knows the bound of n; Linux 6.1's verifier does not: states it again. */
	__asm__ volatile("" : "+r"(n));
	if (n > PAGE_BYTES || to > MT_STACK_MAX - PAGE_BYTES ||
	    bpf_probe_read_user((char *)copy->stack + to, n, (void *)(copy->sp + copy->copied)))
		return 1;
	copy->copied += n;
	copy->left -= n;
	return !copy->left;
}

/* Copies up to the first page that is missing. Returns the number of bytes, a multiple of 8. */
static __always_inline u32 copy_pages(struct mt_stack *stack, u32 n_ips, u64 sp, u32 size)
{
	struct stack_copy copy = {
		.stack = stack, .sp = sp, .at = sizeof(*stack) + 8 * n_ips, .left = size};

	bpf_loop(MT_COPY_MAX / PAGE_BYTES + 1, copy_page, &copy, 0);
	return copy.copied & ~7u;
}

/* Returns the stack's offset in the ring, in units of 8 bytes, for mt_record; 0: no stack. */
static __always_inline u32 write_stack(struct mt_cpu *cpu, struct task_struct *task, u64 time_ns)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	u32 slot = cpu->slot - 1, n, copied = 0;
	u64 at = cpu->stacks_end;
	char *ring = bpf_map_lookup_elem(&stacks, &slot);
	struct mt_stack *stack;

	if (!ring || !task->mm)
		return 0;
	stack = (void *)(ring + (at & (stacks_size - 1)));
	begin_write(&stack->time_ns);
	walk_frames(stack, task, regs);
	n = stack->n_ips;
	if (stack_copy && regs->cs == USER_CS) {
		copied = bytes_to_copy(task, regs->sp);
		if (n > MT_STACK_IPS || copied > MT_COPY_MAX)
			return 0;
		/* In one piece, unless a page is missing. */
		if (bpf_probe_read_user(&stack->ips[n], copied, (void *)regs->sp))
			copied = copy_pages(stack, n, regs->sp, copied);
		stack->regs[0] = regs->bx;
		stack->regs[1] = regs->bp;
		stack->regs[2] = regs->sp;
		stack->regs[3] = regs->ip;
		stack->regs[4] = regs->r12;
		stack->regs[5] = regs->r13;
		stack->regs[6] = regs->r14;
		stack->regs[7] = regs->r15;
	}
	stack->tid = task->pid;
	stack->n_copied = copied;
	cpu->stacks_end = at + sizeof(*stack) + 8 * n + copied;
	end_write(&stack->time_ns, time_ns);
	return (u32)(at / 8);
}

#endif
