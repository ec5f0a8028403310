// SPDX-License-Identifier: MIT
#include "trace/fxt_read.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "trace/codec.h"
#include "util/names.h"
#include "util/vec.h"

/* The maximums that the bits of indices, and of a record's size, allow. */
#define MAX_STRINGS (1 << 15)
#define MAX_THREADS (1 << 8)
#define MAX_WORDS   ((1 << 12) - 1)
/* Marks a string that follows in the record, with its length. */
#define INLINE_STRING (1 << 15)
/* Category, name, and two per argument. */
#define MAX_INLINE (2 + 2 * FXT_MAX_ARGS)

struct fxt_reader {
	struct unpack *unpack;
	uint64_t tick_ns_num, tick_ns_den; /* a tick in nanoseconds */
	char *strings[MAX_STRINGS];
	struct {
		uint64_t pid, tid;
	} threads[MAX_THREADS];
	char *inlined[MAX_INLINE]; /* of the record that was read last */
	size_t n_inlined;
	/* The record, and how far it has been read. */
	uint64_t words[MAX_WORDS];
	size_t n, at;
};

static uint64_t bits(uint64_t word, unsigned int from, unsigned int n)
{
	return word >> from & ((1ull << n) - 1);
}

static int read_words(struct fxt_reader *reader, uint64_t *words, size_t n)
{
	size_t size = n * sizeof(*words);
	ssize_t got = unpack__read(reader->unpack, words, size);

	if (got < 0)
		return (int)got;
	if (!got)
		return 0;
	return (size_t)got == size ? 1 : -EBADMSG;
}

struct fxt_reader *fxt_reader__open(int fd)
{
	struct fxt_reader *reader = calloc(1, sizeof(*reader));
	uint64_t magic;
	int err = reader ? 0 : -ENOMEM;

	if (!err) {
		reader->tick_ns_num = reader->tick_ns_den = 1;
		reader->unpack = unpack__open(fd);
		err = reader->unpack ? read_words(reader, &magic, 1) : -errno;
	}
	if (err == 1 && magic == FXT_MAGIC)
		return reader;
	fxt_reader__free(reader);
	errno = err < 0 ? -err : EBADMSG;
	return NULL;
}

void fxt_reader__count(struct fxt_reader *reader, struct meter *meter)
{
	unpack__count(reader->unpack, meter);
}

static void forget_inlined(struct fxt_reader *reader)
{
	while (reader->n_inlined)
		free(reader->inlined[--reader->n_inlined]);
}

void fxt_reader__free(struct fxt_reader *reader)
{
	if (!reader)
		return;
	unpack__free(reader->unpack);
	forget_inlined(reader);
	for (size_t i = 0; i < MAX_STRINGS; i++)
		free(reader->strings[i]);
	free(reader);
}

/* The next word of the record. */
static bool take_word(struct fxt_reader *reader, uint64_t *word)
{
	if (reader->at >= reader->n)
		return false;
	*word = reader->words[reader->at++];
	return true;
}

/*
 * Reads len bytes, padded to whole words, with control characters replaced. NULL: fewer bytes left,
 * or out of memory.
 */
static char *take_text(struct fxt_reader *reader, size_t len)
{
	size_t n = (len + sizeof(uint64_t) - 1) / sizeof(uint64_t);
	const char *text = (const char *)&reader->words[reader->at];
	char *copy;

	if (n > reader->n - reader->at)
		return NULL;
	reader->at += n;
	copy = strndup(text, len);
	if (copy)
		label__clean_in_place(copy);
	return copy;
}

static const char *take_string(struct fxt_reader *reader, uint64_t ref)
{
	const char *string;

	if (!ref)
		return "";
	if (ref < INLINE_STRING) {
		string = reader->strings[ref];
		return string ? string : "";
	}
	if (reader->n_inlined == MAX_INLINE)
		return NULL;
	string = take_text(reader, ref - INLINE_STRING);
	if (string)
		reader->inlined[reader->n_inlined++] = (char *)string;
	return string;
}

/* Trace format, "Arguments": an argument's size counts its own words and those of its strings. */
static bool read_arg(struct fxt_reader *reader, struct fxt_read_arg *arg)
{
	size_t begin = reader->at;
	uint64_t head;

	if (!take_word(reader, &head))
		return false;
	arg->type = (enum fxt_arg_type)bits(head, 0, 4);
	arg->key = take_string(reader, bits(head, 16, 16));
	arg->number = bits(head, 32, 32);
	arg->string = NULL;
	if (arg->type == FXT_ARG_STRING) {
		arg->string = take_string(reader, bits(head, 32, 16));
		arg->number = 0;
		if (!arg->string)
			return false;
	} else if (bits(head, 4, 12) > 1 && arg->type >= FXT_ARG_I64 && arg->type <= FXT_ARG_KOID &&
		   !take_word(reader, &arg->number)) {
		return false;
	}
	if (!arg->key || reader->at - begin > bits(head, 4, 12))
		return false;
	reader->at = begin + bits(head, 4, 12);
	return reader->at <= reader->n;
}

static bool read_args(struct fxt_reader *reader, struct fxt_read *read, size_t n)
{
	read->n_args = 0;
	for (size_t i = 0; i < n; i++) {
		if (!read_arg(reader, &read->args[read->n_args++]))
			return false;
	}
	return true;
}

static uint64_t to_ns(const struct fxt_reader *reader, uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ticks * reader->tick_ns_num / reader->tick_ns_den);
}

/* "Event record": the fields that differ by type follow the arguments. */
static bool read_event(struct fxt_reader *reader, uint64_t head, struct fxt_read *read)
{
	size_t thread = bits(head, 24, 8);
	uint64_t time, end;

	read->kind = FXT_READ_EVENT;
	read->event = (enum fxt_event_type)bits(head, 16, 4);
	if (!take_word(reader, &time))
		return false;
	read->time_ns = to_ns(reader, time);
	read->pid = reader->threads[thread].pid;
	read->tid = reader->threads[thread].tid;
	if (!thread && !(take_word(reader, &read->pid) && take_word(reader, &read->tid)))
		return false;
	read->category = take_string(reader, bits(head, 32, 16));
	read->name = take_string(reader, bits(head, 48, 16));
	if (!read->category || !read->name || !read_args(reader, read, bits(head, 20, 4)))
		return false;
	if (read->event == FXT_EVENT_COUNTER || read->event >= FXT_EVENT_ASYNC_BEGIN)
		return take_word(reader, &read->id);
	if (read->event != FXT_EVENT_COMPLETE)
		return true;
	if (!take_word(reader, &end))
		return false;
	read->end_ns = to_ns(reader, end);
	return true;
}

/* "Kernel object record": a thread's process is an argument. */
static bool read_object(struct fxt_reader *reader, uint64_t head, struct fxt_read *read)
{
	const struct fxt_read_arg *process;
	uint64_t id;

	read->category = "";
	if (!take_word(reader, &id))
		return false;
	read->name = take_string(reader, bits(head, 24, 16));
	if (!read->name || !read_args(reader, read, bits(head, 40, 4)))
		return false;
	if (bits(head, 16, 8) == FXT_OBJECT_PROCESS) {
		read->kind = FXT_READ_PROCESS;
		read->pid = id;
		return true;
	}
	process = fxt_read__arg(read, "process");
	read->kind = FXT_READ_THREAD;
	read->pid = process ? process->number : 0;
	read->tid = id;
	return true;
}

/* 1: an event or a name, in `read`; 0: another record. */
static int take_record(struct fxt_reader *reader, uint64_t head, struct fxt_read *read)
{
	uint64_t *pid, *tid;
	char **string;

	switch (bits(head, 0, 4)) {
	case FXT_RECORD_INITIALIZATION: /* ticks per second */
		reader->tick_ns_num = 1000000000;
		return take_word(reader, &reader->tick_ns_den) && reader->tick_ns_den ? 0
										      : -EBADMSG;
	case FXT_RECORD_STRING: /* index in bits 16..30, length in 32..46 */
		string = &reader->strings[bits(head, 16, 15)];
		free(*string);
		*string = take_text(reader, bits(head, 32, 15));
		return *string ? 0 : -EBADMSG;
	case FXT_RECORD_THREAD:
		pid = &reader->threads[bits(head, 16, 8)].pid;
		tid = &reader->threads[bits(head, 16, 8)].tid;
		return take_word(reader, pid) && take_word(reader, tid) ? 0 : -EBADMSG;
	case FXT_RECORD_EVENT:
		return read_event(reader, head, read) ? 1 : -EBADMSG;
	case FXT_RECORD_KERNEL_OBJECT:
		if (bits(head, 16, 8) > FXT_OBJECT_THREAD)
			return 0;
		return read_object(reader, head, read) ? 1 : -EBADMSG;
	case FXT_RECORD_LARGE: /* counts its words differently; not used in practice */
		return -EBADMSG;
	default:
		return 0;
	}
}

int fxt_reader__next(struct fxt_reader *reader, struct fxt_read *read)
{
	uint64_t head;
	int err;

	forget_inlined(reader);
	do {
		err = read_words(reader, &head, 1);
		if (err <= 0)
			return err;
		if (!bits(head, 4, 12))
			return -EBADMSG;
		reader->n = bits(head, 4, 12) - 1;
		reader->at = 0;
		err = reader->n ? read_words(reader, reader->words, reader->n) : 1;
		if (err <= 0)
			return err ?: -EBADMSG;
		*read = (struct fxt_read){.category = "", .name = ""};
		err = take_record(reader, head, read);
	} while (!err);
	return err;
}

const struct fxt_read_arg *fxt_read__arg(const struct fxt_read *read, const char *key)
{
	return FIND_IN(read->args, read->n_args, arg, arg->key && !strcmp(arg->key, key));
}

const char *fxt_read__string(const struct fxt_read *read, const char *key)
{
	const struct fxt_read_arg *arg = fxt_read__arg(read, key);

	return arg && arg->string ? arg->string : "";
}

uint64_t fxt_read__number(const struct fxt_read *read, const char *key)
{
	const struct fxt_read_arg *arg = fxt_read__arg(read, key);

	return arg ? arg->number : 0;
}
