/* SPDX-License-Identifier: MIT */
/* What /proc says of a process, as a recording keeps it. */
#ifndef MTBPF_CAPTURE_RECORDING_PROCESS_NOTE_H
#define MTBPF_CAPTURE_RECORDING_PROCESS_NOTE_H

#include "capture/recording/recording.h"
#include "target/maps.h"

/* A thread and its name, from time_ns on. 0 or -ENOMEM. */
int process_note__thread(struct recording *rec, pid_t pid, pid_t tid, uint64_t time_ns);
/* A mapping as it is now; its path stays the mapping's. */
struct rec_map process_note__map(pid_t pid, const struct mapping *m, uint64_t time_ns);
/* The executable mappings of a process, from time_ns on. 0 or -errno: -ESRCH it is gone. */
int process_note__maps(struct recording *rec, pid_t pid, uint64_t time_ns);

#endif
