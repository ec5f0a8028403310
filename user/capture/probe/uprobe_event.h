/* SPDX-License-Identifier: MIT */
/*
 * A uprobe perf event per probe: with sample_period 1 a BPF program's return value decides whether
 * a hit counts as an overflow.
 */
#ifndef MTBPF_CAPTURE_PROBE_UPROBE_EVENT_H
#define MTBPF_CAPTURE_PROBE_UPROBE_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/perf/event_place.h"

/* The effect of a hit on Intel PT, if Intel PT is in the event's group. */
enum uprobe_role {
	UPROBE_FREEZES,
	UPROBE_STOPS, /* like UPROBE_FREEZES, until the next hit of UPROBE_STARTS */
	UPROBE_STARTS,
};

struct uprobe_spec {
	const char *path; /* any path that reaches the inode; see process__mapping_path() */
	/* A function of the kernel, for a kprobe; instead of path, offset and semaphore. */
	const char *function;
	/* An address of user code, for a breakpoint of the CPU; instead of path and function. */
	uint64_t breakpoint;
	uint64_t offset;    /* file offset of the probed instruction */
	pid_t pid;	    /* the process, all of whose threads hit the probe; -1: everybody */
	uint64_t semaphore; /* file offset of a counter to raise while the probe is set; 0: none */
	bool on_return;	    /* a uretprobe: offset must be where [sp] is the return address */
	enum uprobe_role role;
};

/*
 * Opens the event through the uprobe PMU, enabled, without attr.inherit: otherwise fork(2) in the
 * target would fail with EFAULT (the child's event re-reads the path pointer in the target's
 * memory). Returns a descriptor the caller closes (which removes the probe), or -errno after one
 * line and a hint on stderr.
 */
int uprobe_event__open(const struct uprobe_spec *spec);

/*
 * True if this kernel can run BPF programs at uprobes without perf events, for all threads of one
 * process: since Linux 6.11 (commit 46ba0e49b642; before it, only for the first thread). Links cost
 * the machine less: while any thread has an event, each context switch looks for events to switch
 * (kernel/events/core.c, perf_sched_events).
 */
bool uprobe_link__is_supported(void);

/*
 * Sets the probe and runs `program` at each hit, with this cookie. The program must have been
 * loaded for MT_UPROBE_LINK. Returns a descriptor the caller closes (which removes the
 * probe), or -errno after one line and a hint on stderr.
 */
int uprobe_link__open(const struct uprobe_spec *spec, int program, uint64_t cookie);

/*
 * Waits until no thread is in a handler of this probe that it entered before the call; since Linux
 * 6.12, of any probe (register_rwsem of kernel/events/uprobes.c, and then
 * uprobe_unregister_sync()). A thread that entered before a BPF program was attached does not see
 * the program, and its hit would overflow the event unfiltered. Takes a tenth of a second, without
 * using the CPU. 0, or -errno after a line and a hint.
 */
int uprobe_event__settle(const struct uprobe_spec *spec);

/*
 * True if the kernel accepts a kprobe on the function; the probe is removed again. Prints nothing.
 */
bool kprobe_event__try(const char *function);

/* Tells how a uprobe event joins Intel PT's group, in which it can pause, resume or freeze the
 * trace. */
struct uprobe_group {
	struct event_place place;
	int leader;	     /* the group's leader; -1: the event leads its own group */
	unsigned int action; /* enum aux_action on the leader's AUX output at a hit; 0: none */
	bool disabled;	     /* opened disabled, until PERF_EVENT_IOC_REFRESH enables it */
	bool enable_on_exec; /* the process's execve enables it, not the REFRESH before that */
	uint32_t tracepoint; /* the id of a tracefs uprobe; 0: a probe of its own, from spec */
};

/*
 * Opens the event in a group. Returns a descriptor the caller closes, or -errno: -EINVAL or
 * -EOPNOTSUPP if the kernel cannot pause AUX output. Since the caller may have another method,
 * prints an error only if the kernel lacks uprobe events or the semaphore cannot be used.
 */
int uprobe_event__open_in_group(const struct uprobe_spec *spec, const struct uprobe_group *group);

/* Calls a function of mtbpf on which probes can be tried without touching another process. */
void own_probe__hit(void);

/*
 * Describes a probe at an address of this process's own program. 0, or -ENOENT if the address is
 * not in the program.
 */
int own_probe__spec_of(struct uprobe_spec *spec, uintptr_t address);

/*
 * Sets a probe on own_probe__hit() and hits it once. 0; -ENODATA: the probe was not hit; or -errno
 * from setting it. Prints an error only if the kernel lacks uprobe events.
 */
int own_probe__try(void);

/*
 * A uprobe that many perf events share: an entry in tracefs' uprobe_events. With events of the
 * uprobe PMU, each hit would run the BPF program once per event.
 */

struct tracefs_probe;

/*
 * Creates the probe, not yet enabled. `number` distinguishes it from mtbpf's other probes. *id is
 * attr.config for a PERF_TYPE_TRACEPOINT event on it. If tracefs is not mounted, it is mounted
 * privately. The entry would outlive mtbpf, so a small helper process waits until mtbpf ends, in
 * whichever way, and removes it. 0, or -errno after one line and a hint on stderr.
 */
int tracefs_probe__create(struct tracefs_probe **probe, const struct uprobe_spec *spec,
			  size_t number, uint32_t *id);
/* Removes the probe; every event on it must be closed. NULL is fine. */
void tracefs_probe__remove(struct tracefs_probe *probe);

/*
 * Checks whether a probe could be created, without creating one. 0 and tracefs' mount point in
 * *place (NULL: not mounted, but can be mounted privately), or -errno. Prints nothing.
 */
int tracefs_probe__try(const char **place);

/*
 * A hardware breakpoint on code that no file contains, where a uprobe cannot be set. A CPU has
 * four.
 */

#define BREAKPOINTS_MAX 4

/*
 * Opens an event that overflows each time this CPU executes the address in user code, in any
 * process. Returns a descriptor, or -errno: -ENOSPC if the CPU's breakpoints are in use.
 */
int breakpoint_event__open(int cpu, uint64_t address);

#endif
