/* SPDX-License-Identifier: MIT */
/* Labels of a recording: where it was made, and the user's own (-label). */
#ifndef MTBPF_SESSION_LABELS_H
#define MTBPF_SESSION_LABELS_H

#include "capture/recording/recording.h"
#include "cli/options.h"

/*
 * Adds the labels `host`, `kernel` and `mtbpf` (its version); for a process in a container also
 * `container`, `pod` and `image`, if the container runtimes' files below `root` ("": this
 * machine's) have them; the build id of the program; then the user's KEY=VALUE labels. Labels whose
 * values cannot be read are left out. 0 or -ENOMEM.
 */
int labels__add(struct recording *rec, const char *root, const struct option_list *users);

/* Adds the labels of a container. cgroups: the text of a process's /proc/PID/cgroup. 0 or
 * -ENOMEM. */
int labels__add_container(struct recording *rec, const char *root, const char *cgroups);

#endif
