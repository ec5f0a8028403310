// SPDX-License-Identifier: MIT
#include "capture/soft/stepper.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/code/live_code.h"
#include "capture/soft/truth.h"
#include "capture/source.h"
#include "kernel/kernel.h"
#include "target/process.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/insn.h"
#include "util/vec.h"

#define STEPPER_SPINS 500

/* A single-stepped thread. The effect of each step becomes packets in its ring. */
struct stepped {
	pid_t tid;
	bool attached;
	bool stopped;	      /* in a ptrace stop; what PTRACE_DETACH needs */
	bool unseen;	      /* still runs freely: its first stop has not come */
	bool waiting;	      /* seized, but not stepped before its execve or a start */
	bool has_breakpoints; /* it stops at the starts */
	bool skip_next;	      /* the next step stop executed no instruction (execve) */
	int inject;	      /* the signal to deliver when it goes on */
	struct pt_stream stream;
	struct soft_shared *shared;
	struct soft_thread *out;
	uint8_t *ring;
	struct truth truth;
	/* The instruction that runs next. */
	uint64_t ip, sp;
	uint64_t fetched_ns;
	uint64_t syscall_nr; /* rax */
	struct insn insn;    /* len 0: the code could not be read */
	bool under_probe; /* the byte in memory is 0xcc: the int3 of a uprobe, or of the program */
	bool is_pushf;
	bool is_unreadable; /* not a byte of the code could be read */
};

#define EFLAGS_TF 0x100

static void write_ring(void *ctx, const uint8_t *bytes, unsigned int len)
{
	struct stepped *t = ctx;
	uint64_t mask = t->shared->ring_size - 1;

	for (unsigned int i = 0; i < len; i++)
		t->ring[t->out->written++ & mask] = bytes[i];
}

/* Sets the time of the packets that follow. */
static void set_time(struct stepped *t, uint64_t now)
{
	pt_stream__time(&t->stream, now);
	t->out->last_ns = now;
}

static size_t read_code(const struct stepped *t, uint64_t ip, uint8_t *code)
{
	struct iovec local = {code, INSN_MAX_LEN};
	/* Two pieces: the second may be on an unmapped page. */
	size_t first = SOFT_PAGE - ip % SOFT_PAGE;
	struct iovec remote[2] = {{(void *)ip, INSN_MAX_LEN}, {NULL, 0}};
	uint64_t at = ip - t->shared->uprobes_start;
	int pieces = 1;
	ssize_t n;

	if (first < INSN_MAX_LEN) {
		remote[0].iov_len = first;
		remote[1] = (struct iovec){(void *)(ip + first), INSN_MAX_LEN - first};
		pieces = 2;
	}
	n = process_vm_readv(t->tid, &local, 1, remote, (unsigned long)pieces, 0);
	if (n > 0)
		return (size_t)n;
	/* Only its own process can read the [uprobes] page: the copy shows what runs there. */
	if (!t->shared->uprobes_start || at >= t->shared->uprobes_len)
		return 0;
	n = (ssize_t)(t->shared->uprobes_len - at);
	if (n > INSN_MAX_LEN)
		n = INSN_MAX_LEN;
	memcpy(code, t->shared->uprobes_page + at, (size_t)n);
	return (size_t)n;
}

/* Fetches the instruction that runs next: regs and the bytes at its ip. */
static void fetch(struct stepped *t, const struct user_regs_struct *regs)
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
	t->is_pushf = n && (code[0] == 0x9c || (n > 1 && code[0] == 0x66 && code[1] == 0x9c));
}

/*
 * Writes the packets of the instruction, which went from t->ip to `to`. False: it cannot have gone
 * there.
 */
static bool encode(struct stepped *t, uint64_t to)
{
	struct pt_stream *s = &t->stream;
	uint64_t next = t->ip + t->insn.len;

	switch ((enum insn_class)t->insn.cls) {
	case INSN_OTHER:
		/* A repeated string instruction stops at itself once per iteration. */
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

/*
 * True for the trampoline of a return probe, whose page cannot be read from outside: the frame of
 * the function ends when the trampoline returns.
 */
static bool is_trampoline(const struct stepped *t, uint64_t ip)
{
	uint8_t byte;
	struct iovec local = {&byte, 1}, remote = {(void *)ip, 1};

	return t->shared->uprobes_len && process_vm_readv(t->tid, &local, 1, &remote, 1, 0) != 1;
}

static void log_truth(struct stepped *t, uint64_t now, const struct user_regs_struct *regs)
{
	bool is_call = t->insn.cls == INSN_CALL || t->insn.cls == INSN_CALL_INDIRECT;

	/* "call next; pop" reads the IP and does not enter a function. */
	if (is_call && regs->rip != t->ip + t->insn.len)
		truth__call(&t->truth, now, regs->rip, regs->rsp);
	else if (t->insn.cls == INSN_RET && is_trampoline(t, regs->rip))
		truth__jump(&t->truth, now, "return", regs->rip);
	else if (t->insn.cls == INSN_RET)
		truth__return(&t->truth, now, regs->rip, t->sp);
	else if (t->insn.cls == INSN_SYSCALL && t->syscall_nr == SYS_rt_sigreturn)
		truth__sigreturn(&t->truth);
}

/*
 * The kernel has sent the thread to the abort handler of a restartable sequence, and the step has
 * already run the handler's first instruction: the thread is at `to`. Returns the handler's
 * address; 0 if `to` does not follow such an instruction.
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

/* The fetched instruction ran, with regs as its result. True: it was a system call. */
static bool on_executed(struct stepped *t, const struct user_regs_struct *regs)
{
	uint64_t now = t->fetched_ns;

	t->shared->steps++;
	set_time(t, now);
	if (!t->insn.len) {
		/* Unreadable code: tracing is off until the thread leaves it. */
		if (t->stream.enabled)
			pt_stream__disable_async(&t->stream, t->ip);
		return false;
	}
	if (!t->stream.enabled)
		pt_stream__enable(&t->stream, t->ip);
	truth__ran(&t->truth, t->ip);
	if (t->insn.cls != INSN_SYSCALL) {
		now = clock__now_ns();
		set_time(t, now);
	}
	if (!encode(t, regs->rip)) {
		/* The kernel moved the thread (an rseq abort, a debugger): like an interrupt. */
		uint64_t handler = find_abort_handler(t, regs->rip);

		pt_stream__disable_async(&t->stream, t->ip);
		if (handler)
			pt_stream__enable(&t->stream, handler);
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

/* Recording stops here; in_syscall: inside the fetched syscall instruction. */
static void end_trace(struct stepped *t, bool in_syscall)
{
	set_time(t, in_syscall ? t->fetched_ns : clock__now_ns());
	if (!t->stream.enabled)
		return;
	if (in_syscall)
		pt_stream__disable(&t->stream);
	else
		pt_stream__disable_async(&t->stream, t->ip);
}

typedef VEC(uint64_t) address_vec;

struct stepper {
	struct soft_shared *shared;
	const struct source_config *config;
	const struct pt_stream_config *stream;
	int control_fd;
	struct stepped *threads; /* SOFT_MAX_THREADS; n used, live of them attached */
	size_t n, live;
	int signal_fd; /* SIGCHLD: something stopped */
	bool executed; /* the target runs the program of config->from_exec */
	bool freezing; /* every stop is the thread's last */
	bool orphan;   /* mtbpf is gone */
	FILE *truth;
	struct mappings maps; /* as last seen */
	/* Addresses of -start and -stop in the target; at most SOFT_MAX_STARTS starts. */
	address_vec starts, stops;
};

/* ---- threads: seizing, adding, removing */

/* clone: new threads are stepped too; exec: the mappings are new. Never EXITKILL. */
#define SEIZE_OPTIONS (PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC)

/* Finds an attached thread. NULL: none has this tid. */
static struct stepped *find_thread(struct stepper *s, pid_t tid)
{
	return FIND_IN(s->threads, s->n, thread, thread->tid == tid && thread->attached);
}

/* Adds the seized thread. NULL: there are SOFT_MAX_THREADS. */
static struct stepped *add_thread(struct stepper *s, pid_t tid)
{
	uint32_t i = (uint32_t)s->n;
	struct stepped *t;

	if (i == SOFT_MAX_THREADS) {
		s->shared->lost_threads++;
		return NULL;
	}
	t = &s->threads[s->n++];
	*t = (struct stepped){.tid = tid,
			      .attached = true,
			      .waiting =
				      (s->config->from_exec && !s->executed) || s->config->n_starts,
			      .shared = s->shared,
			      .out = &s->shared->threads[i],
			      .ring = soft_shared__ring(s->shared, i)};
	t->out->tid = tid;
	t->out->start_ns = t->out->last_ns = clock__now_ns();
	truth__init(&t->truth, s->truth, tid);
	pt_stream__init(&t->stream, s->stream, write_ring, t);
	process__thread_name(s->config->pid, tid, t->out->comm);
	s->shared->n_threads = (uint32_t)s->n;
	s->live++;
	return t;
}

/* The thread has made its first stop. From now on it only steps. */
static void seen(struct stepper *s, struct stepped *t)
{
	if (t->unseen)
		s->shared->unseen--;
	t->unseen = false;
}

/* The thread has ended, or was released. */
static void remove_thread(struct stepper *s, struct stepped *t)
{
	seen(s, t);
	t->attached = false;
	t->stopped = false;
	s->live--;
}

/*
 * Seizes and interrupts every thread of the target. New ones may start meanwhile, so this is
 * repeated until a whole pass finds none. 0 or -errno.
 */
static int seize_all(struct stepper *s)
{
	bool found = true;

	while (found) {
		_cleanup_free_ pid_t *tids = NULL;
		size_t n;
		int err = process__threads(s->config->pid, &tids, &n);

		if (err)
			return s->n ? 0 : err;
		found = false;
		for (size_t i = 0; i < n; i++) {
			struct stepped *t;

			if (find_thread(s, tids[i]))
				continue;
			err = ptrace(PTRACE_SEIZE, tids[i], 0, SEIZE_OPTIONS) ? errno : 0;
			if (err == ESRCH)
				continue;
			if (err)
				return -err;
			found = true;
			t = add_thread(s, tids[i]);
			if (!t) {
				ptrace(PTRACE_DETACH, tids[i], 0, 0);
			} else if (!s->config->from_exec) {
				t->unseen = true;
				s->shared->unseen++;
				ptrace(PTRACE_INTERRUPT, tids[i], 0, 0);
			}
		}
		if (s->shared->lost_threads)
			return 0;
	}
	return s->n ? 0 : -ESRCH;
}

/* ---- the target as /proc shows it: mappings, names; then stops, regions and detaching */

/* include/linux/errno.h: the kernel's own, never seen by a program. */
#define ERESTARTSYS	      512
#define ERESTART_RESTARTBLOCK 516

/* Appends mappings not seen before to the shared list. */
static void scan_maps(struct stepper *s)
{
	struct soft_shared *shared = s->shared;
	uint64_t now = clock__now_ns();
	struct mappings maps;

	if (mappings__read(&maps, s->config->pid))
		return;
	for (size_t i = 0; i < maps.n; i++) {
		const struct mapping *m = &maps.v[i];
		const struct mapping *old = mappings__find(&s->maps, m->start);
		struct soft_map *out;
		bool was_there;

		if (!(m->prot & PROT_EXEC))
			continue;
		if (old && old->start == m->start && old->end == m->end && old->pgoff == m->pgoff &&
		    old->ino == m->ino && old->prot == m->prot && !strcmp(old->path, m->path))
			continue;
		if (shared->n_maps == SOFT_MAX_MAPS) {
			shared->lost_maps++;
			continue;
		}
		/* The kernel maps this page without a syscall of the thread: valid from the start.
		 */
		was_there = !strcmp(m->path, "[uprobes]") && shared->n_maps;
		out = &shared->maps[shared->n_maps++];
		out->map = process_note__map(s->config->pid, m,
					     was_there ? shared->maps[0].map.time_ns : now);
		snprintf(out->path, sizeof(out->path), "%s", m->path);
	}
	mappings__fini(&s->maps);
	s->maps = maps;
}

/*
 * No code can be read at ip. True if ip is in the [uprobes] page, which the kernel has mapped
 * meanwhile; notes its address.
 */
static bool find_uprobes(struct stepper *s, uint64_t ip)
{
	const struct mapping *m = mappings__find(&s->maps, ip);

	if (!s->shared->uprobes_len || s->shared->uprobes_start)
		return false;
	if (!m) {
		scan_maps(s);
		m = mappings__find(&s->maps, ip);
	}
	if (!m || strcmp(m->path, "[uprobes]"))
		return false;
	s->shared->uprobes_start = m->start;
	return true;
}

/* The thread's system call has returned: the mappings or its name may have changed. */
static void syscall_done(struct stepper *s, struct stepped *t)
{
	switch (t->syscall_nr) {
	case SYS_mmap:
	case SYS_mprotect:
	case SYS_munmap:
	case SYS_mremap:
	case SYS_pkey_mprotect:
		scan_maps(s);
		break;
	case SYS_prctl:
		/* For PR_SET_NAME: read now, since the name of an exited thread cannot be read. */
		process__thread_name(s->config->pid, t->tid, t->out->comm);
	}
}

/* True if a step's SIGTRAP is queued for the thread. */
static bool trap_pending(pid_t tid)
{
	char path[64], line[128];
	uint64_t pending = 0;
	_cleanup_fclose_ FILE *status = NULL;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "SigPnd: %" SCNx64, &pending) == 1)
			break;
	return pending & 1ull << (5 - 1); /* SIGTRAP */
}

/*
 * With -start and -stop a thread runs freely until a breakpoint of the CPU stops it at a start;
 * from there on it is stepped until it reaches a stop. This changes no byte of the target and needs
 * only ptrace's rights.
 */

/* DR7's bit L<i>; the fields R/W and LEN stay 0: on execution (Intel SDM vol. 3, 18.2.4). */
#define DR7_ENABLE(i) (1ul << (2 * (i)))

/* Finds the addresses of all places in the executable mappings. 0 or -ENOMEM. */
static int find_all(const struct mappings *maps, const struct rec_place *places, size_t n,
		    address_vec *ips)
{
	uint64_t ip;
	int err = 0;

	ips->n = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < maps->n && !err; k++) {
			const struct rec_map map = process_note__map(0, &maps->v[k], 0);

			if (maps->v[k].prot & PROT_EXEC && rec_map__has(&map, &places[i], &ip))
				err = VEC_ADD(ips, ip);
		}
	return err;
}

/* Finds the addresses of -start and -stop, by the mappings as last seen. */
static void find_places(struct stepper *s)
{
	const struct source_config *c = s->config;
	int err = find_all(&s->maps, c->starts, c->n_starts, &s->starts);

	if (!err)
		err = find_all(&s->maps, c->stops, c->n_stops, &s->stops);
	if (s->starts.n > SOFT_MAX_STARTS) {
		s->starts.n = SOFT_MAX_STARTS;
		err = -E2BIG;
	}
	if (err)
		s->shared->breakpoint_error = -err;
}

static void set_register(const struct stepped *t, unsigned int i, uint64_t value)
{
	if (ptrace(PTRACE_POKEUSER, t->tid, offsetof(struct user, u_debugreg) + i * sizeof(long),
		   value) &&
	    errno != ESRCH)
		t->shared->breakpoint_error = errno;
}

/* Sets the breakpoints at the starts, in a thread that is stopped. */
static void set_breakpoints(struct stepper *s, struct stepped *t)
{
	unsigned long enabled = 0;

	for (size_t i = 0; i < s->starts.n; i++) {
		set_register(t, (unsigned int)i, s->starts.v[i]);
		enabled |= DR7_ENABLE(i);
	}
	set_register(t, 7, enabled);
	t->has_breakpoints = enabled;
}

static void clear_breakpoints(struct stepped *t)
{
	if (t->has_breakpoints)
		set_register(t, 7, 0);
	t->has_breakpoints = false;
}

static bool is_one_of(const address_vec *ips, uint64_t ip)
{
	return VEC_FIND(ips, e, *e == ip);
}

/* Sets the state, and wakes mtbpf with one byte; mtbpf reads the state from shared memory. */
static void publish(struct stepper *s, enum soft_state state)
{
	s->shared->state = state;
	if (write(s->control_fd, "s", 1) < 0)
		s->orphan = true;
}

static void go_on(struct stepped *t)
{
	int request = t->waiting ? PTRACE_CONT : PTRACE_SINGLESTEP;

	t->stopped = false;
	/* ESRCH: killed meanwhile; its exit is reported next. */
	ptrace(request, t->tid, 0, t->inject);
	t->inject = 0;
}

static void detach(struct stepper *s, struct stepped *t, bool in_syscall)
{
	struct user_regs_struct regs;

	if (!t->waiting && !ptrace(PTRACE_GETREGS, t->tid, 0, &regs))
		end_trace(t, in_syscall);
	clear_breakpoints(t);
	process__thread_name(s->config->pid, t->tid, t->out->comm);
	ptrace(PTRACE_DETACH, t->tid, 0, t->inject);
	remove_thread(s, t);
}

/* Running threads stop by themselves within a step; sleeping ones must be told. */
static void begin_freeze(struct stepper *s)
{
	s->freezing = true;
	s->shared->frozen_ns = clock__now_ns();
	for (size_t i = 0; i < s->n; i++) {
		struct stepped *t = &s->threads[i];

		if (t->attached && !t->stopped)
			ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
	}
}

static bool freeze_wanted(struct stepper *s, int timeout_ms)
{
	struct pollfd fds[3] = {
		{s->control_fd, POLLIN, 0},
		{s->config->freeze_fd, POLLIN, 0},
		{s->signal_fd, POLLIN, 0},
	};
	struct signalfd_siginfo info;
	char command;

	/* While threads are stepped (timeout 0), polls only what can request a freeze. */
	if (poll(fds, timeout_ms ? 3 : 2, timeout_ms) <= 0)
		return false;
	if (fds[2].revents)
		while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info))
			;
	if (fds[1].revents & POLLIN)
		return true;
	if (!fds[0].revents)
		return false;
	if (read(s->control_fd, &command, 1) != 1)
		s->orphan = true;
	return s->orphan || command == SOFT_COMMAND_FREEZE;
}

/* The most bytes per step: a PSB and all that belongs to it, and more. */
#define STEP_ROOM 1024

/* For a ring that mtbpf drains: tells mtbpf at half a ring, and waits while the ring is full. */
static void make_ready(struct stepper *s, struct stepped *t)
{
	uint64_t before = t->out->ready - t->out->taken, size = s->shared->ring_size;
	uint64_t since;

	t->out->ready = t->out->written;
	if (before <= size / 2 && t->out->ready - t->out->taken > size / 2)
		publish(s, SOFT_RUNNING);
	if (t->out->written - t->out->taken <= size - STEP_ROOM)
		return;
	since = clock__now_ns();
	publish(s, SOFT_RUNNING);
	while (!s->freezing && !s->orphan && t->out->written - t->out->taken > size - STEP_ROOM)
		if (freeze_wanted(s, 1))
			begin_freeze(s);
	s->shared->waited_ns += clock__now_ns() - since;
}

/*
 * The thread stopped between two instructions: step on, or release it if it is to freeze. The
 * probe's program ran during the step, so a trigger is known here: not one more instruction runs.
 */
static void stopped_clean(struct stepper *s, struct stepped *t)
{
	if (!s->freezing && freeze_wanted(s, 0))
		begin_freeze(s);
	if (s->config->spool_dir)
		make_ready(s, t);
	if (s->freezing)
		detach(s, t, false);
	else
		go_on(t);
}

static void on_trap(struct stepper *s, struct stepped *t, const siginfo_t *info)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, t->tid, 0, &regs))
		return;
	if (info->si_code == SIGTRAP) {
		/* signal_setup_done(): stopped on a handler's first instruction. */
		set_time(t, t->fetched_ns);
		if (t->stream.enabled)
			pt_stream__disable_async(&t->stream, t->ip);
		truth__signal(&t->truth, regs.rip, regs.rsp);
	} else if (info->si_code == SI_USER) {
		/*
		 * The fetched instruction has a uprobe: the kernel handled its int3 and continued
		 * after the instruction, which cannot be read: if it pushed and went far, it was a
		 * call.
		 */
		set_time(t, t->fetched_ns);
		t->shared->steps++;
		if (!t->stream.enabled)
			pt_stream__enable(&t->stream, t->ip);
		pt_stream__disable_async(&t->stream, t->ip);
		if (regs.rsp == t->sp - 8 && regs.rip - t->ip > INSN_MAX_LEN)
			truth__call(&t->truth, t->fetched_ns, regs.rip, regs.rsp);
	} else if (t->skip_next) {
		t->skip_next = false;
	} else if (on_executed(t, &regs)) {
		syscall_done(s, t);
	}
	fetch(t, &regs);
	if (t->is_unreadable && find_uprobes(s, t->ip))
		fetch(t, &regs);
	/* Before a stop of a region: the thread runs freely from here on. */
	if (is_one_of(&s->stops, t->ip)) {
		end_trace(t, false);
		truth__reset(&t->truth);
		t->waiting = true;
		set_breakpoints(s, t);
	}
	stopped_clean(s, t);
}

/*
 * SIGTRAPs of stepping itself are a step (TRAP_TRACE, TRAP_BRKPT after a syscall), the entry of a
 * handler (si_code SIGTRAP), and, under a uprobe, the one that arch_uprobe_skip_sstep() and
 * arch_uprobe_post_xol() send to a task with the trap flag (SI_USER). Others belong to the target.
 */
static void on_signal(struct stepper *s, struct stepped *t, int sig)
{
	struct user_regs_struct regs;
	bool is_step = false;
	siginfo_t info;

	if (ptrace(PTRACE_GETSIGINFO, t->tid, 0, &info)) {
		stopped_clean(s, t);
		return;
	}
	if (sig == SIGTRAP && !t->waiting)
		is_step = info.si_code == TRAP_TRACE || info.si_code == TRAP_BRKPT ||
			  info.si_code == SIGTRAP || (info.si_code == SI_USER && t->under_probe);
	if (is_step) {
		on_trap(s, t, &info);
		return;
	}
	if (sig != SIGTRAP || !t->has_breakpoints || info.si_code != TRAP_HWBKPT) {
		t->inject = sig;
	} else if (!ptrace(PTRACE_GETREGS, t->tid, 0, &regs) && is_one_of(&s->starts, regs.rip)) {
		/* A breakpoint stopped the thread before a start of a region. */
		clear_breakpoints(t);
		t->waiting = false;
		fetch(t, &regs);
	}
	stopped_clean(s, t);
}

/* After PTRACE_INTERRUPT, or a new thread's first stop, or a job-control stop. */
static void on_event_stop(struct stepper *s, struct stepped *t, int sig)
{
	struct user_regs_struct regs;
	bool in_syscall;

	if (sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU) {
		if (s->freezing) {
			detach(s, t, false);
		} else {
			t->stopped = false;
			ptrace(PTRACE_LISTEN, t->tid, 0, 0);
		}
		return;
	}
	/*
	 * The last step's trap, or a breakpoint's, may still be pending; a detached thread would
	 * die of it.
	 */
	if (s->freezing && trap_pending(t->tid)) {
		t->stopped = false;
		ptrace(PTRACE_CONT, t->tid, 0, 0);
		return;
	}
	if (t->waiting || ptrace(PTRACE_GETREGS, t->tid, 0, &regs)) {
		stopped_clean(s, t);
		return;
	}
	/* The kernel will restart the syscall, or is still in it. */
	in_syscall = (long)regs.orig_rax >= 0 && (long)regs.rax <= -ERESTARTSYS &&
		     (long)regs.rax >= -ERESTART_RESTARTBLOCK;
	if (in_syscall)
		regs.rip -= 2;
	if (s->freezing) {
		detach(s, t, in_syscall);
		return;
	}
	fetch(t, &regs);
	go_on(t);
}

/* The thread has ended, or executes another program: its trace ends in or before the instruction.
 */
static void end_at_fetched(struct stepped *t)
{
	if (!t->waiting && t->fetched_ns)
		end_trace(t, t->insn.cls == INSN_SYSCALL);
}

/*
 * If another thread than the main one, `t`, has called execve(2), it has taken the main thread's
 * tid, and the main thread has ended.
 */
static void on_exec(struct stepper *s, struct stepped *t)
{
	unsigned long former = (unsigned long)t->tid;
	struct stepped *caller;

	ptrace(PTRACE_GETEVENTMSG, t->tid, 0, &former);
	caller = find_thread(s, (pid_t)former);
	end_at_fetched(t);
	if (caller && caller != t) {
		end_at_fetched(caller);
		remove_thread(s, caller);
		t->waiting = caller->waiting;
	}
	s->executed = true;
	/* execve(2) has removed the thread's breakpoints. */
	t->waiting = t->waiting && s->config->n_starts;
	t->has_breakpoints = false;
	t->skip_next = !t->waiting;
	truth__reset(&t->truth);
	process__thread_name(s->config->pid, t->tid, t->out->comm);
	scan_maps(s);
	find_places(s);
	if (t->waiting)
		set_breakpoints(s, t);
}

static void on_event(struct stepper *s, struct stepped *t, int event)
{
	if (event == PTRACE_EVENT_EXEC)
		on_exec(s, t);
	/* Inside execve or clone: what the instruction did is reported when it is done. */
	if (s->freezing)
		detach(s, t, true);
	else
		go_on(t);
}

static void on_wait(struct stepper *s, pid_t tid, int status)
{
	struct stepped *t = find_thread(s, tid);
	int event = status >> 16;

	if (!t && WIFSTOPPED(status))
		t = add_thread(s, tid);
	if (!t) {
		if (WIFSTOPPED(status))
			ptrace(PTRACE_DETACH, tid, 0, 0);
		return;
	}
	if (!WIFSTOPPED(status)) {
		end_at_fetched(t);
		remove_thread(s, t);
		return;
	}
	seen(s, t);
	t->stopped = true;
	if (t->waiting && !t->has_breakpoints && s->starts.n)
		set_breakpoints(s, t);
	if (event == PTRACE_EVENT_STOP)
		on_event_stop(s, t, WSTOPSIG(status));
	else if (event)
		on_event(s, t, event);
	else
		on_signal(s, t, WSTOPSIG(status));
}

/*
 * Steps until no thread is left. Polls STEPPER_SPINS times before it sleeps: a step takes some ten
 * microseconds, and in a VM, sleeping and waking takes longer (measured in a VM: 38 us per step;
 * 95 us with 64 polls).
 */
static void step_all(struct stepper *s)
{
	while (s->live) {
		pid_t tid = 0;
		int status;

		for (int i = 0; i < STEPPER_SPINS && !tid; i++)
			tid = waitpid(-1, &status, __WALL | WNOHANG);
		if (tid < 0)
			break;
		if (tid) {
			on_wait(s, tid, status);
			if (s->freezing)
				s->shared->stuck = (int)s->live;
		} else if (s->freezing) {
			poll(&(struct pollfd){s->signal_fd, POLLIN, 0}, 1, 100);
		} else if (freeze_wanted(s, -1)) {
			begin_freeze(s);
		}
	}
}

void stepper__run(struct soft_shared *shared, const struct source_config *config,
		  const struct pt_stream_config *stream, int control_fd)
{
	struct stepper s = {
		.shared = shared, .config = config, .stream = stream, .control_fd = control_fd};
	sigset_t all;
	int err;

	/* Ctrl-C and the like are mtbpf's; a stepper that dies takes the target with it. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	s.signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	s.threads = calloc(SOFT_MAX_THREADS, sizeof(*s.threads));
	if (config->truth_path)
		s.truth = fopen(config->truth_path, "we");
	err = s.signal_fd < 0 || !s.threads || (config->truth_path && !s.truth) ? -errno
										: seize_all(&s);
	if (err) {
		/* Releases the seized threads: nothing has been stepped yet. */
		s.freezing = true;
		shared->error = -err;
	} else {
		scan_maps(&s);
		find_places(&s);
		publish(&s, SOFT_RUNNING);
	}
	step_all(&s);
	if (s.truth)
		fflush(s.truth);
	publish(&s, err ? SOFT_FAILED : s.freezing ? SOFT_FROZEN : SOFT_EXITED);
	for (size_t i = 0; i < s.n; i++)
		truth__fini(&s.threads[i].truth);
	free(s.threads);
	VEC_FINI(&s.starts);
	VEC_FINI(&s.stops);
	mappings__fini(&s.maps);
	if (s.truth)
		fclose(s.truth);
}
