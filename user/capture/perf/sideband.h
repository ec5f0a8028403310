/* SPDX-License-Identifier: MIT */
/*
 * Reads perf's sideband records about the target: mappings, names, and threads that begin and end.
 */
#ifndef MTBPF_CAPTURE_PERF_SIDEBAND_H
#define MTBPF_CAPTURE_PERF_SIDEBAND_H

#include <stdint.h>
#include <sys/types.h>

#include "capture/perf/event_place.h"
#include "capture/perf/perf_ring.h"
#include "capture/recording/recording.h"
#include "target/process.h"

struct sideband_ring_config {
	size_t size;	/* a power of two */
	bool switches;	/* also record context switches */
	bool at_once;	/* wake at each record, so that new threads can be followed */
	bool monotonic; /* times are CLOCK_MONOTONIC, not perf's clock */
};

/* A dummy event for sideband records. It stays enabled when the other events are frozen. */
struct sideband_ring {
	int event; /* -1: not open; readable when a quarter of the ring waits to be read, or with
		      at_once any record */
	struct perf_ring ring;
};

/* 0, or -errno like perf_event_open(2) and perf_ring__map(). Prints nothing. */
int sideband_ring__open(struct sideband_ring *ring, const struct event_place *place,
			const struct sideband_ring_config *config);
void sideband_ring__close(struct sideband_ring *ring);

/* A thread that has ended. */
struct gone_task {
	pid_t pid, tid;
	uint64_t time_ns;
};

/* A process that has executed another program, and the id of the calling thread's event. */
struct executed {
	pid_t pid;
	uint64_t event_id, time_ns;
};

/* A record that was taken from its ring and waits to be handled. */
struct waiting_record {
	uint64_t time_ns;
	size_t at; /* in sideband.bytes */
};

/* The threads that ran on each CPU, as far back as the CPU's ring of Intel PT goes. */

struct cpu_switches {
	int cpu;
	VEC(struct rec_switch) list; /* ascending by time */
	uint64_t last_ns;	     /* time of the latest switch, or of the start */
	/* A lower bound of the trace bytes written so far, and the ring's last known head. */
	uint64_t written, head;
	/*
	 * `written` at mark_ns. When a full ring's size more is written, nothing older than mark_ns
	 * is left.
	 */
	uint64_t mark_written, mark_ns;
};

struct switch_log {
	VEC(struct cpu_switches) cpus;
	uint64_t ring_size; /* of each CPU, in bytes: a power of two */
	uint64_t start_ns;  /* when recording began */
};

void switch_log__fini(struct switch_log *log);

/* The meaning of a record for its CPU and its thread. */
enum switch_event {
	SWITCH_BEGAN, /* the thread runs; used only as the first record of the CPU */
	SWITCH_ON,    /* the thread runs from now on; pid and tid 0: no recorded thread */
	SWITCH_OFF,   /* it has run until now */
	SWITCH_LOST,  /* records are missing since the CPU's last one: it is unknown who ran */
};

/* Calls for one CPU must be in order of time. 0 or -ENOMEM. */
int switch_log__note(struct switch_log *log, enum switch_event event, const struct rec_switch *sw);
/*
 * The trace has reached `head` in the CPU's ring; forgets switches before the part that the ring
 * still has.
 */
int switch_log__traced(struct switch_log *log, int cpu, uint64_t time_ns, uint64_t head);

/* True if the log has a switch to the process. */
bool switch_log__has(const struct switch_log *log, pid_t pid);
/* Adds the switches of all CPUs to the recording, by time. 0 or -ENOMEM. */
int switch_log__add_to(const struct switch_log *log, struct recording *rec);

struct source;

struct sideband {
	/* Records of other processes are ignored; NULL: all records are from one cgroup. */
	struct pid_set *pids;
	bool of_cpus;	       /* with pids: one ring per CPU, with records of all processes */
	bool children;	       /* add children of pids to pids */
	struct recording *rec; /* maps, thread names and losses are added here */
	/* Threads that began, ended, or called execve(2); the caller handles and clears all. */
	VEC(struct rec_thread) started;
	VEC(struct gone_task) ended;
	VEC(struct executed) executed;
	VEC(struct gone_task) gone; /* the latest ones; sideband__tidy() drops the oldest */
	/* For sideband__collect(): */
	VEC(uint8_t) bytes;
	VEC(struct waiting_record) waiting;
	uint64_t collect_ns; /* start of the current collection; 0: none */
	/* For rings per CPU: */
	struct switch_log log;
	VEC(struct rec_thread) joined; /* threads moved into the cgroup; the caller clears this */
};

void sideband__fini(struct sideband *sideband);

/*
 * Handles every record in the ring. If a CPU has two rings, drain that of Intel PT first. 0 or
 * -ENOMEM.
 */
int sideband__drain(struct sideband *sideband, struct perf_ring *ring);

/*
 * Like sideband__drain(), for several rings in order of time: a process may be forked on one CPU
 * and map its files on another. Collects the records of one ring; times are CLOCK_MONOTONIC. 0 or
 * -ENOMEM.
 */
int sideband__collect(struct sideband *sideband, struct perf_ring *ring);
/*
 * Handles the collected records, except those so young that another ring may have older ones; if
 * `last`, all of them. 0 or -ENOMEM.
 */
int sideband__settle(struct sideband *sideband, bool last);

/* Number of the latest ended threads that sideband__tidy() keeps. */
#define SIDEBAND_GONE_MAX 2048

/*
 * Drops threads, and mappings of processes, that have ended, once there are 2 * SIDEBAND_GONE_MAX
 * of them. Keeps the latest SIDEBAND_GONE_MAX, and those for which `holds` says that a ring still
 * has their data (NULL: none has). 0 or -ENOMEM.
 */
int sideband__tidy(struct sideband *sideband, bool (*holds)(const struct source *source, pid_t pid),
		   const struct source *source);

#endif
