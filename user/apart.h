/* SPDX-License-Identifier: MIT */
/* Work on what others wrote: in a process of its own, without rights. */
#ifndef MTBPF_APART_H
#define MTBPF_APART_H

/*
 * What work(context) returns, of a copy of this process that has given up the rights it has no use
 * for; it is waited for. What work changes in memory is lost. Call it while interrupts are held;
 * the copy gets them held too, and those that come meanwhile. One that ends it ends this process in
 * the same way. After a line with the name `what` and a hint: -EIO, it crashed; another -errno, it
 * could not be started.
 */
int apart__run(int (*work)(void *context), void *context, const char *what);

#endif
