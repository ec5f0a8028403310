/* SPDX-License-Identifier: MIT */
/* Labels of a recording: where it was made, and what the user says of it. */
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

/* The container's labels of these, for a process whose /proc/PID/cgroup has this text. 0 or
 * -ENOMEM. */
int labels__add_container(struct recording *rec, const char *root, const char *cgroups);

/* Each has a key and '='. 0, or -EINVAL after a line and a hint. */
int labels__check(const struct option_list *users, const char *command);

#endif
