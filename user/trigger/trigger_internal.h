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
	uint8_t *stack;	     /* copied with the hit that was read last */
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

/* kernel_probes.c */

/*
 * Selects the programs that config.kernel_probes need, before they are loaded. 0, or -errno:
 * -ECANCELED after a message and a hint if this machine does not support a probe.
 */
int kernel_probes__select(struct trigger_bpf *skel, const struct trigger_config *config,
			  enum trigger_latch latch);
/* True if one of config's kernel probes needs task_at of bpf/task.bpf.h. */
bool kernel_probes__need_tasks(const struct trigger_config *config);

/*
 * Sets all probes, the ends of calls first. NULL with errno after a message and a hint. The
 * skeleton must live until kernel_probes__free().
 */
struct kernel_probes *kernel_probes__attach(const struct trigger_bpf *skel,
					    const struct kernel_probe *all, size_t n);
/* The program for a breakpoint with this role: enum mt_role. */
const struct bpf_program *kernel_probes__breakpoint(const struct trigger_bpf *skel, uint32_t roles);
/* Removes the probes, the ends of calls last. NULL is fine. */
void kernel_probes__free(struct kernel_probes *set);

/*
 * Counts the times that the kernel did not run a copy of a program for fentry or fexit because that
 * copy was already running on the CPU. trigger__stats() counts the skeleton's programs itself.
 */
uint64_t kernel_probes__missed(const struct kernel_probes *set);

#endif
