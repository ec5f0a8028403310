// SPDX-License-Identifier: MIT
#include "goroutine.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>
#include <unistd.h>

/* QEMU 7.2's CPUX86State from regs[] on, and its SegmentCache: target/i386/cpu.h. */
struct segment {
	uint32_t selector;
	uint64_t base;
	uint32_t limit, flags;
};

struct cpu_state {
	uint64_t regs[16], eip, eflags, cc_dst, cc_src, cc_src2;
	uint32_t cc_op;
	int32_t df;
	uint32_t hflags, hflags2;
	struct segment segments[6];
};

enum { FS = 4 };

/* Go's src/runtime/runtime2.go: the head of struct g, from 1.5 to 1.24. */
struct g {
	uint64_t stack_low, stack_high, stack_guards[2], panics, defers, m;
	uint64_t saved_sp, saved[6], syscall_sp, syscall_pc, stack_top_sp, param;
	uint32_t status, stack_lock;
	uint64_t id;
};

static bool read_memory(uint64_t address, void *out, size_t len)
{
	struct iovec local = {out, len}, remote = {(void *)address, len};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)len;
}

struct goroutine goroutine__find(const struct cpu_regs *regs)
{
	const struct cpu_state *cpu = (const struct cpu_state *)regs;
	uint64_t base = cpu->segments[FS].base;
	uint64_t at;
	struct g g;

	/* src/runtime/tls_amd64.s: the word below what %fs points to. */
	if (!base || !read_memory(base - 8, &at, sizeof(at)) || !at ||
	    !read_memory(at, &g, sizeof(g)))
		return (struct goroutine){0};
	/* A g is used again for another goroutine, which has another number. */
	return (struct goroutine){g.id ? g.id : at, g.stack_low, g.stack_high, g.saved_sp};
}
