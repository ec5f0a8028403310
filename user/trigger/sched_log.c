// SPDX-License-Identifier: MIT
#include "trigger/sched_log.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sample.skel.h"
#include "trigger/children.h"
#include "trigger/log_entry.h"
#include "trigger/trigger_internal.h"
#include "util/clock.h"
#include "util/log.h"
#include "kernel/pid_namespace.h"

struct sched_log {
	struct sample_bpf *skel;
	struct children *children;
	uint64_t since_ns;
};

static int set_targets(struct sched_log *log, const struct sched_log_config *config)
{
	int tgids = bpf_map__fd(log->skel->maps.target_tgids);
	uint32_t key = 0, cgroup = (uint32_t)config->cgroup_fd;
	const uint8_t value = 1;

	for (size_t i = 0; i < config->n_tgids; i++)
		if (bpf_map_update_elem(tgids, &config->tgids[i], &value, BPF_ANY))
			return -errno;
	if (!config->tgid && !config->n_tgids &&
	    bpf_map_update_elem(bpf_map__fd(log->skel->maps.target_cgroups), &key, &cgroup,
				BPF_ANY))
		return -errno;
	if (config->with_children)
		log->children = children__new(tgids);
	return config->with_children && !log->children ? -errno : 0;
}

/* Their tracepoints cost every process of the machine something: only where they are wanted. */
static int select_syscalls(struct sample_bpf *skel, const struct sched_log_config *config)
{
	bool wanted = config->syscall_thresh_ns != 0;
	int err = bpf_program__set_autoload(skel->progs.on_sys_enter, wanted);

	skel->rodata->syscall_thresh_ns = config->syscall_thresh_ns;
	if (!err)
		err = bpf_program__set_autoload(skel->progs.on_sys_exit, wanted);
	return err ? err : bpf_map__set_autocreate(skel->maps.begun_calls, wanted);
}

static int load(struct sched_log *log, const struct sched_log_config *config)
{
	int err;

	log->skel = sample_bpf__open();
	if (!log->skel)
		return -errno;
	log->skel->rodata->target_tgid = (uint32_t)config->tgid;
	log->skel->rodata->of_several = config->n_tgids != 0;
	err = select_syscalls(log->skel, config);
	if (err)
		return err;
	err = sample_bpf__load(log->skel);
	/* As in trigger_load.c. */
	if (!err && !log->skel->bss)
		err = -ENOMEM;
	if (!err)
		err = set_targets(log, config);
	return err ? err : sample_bpf__attach(log->skel);
}

struct sched_log *sched_log__new(const struct sched_log_config *config)
{
	struct sched_log *log;
	uint64_t dev, ino;
	int err;

	/* It has the kernel's ids, which are not those that we see. */
	if (pid_namespace__is_own(&dev, &ino)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	log = calloc(1, sizeof(*log));
	if (!log)
		return NULL;
	libbpf_set_print(trigger__print_libbpf);
	err = load(log, config);
	if (!err)
		return log;
	log__debug("who wakes threads, and takes their CPUs, is not known: %s", strerror(-err));
	sched_log__free(log);
	errno = -err;
	return NULL;
}

void sched_log__free(struct sched_log *log)
{
	if (!log)
		return;
	children__free(log->children);
	sample_bpf__destroy(log->skel);
	free(log);
}

void sched_log__begin(struct sched_log *log)
{
	log->since_ns = clock__now_ns();
	log->skel->bss->stopped = 0;
}

/* Its end is when it was written. */
static uint64_t written_ns(const struct mt_sched *entry)
{
	return entry->kind == MT_SCHED_LONG ? entry->took.end_ns : entry->time_ns;
}

int sched_log__take(struct sched_log *log, int (*take)(void *ctx, const struct mt_sched *entry),
		    void *ctx)
{
	const size_t size = sizeof(struct mt_sched) * MT_SCHED_LOG;
	const struct mt_sched *entries;
	struct mt_sched entry;
	int err = 0;

	log->skel->bss->stopped = 1;
	entries =
		mmap(NULL, size, PROT_READ, MAP_SHARED, bpf_map__fd(log->skel->maps.sched_log), 0);
	if (entries == MAP_FAILED)
		return -errno;
	for (size_t i = 0; i < MT_SCHED_LOG && !err; i++)
		if (log_entry__copy(&entry, &entries[i], sizeof(entry)) &&
		    written_ns(&entry) >= log->since_ns)
			err = take(ctx, &entry);
	munmap((void *)entries, size);
	return err;
}
