/* SPDX-License-Identifier: MIT */
/* The rights of this process: its capabilities, the kernel's lockdown, and confinement with
 * Landlock. */
#ifndef MTBPF_KERNEL_RIGHTS_H
#define MTBPF_KERNEL_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>

/* In the effective set. */
bool capability__effective(int capability);
/* Effective, and in the initial user namespace: what the kernel's capable() asks. */
bool capability__has(int capability);

/*
 * Gives up, for good, all but what opens files and those of other processes: what somebody else
 * wrote is read next. Nor does a program give them back. Of the calling thread, and of those that
 * it starts. 0 or -errno.
 */
int capability__keep_for_files(void);
/* The same, and those of other processes are no longer among them. */
int capability__keep_for_our_files(void);

/* The kernel's lockdown: what even root may not do. */

#define LOCKDOWN_PATH "/sys/kernel/security/lockdown"

enum lockdown { LOCKDOWN_NONE, LOCKDOWN_INTEGRITY, LOCKDOWN_CONFIDENTIALITY };

/* LOCKDOWN_PATH's text: "none [integrity] confidentiality". -EINVAL: no such word. */
int lockdown__parse(const char *text);
/* As it is now. -errno where that cannot be told. */
int lockdown__read(void);

/* Confining this process with Landlock (Linux 5.13): its own rights, whoever it runs as, are less
 * from there on. */

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
