// SPDX-License-Identifier: MIT
#include "trigger/pressure.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernel/pid_namespace.h"
#include "pressure.skel.h"
#include "trigger/log_entry.h"
#include "trigger/trigger_internal.h"
#include "util/log.h"

struct pressure {
	struct pressure_bpf *skel;
};

static int load(struct pressure *pressure)
{
	struct pressure_bpf *skel = pressure_bpf__open();
	int err;

	pressure->skel = skel;
	if (!skel)
		return -errno;
	err = pressure_bpf__load(skel);
	return err ? err : pressure_bpf__attach(skel);
}

struct pressure *pressure__new(void)
{
	struct pressure *pressure;
	uint64_t dev, ino;
	int err;

	/* It has the kernel's ids, which are not those that we see. */
	if (pid_namespace__is_own(&dev, &ino)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	pressure = calloc(1, sizeof(*pressure));
	if (!pressure)
		return NULL;
	libbpf_set_print(trigger__print_libbpf);
	err = load(pressure);
	if (!err)
		return pressure;
	log__debug("what quotas and the hypervisor take is not known: %s", strerror(-err));
	pressure__free(pressure);
	errno = -err;
	return NULL;
}

void pressure__free(struct pressure *pressure)
{
	if (!pressure)
		return;
	pressure_bpf__destroy(pressure->skel);
	free(pressure);
}

bool pressure__counts_stolen(const struct pressure *pressure)
{
	return pressure->skel->bss->counts_stolen;
}

int pressure__take(const struct pressure *pressure,
		   int (*take)(void *ctx, const struct mt_pressure *entry), void *ctx)
{
	const size_t size = sizeof(struct mt_pressure) * MT_PRESSURE_LOG;
	const struct mt_pressure *entries = mmap(NULL, size, PROT_READ, MAP_SHARED,
						 bpf_map__fd(pressure->skel->maps.pressure_log), 0);
	struct mt_pressure entry;
	int err = 0;

	if (entries == MAP_FAILED)
		return -errno;
	for (size_t i = 0; i < MT_PRESSURE_LOG && !err; i++)
		if (log_entry__copy(&entry, &entries[i], sizeof(entry)))
			err = take(ctx, &entry);
	munmap((void *)entries, size);
	return err;
}
