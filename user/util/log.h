/* SPDX-License-Identifier: MIT */
/* Messages to the user on stderr. The level and the redrawn line are global. */
#ifndef MTBPF_UTIL_LOG_H
#define MTBPF_UTIL_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum log_level {
	LOG_SILENT, /* nothing: for trying what may well fail */
	LOG_QUIET,  /* errors, warnings and hints only */
	LOG_NORMAL,
	LOG_VERBOSE,
};

void log__set_level(enum log_level level);
enum log_level log__level(void);

static inline enum log_level log__silence(void)
{
	enum log_level before = log__level();

	log__set_level(LOG_SILENT);
	return before;
}

static inline void log__restore(const enum log_level *before)
{
	log__set_level(*before);
}

/* From here to the end of the block nothing is shown. A declaration. */
#define LOG_SILENTLY                                                                               \
	__attribute__((cleanup(log__restore), unused)) enum log_level log_level_before_ =          \
		log__silence()

/*
 * "mtbpf: <message>": call it once, where the cause is known. Shown at every level but LOG_SILENT,
 * as hints and warnings are.
 */
void log__error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* True if an error was shown, at a level that shows errors. */
bool log__has_error(void);
/* Notes for log__has_error() that a child process has shown an error. */
void log__note_error(void);
/* Below an error: what the user typed, and a caret under its character `at`. */
void log__caret(const char *text, size_t at);
/* "hint: <message>": what the user can do; follows the error. */
void log__hint(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "warning: <message>": the work goes on, but the user should know. */
void log__warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A line on the progress of the work; not at LOG_QUIET. */
void log__info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Only at LOG_VERBOSE. */
void log__debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* True if stderr is a terminal and the level is above LOG_QUIET: log__line() can be used. */
bool log__has_line(void);
/*
 * Replaces the terminal's last line, cut to its width. Does nothing without a terminal. Messages
 * erase it and take its place.
 */
void log__line(const char *text);
/* Erases the line that log__line() has shown. */
void log__end_line(void);

#endif
