/* SPDX-License-Identifier: MIT */
/* Adds forked children to a map of processes: bpf/children.bpf.c. */
#ifndef MTBPF_TRIGGER_CHILDREN_H
#define MTBPF_TRIGGER_CHILDREN_H

struct children;

/*
 * From here on children of processes in the map (target_tgids of bpf/trigger.bpf.c) are added
 * before they run, and removed when they are freed. The caller keeps the descriptor. NULL with
 * errno after a message and a hint. Needs the kernel's BTF.
 */
struct children *children__new(int tgids_fd);
void children__free(struct children *children);

#endif
