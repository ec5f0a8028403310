// SPDX-License-Identifier: MIT
#include "signals.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

/* arch/x86/include/uapi/asm/signal.h: what the system call takes. */
struct kernel_sigaction {
	uint64_t handler, flags, restorer, mask;
};

/* arch/x86/include/asm/sigframe.h, struct rt_sigframe; the kernel's ucontext ends at its mask. */
struct rt_frame {
	uint64_t restorer;
	uint8_t context[offsetof(ucontext_t, uc_sigmask) + 8];
	int32_t signo, sig_errno, code;
};

/* The program's addresses are our own; what it says may be wrong, and must not end it here. */
static bool read_memory(uint64_t address, void *out, size_t len)
{
	struct iovec local = {out, len}, remote = {(void *)address, len};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)len;
}

void signals__set(struct signals *signals, uint64_t nr, uint64_t action)
{
	struct kernel_sigaction new;

	if (nr < 1 || nr > 64 || !action || !read_memory(action, &new, sizeof(new)))
		return;
	signals->restorer[nr] = new.restorer;
	signals->handler[nr] = new.handler;
}

static bool is_exception(const struct rt_frame *frame)
{
	switch (frame->signo) {
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGTRAP:
		return frame->code > 0; /* else somebody sent it */
	}
	return false;
}

/* A frame of signal `nr` for the handler at `entry` lies at sp. */
static bool read_frame(const struct signals *signals, int nr, uint64_t entry, uint64_t sp,
		       struct signal_frame *out)
{
	struct rt_frame frame;
	gregset_t regs;

	if (nr < 1 || nr > 64 || signals->handler[nr] != entry)
		return false;
	if (!read_memory(sp, &frame, sizeof(frame)) || frame.restorer != signals->restorer[nr])
		return false;
	memcpy(regs, frame.context + offsetof(ucontext_t, uc_mcontext.gregs), sizeof(regs));
	*out = (struct signal_frame){
		.ip = (uint64_t)regs[REG_RIP],
		.sp = (uint64_t)regs[REG_RSP],
		.entry = entry,
		.slot = sp,
		.is_exception = is_exception(&frame),
	};
	return true;
}

bool signals__frame(const struct signals *signals, uint64_t entry, const struct cpu_regs *regs,
		    struct signal_frame *frame)
{
	/* The third argument is the context, right behind the return address. */
	return regs->rdx == regs->rsp + 8 &&
	       read_frame(signals, (int)regs->rdi, entry, regs->rsp, frame);
}

bool signals__outer(const struct signals *signals, const struct signal_frame *inner,
		    struct signal_frame *outer)
{
	if (inner->is_exception)
		return false;
	for (int nr = 1; nr <= 64; nr++)
		if (signals->handler[nr] && signals->handler[nr] == inner->ip &&
		    read_frame(signals, nr, inner->ip, inner->sp, outer))
			return true;
	return false;
}
