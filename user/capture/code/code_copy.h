/* SPDX-License-Identifier: MIT */
/* Code that no file holds, copied from a process's memory: what a JIT compiler has written. */
#ifndef MTBPF_CAPTURE_CODE_CODE_COPY_H
#define MTBPF_CAPTURE_CODE_CODE_COPY_H

#include <sys/types.h>

#include "capture/recording/recording.h"

/* Of all processes of a recording together. */
#define CODE_COPY_MAX (64u << 20)
/* The same of the texts of their perf maps. */
#define PERF_MAPS_MAX (64u << 20)

/*
 * Copies into rec->images the pages in memory of every executable mapping of process pid that is
 * not of a file in rec->files, and its perf map into rec->perf_maps; what an earlier copy of this
 * process took goes. A line where it does not fit into `limit` bytes. 0 or -ENOMEM; of a process
 * that is gone, the earlier copy stays.
 */
int code_copy__take(struct recording *rec, pid_t pid, size_t limit);

#endif
