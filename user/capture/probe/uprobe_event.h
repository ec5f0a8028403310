/* SPDX-License-Identifier: MIT */
/* A uprobe perf event of our own: with sample_period 1 a BPF program's return value gates it. */
#ifndef MTBPF_CAPTURE_PROBE_UPROBE_EVENT_H
#define MTBPF_CAPTURE_PROBE_UPROBE_EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/perf/event_place.h"

/* The effect of a hit on Intel PT, if that is in the event's group. */
enum uprobe_role {
	UPROBE_FREEZES,
	UPROBE_STOPS, /* it does the same, but goes on at the next of: */
	UPROBE_STARTS,
};

struct uprobe_spec {
	const char *path;   /* any path that reaches the inode; see process__mapping_path() */
	uint64_t offset;    /* file offset of the probed instruction */
	pid_t pid;	    /* the process, all of whose threads hit the probe; -1: everybody */
	uint64_t semaphore; /* file offset of a counter to be raised while it is set; 0: none */
	bool on_return;	    /* a uretprobe: offset must be where [sp] is the return address */
	enum uprobe_role role;
};

/*
 * Opens the event through the uprobe PMU, enabled. Never with attr.inherit: a forking target would
 * fail with EFAULT (the child's event re-reads the path pointer in the target's memory).
 * Returns a descriptor the caller closes (which removes the probe), or -errno after one line and a
 * hint on stderr.
 */
int uprobe_event__open(const struct uprobe_spec *spec);

/*
 * True if this kernel runs BPF programs at uprobes without perf events, for all threads of one
 * process: from Linux 6.11 on (commit 46ba0e49b642; before it only the first thread's hits came).
 * It costs the machine less: while any thread has an event, each context switch looks for events to
 * switch (kernel/events/core.c, perf_sched_events).
 */
bool uprobe_link__is_supported(void);

/*
 * Sets the probe and runs `program` at each hit, with this cookie. The program must have been
 * loaded for MT_UPROBE_LINK. Returns a descriptor the caller closes (which removes the
 * probe), or -errno after one line and a hint on stderr.
 */
int uprobe_link__open(const struct uprobe_spec *spec, int program, uint64_t cookie);

/*
 * Returns when no thread is in a handler of this probe that it entered before the call; from Linux
 * 6.12 on, of any probe (register_rwsem of kernel/events/uprobes.c, and then
 * uprobe_unregister_sync()). A thread that entered earlier did not see a BPF program attached
 * meanwhile, and would overflow the event unasked, however late it continues. 0, or -errno after a
 * line and a hint. Takes a tenth of a second, all of it asleep.
 */
int uprobe_event__settle(const struct uprobe_spec *spec);

/* A uprobe event that freezes Intel PT. */
struct uprobe_group {
	struct event_place place;
	int leader;	     /* the group's leader; -1: it leads a group of its own */
	unsigned int action; /* enum aux_action on the leader's AUX output at a hit; 0: none */
	bool disabled;	     /* waits for PERF_EVENT_IOC_REFRESH */
	bool enable_on_exec; /* and then for the process's execve */
	uint32_t tracepoint; /* the id of a tracefs uprobe; 0: a probe of its own, from spec */
};

/*
 * Opens the event in a group. A descriptor the caller closes, or -errno; prints nothing, since the
 * caller may have another way: -EINVAL or -EOPNOTSUPP where the kernel cannot pause AUX output.
 */
int uprobe_event__open_in_group(const struct uprobe_spec *spec, const struct uprobe_group *group);

/* A function of our own that probes can be tried on: they touch no other process. Calls it. */
void own_probe__hit(void);

/*
 * Describes a probe in this process's own program, at an address. 0, or -ENOENT if the address is
 * not in the program.
 */
int own_probe__spec_of(struct uprobe_spec *spec, uintptr_t address);

/*
 * Tries the probe of own_probe__hit() once. 0; -ENODATA: the probe was not hit; or -errno of
 * setting it. Prints an error only if the kernel lacks uprobe events.
 */
int own_probe__try(void);

/*
 * A uprobe that many perf events share: an entry in tracefs' uprobe_events. With events of the
 * uprobe PMU each hit would run the BPF program once an event.
 */

struct tracefs_probe;

/*
 * Creates the probe, not yet enabled; `number` tells it from others of ours. *id is attr.config of
 * a PERF_TYPE_TRACEPOINT event on it. tracefs is mounted for
 * us alone where the machine has it nowhere. The entry outlives its maker, so a small process of
 * ours waits for our end, however it comes, and removes it. 0, or -errno after one line and a hint
 * on stderr.
 */
int tracefs_probe__create(struct tracefs_probe **probe, const struct uprobe_spec *spec,
			  size_t number, uint32_t *id);
/* Removes it; every event on it must be closed. NULL is fine. */
void tracefs_probe__remove(struct tracefs_probe *probe);

/*
 * Checks whether a probe could be created, without creating one. 0 and tracefs' mount point in
 * *place (NULL: it is not mounted, but can be mounted privately), or -errno. Prints nothing.
 */
int tracefs_probe__try(const char **place);

#endif
