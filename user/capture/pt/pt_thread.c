// SPDX-License-Identifier: MIT
#include "capture/pt/pt_thread.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PT_DATA_SIZE	   (16u << 10)
#define SIDEBAND_DATA_SIZE (256u << 10)

const char *pt_freeze__name(enum pt_freeze freeze)
{
	switch (freeze) {
	case PT_FREEZE_PAUSE:
		return "in the kernel, by aux_pause";
	case PT_FREEZE_REFRESH:
		return "in the kernel, by an event limit";
	case PT_FREEZE_DISABLE:
		break;
	}
	return "from user space";
}

static int open_event(struct perf_event_attr *attr, pid_t tid, int leader)
{
	attr->size = sizeof(*attr);
	return (int)syscall(SYS_perf_event_open, attr, tid, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

static int open_pt(struct pt_thread *t, const struct pt_thread_config *config, int leader)
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
		.exclude_hv = 1,
	};

	t->pt = open_event(&attr, t->tid, leader);
	return t->pt < 0 ? -errno : 0;
}

static int open_probe(struct pt_thread *t, const struct pt_thread_config *config, int leader)
{
	struct uprobe_group group = {
		.tid = t->tid,
		.leader = leader,
		.pause = config->freeze == PT_FREEZE_PAUSE,
		.disabled = config->freeze == PT_FREEZE_REFRESH,
		.enable_on_exec = config->freeze == PT_FREEZE_REFRESH && config->from_exec,
		.tracepoint = config->tracepoint,
	};

	t->probe = uprobe_event__open_in_group(config->probe, &group);
	return t->probe < 0 ? t->probe : 0;
}

static int open_group(struct pt_thread *t, const struct pt_thread_config *config)
{
	int err;

	if (!config->probe)
		return open_pt(t, config, -1);
	if (config->freeze == PT_FREEZE_REFRESH) {
		err = open_probe(t, config, -1);
		return err ? err : open_pt(t, config, t->probe);
	}
	err = open_pt(t, config, -1);
	if (err)
		return err;
	return open_probe(t, config, config->freeze == PT_FREEZE_PAUSE ? t->pt : -1);
}

static int open_sideband(struct pt_thread *t)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
			       PERF_SAMPLE_IDENTIFIER,
		.sample_id_all = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.watermark = 1,
		.wakeup_watermark = SIDEBAND_DATA_SIZE / 4,
	};

	t->sideband = open_event(&attr, t->tid, -1);
	return t->sideband < 0 ? -errno : 0;
}

int pt_thread__open(struct pt_thread *t, pid_t tid, const struct pt_thread_config *config)
{
	int err;

	*t = (struct pt_thread){.tid = tid, .pt = -1, .probe = -1, .sideband = -1};
	err = open_sideband(t);
	if (!err)
		err = perf_ring__map(&t->sideband_ring, t->sideband, SIDEBAND_DATA_SIZE, 0);
	if (!err)
		err = open_group(t, config);
	if (!err)
		err = perf_ring__map(&t->ring, t->pt, PT_DATA_SIZE, config->aux_size);
	if (err)
		pt_thread__close(t);
	return err;
}

void pt_thread__close(struct pt_thread *t)
{
	perf_ring__unmap(&t->ring);
	perf_ring__unmap(&t->sideband_ring);
	if (t->probe >= 0)
		close(t->probe);
	if (t->pt >= 0)
		close(t->pt);
	if (t->sideband >= 0)
		close(t->sideband);
	t->probe = t->pt = t->sideband = -1;
}

size_t pt_thread__locked_size(size_t aux_size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return page + SIDEBAND_DATA_SIZE + page + PT_DATA_SIZE + aux_size;
}

int pt_thread__enable(struct pt_thread *t, const struct pt_thread_config *config)
{
	if (config->freeze == PT_FREEZE_REFRESH && config->probe) {
		if (ioctl(t->probe, PERF_EVENT_IOC_REFRESH, 1))
			return -errno;
		/* The limit stays; execve enables. */
		return config->from_exec && ioctl(t->probe, PERF_EVENT_IOC_DISABLE, 0) ? -errno : 0;
	}
	if (config->from_exec)
		return 0;
	return ioctl(t->pt, PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
}

void pt_thread__disable(struct pt_thread *t)
{
	/*
	 * Intel PT first: the hit's message may be here while the target is still in the probe's
	 * handler, and without its event that would not pause anything any more.
	 */
	if (t->pt >= 0)
		ioctl(t->pt, PERF_EVENT_IOC_DISABLE, 0);
	if (t->probe >= 0)
		ioctl(t->probe, PERF_EVENT_IOC_DISABLE, 0);
}

int pt_thread__times(const struct pt_thread *t, uint64_t *enabled_ns, uint64_t *running_ns)
{
	struct {
		uint64_t value, enabled, running;
	} counts;

	if (read(t->pt, &counts, sizeof(counts)) != sizeof(counts))
		return -EIO;
	*enabled_ns = counts.enabled;
	*running_ns = counts.running;
	return 0;
}
