/* SPDX-License-Identifier: MIT */
/* Shortens names of functions to fit a line: names of C++ templates may have thousands of
 * characters. */
#ifndef MTBPF_VIEW_SHORT_NAME_H
#define MTBPF_VIEW_SHORT_NAME_H

/* Longer ones are shortened. */
#define SHORT_NAME_MAX	80
#define SHORT_NAME_SIZE (SHORT_NAME_MAX + 1)

/*
 * Returns the name, or, in buf, a shortened one: template arguments and parameters become "<...>"
 * and "(...)", innermost first; if that is not enough, only the end of the name is kept.
 */
const char *short_name(char buf[static SHORT_NAME_SIZE], const char *name);
/* The same, in memory that lives until the end of the block. */
#define SHORT_NAME(name) short_name((char[SHORT_NAME_SIZE]){0}, name)

#endif
