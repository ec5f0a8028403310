/* SPDX-License-Identifier: MIT */
/* The last branches before a hit, as the CPU noted them. */
#ifndef MTBPF_PIPELINE_LAST_BRANCHES_PRINT_H
#define MTBPF_PIPELINE_LAST_BRANCHES_PRINT_H

#include <stdio.h>

#include "capture/recording/recording.h"
#include "decode/images.h"

/* A line each, the newest first; nothing where there are none. 0 or -ENOMEM. */
int last_branches__print(FILE *out, const struct mt_hit *hit, struct images *images);

#endif
