/* SPDX-License-Identifier: MIT */
/* Signal handlers of the traced process, and the frames that are set up for them on its stacks. */
#ifndef MTBPF_TESTS_PTGEN_SIGNALS_H
#define MTBPF_TESTS_PTGEN_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

/* The head of QEMU's CPUX86State: regs[] in the order of their encoding. */
struct cpu_regs {
	uint64_t rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi;
};

struct signals {
	uint64_t handler[65], restorer[65]; /* by signal number; 0: none */
};

struct signal_frame {
	uint64_t ip, sp;   /* what was interrupted */
	uint64_t entry;	   /* the handler */
	uint64_t slot;	   /* where its return address lies */
	bool is_exception; /* raised by the instruction at ip, before it has done anything */
};

/* rt_sigaction: `action` is the kernel's struct, as the program passed it; 0: it only asks. */
void signals__set(struct signals *signals, uint64_t nr, uint64_t action);

/* The handler at `entry` is about to run: true, and the frame that it was given. */
bool signals__frame(const struct signals *signals, uint64_t entry, const struct cpu_regs *regs,
		    struct signal_frame *frame);

/*
 * The frame of a handler that was to run when `inner`'s signal came first: true, and that frame.
 */
bool signals__outer(const struct signals *signals, const struct signal_frame *inner,
		    struct signal_frame *outer);

#endif
