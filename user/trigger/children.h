/* SPDX-License-Identifier: MIT */
/* Adds forked children to a map of processes: bpf/children.bpf.c. */
#ifndef MTBPF_TRIGGER_CHILDREN_H
#define MTBPF_TRIGGER_CHILDREN_H

struct children;

/*
 * From now on, adds children of the processes in the map (target_tgids of bpf/trigger.bpf.c) before
 * they run, and removes processes when the kernel frees them. The caller keeps the descriptor. NULL
 * with errno after a message and a hint. Needs the kernel's BTF.
 */
struct children *children__new(int tgids_fd);
void children__free(struct children *children);

#endif
