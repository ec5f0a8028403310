/* SPDX-License-Identifier: MIT */
/* Shared by the trigger's files and tests. */
#ifndef MTBPF_TRIGGER_TRIGGER_INTERNAL_H
#define MTBPF_TRIGGER_TRIGGER_INTERNAL_H

#include <bpf/libbpf.h>

#include "trigger/trigger_config.h"
#include "util/vec.h"

struct trigger_bpf;
struct kernel_probes;

struct ring_buffer;

/* The ring buffer of hits, each with its copy of the stack. */
struct hit_ring {
	struct ring_buffer *ring;
	struct mt_hit *next; /* receives the next hit; NULL once it is filled */
	uint8_t *stack;	     /* of the last hit */
	size_t stack_size, stack_max;
};

enum trigger_latch {
	TRIGGER_LATCH_AUTO, /* task storage, otherwise LRU hash: the choice of trigger__new() */
	TRIGGER_LATCH_TASK_STORAGE,
	TRIGGER_LATCH_LRU_HASH,
};

typedef VEC(int) link_vec; /* descriptors of bpf_links */

struct trigger {
	struct trigger_bpf *skel;
	struct mt_freezer *freezer; /* mapped */
	struct children *children;  /* NULL: children do not count */
	struct hit_ring hits;
	enum trigger_latch latch;
	uint64_t after_ns;
	struct bpf_link *switches;	     /* NULL: no program at context switches */
	link_vec links;			     /* of the probes */
	link_vec go_wait_links;		     /* those of the probes on Go's runtime */
	bool go_waits_stopped;		     /* by trigger__stop_go_waits() */
	struct kernel_probes *kernel_probes; /* NULL: none is set */
};

/* Like trigger__new(), but fails if the kernel lacks this latch. */
struct trigger *trigger__new_with_latch(const struct trigger_config *config,
					enum trigger_latch latch);

/* Opens and loads trigger->skel. 0, or -errno after a message and a hint. */
int trigger__load(struct trigger *trigger, const struct trigger_config *config,
		  enum trigger_latch latch);

/* Prints libbpf's messages, the verifier's log among them, at -v. */
int trigger__print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap);

struct trigger_bpf *trigger__skel(const struct trigger *trigger);

/* trigger_load.c: adds forked children to a map of processes, by bpf/children.bpf.c. */

struct children;

/*
 * From now on, adds children of the processes in the map (target_tgids of bpf/trigger.bpf.c) before
 * they run, and removes processes when the kernel frees them. The caller keeps the descriptor. NULL
 * with errno after a message and a hint. Needs the kernel's BTF.
 */
struct children *children__new(int tgids_fd);
void children__free(struct children *children);

/*
 * trigger.c: copies an entry of a log that BPF programs may be writing (bpf/logs.bpf.h). It begins
 * with its time, which is 0 while it is written. False if it was never written, or is being
 * written.
 */
bool log_entry__copy(void *out, const void *entry, size_t size);

#endif
