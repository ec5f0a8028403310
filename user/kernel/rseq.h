/* SPDX-License-Identifier: MIT */
/* Restartable sequences (rseq(2)): how the code that the kernel sends aborted threads to is known.
 */
#ifndef MTBPF_KERNEL_RSEQ_H
#define MTBPF_KERNEL_RSEQ_H

/*
 * What lies before an abort handler, little-endian: what a thread has registered its sequences with
 * (kernel/rseq.c: rseq_get_rseq_cs()). On x86 glibc, librseq and others have this.
 */
#define RSEQ_SIGNATURE 0x53053053

#endif
