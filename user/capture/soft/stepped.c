// SPDX-License-Identifier: MIT
#include "capture/soft/stepped.h"

#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "util/clock.h"
#include "kernel/kernel.h"

#define EFLAGS_TF 0x100

static void write_ring(void *ctx, const uint8_t *bytes, unsigned int len)
{
	struct stepped *t = ctx;
	uint64_t mask = t->shared->ring_size - 1;

	for (unsigned int i = 0; i < len; i++)
		t->ring[t->out->written++ & mask] = bytes[i];
}

void stepped__init(struct stepped *t, pid_t tid, struct soft_shared *shared, uint32_t index,
		   const struct pt_stream_config *config, FILE *truth_log)
{
	*t = (struct stepped){.tid = tid, .shared = shared};
	t->out = &shared->threads[index];
	t->ring = soft_shared__ring(shared, index);
	t->out->tid = tid;
	t->out->start_ns = t->out->last_ns = clock__now_ns();
	truth__init(&t->truth, truth_log, tid);
	pt_stream__init(&t->stream, config, write_ring, t);
}

void stepped__fini(struct stepped *t)
{
	truth__fini(&t->truth);
}

/*
 * Sets the time to when the fetched instruction was started: if it leaves user code, it does so
 * then.
 */
static void mark_start(struct stepped *t)
{
	pt_stream__time(&t->stream, t->fetched_ns);
	t->out->last_ns = t->fetched_ns;
}

/* Sets the time to when the instruction had run. */
static uint64_t mark_now(struct stepped *t)
{
	uint64_t now = clock__now_ns();

	pt_stream__time(&t->stream, now);
	t->out->last_ns = now;
	return now;
}

/* Only its own process can read the [uprobes] page: the copy shows what runs there. */
static size_t read_uprobes_page(const struct stepped *t, uint64_t ip, uint8_t *code)
{
	uint64_t at = ip - t->shared->uprobes_start;
	size_t n;

	if (!t->shared->uprobes_start || at >= t->shared->uprobes_len)
		return 0;
	n = t->shared->uprobes_len - at;
	if (n > INSN_MAX_LEN)
		n = INSN_MAX_LEN;
	memcpy(code, t->shared->uprobes_page + at, n);
	return n;
}

static size_t read_code(const struct stepped *t, uint64_t ip, uint8_t *code)
{
	struct iovec local = {code, INSN_MAX_LEN};
	/* Two pieces: the second may be on an unmapped page. */
	size_t first = SOFT_PAGE - ip % SOFT_PAGE;
	struct iovec remote[2] = {{(void *)ip, INSN_MAX_LEN}, {NULL, 0}};
	int pieces = 1;
	ssize_t n;

	if (first < INSN_MAX_LEN) {
		remote[0].iov_len = first;
		remote[1] = (struct iovec){(void *)(ip + first), INSN_MAX_LEN - first};
		pieces = 2;
	}
	n = process_vm_readv(t->tid, &local, 1, remote, (unsigned long)pieces, 0);
	return n > 0 ? (size_t)n : read_uprobes_page(t, ip, code);
}

static bool is_pushf(const uint8_t *code, size_t n)
{
	return n && (code[0] == 0x9c || (n > 1 && code[0] == 0x66 && code[1] == 0x9c));
}

void stepped__fetch(struct stepped *t, const struct user_regs_struct *regs)
{
	uint8_t code[INSN_MAX_LEN];
	size_t n;

	t->fetched_ns = clock__now_ns();
	t->ip = regs->rip;
	t->sp = regs->rsp;
	t->syscall_nr = regs->rax;
	n = read_code(t, t->ip, code);
	t->is_unreadable = !n;
	if (!n || insn__decode(code, n, t->ip, &t->insn))
		t->insn = (struct insn){0};
	t->under_probe = n && code[0] == 0xcc;
	t->is_pushf = is_pushf(code, n);
}

/* The packets of an instruction that ran from t->ip to `to`. False: it cannot have gone there. */
static bool encode(struct stepped *t, uint64_t to)
{
	struct pt_stream *s = &t->stream;
	uint64_t next = t->ip + t->insn.len;

	switch ((enum insn_class)t->insn.cls) {
	case INSN_OTHER:
		/* A repeated string instruction stops on itself once an iteration. */
		return to == next || to == t->ip;
	case INSN_COND:
		if (to != next && to != t->insn.target)
			return false;
		pt_stream__cond(s, to != next, to);
		return true;
	case INSN_CALL:
		if (to != t->insn.target)
			return false;
		pt_stream__call(s, next, to);
		return true;
	case INSN_CALL_INDIRECT:
		pt_stream__call_indirect(s, next, to);
		return true;
	case INSN_RET:
		pt_stream__ret(s, to);
		return true;
	case INSN_JUMP:
		return to == t->insn.target;
	case INSN_JUMP_INDIRECT:
	case INSN_FAR:
		pt_stream__jump_indirect(s, to);
		return true;
	case INSN_SYSCALL:
		pt_stream__disable(s);
		return true;
	case INSN_INT3:
		break;
	}
	return false;
}

/* A return probe's trampoline: the function's frame ends when that returns. */
static bool is_trampoline(const struct stepped *t, uint64_t ip)
{
	uint8_t byte;
	struct iovec local = {&byte, 1}, remote = {(void *)ip, 1};

	return t->shared->uprobes_len && process_vm_readv(t->tid, &local, 1, &remote, 1, 0) != 1;
}

static void log_truth(struct stepped *t, uint64_t now, const struct user_regs_struct *regs)
{
	bool sigreturn = t->insn.cls == INSN_SYSCALL && t->syscall_nr == SYS_rt_sigreturn;

	bool call = t->insn.cls == INSN_CALL || t->insn.cls == INSN_CALL_INDIRECT;

	/* "call next; pop" reads the IP and does not enter a function. */
	if (call && regs->rip != t->ip + t->insn.len)
		truth__call(&t->truth, now, regs->rip, regs->rsp);
	else if (t->insn.cls == INSN_RET && is_trampoline(t, regs->rip))
		truth__jump(&t->truth, now, "return", regs->rip);
	else if (t->insn.cls == INSN_RET)
		truth__return(&t->truth, now, regs->rip, t->sp);
	else if (sigreturn)
		truth__sigreturn(&t->truth);
}

/*
 * The kernel has sent the thread to the abort handler of a restartable sequence, which has run its
 * first instruction on the way to `to`. Returns the handler's address; 0 if `to` does not follow
 * such an instruction.
 */
static uint64_t find_abort_handler(const struct stepped *t, uint64_t to)
{
	uint8_t code[INSN_MAX_LEN];
	struct insn insn;
	uint32_t signature;

	for (size_t len = 1; len <= INSN_MAX_LEN - sizeof(signature); len++) {
		size_t n = read_code(t, to - len - sizeof(signature), code);

		if (n < sizeof(signature) + len)
			return 0;
		memcpy(&signature, code, sizeof(signature));
		if (signature == RSEQ_SIGNATURE &&
		    !insn__decode(code + sizeof(signature), len, to - len, &insn) &&
		    insn.len == len && insn.cls == INSN_OTHER)
			return to - len;
	}
	return 0;
}

/* The kernel moved the thread (an rseq abort, a debugger): encoded like an interrupt. */
static void encode_moved(struct stepped *t, uint64_t to)
{
	uint64_t handler = find_abort_handler(t, to);

	pt_stream__disable_async(&t->stream, t->ip);
	if (handler)
		pt_stream__enable(&t->stream, handler);
}

bool stepped__executed(struct stepped *t, const struct user_regs_struct *regs)
{
	uint64_t now;

	t->shared->steps++;
	mark_start(t);
	if (!t->insn.len) {
		/* Unreadable code: tracing is off until the thread leaves it. */
		if (t->stream.enabled)
			pt_stream__disable_async(&t->stream, t->ip);
		return false;
	}
	if (!t->stream.enabled)
		pt_stream__enable(&t->stream, t->ip);
	truth__ran(&t->truth, t->ip);
	now = t->insn.cls == INSN_SYSCALL ? t->fetched_ns : mark_now(t);
	if (!encode(t, regs->rip)) {
		encode_moved(t, regs->rip);
		return false;
	}
	log_truth(t, now, regs);
	if (t->is_pushf) {
		/* Single-stepping shows in pushed flags; a popf of them later would trap a free
		 * thread. */
		long word = ptrace(PTRACE_PEEKDATA, t->tid, regs->rsp, 0);

		if (word & EFLAGS_TF)
			ptrace(PTRACE_POKEDATA, t->tid, regs->rsp, word & ~(long)EFLAGS_TF);
	}
	return t->insn.cls == INSN_SYSCALL;
}

/* The instruction under the probe cannot be read; a call is what pushed and went far. */
static bool was_call(const struct stepped *t, const struct user_regs_struct *regs)
{
	return regs->rsp == t->sp - 8 && regs->rip - t->ip > INSN_MAX_LEN;
}

void stepped__probed(struct stepped *t, const struct user_regs_struct *regs)
{
	mark_start(t);
	t->shared->steps++;
	if (!t->stream.enabled)
		pt_stream__enable(&t->stream, t->ip);
	pt_stream__disable_async(&t->stream, t->ip);
	if (was_call(t, regs))
		truth__call(&t->truth, t->fetched_ns, regs->rip, regs->rsp);
}

void stepped__signalled(struct stepped *t, const struct user_regs_struct *regs)
{
	mark_start(t);
	if (t->stream.enabled)
		pt_stream__disable_async(&t->stream, t->ip);
	truth__signal(&t->truth, regs->rip, regs->rsp);
}

void stepped__exec(struct stepped *t)
{
	mark_start(t);
	if (t->stream.enabled)
		pt_stream__disable(&t->stream);
	truth__reset(&t->truth);
	t->skip_next = true;
}

void stepped__leave(struct stepped *t)
{
	stepped__end(t, false);
	truth__reset(&t->truth);
}

void stepped__end(struct stepped *t, bool in_syscall)
{
	if (in_syscall)
		mark_start(t);
	else
		mark_now(t);
	if (!t->stream.enabled)
		return;
	if (in_syscall)
		pt_stream__disable(&t->stream);
	else
		pt_stream__disable_async(&t->stream, t->ip);
}
