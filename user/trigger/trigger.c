// SPDX-License-Identifier: MIT
#include "trigger/trigger.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trigger.skel.h"
#include "trigger/children.h"
#include "trigger/histogram.h"
#include "trigger/hit_ring.h"
#include "trigger/trigger_internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/pid_namespace.h"
#include "util/vec.h"

int trigger__print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	_cleanup_free_ char *text = NULL;
	int len;

	/* libbpf's own debug messages are for those who debug libbpf. */
	if (level == LIBBPF_DEBUG || log__level() < LOG_VERBOSE)
		return 0;
	len = vasprintf(&text, fmt, ap);
	if (len < 0) {
		text = NULL;
		return 0;
	}
	while (len && text[len - 1] == '\n')
		text[--len] = '\0';
	log__debug("%s", text);
	return len;
}

static bool measures_duration(const struct trigger_config *config)
{
	return config->duration_thresh_ns || (config->count_only && config->watch_duration);
}

bool trigger__needs_return(const struct trigger_config *config)
{
	return measures_duration(config) && !config->since_mark;
}

static void set_pid_namespace(struct trigger_bpf *skel)
{
	uint64_t dev, ino;

	if (!pid_namespace__is_own(&dev, &ino))
		return;
	skel->rodata->pid_ns_dev = dev;
	skel->rodata->pid_ns_ino = ino;
}

static void set_config(struct trigger_bpf *skel, const struct trigger_config *config)
{
	set_pid_namespace(skel);
	skel->rodata->target_tgid = config->tgid;
	skel->rodata->of_several = config->n_tgids != 0;
	skel->rodata->has_delay_thresh = config->delay_thresh_ns;
	skel->bss->threshold_ns = config->delay_thresh_ns + config->duration_thresh_ns;
	skel->rodata->min_interval_ns = config->min_interval_ns;
	skel->rodata->skipped = config->n_skipped;
	skel->rodata->max_hits = config->max_hits;
	skel->rodata->count_only = config->count_only;
	skel->rodata->measure_duration = trigger__needs_return(config);
	skel->rodata->measure_mark = measures_duration(config) && config->since_mark;
	skel->rodata->mark_offset_ns = config->mark_offset_ns;
	skel->rodata->returns_by_insn = config->returns_by_insn;
	skel->rodata->by_goroutine = config->by_goroutine;
	skel->rodata->probe_at_entry = config->probe_at_entry;
	skel->rodata->log_entries = config->sampling;
	skel->rodata->copy_pieces = hit_ring__pieces(config->stack_copy);
}

/* Open calls of as many are remembered. */
#define GOROUTINES 16384

/*
 * The kernel keeps up to 128 free entries of an LRU hash for each CPU (kernel/bpf/bpf_lru_list.c:
 * LOCAL_FREE_TARGET). With fewer than that to go round, latches in use would be evicted.
 */
int trigger__size_lru(struct bpf_map *map, const struct trigger_config *config)
{
	int cpus = libbpf_num_possible_cpus();
	uint32_t size = cpus > 0 ? (uint32_t)cpus * 256 : 0;

	if (config->by_goroutine && size < GOROUTINES)
		size = GOROUTINES;

	return size > bpf_map__max_entries(map) ? bpf_map__set_max_entries(map, size) : 0;
}

/* Of the two variants only one is loaded: the other's programs and map may be unknown here. */
static int select_latch(struct trigger_bpf *skel, const struct trigger_config *config,
			enum trigger_latch latch)
{
	bool lru = latch == TRIGGER_LATCH_LRU_HASH;

	bpf_program__set_autoload(skel->progs.on_hit, !lru);
	bpf_program__set_autoload(skel->progs.on_return, !lru);
	bpf_program__set_autoload(skel->progs.on_hit_lru, lru);
	bpf_program__set_autoload(skel->progs.on_return_lru, lru);
	bpf_map__set_autocreate(skel->maps.task_latches, !lru);
	bpf_map__set_autocreate(skel->maps.lru_latches, lru);
	return lru ? trigger__size_lru(skel->maps.lru_latches, config) : 0;
}

static int size_hits(struct bpf_map *map, const struct trigger_config *config)
{
	return bpf_map__set_max_entries(
		map, hit_ring__size(bpf_map__max_entries(map), config->stack_copy));
}

static int size_args(struct bpf_map *map, const struct trigger_config *config)
{
	return config->n_args > 1 ? bpf_map__set_max_entries(map, config->n_args) : 0;
}

static int set_args(const struct trigger_bpf *skel, const struct trigger_config *config)
{
	int map = bpf_map__fd(skel->maps.args_of_probes);

	for (uint32_t i = 0; i < config->n_args; i++)
		if (bpf_map_update_elem(map, &i, &config->args[i], BPF_ANY))
			return -errno;
	return 0;
}

/* The map holds the cgroup, not the descriptor. */
static int set_cgroup(const struct trigger_bpf *skel, const struct trigger_config *config)
{
	uint32_t key = 0, fd = (uint32_t)config->cgroup_fd;

	if (!config->of_cgroup)
		return 0;
	return bpf_map_update_elem(bpf_map__fd(skel->maps.target_cgroups), &key, &fd, BPF_ANY)
		       ? -errno
		       : 0;
}

static int set_tgids(const struct trigger_bpf *skel, const struct trigger_config *config)
{
	const uint8_t value = 1;
	int err = 0;

	for (size_t i = 0; i < config->n_tgids && !err; i++)
		err = bpf_map_update_elem(bpf_map__fd(skel->maps.target_tgids), &config->tgids[i],
					  &value, BPF_ANY)
			      ? -errno
			      : 0;
	return err;
}

/* 0 and trigger->skel, or -errno without a message. */
static int load_variant(struct trigger *trigger, const struct trigger_config *config,
			enum trigger_latch latch)
{
	/*
	 * A CO-RE relocation would need the kernel's BTF. There is none in the program; with this
	 * path one that slips in fails everywhere, not only on the kernels that have no BTF.
	 */
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = "/dev/null");
	struct trigger_bpf *skel = trigger_bpf__open_opts(&opts);
	int err;

	if (!skel)
		return -errno;
	set_config(skel, config);
	err = select_latch(skel, config, latch);
	if (!err)
		err = trigger__select_sampling(skel, config, latch);
	if (!err)
		err = size_hits(skel->maps.hits, config);
	if (!err)
		err = size_args(skel->maps.args_of_probes, config);
	/* Without cgroups a kernel has no such map: the verifier does not see what is never run. */
	if (!err)
		err = bpf_map__set_autocreate(skel->maps.target_cgroups, config->of_cgroup);
	if (!err)
		err = bpf_map__set_autocreate(skel->maps.target_tgids, config->n_tgids != 0);
	if (!err)
		err = trigger_bpf__load(skel);
	if (!err)
		err = set_cgroup(skel, config);
	if (!err)
		err = set_tgids(skel, config);
	if (!err)
		err = set_args(skel, config);
	if (err) {
		trigger_bpf__destroy(skel);
		return err;
	}
	trigger->skel = skel;
	trigger->latch = latch;
	return 0;
}

static int load(struct trigger *trigger, const struct trigger_config *config,
		enum trigger_latch latch)
{
	int err;

	if (config->by_goroutine)
		latch = TRIGGER_LATCH_LRU_HASH;
	if (latch != TRIGGER_LATCH_AUTO)
		return load_variant(trigger, config, latch);
	err = load_variant(trigger, config, TRIGGER_LATCH_TASK_STORAGE);
	/* Without the right to load programs the other one won't fare better. */
	if (!err || err == -EPERM)
		return err;
	log__debug("no task storage for the trigger (%s): trying an LRU hash", strerror(-err));
	return load_variant(trigger, config, TRIGGER_LATCH_LRU_HASH);
}

static void explain_load(int err)
{
	if (err == -EBADF) {
		log__error("the trigger's cgroup is none of the v2 hierarchy");
		log__hint("/proc/PID/cgroup shows a process's, behind '0::'");
		return;
	}
	log__error("cannot load the trigger's BPF programs: %s", strerror(-err));
	if (err == -EPERM)
		log__hint("needs CAP_BPF and CAP_PERFMON, or root");
	else if (log__level() < LOG_VERBOSE)
		log__hint(
			"-v shows what the kernel's verifier says; Linux 5.15 or later is needed");
}

static bool is_valid(const struct trigger_config *config)
{
	return (config->tgid > 0) + (config->n_tgids > 0) + config->of_cgroup == 1 &&
	       !(config->delay_thresh_ns && config->duration_thresh_ns) &&
	       config->stack_copy <= MT_COPY_MAX;
}

struct trigger *trigger__new_with_latch(const struct trigger_config *config,
					enum trigger_latch latch)
{
	struct trigger *trigger;
	int err;

	if (!is_valid(config)) {
		log__error("a trigger needs a process, some, or a cgroup, at most one threshold, "
			   "and at "
			   "most %d bytes of stack",
			   MT_COPY_MAX);
		errno = EINVAL;
		return NULL;
	}
	trigger = calloc(1, sizeof(*trigger));
	if (!trigger)
		return NULL;
	trigger->after_ns = config->after_ns;
	libbpf_set_print(trigger__print_libbpf);
	err = load(trigger, config, latch);
	if (err) {
		explain_load(err);
		goto fail;
	}
	if (config->with_children) {
		trigger->children = children__new(bpf_map__fd(trigger->skel->maps.target_tgids));
		err = trigger->children ? 0 : -errno;
	}
	if (err)
		goto fail;
	err = hit_ring__open(&trigger->hits, bpf_map__fd(trigger->skel->maps.hits),
			     config->stack_copy);
	if (err) {
		log__error("cannot map the trigger's ring buffer: %s", strerror(-err));
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
	VEC_FINI(&trigger->links);
	hit_ring__close(&trigger->hits);
	trigger_bpf__destroy(trigger->skel);
	free(trigger);
}

void trigger__thaw(struct trigger *trigger)
{
	trigger->skel->bss->frozen = 0;
}

int trigger__arm(struct trigger *trigger)
{
	uint64_t now = clock__now_ns();

	if (!trigger->skel->bss->not_before_ns)
		trigger->skel->bss->not_before_ns = now + trigger->after_ns;
	trigger__thaw(trigger);
	trigger->skel->bss->armed_since_ns = now;
	/* The program's data is mapped: no system call between the decision and its effect. */
	__atomic_store_n(&trigger->skel->bss->armed, 1, __ATOMIC_RELEASE);
	return 0;
}

void trigger__set_threshold(struct trigger *trigger, uint64_t ns)
{
	trigger->skel->bss->threshold_ns = ns;
}

bool trigger__is_armed(const struct trigger *trigger)
{
	return trigger->skel->bss->armed;
}

int trigger__fd(const struct trigger *trigger)
{
	/*
	 * The ring's own descriptor: poll(2) on it looks at the data. libbpf's epoll descriptor
	 * learns of it only from the wake-up, which an irq_work does a little later.
	 */
	return bpf_map__fd(trigger->skel->maps.hits);
}

int trigger__next(struct trigger *trigger, struct mt_hit *hit)
{
	return hit_ring__next(&trigger->hits, hit);
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
	sum->sum_ns += cpu->sum_ns;
	if (cpu->max_ns > sum->max_ns)
		sum->max_ns = cpu->max_ns;
	for (int i = 0; i < MT_FINE_BUCKETS; i++) {
		sum->fine[i] += cpu->fine[i];
		sum->hist[histogram__octave(i)] += cpu->fine[i];
	}
}

int trigger__stats(const struct trigger *trigger, struct mt_stats *stats)
{
	_cleanup_free_ struct mt_counters *of_cpu = NULL;
	int cpus = libbpf_num_possible_cpus();
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
	return 0;
}

struct trigger_bpf *trigger__skel(const struct trigger *trigger)
{
	return trigger->skel;
}

const char *trigger__latch_name(const struct trigger *trigger)
{
	return trigger->latch == TRIGGER_LATCH_LRU_HASH ? "LRU hash" : "task storage";
}
