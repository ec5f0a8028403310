/* SPDX-License-Identifier: MIT */
/* An unwinding that goes on behind a gap: which level of a recursion it had come to. */
#ifndef MTBPF_STACK_STITCH_SINK_H
#define MTBPF_STACK_STITCH_SINK_H

#include "stack/stitch/stitch.h"

/* The last joint's segment begins so, and goes on with the run that was found there, if any. */
void stitcher__follow(struct stitcher *stitcher, const struct beginning *begin, size_t found);

#endif
