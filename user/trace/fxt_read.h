/* SPDX-License-Identifier: MIT */
/*
 * Reads the records of an FXT file, compressed or not. The file is untrusted. Layouts: Fuchsia's
 * docs/reference/tracing/trace-format.md.
 */
#ifndef MTBPF_TRACE_FXT_READ_H
#define MTBPF_TRACE_FXT_READ_H

#include <stdint.h>

#include "trace/fxt_format.h"

struct fxt_read_arg {
	const char *key;
	enum fxt_arg_type type;
	uint64_t number;    /* of a double its bits; of a string 0 */
	const char *string; /* of a string, else NULL */
};

enum fxt_read_kind {
	FXT_READ_EVENT,
	FXT_READ_PROCESS, /* name of a process: pid, name */
	FXT_READ_THREAD,  /* name of a thread: pid (0: not in the file), tid, name */
};

struct fxt_read {
	enum fxt_read_kind kind;
	enum fxt_event_type event;   /* FXT_READ_EVENT */
	uint64_t time_ns;	     /* FXT_READ_EVENT */
	uint64_t end_ns;	     /* FXT_EVENT_COMPLETE */
	uint64_t id;		     /* flows, counters, async events */
	uint64_t pid, tid;	     /* as the file has them: 64 bits */
	const char *category, *name; /* never NULL */
	unsigned int n_args;
	struct fxt_read_arg args[FXT_MAX_ARGS];
};

struct fxt_reader;
struct meter;

/*
 * fd is duplicated: the caller may close it. NULL with errno; EBADMSG if the file does not begin
 * like FXT.
 */
struct fxt_reader *fxt_reader__open(int fd);
void fxt_reader__free(struct fxt_reader *reader);
/* Counts the bytes read in the meter, as stored in the file, including earlier ones. */
void fxt_reader__count(struct fxt_reader *reader, struct meter *meter);

/*
 * Reads the next event or name, whose strings are valid until the next call. Returns 1; 0 at the
 * end; -EBADMSG if the file is damaged or cut short (what precedes that has been returned); or
 * another -errno. Other records are skipped.
 */
int fxt_reader__next(struct fxt_reader *reader, struct fxt_read *read);

/* The argument of that name, or NULL. */
const struct fxt_read_arg *fxt_read__arg(const struct fxt_read *read, const char *key);
/*
 * The argument's value. A string is "" if the argument is missing or not a string; a number is 0 if
 * it is missing or a string, and of a double it is its bits.
 */
const char *fxt_read__string(const struct fxt_read *read, const char *key);
uint64_t fxt_read__number(const struct fxt_read *read, const char *key);

#endif
