/* SPDX-License-Identifier: MIT */
/* Runs work on untrusted input in a child process without rights. */
#ifndef MTBPF_APART_H
#define MTBPF_APART_H

/*
 * Runs work(context) in a forked child that gives up rights that it does not need, waits for it,
 * and returns its result. Changes in memory are lost. Call it while interrupts are held: the child
 * starts with them held and gets those that come. A signal that ends the child ends this process in
 * the same way. After a message with the name `what` and a hint: -EIO if it crashed, or another
 * -errno if it could not be started.
 */
int apart__run(int (*work)(void *context), void *context, const char *what);

#endif
