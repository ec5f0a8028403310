/* SPDX-License-Identifier: MIT */
/*
 * Signals: held while a capture runs, or ending work on files immediately; SIGBUS, if a mapped file
 * is cut short; and SIGKILL, for children without their parent.
 */
#ifndef MTBPF_UTIL_SIGNALS_H
#define MTBPF_UTIL_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Blocks SIGINT, SIGTERM and SIGHUP until they are read or released. Also blocks SIGPIPE, which is
 * not read: a capture must not be lost because its reader has gone.
 */
void interrupts__hold(void);
/*
 * Unblocks these signals. They end mtbpf, as by default; pending ones do so immediately, except
 * SIGPIPE and SIGINT, which are discarded: a pending Ctrl-C is a second one, after the one that was
 * read.
 */
void interrupts__release(void);

/* Blocks SIGUSR1, which requests a snapshot: from here on it waits and does not end mtbpf. */
void interrupts__hold_requests(void);

/* Blocks these signals in this thread, around work that must not be left half done. */
void interrupts__block(sigset_t *before);
void interrupts__unblock(const sigset_t *before);

/* The signals that are held, for the mask of a child. */
void interrupts__set(sigset_t *set);

/*
 * Returns a descriptor that is readable while one of these signals is pending (signalfd(2)), to be
 * closed by the caller; or -errno.
 */
int interrupts__open(void);
/* Like interrupts__open(), but also readable while a request waits. */
int interrupts__open_with_requests(void);

/*
 * Signals that end long work on files (Ctrl-C, SIGTERM, SIGHUP) immediately. Half-written output is
 * removed, and a message says what is left.
 */

/*
 * From here on these signals print `text` (whole lines; not at LOG_QUIET) and end mtbpf, as they do
 * by default; ignored signals stay ignored. SIGPIPE is ignored: the work must not be lost because
 * its reader has gone. Text longer than STOP_TEXT_SIZE is cut.
 */
void stop__begin(const char *text);
/* Restores the earlier actions. Does nothing without stop__begin(). */
void stop__end(void);
#define STOP_TEXT_SIZE 16384

/*
 * Sets the half-written file or directory, which a signal between stop__begin() and stop__end()
 * removes. One at a time; NULL: none.
 */
void stop__set_partial(const char *path);

/*
 * Like fork(2), after all output is flushed. The child is killed when this process ends, since
 * nobody else reads its answer.
 */
pid_t child_process__fork(void);

/*
 * Files that are cut short while they are mapped: the missing part reads as zeroes instead of
 * ending the program, and such reads are remembered. Like every signal's action, this applies to
 * the whole process.
 */

/* Reads beyond the end of a truncated file give zeroes from now on. May be called repeatedly. */
void cut_files__survive(void);
/* True if such a read has happened. */
bool cut_files__any(void);
/* True if the first such read was in these bytes. */
bool cut_files__first_in(const void *start, size_t size);

#endif
