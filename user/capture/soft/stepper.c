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
#include <sys/wait.h>
#include <unistd.h>

#include "capture/code/live_code.h"
#include "capture/soft/stepped.h"
#include "target/process.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/vec.h"

#define STEPPER_SPINS 500

typedef VEC(uint64_t) address_vec;

struct stepper {
	struct soft_shared *shared;
	const struct stepper_config *config;
	struct stepped *threads; /* SOFT_MAX_THREADS; n used, live of them attached */
	size_t n, live;
	int signal_fd; /* SIGCHLD: something stopped */
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

/* Attached threads only; NULL: none of that tid. */
static struct stepped *find_thread(struct stepper *s, pid_t tid)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->threads[i].tid == tid && s->threads[i].attached)
			return &s->threads[i];
	return NULL;
}

/* Adds a seized thread. NULL: there are SOFT_MAX_THREADS. */
static struct stepped *add_thread(struct stepper *s, pid_t tid)
{
	struct stepped *t;

	if (s->n == SOFT_MAX_THREADS) {
		s->shared->lost_threads++;
		return NULL;
	}
	t = &s->threads[s->n];
	stepped__init(t, tid, s->shared, (uint32_t)s->n, &s->config->stream, s->truth);
	process__thread_name(s->config->pid, tid, t->out->comm);
	t->attached = true;
	t->waiting = s->config->from_exec || s->config->n_starts;
	s->n++;
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

static void seize_thread(struct stepper *s, pid_t tid)
{
	struct stepped *t = add_thread(s, tid);

	if (!t) {
		ptrace(PTRACE_DETACH, tid, 0, 0);
	} else if (!s->config->from_exec) {
		t->unseen = true;
		s->shared->unseen++;
		ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	}
}

/*
 * Seizes and interrupts every thread of the target. New ones may start while we look: until a whole
 * pass finds none. 0 or -errno.
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
			if (find_thread(s, tids[i]))
				continue;
			if (!ptrace(PTRACE_SEIZE, tids[i], 0, SEIZE_OPTIONS)) {
				found = true;
				seize_thread(s, tids[i]);
			} else if (errno != ESRCH) {
				return -errno;
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

static bool is_listed(const struct mappings *maps, const struct mapping *m)
{
	const struct mapping *old = mappings__find(maps, m->start);

	return old && old->start == m->start && old->end == m->end && old->pgoff == m->pgoff &&
	       old->ino == m->ino && old->prot == m->prot && !strcmp(old->path, m->path);
}

static void append(struct soft_shared *shared, pid_t pid, const struct mapping *m, uint64_t now)
{
	struct soft_map *out;

	if (shared->n_maps == SOFT_MAX_MAPS) {
		shared->lost_maps++;
		return;
	}
	/* The kernel maps this page on the way to it, with no syscall to be seen: it was always
	 * there. */
	if (!strcmp(m->path, "[uprobes]") && shared->n_maps)
		now = shared->maps[0].map.time_ns;
	out = &shared->maps[shared->n_maps++];
	out->map = process_note__map(pid, m, now);
	snprintf(out->path, sizeof(out->path), "%s", m->path);
}

/* Appends mappings not seen before to the shared list. */
static void scan_maps(struct stepper *s)
{
	uint64_t now = clock__now_ns();
	struct mappings maps;

	if (mappings__read(&maps, s->config->pid))
		return;
	for (size_t i = 0; i < maps.n; i++)
		if (maps.v[i].prot & PROT_EXEC && !is_listed(&s->maps, &maps.v[i]))
			append(s->shared, s->config->pid, &maps.v[i], now);
	mappings__fini(&s->maps);
	s->maps = maps;
}

/*
 * No code can be read at ip: is that because the kernel has mapped its [uprobes] page meanwhile?
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
		/* PR_SET_NAME; an exited thread's name cannot be read. */
		process__thread_name(s->config->pid, t->tid, t->out->comm);
	}
}

/* A step's SIGTRAP is queued for the thread. */
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
 * True where a stop interrupted a syscall that the kernel will restart or that is still under way;
 * regs->rip is set back to the syscall instruction.
 */
static bool rewind_syscall(struct user_regs_struct *regs)
{
	long result = (long)regs->rax;

	if ((long)regs->orig_rax < 0)
		return false;
	if (result > -ERESTARTSYS || result < -ERESTART_RESTARTBLOCK)
		return false;
	regs->rip -= 2;
	return true;
}

/*
 * With -start and -stop a thread runs freely until a breakpoint of the CPU stops it at a start;
 * from there on it is stepped until it reaches a stop. This changes no byte of the target and needs
 * only ptrace's rights.
 */

/* DR7's bit that enables breakpoint i, of any length, on execution (Intel SDM vol. 3, 18.2.4). */
#define DR7_ENABLE(i) (1ul << (2 * (i)))

/* 0 or -ENOMEM. */
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
	const struct stepper_config *c = s->config;
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
	for (size_t i = 0; i < ips->n; i++)
		if (ips->v[i] == ip)
			return true;
	return false;
}

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

/* The most bytes per step: a PSB and all that belongs to it, and more. */
#define STEP_ROOM 1024

/* Waits while the ring is full, until mtbpf has read from it. */
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
 * The thread stopped between two instructions: step on, or release it if it is to freeze. The
 * probe's program ran during the step, so a trigger is known here: not one more instruction runs.
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

/* A breakpoint stopped the thread before a start of a region. */
static void enter_region(struct stepper *s, struct stepped *t)
{
	struct user_regs_struct regs;

	if (!ptrace(PTRACE_GETREGS, t->tid, 0, &regs) && is_one_of(&s->starts, regs.rip)) {
		clear_breakpoints(t);
		t->waiting = false;
		stepped__fetch(t, &regs);
	}
	stopped_clean(s, t);
}

static void on_trap(struct stepper *s, struct stepped *t, const siginfo_t *info)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, t->tid, 0, &regs))
		return;
	if (info->si_code == SIGTRAP)
		/* signal_setup_done(): stopped on a handler's first instruction. */
		stepped__signalled(t, &regs);
	else if (info->si_code == SI_USER)
		stepped__probed(t, &regs);
	else if (t->skip_next)
		t->skip_next = false;
	else if (stepped__executed(t, &regs))
		syscall_done(s, t);
	stepped__fetch(t, &regs);
	if (t->is_unreadable && find_uprobes(s, t->ip))
		stepped__fetch(t, &regs);
	/* Before a stop of a region: the thread runs freely from here on. */
	if (is_one_of(&s->stops, t->ip)) {
		stepped__leave(t);
		t->waiting = true;
		set_breakpoints(s, t);
	}
	stopped_clean(s, t);
}

/*
 * True for SIGTRAPs of stepping itself: a step (TRAP_TRACE, TRAP_BRKPT after a syscall), the entry
 * of a handler (si_code SIGTRAP), and, under a uprobe, the one that arch_uprobe_skip_sstep() and
 * arch_uprobe_post_xol() send to a task with the trap flag (SI_USER). Others belong to the target.
 */
static bool is_ours(const struct stepped *t, const siginfo_t *info)
{
	int code = info->si_code;

	return code == TRAP_TRACE || code == TRAP_BRKPT || code == SIGTRAP ||
	       (code == SI_USER && t->under_probe);
}

static void on_signal(struct stepper *s, struct stepped *t, int sig)
{
	siginfo_t info;

	if (ptrace(PTRACE_GETSIGINFO, t->tid, 0, &info)) {
		stopped_clean(s, t);
	} else if (sig == SIGTRAP && !t->waiting && is_ours(t, &info)) {
		on_trap(s, t, &info);
	} else if (sig == SIGTRAP && t->has_breakpoints && info.si_code == TRAP_HWBKPT) {
		enter_region(s, t);
	} else {
		t->inject = sig;
		stopped_clean(s, t);
	}
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
	in_syscall = rewind_syscall(&regs);
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
		scan_maps(s);
		find_places(s);
		if (t->waiting)
			set_breakpoints(s, t);
	}
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
		/* It ended in or before the fetched instruction: that is where its trace ends. */
		if (t->fetched_ns)
			stepped__end(t, t->insn.cls == INSN_SYSCALL);
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

static int init(struct stepper *s, struct soft_shared *shared, const struct stepper_config *config)
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

static void fini(struct stepper *s)
{
	for (size_t i = 0; i < s->n; i++)
		stepped__fini(&s->threads[i]);
	free(s->threads);
	VEC_FINI(&s->starts);
	VEC_FINI(&s->stops);
	mappings__fini(&s->maps);
	if (s->truth)
		fclose(s->truth);
}

void stepper__run(struct soft_shared *shared, const struct stepper_config *config)
{
	struct stepper s;
	int err = init(&s, shared, config);

	if (!err)
		err = seize_all(&s);
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
	fini(&s);
}
