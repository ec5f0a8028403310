/* SPDX-License-Identifier: MIT */
/* Offsets in the structs of the running kernel, and a reader of what each thread does. */
#ifndef MTBPF_TRIGGER_STALL_H
#define MTBPF_TRIGGER_STALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mtbpf_shared.h"

struct btf;

/* The running kernel's BTF, or NULL. It is kept: reading it takes a tenth of a second. */
const struct btf *kernel_btf(void);
/*
 * Finds the offset, in bytes, of a member of a struct of the kernel, also in an unnamed struct
 * inside. False: it is missing.
 */
bool kernel_btf__find(const char *of, const char *member, uint32_t *offset);

/*
 * Finds all offsets of struct mt_task_offsets in the running kernel's BTF. 0, or -errno: -ENOTSUP
 * without BTF, or if a member is missing that every kernel has.
 */
int task_offsets__find(struct mt_task_offsets *offsets);

/* Finds the offset of a task's thread pointer (thread.fsbase). 0, or -ENOTSUP as above. */
int task_offsets__find_fsbase(uint32_t *offset);

/* Reads where the threads of one process are, each time thread_reader__read() is called. */
struct thread_reader;

/* NULL with errno: EPERM, or another one if the kernel lacks something. Prints only at -v. */
struct thread_reader *thread_reader__new(pid_t tgid);
void thread_reader__free(struct thread_reader *reader);
/* The caller frees *threads. 0 or -errno. */
int thread_reader__read(struct thread_reader *reader, struct mt_thread **threads, size_t *n);

#endif
