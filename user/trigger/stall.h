/* SPDX-License-Identifier: MIT */
/* Threads that are where they were: what the trigger's clock needs, and where each thread is. */
#ifndef MTBPF_TRIGGER_STALL_H
#define MTBPF_TRIGGER_STALL_H

#include <sys/types.h>

#include "mtbpf_shared.h"

/*
 * Finds, by the running kernel's BTF, the members of tasks that tell whether one is alive and not
 * stopped. 0, or -errno: -ENOTSUP without BTF, or if a member is not there.
 */
int task_offsets__find(struct mt_task_offsets *offsets);

/* The thread pointer of a task that runs (thread.fsbase). 0; or -ENOTSUP as above. */
int task_offsets__find_fsbase(uint32_t *offset);

/* Reads where the threads of one process are, as often as it is asked. */
struct thread_reader;

/* NULL with errno: EPERM, or what the kernel lacks. Prints nothing. */
struct thread_reader *thread_reader__new(pid_t tgid);
void thread_reader__free(struct thread_reader *reader);
/* *threads is freed by the caller. 0 or -errno. */
int thread_reader__read(struct thread_reader *reader, struct mt_thread **threads, size_t *n);

#endif
