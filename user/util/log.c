// SPDX-License-Identifier: MIT
#include "util/log.h"

#include <stdarg.h>
#include <stdio.h>

static enum log_level current_level = LOG_NORMAL;

void log__set_level(enum log_level level)
{
	current_level = level;
}

enum log_level log__level(void)
{
	return current_level;
}

static bool has_error;

bool log__has_error(void)
{
	return has_error;
}

static void print(enum log_level at_least, const char *prefix, const char *fmt, va_list ap)
{
	if (current_level < at_least)
		return;
	/* One flockfile() a message: lines of two threads never mix. */
	flockfile(stderr);
	fputs(prefix, stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	funlockfile(stderr);
}

#define DEFINE_LOG(name, at_least, prefix)                                                         \
	void name(const char *fmt, ...)                                                            \
	{                                                                                          \
		va_list ap;                                                                        \
		va_start(ap, fmt);                                                                 \
		print(at_least, prefix, fmt, ap);                                                  \
		va_end(ap);                                                                        \
	}

DEFINE_LOG(log__hint, LOG_QUIET, "hint: ")
DEFINE_LOG(log__warn, LOG_QUIET, "warning: ")
DEFINE_LOG(log__info, LOG_NORMAL, "")
DEFINE_LOG(log__debug, LOG_VERBOSE, "debug: ")

void log__error(const char *fmt, ...)
{
	va_list ap;

	has_error |= current_level >= LOG_QUIET;
	va_start(ap, fmt);
	print(LOG_QUIET, "mtbpf: ", fmt, ap);
	va_end(ap);
}

void log__caret(const char *text, size_t at)
{
	if (current_level < LOG_QUIET)
		return;
	flockfile(stderr);
	fprintf(stderr, "  %s\n  %*s^\n", text, (int)at, "");
	funlockfile(stderr);
}
