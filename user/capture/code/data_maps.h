/* SPDX-License-Identifier: MIT */
/*
 * Where programs' data lies: perf looks up there how to unwind, by the files, also in what can be
 * written (a C++ personality routine's address). We read .eh_frame by itself.
 */
#ifndef MTBPF_CAPTURE_CODE_DATA_MAPS_H
#define MTBPF_CAPTURE_CODE_DATA_MAPS_H

#include <sys/types.h>

#include "capture/recording/recording.h"

/*
 * Adds to rec->data_maps what process pid has mapped of the files in rec->files but their code.
 * 0 or -ENOMEM; a process that is gone has none.
 */
int data_maps__take(struct recording *rec, pid_t pid);

#endif
