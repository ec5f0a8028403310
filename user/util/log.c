// SPDX-License-Identifier: MIT
#include "util/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "util/label.h"

static enum log_level current_level = LOG_NORMAL;

void log__set_level(enum log_level level)
{
	current_level = level;
}

enum log_level log__level(void)
{
	return current_level;
}

static void print(enum log_level at_least, const char *prefix, const char *fmt, va_list ap)
{
	char text[LABEL_SIZE + 1], buf[LABEL_SIZE];
	size_t len;

	if (current_level < at_least)
		return;
	/* Paths and names in it may be of whoever is traced. */
	vsnprintf(text, sizeof(text), fmt, ap);
	fprintf(stderr, "%s%s\n", prefix, label__clean(buf, text, &len));
}

#define DEFINE_LOG(name, at_least, prefix)                                                         \
	void name(const char *fmt, ...)                                                            \
	{                                                                                          \
		va_list ap;                                                                        \
		va_start(ap, fmt);                                                                 \
		print(at_least, prefix, fmt, ap);                                                  \
		va_end(ap);                                                                        \
	}

DEFINE_LOG(log__error, LOG_QUIET, "mtbpf: ")
DEFINE_LOG(log__hint, LOG_QUIET, "hint: ")
DEFINE_LOG(log__warn, LOG_QUIET, "warning: ")
DEFINE_LOG(log__info, LOG_NORMAL, "")
DEFINE_LOG(log__debug, LOG_VERBOSE, "debug: ")

void log__caret(const char *text, size_t at)
{
	char buf[LABEL_SIZE];
	size_t len;

	if (current_level < LOG_QUIET)
		return;
	fprintf(stderr, "  %s\n  %*s^\n", label__clean(buf, text, &len), (int)at, "");
}
