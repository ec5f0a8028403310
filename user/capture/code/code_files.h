/* SPDX-License-Identifier: MIT */
/* The files whose code a process runs, as they are while it runs: held open, and by build id. */
#ifndef MTBPF_CAPTURE_CODE_CODE_FILES_H
#define MTBPF_CAPTURE_CODE_CODE_FILES_H

#include <sys/types.h>

#include "capture/recording/recording.h"

/*
 * Adds to rec->files what process pid has mapped executable by now and is not known yet: a file
 * that is replaced or deleted later can still be read from its descriptor. With rec->portable, the
 * separate debug files as well. 0 or -ENOMEM; a process that is gone has none to show.
 */
int code_files__note(struct recording *rec, pid_t pid);

#endif
