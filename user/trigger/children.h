/* SPDX-License-Identifier: MIT */
/* Keeps a map of processes up to date with those that they fork: bpf/children.bpf.c. */
#ifndef MTBPF_TRIGGER_CHILDREN_H
#define MTBPF_TRIGGER_CHILDREN_H

struct children;

/*
 * From here on a child of a process in the map (target_tgids of bpf/trigger.bpf.c) is in it as
 * well, before it runs, and leaves it when it is gone. The descriptor stays the caller's. NULL with
 * errno after a line and a hint on stderr: it needs the kernel's BTF.
 */
struct children *children__new(int tgids_fd);
void children__free(struct children *children);

#endif
