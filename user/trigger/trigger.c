// SPDX-License-Identifier: MIT
#include "trigger/trigger.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "trigger.skel.h"
#include "trigger/histogram.h"
#include "trigger/hit_ring.h"
#include "trigger/kernel_probes.h"
#include "trigger/trigger_internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/page.h"
#include "util/vec.h"

static bool is_valid(const struct trigger_config *config)
{
	return (config->tgid > 0) + (config->n_tgids > 0) + config->of_cgroup == 1 &&
	       !(config->delay_thresh_ns && config->duration_thresh_ns) &&
	       config->stack_copy <= MT_COPY_MAX;
}

static int refuse_map(const char *what, int err)
{
	log__error("cannot map the trigger's %s: %s", what, strerror(-err));
	log__hint(err == -ENOMEM ? "free memory, or raise its limit (ulimit -v)"
				 : "'mtbpf check' shows what works on this machine");
	return err;
}

static int map_freezer(struct trigger *trigger)
{
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
		       bpf_map__fd(trigger->skel->maps.freezer), 0);

	if (p == MAP_FAILED) {
		return refuse_map("state", -errno);
	}
	trigger->freezer = p;
	return 0;
}

static int watch_switches(struct trigger *trigger)
{
	trigger->switches = bpf_program__attach(trigger->skel->progs.on_switch);
	if (trigger->switches)
		return 0;
	log__error("cannot attach a BPF program to context switches: %s", strerror(errno));
	log__hint("use -duration-thresh, which does not need context switches");
	return -errno;
}

struct trigger *trigger__new_with_latch(const struct trigger_config *config,
					enum trigger_latch latch)
{
	struct trigger *trigger;
	int err;

	if (!is_valid(config)) {
		log__error("a trigger needs processes or a cgroup, one threshold at most, and %d "
			   "bytes of stack at most",
			   MT_COPY_MAX);
		errno = EINVAL;
		return NULL;
	}
	trigger = calloc(1, sizeof(*trigger));
	if (!trigger)
		return NULL;
	trigger->after_ns = config->limits.after_ns;
	err = trigger__load(trigger, config, latch);
	if (!err)
		err = map_freezer(trigger);
	if (!err && config->cpu_measure)
		err = watch_switches(trigger);
	if (!err && config->with_children) {
		trigger->children = children__new(bpf_map__fd(trigger->skel->maps.target_tgids));
		err = trigger->children ? 0 : -errno;
	}
	if (err)
		goto fail;
	err = hit_ring__open(&trigger->hits, bpf_map__fd(trigger->skel->maps.hits),
			     config->stack_copy);
	if (err) {
		refuse_map("ring buffer", err);
		goto fail;
	}
	return trigger;
fail:
	trigger__free(trigger);
	errno = -err;
	return NULL;
}

struct trigger *trigger__new(const struct trigger_config *config)
{
	return trigger__new_with_latch(config, TRIGGER_LATCH_AUTO);
}

void trigger__free(struct trigger *trigger)
{
	if (!trigger)
		return;
	trigger__detach(trigger);
	children__free(trigger->children);
	bpf_link__destroy(trigger->switches);
	VEC_FINI(&trigger->links);
	VEC_FINI(&trigger->go_wait_links);
	hit_ring__close(&trigger->hits);
	if (trigger->freezer)
		munmap(trigger->freezer, PAGE);
	trigger_bpf__destroy(trigger->skel);
	free(trigger);
}

/* A new number of the arming unfreezes the recording; hits of the last arming no longer count. */
void trigger__thaw(struct trigger *trigger)
{
	trigger->skel->bss->armed = 0;
	__atomic_store_n(&trigger->freezer->arming, trigger->freezer->arming + 1, __ATOMIC_RELEASE);
}

void trigger__freeze(struct trigger *trigger)
{
	struct mt_freezer *freezer = trigger->freezer;

	trigger->skel->bss->armed = 0;
	if (freezer->frozen == freezer->arming)
		return;
	freezer->frozen_ns = clock__now_ns();
	__atomic_store_n(&freezer->frozen, freezer->arming, __ATOMIC_RELEASE);
}

int trigger__arm(struct trigger *trigger)
{
	uint64_t now = clock__now_ns();

	if (!trigger->skel->bss->not_before_ns)
		trigger->skel->bss->not_before_ns = now + trigger->after_ns;
	trigger__thaw(trigger);
	trigger->skel->bss->armed_since_ns = now;
	/* The program's data is mapped: no system call between the decision and its effect. */
	__atomic_store_n(&trigger->skel->bss->armed, trigger->freezer->arming, __ATOMIC_RELEASE);
	return 0;
}

void trigger__set_threshold(struct trigger *trigger, uint64_t ns)
{
	if (trigger->skel->rodata->cpu_measure)
		trigger->skel->bss->cpu_threshold_ns = ns;
	else
		trigger->skel->bss->threshold_ns = ns;
}

bool trigger__is_armed(const struct trigger *trigger)
{
	return trigger->skel->bss->armed;
}

int trigger__fd(const struct trigger *trigger)
{
	/*
	 * The ring's own descriptor: poll(2) checks for data. libbpf's epoll descriptor becomes
	 * readable only after the wake-up by an irq_work, a little later.
	 */
	return bpf_map__fd(trigger->skel->maps.hits);
}

int trigger__next(struct trigger *trigger, struct mt_hit *hit)
{
	return hit_ring__next(&trigger->hits, hit);
}

bool trigger__is_latest(const struct trigger *trigger, const struct mt_hit *hit)
{
	return hit->arming == trigger->freezer->arming;
}

const uint8_t *trigger__stack(const struct trigger *trigger, size_t *size)
{
	*size = trigger->hits.stack_size;
	return trigger->hits.stack;
}

static void add_counters(struct mt_stats *sum, const struct mt_counters *cpu)
{
	sum->hits += cpu->hits;
	sum->triggers += cpu->triggers;
	sum->dropped += cpu->dropped;
	sum->unarmed += cpu->unarmed;
	sum->let_pass += cpu->let_pass;
	sum->unmeasured += cpu->unmeasured;
	sum->stalls += cpu->stalls;
	sum->restarted += cpu->restarted;
	sum->keyless += cpu->keyless;
	sum->sum_ns += cpu->sum_ns;
	if (cpu->max_ns > sum->max_ns)
		sum->max_ns = cpu->max_ns;
	for (int i = 0; i < MT_FINE_BUCKETS; i++) {
		sum->fine[i] += cpu->fine[i];
		sum->hist[histogram__octave(i)] += cpu->fine[i];
	}
}

/* Misses while a program was already running on the CPU; 0 before Linux 5.12. */
static uint64_t missed_by(const struct bpf_program *program)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);
	int fd = bpf_program__fd(program);

	return fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : info.recursion_misses;
}

/* Entries of the map of requests, which changes meanwhile; UINT64_MAX: they cannot be counted. */
static uint64_t count_requests(const struct bpf_map *map)
{
	const uint32_t room = bpf_map__max_entries(map);
	_cleanup_free_ char *keys = calloc(room, bpf_map__key_size(map));
	_cleanup_free_ char *values = calloc(room, bpf_map__value_size(map));
	uint32_t next, *last = NULL, n = room;
	uint64_t sum = 0;

	while (keys && values) {
		int err =
			bpf_map_lookup_batch(bpf_map__fd(map), last, &next, keys, values, &n, NULL);

		if (err && errno != ENOENT)
			break;
		sum += n;
		if (err || !n)
			return sum;
		last = &next;
		n = room;
	}
	return UINT64_MAX;
}

/* Requests that were put into the map, have not ended, and are not there. */
static uint64_t count_evicted(const struct trigger *trigger, const struct mt_counters *cpus,
			      int n_cpus)
{
	uint64_t open = 0, there;

	if (!trigger->skel->rodata->has_key)
		return 0;
	/* This comes first: a request that begins later is then not taken for an evicted one. */
	for (int i = 0; i < n_cpus; i++)
		open += cpus[i].begun - cpus[i].ended;
	there = count_requests(trigger->skel->maps.requests);
	return open > there ? open - there : 0;
}

int trigger__stats(const struct trigger *trigger, struct mt_stats *stats)
{
	_cleanup_free_ struct mt_counters *of_cpu = NULL;
	int cpus = libbpf_num_possible_cpus();
	struct bpf_program *program;
	uint32_t key = 0;

	if (cpus < 0)
		return cpus;
	of_cpu = calloc(cpus, sizeof(*of_cpu));
	if (!of_cpu)
		return -ENOMEM;
	if (bpf_map_lookup_elem(bpf_map__fd(trigger->skel->maps.counters), &key, of_cpu))
		return -errno;
	memset(stats, 0, sizeof(*stats));
	for (int cpu = 0; cpu < cpus; cpu++)
		add_counters(stats, &of_cpu[cpu]);
	bpf_object__for_each_program(program, trigger->skel->obj) stats->missed +=
		missed_by(program);
	stats->missed += kernel_probes__missed(trigger->kernel_probes);
	stats->evicted = count_evicted(trigger, of_cpu, cpus);
	return 0;
}

int trigger__each_target(const struct trigger *trigger, int (*take)(void *ctx, pid_t tgid),
			 void *ctx)
{
	const struct bpf_map *map = trigger->skel->maps.target_tgids;
	uint32_t key, *last = NULL;
	int err = 0;

	if (!bpf_map__autocreate(map))
		return 0;
	for (int i = 0; i < MT_TARGETS_MAX && !err; i++) {
		if (bpf_map_get_next_key(bpf_map__fd(map), last, &key))
			break;
		last = &key;
		err = take(ctx, (pid_t)key);
	}
	return err;
}

struct trigger_bpf *trigger__skel(const struct trigger *trigger)
{
	return trigger->skel;
}

const char *trigger__latch_name(const struct trigger *trigger)
{
	return trigger->latch == TRIGGER_LATCH_LRU_HASH ? "LRU hash" : "task storage";
}
