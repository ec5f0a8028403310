/* SPDX-License-Identifier: MIT */
/* A command's options of every kind, and what reading a command line gives and says. */
#ifndef MTBPF_TESTS_OPTIONS_FIXTURE_H
#define MTBPF_TESTS_OPTIONS_FIXTURE_H

#include "cli/options.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "said.h"

struct settings {
	int pid;
	const char *symbol;
	uint64_t threshold_ns;
	uint64_t memory;
	int format;
	bool multi_thread;
	bool multi_snapshot;
	const char *output;
};

static const char *const formats[] = {"fxt", "json", "text", NULL};

#define FIELD(field) offsetof(struct settings, field)

static const struct option_spec specs[] = {
	{"pid", NULL, 'p', OPT_INT, "PID", "the process", FIELD(pid), NULL},
	{"symbol", NULL, 0, OPT_STRING, "NAME", "the function to stop at", FIELD(symbol), NULL},
	{"threshold", "trigger-over", 't', OPT_DURATION, "TIME", "only when slower than this",
	 FIELD(threshold_ns), NULL},
	{"memory", "mem", 0, OPT_SIZE, "SIZE", "for all rings together", FIELD(memory), NULL},
	{"format", NULL, 0, OPT_CHOICE, NULL, "what to write", FIELD(format), formats},
	{"multi-thread", NULL, 0, OPT_FLAG, NULL, "every thread", FIELD(multi_thread), NULL},
	{"multi-snapshot", NULL, 0, OPT_FLAG, NULL, "go on afterwards", FIELD(multi_snapshot),
	 NULL},
	{"output", NULL, 'o', OPT_STRING, "FILE", "where to", FIELD(output), NULL},
};

static const char *const examples[] = {"mtbpf attach -pid 12", "mtbpf attach -pid 12 -symbol f",
				       NULL};

static const struct option_table table = {
	.command = "attach",
	.examples = examples,
	.usage = "attach -pid PID -symbol NAME [options]",
	.summary = "Capture what a running process did.",
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

/* What a parse gave, and said. */
struct outcome {
	struct settings settings;
	int err;
	int rest;
	char out[4096];
	char messages[4096];
};

/* Sends a descriptor to a nameless file until read_back(). */
struct redirect {
	FILE *file;
	int fd, saved;
};

static inline struct redirect redirect(int fd)
{
	struct redirect r = {.file = tmpfile(), .fd = fd, .saved = dup(fd)};

	assert_non_null(r.file);
	dup2(fileno(r.file), fd);
	return r;
}

static inline void read_back(struct redirect *r, char *text, size_t size)
{
	ssize_t n;

	fflush(NULL);
	dup2(r->saved, r->fd);
	close(r->saved);
	n = pread(fileno(r->file), text, size - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	fclose(r->file);
}

static inline struct outcome parse_words(int argc, char **argv)
{
	struct outcome o = {.settings = {.pid = -1, .threshold_ns = 7, .format = 2}, .rest = -1};
	struct redirect out, messages;

	fflush(NULL);
	out = redirect(STDOUT_FILENO);
	messages = redirect(STDERR_FILENO);
	o.err = options__parse(&table, &o.settings, argc, argv, &o.rest);
	read_back(&messages, o.messages, sizeof(o.messages));
	read_back(&out, o.out, sizeof(o.out));
	return o;
}

#define PARSE(...)                                                                                 \
	parse_words(sizeof((char *[]){"attach", __VA_ARGS__}) / sizeof(char *),                    \
		    (char *[]){"attach", __VA_ARGS__, NULL})

#define ASSERT_PARSED(o)                                                                           \
	do {                                                                                       \
		assert_string_equal((o).messages, "");                                             \
		assert_string_equal((o).out, "");                                                  \
		assert_int_equal((o).err, 0);                                                      \
	} while (0)

/* With one error and one hint, to be compared by ASSERT_ERROR() and ASSERT_HINT(). */
#define ASSERT_REFUSED(o)                                                                          \
	do {                                                                                       \
		ASSERT_COMPLAINT((o).messages);                                                    \
		assert_string_equal((o).out, "");                                                  \
		assert_int_equal((o).err, -EINVAL);                                                \
	} while (0)

#endif
