/* SPDX-License-Identifier: MIT */
/*
 * Being told to end (Ctrl-C, SIGTERM, SIGHUP) during long work on files: at once, wherever it is.
 * What is half done goes away, and one message says what is left.
 */
#ifndef MTBPF_UTIL_STOP_H
#define MTBPF_UTIL_STOP_H

/*
 * From here on these signals print `text` (lines with their ends; not at LOG_QUIET) and end mtbpf,
 * as they do by default; who ignores them goes on to. SIGPIPE is ignored: that nobody reads of the
 * work any more is no reason to lose it. Text that is longer than STOP_TEXT_SIZE is cut.
 */
void stop__begin(const char *text);
/* As it was before; nothing, where nothing has begun. */
void stop__end(void);
#define STOP_TEXT_SIZE 16384

/*
 * This file, or directory, is half written: whoever is told to end between stop__begin() and
 * stop__end() removes it. NULL: none is, any more. One at a time.
 */
void stop__set_partial(const char *path);

#endif
