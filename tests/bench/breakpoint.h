/* SPDX-License-Identifier: MIT */
/*
 * A hardware breakpoint as a trigger: it makes a sample with the registers that hold the arguments,
 * for a thread in user space that waits for it and looks at it.
 */
#ifndef MTBPF_BENCH_BREAKPOINT_H
#define MTBPF_BENCH_BREAKPOINT_H

#include <asm/perf_regs.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "trigger_target.h"

struct breakpoint {
	int event;
	pthread_t thread;
	struct perf_event_mmap_page *page;
	_Atomic bool stop;
	uint64_t bytes;
};

static inline void *breakpoint__consume(void *arg)
{
	struct breakpoint *b = arg;
	struct pollfd pfd = {.fd = b->event, .events = POLLIN};
	sigset_t alarm_only;

	/* The time limit is the main thread's. */
	sigemptyset(&alarm_only);
	sigaddset(&alarm_only, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
	while (!b->stop) {
		uint64_t head;

		if (poll(&pfd, 1, 10) <= 0)
			continue;
		head = __atomic_load_n(&b->page->data_head, __ATOMIC_ACQUIRE);
		b->bytes += head - b->page->data_tail;
		__atomic_store_n(&b->page->data_tail, head, __ATOMIC_RELEASE);
	}
	return NULL;
}

static inline void breakpoint__open(struct breakpoint *b, pid_t pid, victim_fn at)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
		.sample_type =
			PERF_SAMPLE_TIME | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER,
		.sample_regs_user = 1ull << PERF_REG_X86_DI | 1ull << PERF_REG_X86_SI,
		.exclude_kernel = 1,
		.wakeup_events = 1,
		.bp_type = HW_BREAKPOINT_X,
		.bp_addr = (uintptr_t)at,
		.bp_len = sizeof(long),
	};

	*b = (struct breakpoint){0};
	b->event = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (b->event < 0)
		die("perf_event_open of a breakpoint");
}

static inline void breakpoint__watch(struct breakpoint *b)
{
	size_t size = 2 * (size_t)sysconf(_SC_PAGESIZE);

	b->page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, b->event, 0);
	if (b->page == MAP_FAILED)
		die("mmap of the breakpoint's ring");
	if (pthread_create(&b->thread, NULL, breakpoint__consume, b))
		die("pthread_create");
}

/* How often it was hit. */
static inline uint64_t breakpoint__close(struct breakpoint *b)
{
	uint64_t hits;

	if (b->page) {
		b->stop = true;
		pthread_join(b->thread, NULL);
		munmap(b->page, 2 * (size_t)sysconf(_SC_PAGESIZE));
	}
	if (read(b->event, &hits, sizeof(hits)) != sizeof(hits))
		die("count of the breakpoint");
	close(b->event);
	return hits;
}

#endif
