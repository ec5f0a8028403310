/* SPDX-License-Identifier: MIT */
/* Names of functions as a line has room for them: those of C++ templates have thousands of
 * characters. */
#ifndef MTBPF_VIEW_SHORT_NAME_H
#define MTBPF_VIEW_SHORT_NAME_H

/* Longer ones are shortened. */
#define SHORT_NAME_MAX	80
#define SHORT_NAME_SIZE (SHORT_NAME_MAX + 1)

/*
 * The name, or in buf what is left of a longer one: of template arguments and parameters "<...>"
 * and "(...)", of those within others first; and where that is not enough, its end.
 */
const char *short_name(char buf[static SHORT_NAME_SIZE], const char *name);

#endif
