/* SPDX-License-Identifier: MIT */
/* Tells what the thread did for which the slow iteration waited: the next link of a chain of waits.
 */
#ifndef MTBPF_VIEW_MEANWHILE_H
#define MTBPF_VIEW_MEANWHILE_H

#include "view/report_internal.h"

/*
 * In words: "low (12) was ready to run, but its CPU was taken, by hog (13); 58.1 ms of 58.2 ms".
 * The row is one of waits. The thread is the one that woke the slow iteration's thread; only what
 * it did in these waits counts. The caller frees the text. NULL: it is not known who woke the
 * thread, the other thread is not in the trace, nothing took half of its time, or no memory.
 */
char *meanwhile__format(const struct report *r, const struct row *row);

#endif
