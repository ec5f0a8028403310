/* SPDX-License-Identifier: MIT */
/*
 * Signals: held while a capture runs, or ending work on files immediately; and SIGBUS, if a mapped
 * file is cut short.
 */
#ifndef MTBPF_UTIL_SIGNALS_H
#define MTBPF_UTIL_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Blocks these signals until they are read or released. Also blocks SIGPIPE, which is not read: a
 * capture must not be lost because its reader has gone.
 */
void interrupts__hold(void);
/*
 * Unblocks them: they end mtbpf, as by default, pending ones immediately. A second Ctrl-C that
 * followed one already read is discarded.
 */
void interrupts__release(void);

/* SIGUSR1, by which a snapshot is asked for: from here on it does not end mtbpf, but waits. */
void interrupts__hold_requests(void);

/* Blocks these signals in this thread, around work that must not be left half done. */
void interrupts__block(sigset_t *before);
void interrupts__unblock(const sigset_t *before);

/* The signals that are held, for the mask of a child. */
void interrupts__set(sigset_t *set);

/* A descriptor that is readable while one waits (see signalfd(2)); the caller closes it. -errno. */
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
 * Files that are cut short while they are mapped: what they lack reads as zeroes, instead of ending
 * the program, and is remembered. A signal is the process's, and so is what it leaves behind.
 */

/* Reads beyond the end of a truncated file give zeroes from now on. May be called repeatedly. */
void cut_files__survive(void);
/* True if such a read has happened. */
bool cut_files__any(void);
/* True if the first such read was in these bytes. */
bool cut_files__first_in(const void *start, size_t size);

#endif
