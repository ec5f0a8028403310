/* SPDX-License-Identifier: MIT */
/*
 * Files that are cut short while they are mapped: what they lack reads as zeroes, instead of ending
 * the program, and is remembered. A signal is the process's, and so is what it leaves behind.
 */
#ifndef MTBPF_UTIL_CUT_FILES_H
#define MTBPF_UTIL_CUT_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* From now on; as often as it is wanted. */
void cut_files__survive(void);
/* Something has been read that was not there any more. */
bool cut_files__any(void);
/* The first time that it was, it lay in these bytes. */
bool cut_files__first_in(const void *start, size_t size);

#endif
