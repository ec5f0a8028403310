/* SPDX-License-Identifier: MIT */
/* Reads an FXT file back, written from the format's description and not from our encoder. */
#ifndef MTBPF_TESTS_FXT_READER_H
#define MTBPF_TESTS_FXT_READER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/vec.h"

struct read_arg {
	char key[32];
	unsigned int type;
	uint64_t number;
	char string[64];
};

struct read_event {
	unsigned int record, type; /* type: of event, or of kernel object */
	uint64_t time, end;	   /* end: of flows and counters, their id */
	uint64_t pid, tid;
	char category[16];
	char *name;
	unsigned int n_args;
	struct read_arg args[15];
};

struct fxt_reader {
	uint64_t *words;
	size_t n_words;
	size_t n_strings, n_threads; /* records */
	char *strings[32768];
	uint64_t threads[256][2];
	VEC(struct read_event) events; /* and kernel objects, in file order */
};

static inline uint64_t bits(uint64_t word, unsigned int from, unsigned int to)
{
	return word >> from & ((1ull << (to - from + 1)) - 1);
}

static inline void *read_whole_file(const char *path, size_t *len)
{
	FILE *file = fopen(path, "r");
	char *data = NULL;

	*len = 0;
	if (!file)
		return NULL;
	fseek(file, 0, SEEK_END);
	*len = (size_t)ftell(file);
	rewind(file);
	data = calloc(1, *len + 8);
	if (fread(data, 1, *len, file) != *len)
		*len = 0;
	fclose(file);
	return data;
}

static inline const char *reader__string(const struct fxt_reader *reader, uint64_t ref)
{
	if (!ref)
		return "";
	return reader->strings[ref] ? reader->strings[ref] : "<undefined>";
}

static inline size_t reader__arg(const struct fxt_reader *reader, const uint64_t *word,
				 struct read_arg *arg)
{
	const unsigned int type_string = 6;
	size_t size = bits(word[0], 4, 15);

	snprintf(arg->key, sizeof(arg->key), "%s", reader__string(reader, bits(word[0], 16, 31)));
	arg->type = bits(word[0], 0, 3);
	arg->number = size > 1 ? word[1] : bits(word[0], 32, 63);
	arg->string[0] = '\0';
	if (arg->type == type_string)
		snprintf(arg->string, sizeof(arg->string), "%s",
			 reader__string(reader, bits(word[0], 32, 47)));
	return size;
}

static inline void reader__event(struct fxt_reader *reader, const uint64_t *word)
{
	struct read_event *event = VEC_PUSH(&reader->events);
	size_t at = 2;

	memset(event, 0, sizeof(*event));
	event->record = bits(word[0], 0, 3);
	if (event->record == 7) {
		event->type = bits(word[0], 16, 23);
		event->name = strdup(reader__string(reader, bits(word[0], 24, 39)));
		event->n_args = bits(word[0], 40, 43);
		event->tid = word[1];
	} else {
		event->type = bits(word[0], 16, 19);
		event->n_args = bits(word[0], 20, 23);
		event->pid = reader->threads[bits(word[0], 24, 31)][0];
		event->tid = reader->threads[bits(word[0], 24, 31)][1];
		snprintf(event->category, sizeof(event->category), "%s",
			 reader__string(reader, bits(word[0], 32, 47)));
		event->name = strdup(reader__string(reader, bits(word[0], 48, 63)));
		event->time = word[1];
	}
	for (unsigned int i = 0; i < event->n_args; i++)
		at += reader__arg(reader, word + at, &event->args[i]);
	if (event->record == 4 && (event->type == 1 || event->type == 4 || event->type >= 8))
		event->end = word[at++];
	if (at != bits(word[0], 4, 15))
		event->record = 0; /* its size is wrong: no test expects this record */
}

static inline void reader__record(struct fxt_reader *reader, const uint64_t *word)
{
	uint64_t index;

	switch (bits(word[0], 0, 3)) {
	case 2:
		index = bits(word[0], 16, 30);
		free(reader->strings[index]);
		reader->strings[index] = strndup((const char *)&word[1], bits(word[0], 32, 46));
		reader->n_strings++;
		break;
	case 3:
		index = bits(word[0], 16, 23);
		reader->threads[index][0] = word[1];
		reader->threads[index][1] = word[2];
		reader->n_threads++;
		break;
	case 4:
	case 7:
		reader__event(reader, word);
		break;
	default:
		break;
	}
}

static inline struct fxt_reader *reader__open(const char *path)
{
	struct fxt_reader *reader = calloc(1, sizeof(*reader));
	size_t len, at = 0;

	reader->words = read_whole_file(path, &len);
	reader->n_words = len / sizeof(uint64_t);
	while (at < reader->n_words && bits(reader->words[at], 4, 15)) {
		reader__record(reader, &reader->words[at]);
		at += bits(reader->words[at], 4, 15);
	}
	return reader;
}

static inline void reader__free(struct fxt_reader *reader)
{
	for (size_t i = 0; i < 32768; i++)
		free(reader->strings[i]);
	for (size_t i = 0; i < reader->events.n; i++)
		free(reader->events.v[i].name);
	VEC_FINI(&reader->events);
	free(reader->words);
	free(reader);
}

/* The argument of that key, or NULL. */
static inline const struct read_arg *event__arg(const struct read_event *event, const char *key)
{
	for (unsigned int i = 0; i < event->n_args; i++) {
		if (!strcmp(event->args[i].key, key))
			return &event->args[i];
	}
	return NULL;
}

#endif
