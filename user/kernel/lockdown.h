/* SPDX-License-Identifier: MIT */
/* The kernel's lockdown: what even root may not do. */
#ifndef MTBPF_KERNEL_LOCKDOWN_H
#define MTBPF_KERNEL_LOCKDOWN_H

#define LOCKDOWN_PATH "/sys/kernel/security/lockdown"

enum lockdown { LOCKDOWN_NONE, LOCKDOWN_INTEGRITY, LOCKDOWN_CONFIDENTIALITY };

/* LOCKDOWN_PATH's text: "none [integrity] confidentiality". -EINVAL: no such word. */
int lockdown__parse(const char *text);
/* As it is now. -errno where that cannot be told. */
int lockdown__read(void);

#endif
