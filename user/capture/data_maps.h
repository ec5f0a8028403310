/* SPDX-License-Identifier: MIT */
/* Where programs' constant data lies: perf looks up there how to unwind. We read the files. */
#ifndef MTBPF_CAPTURE_DATA_MAPS_H
#define MTBPF_CAPTURE_DATA_MAPS_H

#include <sys/types.h>

#include "capture/recording.h"

/*
 * Adds to rec->data_maps what process pid has mapped for reading only of the files in rec->files.
 * 0 or -ENOMEM; a process that is gone has none.
 */
int data_maps__take(struct recording *rec, pid_t pid);

#endif
