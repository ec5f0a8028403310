/* SPDX-License-Identifier: MIT */
/* JSON by way of cJSON: what mtbpf adds to an object or a list, and how it is printed. */
#ifndef MTBPF_UTIL_JSON_H
#define MTBPF_UTIL_JSON_H

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdio.h>

/* Adds a number. JSON's numbers are doubles: above 2^53 it is rounded. */
void json__add_number(cJSON *object, const char *key, uint64_t number);
/* Adds a text, unless it is NULL. */
void json__add_text(cJSON *object, const char *key, const char *text);
/* Adds a text; null if it is NULL. */
void json__add_text_or_null(cJSON *object, const char *key, const char *text);

/* Appends an empty object to a list. */
cJSON *json__append_object(cJSON *list);
/* Appends a text to a list. */
void json__append_text(cJSON *list, const char *text);

/* A member. NULL: missing, or the object is NULL. */
const cJSON *json__item(const cJSON *object, const char *key);
/* A member's text. NULL: missing, or not a text. */
const char *json__text(const cJSON *object, const char *key);

/* The root as indented text, which the caller frees. Deletes the root. NULL: out of memory. */
char *json__finish(cJSON *root);
/* Prints the root on one line, and deletes it. 0 or -ENOMEM. */
int json__print_line(FILE *out, cJSON *root);

#endif
