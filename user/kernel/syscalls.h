/* SPDX-License-Identifier: MIT */
/* System calls of x86-64 by their numbers. */
#ifndef MTBPF_KERNEL_SYSCALLS_H
#define MTBPF_KERNEL_SYSCALLS_H

#include <stdbool.h>

/* "futex"; NULL for one that is not known by name: all that may wait are. */
const char *syscall__name(int number);
/* "syscall:futex", as a trigger is named; NULL likewise. */
const char *syscall__selector(int number);
#define SYSCALL_PREFIX "syscall:"
/* Whether its first argument is an open file. */
bool syscall__is_of_file(int number);

#endif
