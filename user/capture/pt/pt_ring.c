// SPDX-License-Identifier: MIT
#include "capture/pt/pt_ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "capture/perf/event_place.h"
#include "capture/probe/uprobe_event.h"
#include "capture/pt/pmu.h"

#include "util/cleanup.h"

#define SIDEBAND_DATA_SIZE (256u << 10)

/*
 * These records do not wake mtbpf, but those of the sideband do. Each time the kernel takes Intel
 * PT from a CPU, it writes one record of 64 bytes here, and at least one of 56 bytes to the
 * sideband.
 */
static size_t pt_data_size(bool by_cpu)
{
	return by_cpu ? 128u << 10 : 16u << 10;
}

const char *pt_freeze__name(enum pt_freeze freeze)
{
	static const char *const names[] = {
		[PT_FREEZE_PAUSE] = "in the kernel, by aux_pause",
		[PT_FREEZE_REFRESH] = "in the kernel, by an event limit",
		[PT_FREEZE_DISABLE] = "from user space",
	};

	return names[freeze];
}

static int open_pt(struct pt_ring *r, const struct pt_ring_config *config, int leader)
{
	struct perf_event_attr attr = {
		.type = config->pmu_type,
		.config = config->pt_config,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.sample_id_all = 1,
		/* A sibling goes with its leader. */
		.disabled = leader < 0,
		.enable_on_exec = leader < 0 && config->from_exec,
		.exclude_kernel = !config->kernel,
		.exclude_user = config->kernel_only,
		.exclude_hv = 1,
	};

	if (config->start_paused)
		aux_action__set(&attr, AUX_START_PAUSED);
	r->pt = event_place__open(&r->of.place, &attr, leader);
	return r->pt < 0 ? r->pt : 0;
}

static int open_probe(struct pt_ring *r, const struct pt_ring_config *config, size_t i, int leader)
{
	struct uprobe_group group = {
		.place = r->of.place,
		.leader = leader,
		.action = config->freeze != PT_FREEZE_PAUSE	    ? 0
			  : config->probes[i].role == UPROBE_STARTS ? AUX_RESUME
								    : AUX_PAUSE,
		.disabled = config->freeze == PT_FREEZE_REFRESH,
		.enable_on_exec = config->freeze == PT_FREEZE_REFRESH && config->from_exec,
		.tracepoint = config->tracepoints ? config->tracepoints[i] : 0,
	};
	int *fd = VEC_PUSH(&r->probes);

	if (!fd)
		return -ENOMEM;
	*fd = uprobe_event__open_in_group(&config->probes[i], &group);
	if (*fd >= 0)
		return 0;
	return r->probes.v[--r->probes.n];
}

static int open_group(struct pt_ring *r, const struct pt_ring_config *config)
{
	int err;

	if (config->n_probes && config->freeze == PT_FREEZE_REFRESH) {
		/* One probe's event leads Intel PT's group: its limit ends the whole group. */
		err = config->n_probes > 1 ? -EOPNOTSUPP : open_probe(r, config, 0, -1);
		return err ? err : open_pt(r, config, r->probes.v[0]);
	}
	err = open_pt(r, config, -1);
	for (size_t i = 0; i < config->n_probes && !err; i++)
		err = open_probe(r, config, i, config->freeze == PT_FREEZE_PAUSE ? r->pt : -1);
	return err;
}

int pt_ring__open(struct pt_ring *r, const struct event_place *place,
		  const struct pt_ring_config *config)
{
	const struct sideband_ring_config sideband = {
		.size = SIDEBAND_DATA_SIZE, .at_once = !config->by_cpu, .switches = config->by_cpu};
	int err;

	*r = (struct pt_ring){.of = {.place = *place, .wakes = -1, .sideband = {.event = -1}},
			      .pt = -1,
			      .spool = SPOOL_NONE};
	err = config->spool_dir ? spool__open(&r->spool, config->spool_dir) : 0;
	if (!err)
		err = sideband_ring__open(&r->of.sideband, place, &sideband);
	if (!err)
		err = open_group(r, config);
	if (!err)
		err = perf_ring__map(&r->ring, r->pt, pt_data_size(config->by_cpu),
				     config->aux_size, config->spool_dir);
	if (err)
		pt_ring__close(r);
	return err;
}

void pt_ring__close(struct pt_ring *r)
{
	perf_ring__unmap(&r->ring);
	spool__close(&r->spool);
	sideband_ring__close(&r->of.sideband);
	VEC_FINI_EACH(&r->probes, e, close(*e));
	if (r->pt >= 0)
		close(r->pt);
	r->pt = -1;
}

size_t pt_ring__locked_size(size_t aux_size, bool by_cpu)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return page + SIDEBAND_DATA_SIZE + page + pt_data_size(by_cpu) + aux_size;
}

int pt_ring__enable(struct pt_ring *r, const struct pt_ring_config *config)
{
	if (config->freeze == PT_FREEZE_REFRESH && config->n_probes) {
		int probe = r->probes.v[0];

		if (ioctl(probe, PERF_EVENT_IOC_REFRESH, 1))
			return -errno;
		/* The limit stays; execve enables. */
		return config->from_exec && ioctl(probe, PERF_EVENT_IOC_DISABLE, 0) ? -errno : 0;
	}
	if (config->from_exec)
		return 0;
	return ioctl(r->pt, PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
}

void pt_ring__disable(struct pt_ring *r)
{
	/*
	 * Disable Intel PT first: the hit's message may arrive while the target is still in the
	 * probe's handler, and without the probe's event nothing would pause the trace.
	 */
	if (r->pt >= 0)
		ioctl(r->pt, PERF_EVENT_IOC_DISABLE, 0);
	for (size_t i = 0; i < r->probes.n; i++)
		ioctl(r->probes.v[i], PERF_EVENT_IOC_DISABLE, 0);
}

/*
 * The kernel disables an event whose buffer is full (kernel/events/ring_buffer.c:
 * perf_aux_output_begin()); only user space enables it again. Enabling an active event does
 * nothing.
 */
void pt_ring__drain(struct pt_ring *r, bool runs)
{
	size_t n = perf_ring__drain_aux(&r->ring, &r->spool);

	if (n >= r->ring.aux_size / 2 && runs)
		ioctl(r->pt, PERF_EVENT_IOC_ENABLE, 0);
}

int pt_ring__times(const struct pt_ring *r, uint64_t *enabled_ns, uint64_t *running_ns)
{
	struct {
		uint64_t value, enabled, running;
	} counts;

	if (read(r->pt, &counts, sizeof(counts)) != sizeof(counts))
		return -EIO;
	*enabled_ns = counts.enabled;
	*running_ns = counts.running;
	return 0;
}

#define AUX_SIZE (128u << 10)
/* Far more than what runs from the start to the hit. */
#define BRANCHES 12000
/* A TNT packet holds up to 6 branches per byte, or 47 in 8 bytes (Intel SDM vol. 3, 33.4.2.1). */
#define BRANCHES_SIZE (BRANCHES / 8)

/* Config bits that every PMU takes. */
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
		.type = pmu->type,
		.config = config_of(pmu),
		.disabled = 1,
		.exclude_kernel = !kernel,
		.exclude_hv = 1,
	};
	struct event_place place = event_place__of_thread(0);
	_cleanup_close_ int fd = event_place__open(&place, &attr, -1);

	return fd < 0 ? fd : 0;
}

__attribute__((noinline, noipa)) static void run_branches(void)
{
	for (unsigned int n = BRANCHES; n; n--)
		__asm__ volatile("" : "+r"(n));
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
	int err = own_probe__spec_of(&spec, (uintptr_t)own_probe__hit);

	if (!err)
		err = pt_ring__open(&ring, &place, &config);
	if (err)
		return err;
	err = pt_ring__enable(&ring, &config);
	if (!err) {
		own_probe__hit();
		run_branches();
		pt_ring__disable(&ring);
		/* The buffer does not come round: its head is the trace's size. */
		size = __atomic_load_n(&ring.ring.page->aux_head, __ATOMIC_ACQUIRE);
	}
	pt_ring__close(&ring);
	if (err)
		return err;
	if (freeze == PT_FREEZE_DISABLE)
		return size >= BRANCHES_SIZE ? 0 : -ENODATA;
	return size && size < BRANCHES_SIZE ? 0 : -ENODATA;
}
