/* SPDX-License-Identifier: MIT */
/* The target of a perf event, in the terms of perf_event_open(2). */
#ifndef MTBPF_CAPTURE_PERF_EVENT_PLACE_H
#define MTBPF_CAPTURE_PERF_EVENT_PLACE_H

#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

struct event_place {
	pid_t pid; /* a thread; a cgroup's descriptor, with PERF_FLAG_PID_CGROUP; -1: everybody */
	int cpu;   /* -1: any */
	unsigned long flags;
};

static inline struct event_place event_place__of_thread(pid_t tid)
{
	return (struct event_place){.pid = tid, .cpu = -1};
}

/* All threads of the cgroup and of those below it, while they are on this CPU. */
static inline struct event_place event_place__of_cgroup(int cgroup_fd, int cpu)
{
	return (struct event_place){.pid = cgroup_fd, .cpu = cpu, .flags = PERF_FLAG_PID_CGROUP};
}

/* Opens the event. leader -1: the event leads its own group. Returns a descriptor or -errno. */
static inline int event_place__open(const struct event_place *place, struct perf_event_attr *attr,
				    int leader)
{
	long fd;

	attr->size = sizeof(*attr);
	fd = syscall(SYS_perf_event_open, attr, place->pid, place->cpu, leader,
		     PERF_FLAG_FD_CLOEXEC | place->flags);
	return fd < 0 ? -errno : (int)fd;
}

/* attr.aux_action, which Debian 12's header does not name yet (include/uapi/linux/perf_event.h). */

/* Values of attr.aux_action. Linux before 6.13 (Debian: 6.12) refuses the event: EINVAL. */
enum aux_action {
	AUX_START_PAUSED = 1, /* for the event with the AUX area */
	AUX_PAUSE = 2,	      /* for another event of its group, whose overflow pauses the output */
	AUX_RESUME = 4,
};

_Static_assert(offsetof(struct perf_event_attr, aux_sample_size) == 112, "aux_action follows");

static inline void aux_action__set(struct perf_event_attr *attr, enum aux_action action)
{
	uint32_t bits = action;

	memcpy((char *)attr + 116, &bits, sizeof(bits));
}

#endif
