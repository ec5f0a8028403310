/* SPDX-License-Identifier: MIT */
/* From the call instructions that a CPU has noted to the return addresses that stacks are made of.
 */
#ifndef MTBPF_SAMPLED_SETTLE_CALLS_H
#define MTBPF_SAMPLED_SETTLE_CALLS_H

#include "capture/recording/recording.h"
#include "decode/images.h"

/*
 * Gives each of the recording's samples with n_calls return addresses instead, by the code that
 * ran. Where that is not known they are one byte behind the call's begin: still in it, for who
 * looks at the byte before a return address. 0 or -ENOMEM.
 */
int settle_calls(struct recording *rec, struct images *images);

#endif
