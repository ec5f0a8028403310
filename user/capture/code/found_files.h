/* SPDX-License-Identifier: MIT */
/* The files of a recording that was made before, where they are on this machine now. */
#ifndef MTBPF_CAPTURE_CODE_FOUND_FILES_H
#define MTBPF_CAPTURE_CODE_FOUND_FILES_H

#include "capture/recording/recording.h"

/*
 * Makes rec portable: opens each mapped file, and its debug file, that it has no bytes of, and that
 * is still the one that ran: by its build id, else by its inode, else by its name alone. One that
 * is not is left out, with a warning. 0 or -ENOMEM.
 */
int found_files__add(struct recording *rec);

#endif
