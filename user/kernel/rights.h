/* SPDX-License-Identifier: MIT */
/* The rights of this process: its capabilities, the kernel's lockdown, and confinement with
 * Landlock. */
#ifndef MTBPF_KERNEL_RIGHTS_H
#define MTBPF_KERNEL_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>

/* True if the capability is in the effective set. */
bool capability__effective(int capability);
/*
 * True if the capability is effective and we are in the initial user namespace: what the kernel's
 * capable() asks.
 */
bool capability__has(int capability);

/*
 * Gives up all capabilities, for good, except those to open files and files of other processes,
 * because untrusted data is read next. An execve does not give them back. Applies to the calling
 * thread and those that it starts. 0 or -errno.
 */
int capability__keep_for_files(void);
/* Like capability__keep_for_files(), but without those for files of other processes. */
int capability__keep_for_our_files(void);

/* The kernel's lockdown: what even root may not do. */

#define LOCKDOWN_PATH "/sys/kernel/security/lockdown"

enum lockdown { LOCKDOWN_NONE, LOCKDOWN_INTEGRITY, LOCKDOWN_CONFIDENTIALITY };

/* LOCKDOWN_PATH's text: "none [integrity] confidentiality". -EINVAL: no such word. */
int lockdown__parse(const char *text);
/* The current lockdown; -errno if it cannot be read. */
int lockdown__read(void);

/* Confines this process with Landlock (Linux 5.13). */

/*
 * The calling thread, and threads that it starts, can from now on open files for reading only,
 * except below the folder `written` (NULL: nowhere), where with_folders also allows to make and
 * remove folders. They cannot access processes that are not confined in the same way (`roots` are
 * descriptors of /proc/PID/root folders that may still be read), execute programs and, if the
 * kernel supports it, make TCP connections and signal processes outside. This is permanent. Open
 * files stay open. 0 or -errno: -EOPNOTSUPP or -ENOSYS without Landlock.
 */
int landlock__confine(const char *written, bool with_folders, const int *roots, size_t n_roots);

#endif
