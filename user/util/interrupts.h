/* SPDX-License-Identifier: MIT */
/* Ctrl-C and being told to end (SIGINT, SIGTERM, SIGHUP): read while a capture runs. */
#ifndef MTBPF_UTIL_INTERRUPTS_H
#define MTBPF_UTIL_INTERRUPTS_H

#include <signal.h>
#include <stdbool.h>

/*
 * From here on they wait, until they are read or released. So does SIGPIPE, which nobody reads:
 * that nobody wants to hear of a capture any more is no reason to lose it.
 */
void interrupts__hold(void);
/*
 * From here on they end mtbpf, as they do by default; those that wait, at once. But a second Ctrl-C
 * of someone impatient, who has had the first one read, is forgotten.
 */
void interrupts__release(void);

/* SIGUSR1, by which a snapshot is asked for: from here on it does not end mtbpf, but waits. */
void interrupts__hold_requests(void);

/* For what must not be left half done: they wait until it is done, in this thread. */
void interrupts__block(sigset_t *before);
void interrupts__unblock(const sigset_t *before);

/* The signals that are held, for the mask of a child. */
void interrupts__set(sigset_t *set);

/* A descriptor that is readable while one waits (see signalfd(2)); the caller closes it. -errno. */
int interrupts__open(void);
/* The same, also while a request waits. */
int interrupts__open_with_requests(void);

#endif
