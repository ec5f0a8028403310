/* SPDX-License-Identifier: MIT */
/*
 * The flight recorder of a thread, or of a cgroup on one CPU: its events, and the ring that keeps
 * the latest records.
 */
#ifndef MTBPF_CAPTURE_SAMPLE_SAMPLE_RING_H
#define MTBPF_CAPTURE_SAMPLE_SAMPLE_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/perf/followed.h"
#include "capture/perf/perf_ring.h"
#include "capture/recording/recording.h"
#include "target/cgroup.h"

/* The descriptors and mappings of one ring. */
#define SAMPLE_RING_FDS	     6
#define SAMPLE_RING_MAPPINGS 2

/*
 * The hardware events to open: cycles; also the last branches (Intel SDM vol. 3, 18.4: LBR; AMD's
 * LbrExtV2); or also the calls that have not returned (LBR's call stack mode, in Intel CPUs since
 * Haswell: arch/x86/events/intel/lbr.c).
 */
enum counting {
	COUNTING_CYCLES,
	COUNTING_BRANCHES, /* with the last branches */
	COUNTING_CALLS,	   /* with the calls that have not returned */
};

/*
 * Tries to open such an event on the main thread of mtbpf. 0 or -errno: -EOPNOTSUPP, -ENOENT or
 * -EINVAL if the CPU or this virtual machine does not support it. Prints nothing.
 */
int counting__try(enum counting counting);

/* kernel/events/core.c: perf_swevent_start_hrtimer() makes shorter periods 10 us. */
#define SAMPLE_RATE_HIGHEST 100000

/*
 * The rate in Hz, limited to the kernel's maximum (kernel.perf_event_max_sample_rate, which it
 * lowers if samples take too long). Says so if the rate was limited.
 */
unsigned int sample_rate__limit(unsigned int wanted_hz);
/* The period in ns for such a rate. */
static inline uint64_t sample_rate__period(unsigned int wanted_hz)
{
	return 1000000000ull / sample_rate__limit(wanted_hz);
}
/* The rate, limited by SAMPLE_RATE_HIGHEST and by the kernel's max_hz; max_hz 0 is unlimited. */
unsigned int sample_rate__allowed(unsigned int wanted_hz, long max_hz);

struct sample_ring_config {
	uint64_t period_ns; /* CPU time between two samples */
	size_t size;	    /* of the ring, a power of two */
	uint32_t stack;	    /* stack bytes to copy, a multiple of 8; 0: none */
	int gate;	  /* the BPF program that decides whether to keep each sample; -1: unused */
	int switch_gate;  /* the same for switches; 0: gate decides */
	bool no_switches; /* a BPF program records the switches, not this ring */
	bool no_stacks;	  /* a BPF program records the stacks at switches */
	bool kernel;	  /* also record the kernel's part of stacks */
	const struct cgroup
		*cgroup; /* for a CPU: whose mappings and names to record; NULL: everyone's */
	bool from_exec;	 /* record from the process's execve on, not before */
	bool branches;	 /* the CPU records the last branches: COUNTING_BRANCHES */
	bool calls;	 /* sample by cycles, with calls: COUNTING_CALLS; not with branches */
};

/* All events write to the first one's ring. */
enum sample_event {
	SAMPLE_EVENT_CLOCK,    /* samples by CPU time or cycles; also writes the switch records */
	SAMPLE_EVENT_SWITCHES, /* samples the stack at each switch away from the CPU */
	SAMPLE_EVENT_MINOR_FAULTS,
	SAMPLE_EVENT_MAJOR_FAULTS,
	SAMPLE_EVENTS,
};

/* All events use CLOCK_MONOTONIC, as BPF programs do, so that no time has to be converted. */
struct sample_ring {
	struct followed_ring of;
	int events[SAMPLE_EVENTS];   /* -1: not open */
	uint64_t ids[SAMPLE_EVENTS]; /* ids at the begin of their samples */
	int branches;		     /* event that enables last branch records; -1: none */
	struct perf_ring ring;
	uint64_t written_before; /* bytes written to the ring when the period was last set */
	bool has_no_clock;	 /* the clock was stopped: sample_ring__set_clock() */
};

/*
 * Opens all events, disabled, and maps their buffers. 0, or -errno: -ESRCH the thread has ended;
 * -ENODEV the CPU is offline; -EACCES the kernel forbids it; -EPERM locked memory, -ENOMEM. Prints
 * nothing.
 */
int sample_ring__open(struct sample_ring *ring, const struct event_place *place,
		      const struct sample_ring_config *config);
void sample_ring__close(struct sample_ring *ring);

/* The locked memory that the buffers need, with a ring of this size. */
size_t sample_ring__locked_size(size_t size);

/* Uses config->period_ns from now on. Does nothing for a thread that has ended. */
void sample_ring__set_period(struct sample_ring *ring, const struct sample_ring_config *config);
/* Begins or resumes recording; the previous contents are dropped. 0 or -errno. */
int sample_ring__enable(struct sample_ring *ring);
/* Starts or stops the timed samples and, unless a program records them, the switches. */
void sample_ring__set_clock(struct sample_ring *ring, bool on);
/* Ends recording; the ring no longer changes. */
void sample_ring__disable(struct sample_ring *ring);

/* Ids that tell which event wrote a record. */
struct sample_record_ids {
	/* PERF_SAMPLE_IDENTIFIER of the events that sample at switches and page faults. */
	uint64_t switches, minor_faults, major_faults;
	uint64_t calls;	   /* of the event whose samples have calls (COUNTING_CALLS); 0: none */
	uint64_t until_ns; /* later records are left out; 0: none are */
	size_t late;	   /* number of samples left out because of until_ns */
};

/* Adds one record of `size` bytes: a sample, a switch or a throttling. Skips all others. 0 or
 * -ENOMEM. */
int sample_record__add(struct sample_record_ids *ids, struct recording *rec, const void *record,
		       size_t size);

/* The most calls that any CPU records. */
#define NOTED_CALLS_MAX 32

/*
 * Joins the calls that the CPU recorded (COUNTING_CALLS, the latest first) with the callers found
 * by frame pointers. On entry ips[0] is the current address, and ips[1 .. n_ips) are return
 * addresses. On return ips[1 .. *n_calls] are recorded call instructions, followed by the return
 * addresses of their callers. So callers are shown even if the callee lacks a frame pointer, and
 * frame pointers show the callers for which the CPU did not have room. Returns the new n_ips, at
 * most `room`; *n_calls is 0 if the CPU recorded nothing.
 */
uint32_t noted_calls__join(const struct perf_branch_entry *calls, size_t n, uint64_t *ips,
			   uint32_t n_ips, uint32_t room, uint32_t *n_calls);

#endif
