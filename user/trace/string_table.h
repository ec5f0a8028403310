/* SPDX-License-Identifier: MIT */
/* FXT's string table: which index stands for which string. A full one is begun anew. */
#ifndef MTBPF_TRACE_STRING_TABLE_H
#define MTBPF_TRACE_STRING_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A string reference has 15 bits for the index, and 0 is the empty string. */
#define STRING_TABLE_MAX 32767

struct string_table;

/* A table of capacity 1..STRING_TABLE_MAX. NULL with errno. */
struct string_table *string_table__new(unsigned int capacity);
void string_table__free(struct string_table *table);

/*
 * Before the strings of a record are looked up, n at most: their indices stay good until the next
 * call of this. It forgets all strings where there is no room for so many.
 */
void string_table__make_room(struct string_table *table, unsigned int n);

/* How often it has forgotten: while this is the same, so are all indices. */
uint32_t string_table__generation(const struct string_table *table);

/*
 * The index of a string, 1..capacity; 0 where memory ran out, or room was not made. *is_new is set
 * where the index has (another) meaning from now on.
 */
unsigned int string_table__index(struct string_table *table, const char *text, size_t len,
				 bool *is_new);

#endif
