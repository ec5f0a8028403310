/* SPDX-License-Identifier: MIT */
/* Measures, on a thread of mtbpf, how much CPU time the flight recorder takes on this machine. */
#ifndef MTBPF_CAPTURE_SAMPLE_SAMPLE_COST_H
#define MTBPF_CAPTURE_SAMPLE_SAMPLE_COST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* CPU time that each part of the recorder takes. */
struct sample_cost {
	uint64_t sample_ns;  /* a timed sample: the timer's interrupt and the stack */
	uint64_t switch_ns;  /* leaving a CPU and coming back, both recorded */
	uint64_t hit_ns;     /* a hit of the trigger's probe, with its return; 0: not known */
	uint64_t go_wait_ns; /* a hit of a probe on Go's runtime; 0: not known */
};

/* The recorder's BPF programs, for mtbpf's own process. */
struct sample_kernel {
	int gate, switch_gate; /* as source_config.sample_gate and sample_switch_gate */
	bool has_stacks;
	void (*set)(void *ctx, bool on);
	void *ctx;
};

/*
 * Measures the cost with `stack` copied bytes per sample and, if `kernel`, with the kernel's part
 * of the stack. With `half`, uses one ring per CPU and these BPF programs; NULL: only events of the
 * thread. Takes a tenth of a second, up to half a second while other threads disturb it. 0, or
 * -errno if this machine cannot sample; -EBUSY: it was disturbed throughout. On an error all costs
 * are 0. Prints nothing.
 */
int sample_cost__measure(uint32_t stack, bool kernel, const struct sample_kernel *half,
			 struct sample_cost *cost);

/* False if no sample can cost so little: other threads have disturbed the measurement. */
bool sample_cost__is_possible(uint64_t sample_ns);

/* The load of a process during a time. */
struct sample_load {
	uint64_t cpu_ns;   /* CPU time of its current threads */
	uint64_t switches; /* how often its threads came onto a CPU */
	uint64_t hits;	   /* of the probes; set by the caller */
	uint64_t go_waits; /* hits of the probes on Go's runtime; set by the caller */
};

/*
 * Reads the load since the process began, of its current threads. 0 or -errno: -ESRCH it has ended.
 */
int sample_load__read(pid_t pid, struct sample_load *load);
/* Measures the process's load for `ms` milliseconds. 0 or -errno: -ESRCH: it has ended. */
int sample_load__measure(pid_t pid, unsigned int ms, struct sample_load *load);

/*
 * The rate, in samples per second of CPU time, that together with switches and hits costs at most
 * `ppm` millionths of that time; 0 if those alone cost more.
 */
unsigned int sample_cost__rate(const struct sample_cost *cost, const struct sample_load *load,
			       uint64_t ppm);

/* The share of the thread's time that this rate costs: 1 is all of it. */
double sample_cost__share(const struct sample_cost *cost, unsigned int hz);

#endif
