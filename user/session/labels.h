/* SPDX-License-Identifier: MIT */
/* What a recording says of where it was made. */
#ifndef MTBPF_SESSION_LABELS_H
#define MTBPF_SESSION_LABELS_H

#include "capture/recording/recording.h"
#include "cli/options.h"

/*
 * Adds host, kernel, and mtbpf (its version); of a process in a container its `container`, `pod`
 * and `image`, as far as the runtimes' files below `root` ("": this machine's) tell; the build id
 * of the program; then the user's, KEY=VALUE each. What cannot be read is left out. 0 or -ENOMEM.
 */
int labels__add(struct recording *rec, const char *root, const struct option_list *users);

/* Each has a key and '='. 0, or -EINVAL after a line and a hint. */
int labels__check(const struct option_list *users, const char *command);

#endif
