/* SPDX-License-Identifier: MIT */
/* Threads that work for another one, which is waited for. */
#ifndef MTBPF_KERNEL_BATCH_THREAD_H
#define MTBPF_KERNEL_BATCH_THREAD_H

#include <sched.h>

/*
 * The calling thread gives way: woken, it does not take the CPU from who woke it, as others do even
 * where another CPU stands still (sched(7), SCHED_BATCH). It has the same share of the time.
 */
static inline void batch_thread__begin(void)
{
	const struct sched_param none = {0};

	/* Where that is forbidden, it is as it was. */
	(void)sched_setscheduler(0, SCHED_BATCH, &none);
}

#endif
