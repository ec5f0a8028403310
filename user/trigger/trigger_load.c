// SPDX-License-Identifier: MIT
/* Loads the trigger's programs: selects those that this config needs, and sets their variables. */
#include "trigger/trigger.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "children.skel.h"
#include "trigger.skel.h"
#include "trigger/stall.h"
#include "trigger/trigger_internal.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "kernel/kernel.h"

int trigger__print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	_cleanup_free_ char *text = NULL;
	char *line, *rest = NULL;
	int len;

	/* Debug messages are for developers of libbpf. */
	if (level == LIBBPF_DEBUG || log__level() < LOG_VERBOSE)
		return 0;
	len = vasprintf(&text, fmt, ap);
	if (len < 0) {
		text = NULL;
		return 0;
	}
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		log__debug("%s", line);
	return len;
}

static bool measures_duration(const struct trigger_config *config)
{
	return config->duration_thresh_ns || (config->count_only && config->watch_duration) ||
	       (config->limits.stall_thresh_ns && config->stall_from == MT_STALL_CALL);
}

bool trigger__needs_return(const struct trigger_config *config)
{
	return measures_duration(config) && !config->since_mark && !config->stop_triggers;
}

/* The helper exists since Linux 5.16; older kernels refuse a program that calls it. */
bool trigger__has_branch_snapshot(void)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_branch_snapshot, NULL) ==
	       1;
}

/* True if values of -print are read at a call's entry and reported at its return. */
static bool keeps_prints(const struct trigger_config *config)
{
	return config->n_prints && trigger__needs_return(config);
}

static void set_config(struct trigger_bpf *skel, const struct trigger_config *config)
{
	uint32_t copy = config->stack_copy;
	uint64_t dev, ino;

	if (pid_namespace__is_own(&dev, &ino)) {
		skel->rodata->pid_ns_dev = dev;
		skel->rodata->pid_ns_ino = ino;
	}
	skel->rodata->target_tgid = config->tgid;
	skel->rodata->of_several = config->n_tgids != 0;
	skel->rodata->has_delay_thresh = config->delay_thresh_ns;
	skel->bss->threshold_ns = config->delay_thresh_ns + config->duration_thresh_ns;
	/* With only a stall threshold, calls that have ended do not trigger. */
	if (config->limits.stall_thresh_ns && !skel->bss->threshold_ns)
		skel->bss->threshold_ns = UINT64_MAX;
	memcpy((void *)&skel->rodata->limits, &config->limits, sizeof(config->limits));
	skel->rodata->count_only = config->count_only;
	skel->rodata->n_terms = config->n_terms;
	for (uint32_t i = 0; i < config->n_terms && i < MT_TERMS; i++)
		memcpy((void *)&skel->rodata->terms[i], &config->terms[i],
		       sizeof(config->terms[i]));
	skel->rodata->measure_duration = trigger__needs_return(config);
	skel->rodata->measure_mark =
		measures_duration(config) && config->since_mark && !config->stop_triggers;
	skel->rodata->mark_offset_ns = config->mark_offset_ns;
	skel->rodata->conditional_entries = config->conditional_entries;
	skel->rodata->has_regions = config->regions && !config->by_key;
	skel->rodata->has_key = config->by_key;
	skel->rodata->pauses = config->regions && !config->by_key && !config->only_measured;
	skel->rodata->reads_args = false;
	for (uint32_t i = 0; i < config->n_args; i++)
		skel->rodata->reads_args |= config->args[i].n != 0;
	skel->rodata->n_prints = config->n_prints;
	skel->rodata->keeps_prints = keeps_prints(config);
	skel->rodata->stop_triggers = config->stop_triggers;
	skel->rodata->measure_region = config->stop_triggers && !config->delay_thresh_ns;
	skel->rodata->returns_by_insn = config->returns_by_insn;
	skel->rodata->by_goroutine = config->by_goroutine;
	skel->rodata->go_offsets = config->go_offsets;
	skel->rodata->take_branches = config->branches && trigger__has_branch_snapshot();
	skel->rodata->probe_at_entry = config->probe_at_entry;
	skel->rodata->log_entries = config->sampling;
	/* One piece more, because the first one may begin below the stack pointer. */
	skel->rodata->copy_pieces = copy ? (copy + MT_COPY_PIECE - 1) / MT_COPY_PIECE + 1 : 0;
	skel->rodata->freezes_by_call = config->freezes_by_call;
	bpf_program__set_autoload(skel->progs.on_freeze, config->freezes_by_call);
}

/* Goroutines whose open calls are remembered. */
#define GOROUTINES 16384

/*
 * Sets the size of an LRU hash of threads. The kernel keeps up to 128 free entries of one per CPU
 * (kernel/bpf/bpf_lru_list.c: LOCAL_FREE_TARGET). In a smaller map latches that are in use would be
 * evicted.
 */
static int size_lru(struct bpf_map *map, const struct trigger_config *config)
{
	int cpus = libbpf_num_possible_cpus();
	uint32_t size = cpus > 0 ? (uint32_t)cpus * 256 : 0;

	if ((config->by_goroutine || config->also_by_goroutine) && size < GOROUTINES)
		size = GOROUTINES;
	return size > bpf_map__max_entries(map) ? bpf_map__set_max_entries(map, size) : 0;
}

/*
 * Selects the programs that measure calls, delays and regions. Of two variants one is loaded: the
 * kernel may not support the other's programs and map, and each program takes the verifier 10 ms or
 * more.
 */
static int select_calls(struct trigger_bpf *skel, const struct trigger_config *config, bool lru)
{
	bool returns = trigger__needs_return(config), regions = config->regions;
	bool keeps = keeps_prints(config);
	int err = 0;

	/*
	 * At the entry the values of -print are read into task storage, which needs the kernel's
	 * BTF.
	 */
	if (keeps && lru)
		return -ENOTSUP;
	bpf_program__set_autoload(skel->progs.on_hit, !lru);
	bpf_program__set_autoload(skel->progs.on_return, !lru && returns);
	bpf_program__set_autoload(skel->progs.on_hit_lru, lru);
	bpf_program__set_autoload(skel->progs.on_return_lru, lru && returns);
	bpf_program__set_autoload(skel->progs.on_start, regions);
	bpf_program__set_autoload(skel->progs.on_stop, regions && !lru);
	bpf_program__set_autoload(skel->progs.on_stop_lru, regions && lru);
	bpf_map__set_autocreate(skel->maps.task_latches, !lru);
	bpf_map__set_autocreate(skel->maps.lru_latches, lru);
	bpf_map__set_autocreate(skel->maps.region_log, regions && !config->by_key);
	bpf_map__set_autocreate(skel->maps.open_regions, regions && !config->by_key);
	bpf_map__set_autocreate(skel->maps.requests, config->by_key);
	bpf_map__set_autocreate(skel->maps.print_scratch, keeps);
	bpf_map__set_autocreate(skel->maps.kept_of_calls, keeps);
	if (lru)
		err = size_lru(skel->maps.lru_latches, config);
	if (!err && config->by_key)
		err = size_lru(skel->maps.requests, config);
	else if (!err && regions)
		err = size_lru(skel->maps.open_regions, config);
	return err || !keeps ? err : size_lru(skel->maps.kept_of_calls, config);
}

/* Selects the programs that look for stalls, measure times on and off CPUs, or read tasks. */
static int select_tasks(struct trigger_bpf *skel, const struct trigger_config *config)
{
	bool stalls = config->limits.stall_thresh_ns, cpu = config->cpu_measure != MT_CPU_ALL;
	struct mt_task_offsets offsets = {0};
	uint32_t fsbase = 0;
	int err = bpf_program__set_autoload(skel->progs.on_stall_clock, stalls);

	if (!err)
		err = bpf_map__set_autocreate(skel->maps.open_stalls, stalls);
	if (!err)
		err = bpf_program__set_autoload(skel->progs.on_switch, cpu);
	if (!err)
		err = bpf_map__set_autocreate(skel->maps.off_cpus, cpu);
	if (!err && cpu)
		err = size_lru(skel->maps.off_cpus, config);
	if (!err && (cpu || stalls || kernel_probes__need_tasks(config)))
		err = task_offsets__find(&offsets);
	if (err)
		return err;
	/* Without the kernel's BTF, hits lack trace ids; everything else works. */
	if (config->n_trace_places && task_offsets__find_fsbase(&fsbase))
		log__debug("no trace ids: the kernel lacks its type information (BTF)");
	skel->rodata->fsbase_at = fsbase;
	memcpy((void *)&skel->rodata->task_at, &offsets, sizeof(offsets));
	skel->rodata->stall_from = config->stall_from;
	skel->rodata->stall_period_ns = trigger__stall_period_ns(config->limits.stall_thresh_ns);
	skel->rodata->stall_counts = config->count_only;
	skel->rodata->stall_asks = config->stall_asks;
	skel->rodata->traced_by_us = config->traced_by_us;
	skel->rodata->cpu_measure = config->cpu_measure;
	skel->bss->cpu_threshold_ns = config->cpu_thresh_ns;
	return bpf_map__set_autocreate(skel->maps.places_of_trace_ids, fsbase != 0);
}

/* Selects what a sampling source needs: its filter and logs, calls of -also, waits in Go. */
static int select_sampling(struct trigger_bpf *skel, const struct trigger_config *config, bool lru)
{
	bool task = config->also && !lru, waits = config->go_waits;
	int err = 0;

	lru = config->also && lru;
	bpf_program__set_autoload(skel->progs.on_sample, config->sampling);
	bpf_map__set_autocreate(skel->maps.entry_log, config->sampling);
	skel->rodata->also_at_entry = config->also_at_entry;
	skel->rodata->also_by_insn = config->also_by_insn;
	skel->rodata->also_by_goroutine = config->also_by_goroutine;
	bpf_program__set_autoload(skel->progs.on_also, task);
	bpf_program__set_autoload(skel->progs.on_also_return, task);
	bpf_program__set_autoload(skel->progs.on_also_lru, lru);
	bpf_program__set_autoload(skel->progs.on_also_return_lru, lru);
	bpf_map__set_autocreate(skel->maps.also_task_latches, task);
	bpf_map__set_autocreate(skel->maps.also_lru_latches, lru || waits);
	bpf_map__set_autocreate(skel->maps.also_log, config->also);
	bpf_program__set_autoload(skel->progs.on_go_park, waits);
	bpf_program__set_autoload(skel->progs.on_go_ready, waits);
	bpf_program__set_autoload(skel->progs.on_go_execute, waits);
	bpf_map__set_autocreate(skel->maps.go_parks, waits);
	bpf_map__set_autocreate(skel->maps.park_log, waits);
	bpf_map__set_autocreate(skel->maps.ready_log, waits);
	bpf_map__set_autocreate(skel->maps.park_stacks, waits);
	if (lru)
		err = size_lru(skel->maps.also_lru_latches, config);
	return err || !waits ? err : size_lru(skel->maps.go_parks, config);
}

static void expect_links(const struct trigger_bpf *skel)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, skel->obj)
	{
		if (!strncmp(bpf_program__section_name(program), "ur", 2) ||
		    !strncmp(bpf_program__section_name(program), "up", 2))
			bpf_program__set_expected_attach_type(program,
							      (enum bpf_attach_type)MT_UPROBE_LINK);
	}
}

static int size_maps(const struct trigger_bpf *skel, const struct trigger_config *config)
{
	uint32_t size = bpf_map__max_entries(skel->maps.hits);
	uint32_t hit = sizeof(struct mt_hit) + skel->rodata->copy_pieces * MT_COPY_PIECE;
	int err;

	/* A few hits with their stacks; the size must be a power of two. */
	while (size < 4 * hit)
		size *= 2;
	err = bpf_map__set_max_entries(skel->maps.hits, size);
	if (!err && config->n_args > 1)
		err = bpf_map__set_max_entries(skel->maps.args_of_probes, config->n_args);
	if (!err && config->n_reads > 1)
		err = bpf_map__set_max_entries(skel->maps.reads_of_probes, config->n_reads);
	/* A kernel without cgroups has no such map; the verifier skips code that never runs. */
	if (!err)
		err = bpf_map__set_autocreate(skel->maps.target_cgroups, config->of_cgroup);
	return err ? err : bpf_map__set_autocreate(skel->maps.target_tgids, config->n_tgids != 0);
}

/* Fills the maps of the loaded programs. */
static int fill_maps(const struct trigger_bpf *skel, const struct trigger_config *config)
{
	int args = bpf_map__fd(skel->maps.args_of_probes);
	int reads = bpf_map__fd(skel->maps.reads_of_probes);
	int places = bpf_map__fd(skel->maps.places_of_trace_ids);
	int tgids = bpf_map__fd(skel->maps.target_tgids);
	uint32_t key = 0, fd = (uint32_t)config->cgroup_fd;
	const uint8_t value = 1;

	/* The map keeps a reference to the cgroup, so the descriptor may be closed later. */
	if (config->of_cgroup &&
	    bpf_map_update_elem(bpf_map__fd(skel->maps.target_cgroups), &key, &fd, BPF_ANY))
		return -errno;
	for (size_t i = 0; i < config->n_tgids; i++)
		if (bpf_map_update_elem(tgids, &config->tgids[i], &value, BPF_ANY))
			return -errno;
	for (uint32_t i = 0; i < config->n_args; i++)
		if (bpf_map_update_elem(args, &i, &config->args[i], BPF_ANY))
			return -errno;
	for (uint32_t i = 0; i < config->n_reads; i++)
		if (bpf_map_update_elem(reads, &i, &config->reads[i], BPF_ANY))
			return -errno;
	for (uint32_t i = 0; i < config->n_trace_places && skel->rodata->fsbase_at; i++)
		if (bpf_map_update_elem(places, &config->trace_places[i].tgid,
					&config->trace_places[i].places, BPF_ANY))
			return -errno;
	return 0;
}

/* Sets trigger->skel. 0, or -errno without a message. */
static int load_variant(struct trigger *trigger, const struct trigger_config *config,
			enum trigger_latch latch)
{
	/*
	 * The program must not need the kernel's BTF. With this path a CO-RE relocation that slips
	 * in fails everywhere, not only on kernels without BTF.
	 */
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = "/dev/null");
	struct trigger_bpf *skel = trigger_bpf__open_opts(&opts);
	bool lru = latch == TRIGGER_LATCH_LRU_HASH;
	int err;

	if (!skel)
		return -errno;
	set_config(skel, config);
	if (config->by_links)
		expect_links(skel);
	err = select_calls(skel, config, lru);
	if (!err)
		err = select_sampling(skel, config, lru);
	if (!err)
		err = select_tasks(skel, config);
	if (!err)
		err = kernel_probes__select(skel, config, latch);
	if (!err)
		err = size_maps(skel, config);
	if (!err)
		err = trigger_bpf__load(skel);
	/* libbpf does not map skel->bss if one of its feature probes has failed. */
	if (!err && !skel->bss)
		err = -ENOMEM;
	if (!err)
		err = fill_maps(skel, config);
	if (err) {
		trigger_bpf__destroy(skel);
		return err;
	}
	trigger->skel = skel;
	trigger->latch = latch;
	return 0;
}

int trigger__load(struct trigger *trigger, const struct trigger_config *config,
		  enum trigger_latch latch)
{
	int err;

	libbpf_set_print(trigger__print_libbpf);
	if (config->by_goroutine || config->also_by_goroutine)
		latch = TRIGGER_LATCH_LRU_HASH;
	err = load_variant(trigger, config,
			   latch == TRIGGER_LATCH_AUTO ? TRIGGER_LATCH_TASK_STORAGE : latch);
	/* Without the right to load programs the other variant fails as well. */
	if (err && err != -EPERM && err != -ECANCELED && latch == TRIGGER_LATCH_AUTO) {
		log__debug(
			"the BPF programs do not load with task storage (%s): trying an LRU hash",
			strerror(-err));
		err = load_variant(trigger, config, TRIGGER_LATCH_LRU_HASH);
	}
	if (!err)
		return 0;
	if (err == -ECANCELED) /* kernel_probes__select() has said why */
		return -EOPNOTSUPP;
	if (err == -ENOTSUP) {
		log__error(
			"-stall-thresh, -cpu-thresh, -off-cpu-thresh, and -print with a duration "
			"need the kernel's type information (BTF), which is not there");
		log__hint("use a kernel with CONFIG_DEBUG_INFO_BTF, or -duration-thresh without "
			  "-print, which needs no BTF");
		return err;
	}
	log__error("cannot load the trigger's BPF programs: %s", strerror(-err));
	if (err == -EPERM)
		log__hint("needs CAP_BPF and CAP_PERFMON, or root");
	else if (log__level() < LOG_VERBOSE)
		log__hint("run mtbpf with -v to see the verifier's log; mtbpf works on Linux 6.1 "
			  "or later");
	return err;
}

const char *trigger__library_version(void)
{
	return libbpf_version_string();
}

struct children {
	struct children_bpf *skel;
};

struct children *children__new(int tgids_fd)
{
	struct children *children;
	uint64_t dev, ino;
	int err;

	if (pid_namespace__is_own(&dev, &ino)) {
		log__error("-children: mtbpf runs in its own pid namespace and does not see the "
			   "host's pids");
		log__hint("run mtbpf on the host, or with the host's pids (hostPID, --pid=host)");
		errno = EOPNOTSUPP;
		return NULL;
	}
	children = calloc(1, sizeof(*children));
	if (!children)
		return NULL;
	libbpf_set_print(trigger__print_libbpf);
	children->skel = children_bpf__open();
	err = children->skel ? bpf_map__set_autocreate(children->skel->maps.target_cgroups, false)
			     : -errno;
	if (!err)
		err = bpf_map__reuse_fd(children->skel->maps.target_tgids, tgids_fd);
	if (!err)
		err = children_bpf__load(children->skel);
	if (!err)
		err = children_bpf__attach(children->skel);
	if (!err)
		return children;
	log__error("cannot follow forked processes: %s", strerror(-err));
	log__hint("this needs CAP_BPF, CAP_PERFMON and a kernel with CONFIG_DEBUG_INFO_BTF; "
		  "otherwise leave out -children");
	children__free(children);
	errno = -err;
	return NULL;
}

void children__free(struct children *children)
{
	if (!children)
		return;
	children_bpf__destroy(children->skel);
	free(children);
}
