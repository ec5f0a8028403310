/* SPDX-License-Identifier: MIT */
/*
 * What kept threads that were ready to run from it, by the kernel's own books: quotas of cgroups,
 * and the hypervisor. bpf/pressure.bpf.c and its log.
 */
#ifndef MTBPF_TRIGGER_PRESSURE_H
#define MTBPF_TRIGGER_PRESSURE_H

#include <stdbool.h>

#include "mtbpf_shared.h"

struct pressure;

/*
 * Loads and attaches; it is written from here on. NULL with errno where the kernel has no BTF, the
 * rights are missing, or mtbpf runs in a pid namespace of its own: prints nothing but at -v, since
 * all else works without it.
 */
struct pressure *pressure__new(void);
void pressure__free(struct pressure *pressure);

/* Whether the kernel counts stolen time at all (CONFIG_PARAVIRT_TIME_ACCOUNTING). */
bool pressure__counts_stolen(const struct pressure *pressure);

/*
 * Hands over what the log has, of all processes, in no order. What `take` returns but 0 ends that,
 * and is returned; or -errno.
 */
int pressure__take(const struct pressure *pressure,
		   int (*take)(void *ctx, const struct mt_pressure *entry), void *ctx);

#endif
