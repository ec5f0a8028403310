/* SPDX-License-Identifier: MIT */
/* Between the files of the trigger, and for its tests. */
#ifndef MTBPF_TRIGGER_TRIGGER_INTERNAL_H
#define MTBPF_TRIGGER_TRIGGER_INTERNAL_H

#include <bpf/libbpf.h>

#include "trigger/hit_ring.h"
#include "trigger/trigger.h"
#include "util/vec.h"

struct trigger_bpf;
struct trigger_syscalls;

enum trigger_latch {
	TRIGGER_LATCH_AUTO, /* task storage, or else LRU hash: what trigger__new() does */
	TRIGGER_LATCH_TASK_STORAGE,
	TRIGGER_LATCH_LRU_HASH,
};

struct trigger {
	struct trigger_bpf *skel;
	struct mt_freezer *freezer; /* the programs' own, mapped */
	struct children *children;  /* NULL: they do not count */
	struct hit_ring hits;
	enum trigger_latch latch;
	uint64_t after_ns;
	struct bpf_link *switches;	   /* NULL: context switches are not looked at */
	VEC(int) links;			   /* bpf_link descriptors */
	struct trigger_syscalls *syscalls; /* NULL: none is probed */
};

/* trigger__new(), but with this latch or none. */
struct trigger *trigger__new_with_latch(const struct trigger_config *config,
					enum trigger_latch latch);

/* trigger->skel, in the kernel. 0, or -errno after a line and a hint. */
int trigger__load(struct trigger *trigger, const struct trigger_config *config,
		  enum trigger_latch latch);
/* Of maps and programs, those that a source that samples needs, with -also\'s. 0 or -errno. */
int trigger__select_sampling(struct trigger_bpf *skel, const struct trigger_config *config,
			     enum trigger_latch latch);
/* Room for what an LRU hash of threads has. 0 or -errno. */
int trigger__size_lru(struct bpf_map *map, const struct trigger_config *config);

/* libbpf's messages, a level lower; it prints the verifier's log in one. */
int trigger__print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap);

struct trigger_bpf *trigger__skel(const struct trigger *trigger);

#endif
