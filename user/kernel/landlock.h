/* SPDX-License-Identifier: MIT */
/* Confining this process with Landlock (Linux 5.13): its own rights, whoever it runs as, are less
 * from there on. */
#ifndef MTBPF_KERNEL_LANDLOCK_H
#define MTBPF_KERNEL_LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>

/*
 * From now on the calling thread, and those that it starts, open files for reading only, but
 * beneath the folder `written` (NULL: nowhere), where with_folders makes and removes folders, too;
 * reach no process that is not confined by it as well (nor
 * /proc/PID/root of one: `roots` are descriptors of such folders, which may be read); execute
 * nothing; and, where the kernel knows of it, make no TCP connection, and signal nobody outside.
 * For good. What is open stays so. 0 or -errno: -EOPNOTSUPP or -ENOSYS where the kernel has it not.
 */
int landlock__confine(const char *written, bool with_folders, const int *roots, size_t n_roots);

#endif
