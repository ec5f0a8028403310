/* SPDX-License-Identifier: MIT */
/* Numbers for threads, few enough for the references of a trace file. */
#ifndef MTBPF_TRACE_THREAD_TABLE_H
#define MTBPF_TRACE_THREAD_TABLE_H

#include <stdbool.h>
#include <sys/types.h>

/* A thread reference has 8 bits, and 0 says that pid and tid follow. */
#define THREAD_TABLE_MAX 255

/* All zeroes at first. */
struct thread_table {
	struct {
		pid_t pid, tid;
	} threads[THREAD_TABLE_MAX];
	unsigned int n;
	unsigned int last; /* the one asked for last; counted from 0, as is the next */
	unsigned int next_evicted;
};

/* Whether it has the number i + 1. */
static inline bool thread_table__has(const struct thread_table *table, unsigned int i, pid_t pid,
				     pid_t tid)
{
	return i < table->n && table->threads[i].tid == tid && table->threads[i].pid == pid;
}

/* 1..THREAD_TABLE_MAX. *is_new: it has been another's number before, or nobody's. */
unsigned int thread_table__look_up(struct thread_table *table, pid_t pid, pid_t tid, bool *is_new);

#endif
