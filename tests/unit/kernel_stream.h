/* SPDX-License-Identifier: MIT */
/* The thread of decode_fixture.h in the kernel of kernel_fixture.h, which is traced too. */
#ifndef MTBPF_TESTS_KERNEL_STREAM_H
#define MTBPF_TESTS_KERNEL_STREAM_H

#include "decode_fixture.h"
#include "kernel_fixture.h"

#include "capture/code/kernel_copy.h"

/* traced__* take offsets from BASE. */
#define K(offset)   (KERNEL_TEXT + (offset)-BASE)
#define MOD(offset) (MODULE_TEXT + (offset)-BASE)

static inline void traced__add_kernel(struct traced *t)
{
	char proc[40];

	make_proc(proc);
	assert_int_equal(kernel_copy__make(proc, true, &t->rec.kernel), 0);
	assert_int_equal(fs__remove_dir(proc), 0);
}

/* By an instruction: a TIP. */
static inline void traced__enter(struct traced *t, uint32_t n, uint64_t from, uint64_t to,
				 uint8_t len)
{
	traced__tick(t);
	pt_stream__jump_indirect(&t->stream, BASE + to);
	traced__expect(t, BRANCH_ENTER, n, from, to, len);
}

static inline void emit_fup(struct pt_stream *s, uint64_t ip)
{
	uint8_t packet[PT_PACKET_MAX];
	enum pt_ip_bytes bytes;

	if (s->tnt_count)
		s->emit(s->ctx, packet, pt_packet__tnt(packet, s->tnt_bits, s->tnt_count));
	s->tnt_bits = s->tnt_count = 0;
	/* Not between it and its TIP. */
	if (s->now - s->last_tsc >= s->config.tsc_interval)
		s->emit(s->ctx, packet, pt_packet__tsc(packet, s->now));
	s->last_tsc = s->now;
	bytes = pt_packet__compress_ip(ip, s->last_ip, s->last_ip_known);
	s->emit(s->ctx, packet, pt_packet__ip(packet, PT_FUP, bytes, ip));
	s->last_ip = ip;
	s->last_ip_known = true;
}

/* Before the instruction at `at`: FUP, TIP (SDM "Packets for asynchronous events"). */
static inline void traced__interrupt(struct traced *t, uint32_t n, uint64_t at, uint64_t to)
{
	traced__tick(t);
	emit_fup(&t->stream, BASE + at);
	pt_stream__jump_indirect(&t->stream, BASE + to);
	traced__expect(t, BRANCH_ENTER, n, at, to, 0);
}

static inline void traced__leave(struct traced *t, uint32_t n, uint64_t from, uint64_t to,
				 uint8_t len)
{
	traced__tick(t);
	pt_stream__jump_indirect(&t->stream, BASE + to);
	traced__expect(t, BRANCH_LEAVE, n, from, to, len);
}

/* CR3 is written: PIP. It says nothing that a thread's own trace needs. */
static inline void traced__page_tables(struct traced *t)
{
	static const uint8_t pip[] = {0x02, 0x43, 0x40, 0x12, 0, 0, 0, 0};

	pt_bytes__emit(&t->out, pip, sizeof(pip));
}

/*
 * A system call, the fault of a module's code in it, a timer tick in the fault's handler, and a
 * context switch, which ends this thread's trace until it comes back.
 */
static inline void traced__run_kernel(struct traced *t)
{
	traced__enable(t, 0x10);
	traced__jump(t, 1, 0x10, 0x20);
	traced__enter(t, 1, 0x20, K(ENTRY_SYSCALL), 2);
	traced__page_tables(t);
	traced__call(t, 2, K(CALL_DO_SYSCALL), K(DO_SYSCALL));
	traced__call(t, 2, K(DO_SYSCALL) + 1, K(SCHEDULE));
	traced__call(t, 1, K(SCHEDULE), K(SCHED_OUT));
	traced__call(t, 1, K(SCHED_OUT), K(PT_STOP));
	traced__async(t, 2, K(PT_STOP) + 3);
	traced__enable(t, K(PT_START) + 2);
	traced__ret(t, 2, K(PT_START) + 3, K(FINISH_SWITCH) + 5);
	traced__ret(t, 2, K(FINISH_SWITCH) + 6, K(SCHEDULE) + 11);
	traced__ret(t, 1, K(SCHEDULE) + 11, K(DO_SYSCALL) + 6);
	traced__call_indirect(t, 2, K(CALL_MODULE), MOD(0));
	traced__interrupt(t, 0, MOD(0), K(PAGE_FAULT));
	traced__interrupt(t, 1, K(PAGE_FAULT) + 1, K(TIMER));
	traced__leave(t, 2, K(TIMER) + 1, K(PAGE_FAULT) + 1, 2);
	traced__leave(t, 1, K(PAGE_FAULT) + 1, MOD(0), 2);
	traced__ret(t, 2, MOD(1), K(CALL_MODULE) + 2);
	traced__ret(t, 1, K(CALL_MODULE) + 2, K(SYSRET));
	traced__leave(t, 1, K(SYSRET), 0x22, 3);
	traced__call(t, 1, 0x22, 0x27);
	traced__interrupt(t, 1, 0x28, K(TIMER));
	traced__leave(t, 2, K(TIMER) + 1, 0x28, 2);
	traced__jump_indirect(t, 1, 0x28, 0x2a);
	/* The freeze: in the kernel. */
	traced__interrupt(t, 0, 0x2a, K(TIMER));
	traced__async(t, 1, K(TIMER) + 1);
}

#endif
