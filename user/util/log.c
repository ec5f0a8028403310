// SPDX-License-Identifier: MIT
#include "util/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util/names.h"

#define ERASE "\r\033[K"

static enum log_level current_level = LOG_NORMAL;
/* The text on the terminal's last line, or "". Protected by stderr's lock. */
static char line[256];

void log__set_level(enum log_level level)
{
	current_level = level;
}

enum log_level log__level(void)
{
	return current_level;
}

static atomic_bool has_error;

bool log__has_error(void)
{
	return has_error;
}

void log__note_error(void)
{
	has_error = true;
}

static void erase_line(void)
{
	if (line[0])
		fputs(ERASE, stderr);
	line[0] = '\0';
}

bool log__has_line(void)
{
	return current_level > LOG_QUIET && isatty(STDERR_FILENO);
}

void log__line(const char *text)
{
	char shown[sizeof(line)];
	struct winsize size;
	int columns = 79;

	if (!log__has_line())
		return;
	/* A line that wraps cannot be erased. */
	if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		columns = size.ws_col - 1;
	snprintf(shown, sizeof(shown), "%.*s", columns, text);
	label__clean_in_place(shown);
	flockfile(stderr);
	if (strcmp(line, shown)) {
		fprintf(stderr, ERASE "%s", shown);
		strcpy(line, shown);
	}
	funlockfile(stderr);
}

void log__end_line(void)
{
	flockfile(stderr);
	erase_line();
	funlockfile(stderr);
}

static void print(enum log_level at_least, const char *prefix, const char *fmt, va_list ap)
{
	char text[LABEL_SIZE + 1], buf[LABEL_SIZE];
	size_t len;

	if (current_level < at_least)
		return;
	/* The target may control paths and names in it. */
	vsnprintf(text, sizeof(text), fmt, ap);
	/* One flockfile() a message: lines of two threads never mix. */
	flockfile(stderr);
	erase_line();
	fprintf(stderr, "%s%s\n", prefix, label__clean(buf, text, &len));
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

	if (current_level >= LOG_QUIET)
		has_error = true;
	va_start(ap, fmt);
	print(LOG_QUIET, "mtbpf: ", fmt, ap);
	va_end(ap);
}

void log__caret(const char *text, size_t at)
{
	char buf[LABEL_SIZE];
	size_t len;

	if (current_level < LOG_QUIET)
		return;
	flockfile(stderr);
	erase_line();
	fprintf(stderr, "  %s\n  %*s^\n", label__clean(buf, text, &len), (int)at, "");
	funlockfile(stderr);
}
