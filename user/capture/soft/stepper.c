// SPDX-License-Identifier: MIT
#include "capture/soft/stepper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/soft/stepped.h"
#include "capture/soft/stepper_internal.h"
#include "target/process.h"
#include "util/clock.h"

/* One byte wakes mtbpf; it reads the state from shared memory. */
static void publish(struct stepper *s, enum soft_state state)
{
	s->shared->state = state;
	if (write(s->config->control_fd, "s", 1) < 0)
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
		stepped__end(t, in_syscall);
	stepper__clear_breakpoints(t);
	process__thread_name(s->config->pid, t->tid, t->out->comm);
	ptrace(PTRACE_DETACH, t->tid, 0, t->inject);
	stepper__remove_thread(s, t);
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
		{s->config->control_fd, POLLIN, 0},
		{s->config->freeze_fd, POLLIN, 0},
		{s->signal_fd, POLLIN, 0},
	};
	struct signalfd_siginfo info;
	char command;

	/* While it steps, only what may stop it is looked at. */
	if (poll(fds, timeout_ms ? 3 : 2, timeout_ms) <= 0)
		return false;
	if (fds[2].revents)
		while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info))
			;
	if (fds[1].revents & POLLIN)
		return true;
	if (!fds[0].revents)
		return false;
	if (read(s->config->control_fd, &command, 1) != 1)
		s->orphan = true;
	return s->orphan || command == SOFT_COMMAND_FREEZE;
}

/* What a step may write: a PSB and all that belongs to it, and more. */
#define STEP_ROOM 1024

/* While mtbpf does not take what is in the ring, the thread does not go on. */
static void wait_for_room(struct stepper *s, struct stepped *t)
{
	uint64_t since = clock__now_ns();

	publish(s, SOFT_RUNNING);
	while (!s->freezing && !s->orphan &&
	       t->out->written - t->out->taken > s->shared->ring_size - STEP_ROOM)
		if (freeze_wanted(s, 1))
			begin_freeze(s);
	s->shared->waited_ns += clock__now_ns() - since;
}

static void make_ready(struct stepper *s, struct stepped *t)
{
	uint64_t before = t->out->ready - t->out->taken, size = s->shared->ring_size;

	t->out->ready = t->out->written;
	if (before <= size / 2 && t->out->ready - t->out->taken > size / 2)
		publish(s, SOFT_RUNNING);
	if (t->out->written - t->out->taken > size - STEP_ROOM)
		wait_for_room(s, t);
}

/*
 * A stop between two instructions: step on, or let go where the freeze has come. The probe's
 * program ran during the step, so a trigger is known here: not one more instruction runs.
 */
static void stopped_clean(struct stepper *s, struct stepped *t)
{
	if (!s->freezing && freeze_wanted(s, 0))
		begin_freeze(s);
	if (s->config->keeps_all)
		make_ready(s, t);
	if (s->freezing)
		detach(s, t, false);
	else
		go_on(t);
}

/* Whether it was in front of a stop, and runs freely from here on. */
static bool left_region(struct stepper *s, struct stepped *t)
{
	if (!stepper__is_stop(s, t->ip))
		return false;
	stepped__leave(t);
	t->waiting = true;
	stepper__set_breakpoints(s, t);
	return true;
}

/* A breakpoint: it is in front of a start. */
static void enter_region(struct stepper *s, struct stepped *t)
{
	struct user_regs_struct regs;

	if (!ptrace(PTRACE_GETREGS, t->tid, 0, &regs) && stepper__is_start(s, regs.rip)) {
		stepper__clear_breakpoints(t);
		t->waiting = false;
		stepped__fetch(t, &regs);
	}
	stopped_clean(s, t);
}

static void on_trap(struct stepper *s, struct stepped *t, const siginfo_t *info)
{
	struct user_regs_struct regs;
	enum step_effect effect = STEP_PLAIN;

	if (ptrace(PTRACE_GETREGS, t->tid, 0, &regs))
		return;
	if (info->si_code == SIGTRAP)
		/* signal_setup_done(): stopped on a handler's first instruction. */
		stepped__signalled(t, &regs);
	else if (info->si_code == SI_USER)
		stepped__probed(t, &regs);
	else if (t->skip_next)
		t->skip_next = false;
	else
		effect = stepped__executed(t, &regs);
	if (effect == STEP_SYSCALL)
		stepper__syscall_done(s, t);
	stepped__fetch(t, &regs);
	if (t->is_unreadable && stepper__find_uprobes(s, t->ip))
		stepped__fetch(t, &regs);
	left_region(s, t);
	stopped_clean(s, t);
}

/*
 * Which SIGTRAPs are stepping's own? A step (TRAP_TRACE, TRAP_BRKPT behind a syscall), the entry of
 * a handler (si_code SIGTRAP), and, under a uprobe, the one that arch_uprobe_skip_sstep() and
 * arch_uprobe_post_xol() send to a task with the trap flag (SI_USER). Others are the target's.
 */
static bool is_ours(const struct stepped *t, const siginfo_t *info)
{
	switch (info->si_code) {
	case TRAP_TRACE:
	case SIGTRAP:
		return true;
	case TRAP_BRKPT:
		return true;
	case SI_USER:
		return t->under_probe;
	}
	return false;
}

static void on_signal(struct stepper *s, struct stepped *t, int sig)
{
	siginfo_t info;

	if (ptrace(PTRACE_GETSIGINFO, t->tid, 0, &info)) {
		stopped_clean(s, t);
		return;
	}
	if (sig == SIGTRAP && !t->waiting && is_ours(t, &info)) {
		on_trap(s, t, &info);
		return;
	}
	if (sig == SIGTRAP && t->has_breakpoints && info.si_code == TRAP_HWBKPT) {
		enter_region(s, t);
		return;
	}
	t->inject = sig;
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
	 * The last step's trap, or a breakpoint's, may still wait behind this stop; a detached
	 * thread would die of it.
	 */
	if (s->freezing && stepper__trap_pending(t->tid)) {
		t->stopped = false;
		ptrace(PTRACE_CONT, t->tid, 0, 0);
		return;
	}
	if (t->waiting || ptrace(PTRACE_GETREGS, t->tid, 0, &regs)) {
		stopped_clean(s, t);
		return;
	}
	in_syscall = stepper__rewind_syscall(&regs);
	if (s->freezing) {
		detach(s, t, in_syscall);
		return;
	}
	stepped__fetch(t, &regs);
	go_on(t);
}

static void on_event(struct stepper *s, struct stepped *t, int event)
{
	if (event == PTRACE_EVENT_EXEC) {
		/* Its breakpoints are gone with what it ran. */
		t->waiting = t->waiting && s->config->n_starts;
		t->has_breakpoints = false;
		if (!t->waiting)
			stepped__exec(t);
		process__thread_name(s->config->pid, t->tid, t->out->comm);
		stepper__scan_maps(s);
		stepper__find_places(s);
		if (t->waiting)
			stepper__set_breakpoints(s, t);
	}
	/* Inside execve or clone: what the instruction did is reported when it is done. */
	if (s->freezing)
		detach(s, t, true);
	else
		go_on(t);
}

static void on_wait(struct stepper *s, pid_t tid, int status)
{
	struct stepped *t = stepper__find_thread(s, tid);
	int event = status >> 16;

	if (!t && WIFSTOPPED(status))
		t = stepper__add_thread(s, tid);
	if (!t) {
		if (WIFSTOPPED(status))
			ptrace(PTRACE_DETACH, tid, 0, 0);
		return;
	}
	if (!WIFSTOPPED(status)) {
		/* It ended in or before the fetched instruction: that is where its trace ends. */
		if (t->fetched_ns)
			stepped__end(t, t->insn.cls == INSN_SYSCALL);
		stepper__remove_thread(s, t);
		return;
	}
	stepper__seen(s, t);
	t->stopped = true;
	if (t->waiting && !t->has_breakpoints && s->n_starts)
		stepper__set_breakpoints(s, t);
	if (event == PTRACE_EVENT_STOP)
		on_event_stop(s, t, WSTOPSIG(status));
	else if (event)
		on_event(s, t, event);
	else
		on_signal(s, t, WSTOPSIG(status));
}

static pid_t wait_any(struct stepper *s, int *status)
{
	pid_t tid;

	/*
	 * A step takes some ten microseconds; to sleep and be woken, in a VM, more than twice that
	 * again (measured: 38 us a step so, 95 us with 64 looks).
	 */
	for (int i = 0; i < STEPPER_SPINS; i++) {
		tid = waitpid(-1, status, __WALL | WNOHANG);
		if (tid)
			return tid;
	}
	if (!s->freezing && freeze_wanted(s, -1))
		begin_freeze(s);
	else if (s->freezing)
		poll(&(struct pollfd){s->signal_fd, POLLIN, 0}, 1, 100);
	return 0;
}

static void step_all(struct stepper *s)
{
	while (s->live) {
		int status;
		pid_t tid = wait_any(s, &status);

		if (tid < 0)
			break;
		if (!tid)
			continue;
		on_wait(s, tid, status);
		if (s->freezing)
			s->shared->stuck = (int)s->live;
	}
}

static int stepper__init(struct stepper *s, struct soft_shared *shared,
			 const struct stepper_config *config)
{
	sigset_t all;

	*s = (struct stepper){.shared = shared, .config = config};
	/* Ctrl-C and the like are mtbpf's; a stepper that dies takes the target with it. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	s->signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	s->threads = calloc(SOFT_MAX_THREADS, sizeof(*s->threads));
	if (config->truth_path)
		s->truth = fopen(config->truth_path, "we");
	if (s->signal_fd < 0 || !s->threads || (config->truth_path && !s->truth))
		return -errno;
	return 0;
}

static void stepper__fini(struct stepper *s)
{
	for (size_t i = 0; i < s->n; i++)
		stepped__fini(&s->threads[i]);
	free(s->threads);
	mappings__fini(&s->maps);
	if (s->truth)
		fclose(s->truth);
}

void stepper__run(struct soft_shared *shared, const struct stepper_config *config)
{
	struct stepper s;
	int err = stepper__init(&s, shared, config);

	if (!err)
		err = stepper__seize_all(&s);
	if (err) {
		/* What was seized is let go: nothing has been stepped yet. */
		s.freezing = true;
		shared->error = -err;
	} else {
		stepper__scan_maps(&s);
		stepper__find_places(&s);
		publish(&s, SOFT_RUNNING);
	}
	step_all(&s);
	if (s.truth)
		fflush(s.truth);
	publish(&s, err ? SOFT_FAILED : s.freezing ? SOFT_FROZEN : SOFT_EXITED);
	stepper__fini(&s);
}
