/* SPDX-License-Identifier: MIT */
/* FXT's string table: which index stands for which string, least recently used one reused. */
#ifndef MTBPF_TRACE_STRING_TABLE_H
#define MTBPF_TRACE_STRING_TABLE_H

#include <stdbool.h>
#include <stddef.h>

/* A string reference has 15 bits for the index, and 0 is the empty string. */
#define STRING_TABLE_MAX 32767

struct string_table;

/* A table of capacity 1..STRING_TABLE_MAX. NULL with errno. */
struct string_table *string_table__new(unsigned int capacity);
void string_table__free(struct string_table *table);

/*
 * The index of a string, 1..capacity; 0 where memory ran out. *is_new is set where the index has
 * (another) meaning from now on. The last `capacity` strings asked for keep their indices, so that
 * all strings of one record can be looked up before it is written.
 */
unsigned int string_table__index(struct string_table *table, const char *text, size_t len,
				 bool *is_new);

#endif
