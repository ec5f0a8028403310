/* SPDX-License-Identifier: MIT */
/* Between the stepper's files: its state, and what it asks /proc. */
#ifndef MTBPF_CAPTURE_SOFT_STEPPER_INTERNAL_H
#define MTBPF_CAPTURE_SOFT_STEPPER_INTERNAL_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/user.h>

#include "capture/soft/shared.h"
#include "capture/soft/stepper.h"
#include "target/maps.h"

#define STEPPER_SPINS 500
/* Of a USDT probe, say: so many are looked for. */
#define SOFT_MAX_PLACES 64

struct stepped;

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
	/* Where the target has config's starts and stops. */
	uint64_t starts[SOFT_MAX_PLACES], stops[SOFT_MAX_PLACES];
	size_t n_starts, n_stops;
};

/* Attached threads only; NULL: none of that tid. */
struct stepped *stepper__find_thread(struct stepper *s, pid_t tid);
/* One that is seized. NULL: there are SOFT_MAX_THREADS. */
struct stepped *stepper__add_thread(struct stepper *s, pid_t tid);
/* It has stopped, and from now on does nothing but step. */
void stepper__seen(struct stepper *s, struct stepped *t);
/* It has ended, or was let go. */
void stepper__remove_thread(struct stepper *s, struct stepped *t);
/* Seizes and interrupts every thread of the target. 0 or -errno. */
int stepper__seize_all(struct stepper *s);

/* Where they are, by the mappings as last seen. */
void stepper__find_places(struct stepper *s);
/* A thread that has stopped will stop at the starts, or will not any more. */
void stepper__set_breakpoints(struct stepper *s, struct stepped *t);
void stepper__clear_breakpoints(struct stepped *t);
bool stepper__is_start(const struct stepper *s, uint64_t ip);
bool stepper__is_stop(const struct stepper *s, uint64_t ip);

/* t's syscall has returned: the mappings, or its name, may not be what they were. */
void stepper__syscall_done(struct stepper *s, struct stepped *t);
/* Appends mappings not seen before to the shared list. */
void stepper__scan_maps(struct stepper *s);
/*
 * No code can be read at ip: is that because the kernel has mapped its [uprobes] page meanwhile?
 */
bool stepper__find_uprobes(struct stepper *s, uint64_t ip);
/* A step's SIGTRAP is queued for the thread. */
bool stepper__trap_pending(pid_t tid);
/*
 * True where a stop interrupted a syscall that the kernel will restart or that is still under way;
 * regs->rip is set back to the syscall instruction.
 */
bool stepper__rewind_syscall(struct user_regs_struct *regs);

#endif
