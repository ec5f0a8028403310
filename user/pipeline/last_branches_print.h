/* SPDX-License-Identifier: MIT */
/* Prints the last branches before a hit, as the CPU has noted them. */
#ifndef MTBPF_PIPELINE_LAST_BRANCHES_PRINT_H
#define MTBPF_PIPELINE_LAST_BRANCHES_PRINT_H

#include <stdio.h>

#include "capture/recording/recording.h"
#include "decode/images.h"

/* One line per branch, the newest first; prints nothing if there are none. 0 or -ENOMEM. */
int last_branches__print(FILE *out, const struct mt_hit *hit, struct images *images);

#endif
