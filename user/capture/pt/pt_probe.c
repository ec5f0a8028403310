// SPDX-License-Identifier: MIT
#include "capture/pt/pt_probe.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/probe/own_probe.h"
#include "capture/pt/timing.h"

#define AUX_SIZE (128u << 10)
/* Far more than what runs from the start to the hit. */
#define BRANCHES 12000
/* Six to a byte is the most that TNT packets hold (Intel SDM vol. 3, 33.4.2.1), as 47 to eight. */
#define BRANCHES_SIZE (BRANCHES / 8)

/* What every PMU can do. */
static uint64_t config_of(const struct pt_pmu *pmu)
{
	static const struct pt_timing none = {0};
	uint64_t config;

	pt_timing__config(&none, pmu, &config);
	return config;
}

int pt_probe__open(const struct pt_pmu *pmu, bool kernel)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = pmu->type,
		.config = config_of(pmu),
		.disabled = 1,
		.exclude_kernel = !kernel,
		.exclude_hv = 1,
	};
	long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	close((int)fd);
	return 0;
}

__attribute__((noinline, noipa)) static void run_branches(void)
{
	for (unsigned int n = BRANCHES; n; n--)
		__asm__ volatile("" : "+r"(n));
}

/* The buffer does not come round: its head is the trace's size. 0 or -errno. */
static int record(struct pt_ring *ring, const struct pt_ring_config *config, uint64_t *size)
{
	int err = pt_ring__enable(ring, config);

	if (err)
		return err;
	own_probe__hit();
	run_branches();
	pt_ring__disable(ring);
	*size = __atomic_load_n(&ring->ring.page->aux_head, __ATOMIC_ACQUIRE);
	return 0;
}

int pt_probe__freeze(const struct pt_pmu *pmu, enum pt_freeze freeze)
{
	struct uprobe_spec spec;
	struct pt_ring_config config = {
		.pmu_type = pmu->type,
		.pt_config = config_of(pmu),
		.aux_size = AUX_SIZE,
		.freeze = freeze,
		.probes = &spec,
		.n_probes = 1,
	};
	struct event_place place = event_place__of_thread(gettid());
	struct pt_ring ring;
	uint64_t size = 0;
	int err = own_probe__spec(&spec);

	if (!err)
		err = pt_ring__open(&ring, &place, &config);
	if (err)
		return err;
	err = record(&ring, &config, &size);
	pt_ring__close(&ring);
	if (err)
		return err;
	if (freeze == PT_FREEZE_DISABLE)
		return size >= BRANCHES_SIZE ? 0 : -ENODATA;
	return size && size < BRANCHES_SIZE ? 0 : -ENODATA;
}
