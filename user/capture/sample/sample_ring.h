/* SPDX-License-Identifier: MIT */
/* The flight recorder of a thread, or of a cgroup on a CPU: its events, and the ring that keeps
 * their latest records. */
#ifndef MTBPF_CAPTURE_SAMPLE_SAMPLE_RING_H
#define MTBPF_CAPTURE_SAMPLE_SAMPLE_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/perf/sideband.h"
#include "capture/recording/recording.h"
#include "target/cgroup.h"

/* The descriptors and mappings of one ring. */
#define SAMPLE_RING_FDS	     6
#define SAMPLE_RING_MAPPINGS 2

/*
 * Hardware events: cycles, and with them the last branches (Intel SDM vol. 3, 18.4: LBR; AMD's
 * LbrExtV2), or the calls that have not returned (LBR's call stack mode, Intel's since Haswell:
 * arch/x86/events/intel/lbr.c).
 */
enum counting {
	COUNTING_CYCLES,
	COUNTING_BRANCHES, /* and the last ones are noted */
	COUNTING_CALLS,	   /* and those that have not returned */
};

/*
 * Tries to open it on this thread. 0 or -errno: -EOPNOTSUPP, -ENOENT or -EINVAL if the CPU, or this
 * virtual machine, does not have it. Prints nothing.
 */
int counting__try(enum counting counting);

/* kernel/events/core.c: perf_swevent_start_hrtimer() makes shorter periods 10 us. */
#define SAMPLE_RATE_HIGHEST 100000

/*
 * The period for a rate in Hz, or for the highest that the kernel allows
 * (kernel.perf_event_max_sample_rate, which it lowers if samples take too long); says so then.
 * Nanoseconds.
 */
uint64_t sample_rate__period(unsigned int wanted_hz);
/* The rate, limited by the kernel's max_hz; 0 is unlimited. */
unsigned int sample_rate__allowed(unsigned int wanted_hz, long max_hz);

struct sample_ring_config {
	uint64_t period_ns; /* between two samples, of the time on a CPU */
	size_t size;	    /* of the ring, a power of two */
	uint32_t stack;	    /* bytes of the stack that are copied, in eights; 0: none */
	int gate;	  /* the BPF program that decides whether to keep each sample; -1: unused */
	bool no_switches; /* a program records the switches */
	bool no_stacks;	  /* ... and their stacks */
	bool kernel;	  /* the kernel's part of stacks as well */
	const struct cgroup
		*cgroup; /* of a CPU: whose mappings and names are noted; NULL: of all */
	bool from_exec;	 /* record from the process's execve on, not before */
	bool branches;	 /* the CPU notes the last ones: COUNTING_BRANCHES */
	bool calls;	 /* by cycles, with the calls that it notes: COUNTING_CALLS; not both */
};

/* All write to the first one's ring. */
enum sample_event {
	SAMPLE_EVENT_CLOCK,    /* by time on a CPU, or cycles; and the switches, as records */
	SAMPLE_EVENT_SWITCHES, /* the stack at each switch away */
	SAMPLE_EVENT_MINOR_FAULTS,
	SAMPLE_EVENT_MAJOR_FAULTS,
	SAMPLE_EVENTS,
};

/*
 * All events have CLOCK_MONOTONIC for their times, which is also what BPF programs have: nothing
 * needs to be converted.
 */
struct sample_ring {
	struct event_place place;
	pid_t pid;		     /* of a thread's: its process */
	int events[SAMPLE_EVENTS];   /* -1: not open */
	uint64_t ids[SAMPLE_EVENTS]; /* what their samples begin with */
	int branches;		     /* that has the CPU note them; -1: none */
	struct perf_ring ring;
	uint64_t written_before; /* to the ring, when the period was set last */
	struct sideband_ring sideband;
	bool has_no_clock; /* the clock was stopped: sample_ring__set_clock() */
	bool ended;	   /* its thread is gone; what it holds stays */
};

/*
 * Opens all events, disabled, and maps their buffers. 0, or -errno: -ESRCH the thread has ended;
 * -ENODEV the CPU is offline; -EACCES the kernel forbids it; -EPERM locked memory, -ENOMEM. Prints
 * nothing.
 */
int sample_ring__open(struct sample_ring *ring, const struct event_place *place,
		      const struct sample_ring_config *config);
void sample_ring__close(struct sample_ring *ring);

/* The locked memory that its buffers need, with a ring of this size. */
size_t sample_ring__locked_size(size_t size);

/* Samples by config->period_ns from now on; a thread that is gone does not. */
void sample_ring__set_period(struct sample_ring *ring, const struct sample_ring_config *config);
/* Begins to record, also after it ended: what the ring held is forgotten. 0 or -errno. */
int sample_ring__enable(struct sample_ring *ring);
/* Starts or stops its clock; switches are recorded all the same. */
void sample_ring__set_clock(struct sample_ring *ring, bool on);
/* Ends recording; the ring does not change any more. */
void sample_ring__disable(struct sample_ring *ring);

/* Tells by which event a record was written. */
struct sample_record_ids {
	/* PERF_SAMPLE_IDENTIFIER of the events that sample at switches and page faults. */
	uint64_t switches, minor_faults, major_faults;
	uint64_t calls;	   /* of the one whose samples have the calls that the CPU noted; 0: none */
	uint64_t until_ns; /* later ones are left out, and counted */
	size_t late;	   /* samples left out */
};

/* Adds one record of `size` bytes: a sample, a switch or a throttling. Skips all others. 0 or
 * -ENOMEM. */
int sample_record__add(struct sample_record_ids *ids, struct recording *rec, const void *record,
		       size_t size);

/* No CPU notes more. */
#define NOTED_CALLS_MAX 32

/*
 * Joins the calls that the CPU has noted (COUNTING_CALLS, the latest first) with the callers by
 * frame pointers. On entry ips[0] is the current address, and ips[1 .. n_ips) are return addresses.
 * On return ips[1 .. *n_calls] are noted call instructions, followed by the return addresses of
 * their callers. So callers are shown even if the callee lacks a frame pointer, and frame pointers
 * show the callers for which the CPU did not have room. Returns the new n_ips, at most `room`;
 * *n_calls is 0 if the CPU noted nothing.
 */
uint32_t noted_calls__join(const struct perf_branch_entry *calls, size_t n, uint64_t *ips,
			   uint32_t n_ips, uint32_t room, uint32_t *n_calls);

#endif
