// SPDX-License-Identifier: MIT
#include "trigger/trigger.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trigger.skel.h"
#include "trigger/histogram.h"
#include "trigger/trigger_internal.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/insn.h"
#include "util/log.h"
#include "util/page.h"
#include "util/vec.h"

/*
 * Copies one hit to ring->next, without the bytes of its stack below the stack pointer and beyond
 * stack_max. Always returns an error, because libbpf would otherwise go on to the next hit.
 */
static int copy_hit(void *ctx, void *data, size_t size)
{
	struct hit_ring *ring = ctx;
	struct mt_hit *hit = ring->next;
	size_t below;

	if (size < sizeof(*hit))
		return -EBADMSG;
	memcpy(hit, data, sizeof(*hit));
	if (hit->copied > size - sizeof(*hit))
		return -EBADMSG;
	below = hit->sp % MT_COPY_PIECE;
	ring->stack_size = hit->copied > below ? hit->copied - below : 0;
	if (ring->stack_size > ring->stack_max)
		ring->stack_size = ring->stack_max;
	if (ring->stack_size)
		memcpy(ring->stack, (const uint8_t *)data + sizeof(*hit) + below, ring->stack_size);
	hit->copied = (uint32_t)ring->stack_size;
	ring->next = NULL;
	return -ECANCELED;
}

static int refuse_map(const char *what, int err)
{
	log__error("cannot map the trigger's %s: %s", what, strerror(-err));
	log__hint(err == -ENOMEM ? "free memory, or raise its limit (ulimit -v)"
				 : "'mtbpf check' shows what works on this machine");
	return err;
}

static int watch_switches(struct trigger *trigger)
{
	int err;

	trigger->switches = bpf_program__attach(trigger->skel->progs.on_switch);
	if (trigger->switches)
		return 0;
	err = -errno;
	log__error("cannot attach a BPF program to context switches: %s", strerror(-err));
	log__hint("use -duration-thresh, which does not need context switches");
	return err;
}

struct trigger *trigger__new_with_latch(const struct trigger_config *config,
					enum trigger_latch latch)
{
	struct trigger *trigger;
	void *freezer;
	int err;

	if ((config->tgid > 0) + (config->n_tgids > 0) + config->of_cgroup != 1 ||
	    (config->delay_thresh_ns && config->duration_thresh_ns) ||
	    config->stack_copy > MT_COPY_MAX) {
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
	if (err)
		goto fail;
	freezer = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
		       bpf_map__fd(trigger->skel->maps.freezer), 0);
	if (freezer == MAP_FAILED) {
		err = refuse_map("state", -errno);
		goto fail;
	}
	trigger->freezer = freezer;
	if (config->cpu_measure)
		err = watch_switches(trigger);
	if (!err && config->with_children) {
		trigger->children = children__new(bpf_map__fd(trigger->skel->maps.target_tgids));
		err = trigger->children ? 0 : -errno;
	}
	if (err)
		goto fail;
	trigger->hits.stack_max = config->stack_copy;
	trigger->hits.stack = malloc(config->stack_copy ? config->stack_copy : 1);
	err = trigger->hits.stack ? 0 : -ENOMEM;
	if (!err) {
		trigger->hits.ring = ring_buffer__new(bpf_map__fd(trigger->skel->maps.hits),
						      copy_hit, &trigger->hits, NULL);
		err = trigger->hits.ring ? 0 : -errno;
	}
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
	ring_buffer__free(trigger->hits.ring);
	free(trigger->hits.stack);
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
	/* The variable is in mapped memory, so that arming needs no system call. */
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

/* -EBADMSG for a damaged hit: ring_buffer__consume() returns the error of copy_hit(). */
int trigger__next(struct trigger *trigger, struct mt_hit *hit)
{
	struct hit_ring *ring = &trigger->hits;
	int err;

	ring->next = hit;
	err = ring_buffer__consume(ring->ring);
	if (!ring->next)
		return 1;
	return err < 0 ? err : 0;
}

void trigger__answer(struct trigger *trigger, const struct mt_hit *question, bool is_open)
{
	const struct bpf_map *map = trigger->skel->maps.open_stalls;
	uint64_t value[32]; /* a struct open_stall of bpf/stall.bpf.h: since_ns is first */

	if (is_open && question->sequence - 1 < MT_ANSWERS)
		trigger->skel->bss->stall_answers[question->sequence - 1] = question->time_ns;
	else if (!is_open && bpf_map__value_size(map) <= sizeof(value) &&
		 !bpf_map_lookup_elem(bpf_map__fd(map), &question->tid, value) &&
		 value[0] == question->time_ns)
		bpf_map_delete_elem(bpf_map__fd(map), &question->tid);
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

/* Requests that were put into the map, have not ended, and are not in the map any more. */
static uint64_t count_evicted(const struct trigger *trigger, const struct mt_counters *cpus,
			      int n_cpus)
{
	const struct bpf_map *map = trigger->skel->maps.requests;
	const uint32_t room = bpf_map__max_entries(map);
	_cleanup_free_ char *keys = NULL, *values = NULL;
	uint32_t next, *last = NULL;
	uint64_t open = 0, there = 0;
	int err = 0;

	if (!trigger->skel->rodata->has_key)
		return 0;
	keys = calloc(room, bpf_map__key_size(map));
	values = calloc(room, bpf_map__value_size(map));
	if (!keys || !values)
		return 0;
	/*
	 * Counts the open requests before the map's entries: a request that begins in between is
	 * then not taken for an evicted one.
	 */
	for (int i = 0; i < n_cpus; i++)
		open += cpus[i].begun - cpus[i].ended;
	for (uint32_t n = room; n && !err; last = &next) {
		n = room;
		err = bpf_map_lookup_batch(bpf_map__fd(map), last, &next, keys, values, &n, NULL);
		/*
		 * ENOENT is the end of the map; other errors happen if the map changes meanwhile.
		 */
		if (err && errno != ENOENT)
			return 0;
		there += n;
	}
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
	/* Misses while a program was already running on the CPU; 0 before Linux 5.12. */
	bpf_object__for_each_program(program, trigger->skel->obj)
	{
		struct bpf_prog_info info = {0};
		uint32_t size = sizeof(info);
		int fd = bpf_program__fd(program);

		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size))
			stats->missed += info.recursion_misses;
	}
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

static void close_go_wait_links(struct trigger *trigger)
{
	while (trigger->go_wait_links.n)
		close(trigger->go_wait_links.v[--trigger->go_wait_links.n]);
}

void trigger__stop_go_waits(struct trigger *trigger)
{
	close_go_wait_links(trigger);
	trigger->go_waits_stopped = true;
}

/* Closes the entries' links first: a call without a return probe would stay open. */
void trigger__detach(struct trigger *trigger)
{
	close_go_wait_links(trigger);
	while (trigger->links.n)
		close(trigger->links.v[--trigger->links.n]);
	kernel_probes__free(trigger->kernel_probes);
	trigger->kernel_probes = NULL;
}

int trigger__attach_kernel_probes(struct trigger *trigger, const struct kernel_probe *all, size_t n)
{
	trigger->kernel_probes = kernel_probes__attach(trigger->skel, all, n);
	return trigger->kernel_probes ? 0 : -errno;
}

static const struct bpf_program *program_of(const struct trigger *trigger,
					    const struct trigger_event *event)
{
	const struct trigger_bpf *skel = trigger->skel;
	bool lru = trigger->latch == TRIGGER_LATCH_LRU_HASH;

	if (event->kind == TRIGGER_FREEZE)
		return skel->progs.on_freeze;
	if (event->is_function)
		return event->kind == TRIGGER_RETURN ? skel->progs.on_function_return
		       : event->kind == TRIGGER_STOP ? skel->progs.on_function_stop
						     : skel->progs.on_function;
	if (event->is_also && event->kind == TRIGGER_RETURN)
		return lru ? skel->progs.on_also_return_lru : skel->progs.on_also_return;
	if (event->is_also)
		return lru ? skel->progs.on_also_lru : skel->progs.on_also;
	switch (event->kind) {
	case TRIGGER_GO_PARK:
		return skel->progs.on_go_park;
	case TRIGGER_GO_READY:
		return skel->progs.on_go_ready;
	case TRIGGER_GO_EXECUTE:
		return skel->progs.on_go_execute;
	case TRIGGER_RETURN:
		return lru ? skel->progs.on_return_lru : skel->progs.on_return;
	case TRIGGER_START:
		return skel->progs.on_start;
	case TRIGGER_STOP:
		return lru ? skel->progs.on_stop_lru : skel->progs.on_stop;
	default:
		return lru ? skel->progs.on_hit_lru : skel->progs.on_hit;
	}
}

_Static_assert(INSN_CONDITION == MT_CONDITION, "the program takes it as it is");

int trigger__program(const struct trigger *trigger, const struct trigger_event *event,
		     uint64_t *cookie)
{
	*cookie = event->probe | (uint64_t)event->condition << MT_CONDITION_SHIFT;
	return bpf_program__fd(program_of(trigger, event));
}

/* Prints a message for an error, and returns it. */
static int explain_attach(int err)
{
	if (err)
		log__error("cannot attach the trigger to the probe: %s", strerror(-err));
	if (err == -EPERM || err == -EACCES)
		log__hint("needs CAP_BPF and CAP_PERFMON, or root");
	else if (err == -EINVAL)
		log__hint("mtbpf works on Linux 6.1 or later");
	return err;
}

/* Number of times that the clock checks the open calls (and interrupts a CPU) within one threshold.
 */
#define LOOKS_PER_STALL 32
#define LOOK_LEAST_NS	250000
#define LOOK_MOST_NS	10000000

uint64_t trigger__stall_period_ns(uint64_t stall_thresh_ns)
{
	uint64_t period_ns = stall_thresh_ns / LOOKS_PER_STALL;

	if (period_ns < LOOK_LEAST_NS)
		return LOOK_LEAST_NS;
	return period_ns < LOOK_MOST_NS ? period_ns : LOOK_MOST_NS;
}

/*
 * Does not use bpf_program__attach_perf_event(): that enables the event at once, disables it at the
 * end, and takes the caller's descriptor. If the event is in a group with Intel PT, the source
 * enables and disables it. Returns 0 or -errno.
 */
static int link_program(link_vec *links, int program, int event, uint64_t cookie)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = cookie);
	int link = bpf_link_create(program, event, BPF_PERF_EVENT, &opts);

	if (link < 0)
		return -errno;
	if (!VEC_ADD(links, link))
		return 0;
	close(link);
	return -ENOMEM;
}

int trigger__attach_clock(struct trigger *trigger, int event)
{
	int program = bpf_program__fd(trigger->skel->progs.on_stall_clock);

	return explain_attach(link_program(&trigger->links, program, event, 0));
}

int trigger__attach_breakpoint(struct trigger *trigger, int event, const struct kernel_probe *probe)
{
	const struct bpf_program *program =
		kernel_probes__breakpoint(trigger->skel, probe->what.roles);
	uint64_t cookie =
		(probe->what.probe & MT_BREAKPOINT_PROBE) | probe->entry << MT_BREAKPOINT_SHIFT;

	return explain_attach(
		link_program(&trigger->links, bpf_program__fd(program), event, cookie));
}

bool trigger_event__is_go_wait(const struct trigger_event *event)
{
	return event->kind == TRIGGER_GO_PARK || event->kind == TRIGGER_GO_READY ||
	       event->kind == TRIGGER_GO_EXECUTE;
}

bool trigger_event__is_end(const struct trigger_event *event)
{
	return event->kind == TRIGGER_RETURN || event->kind == TRIGGER_STOP ||
	       event->kind == TRIGGER_GO_EXECUTE;
}

int trigger__attach_all(struct trigger *trigger, const struct trigger_event *events, size_t n)
{
	int err = 0;

	trigger__detach(trigger);
	/* Links the ends first: a call without a return probe would stay open. */
	for (int ends = 1; ends >= 0; ends--)
		for (size_t i = 0; i < n && !err; i++) {
			uint64_t cookie;
			int program = trigger__program(trigger, &events[i], &cookie);
			link_vec *links = trigger_event__is_go_wait(&events[i])
						  ? &trigger->go_wait_links
						  : &trigger->links;

			if (trigger_event__is_end(&events[i]) == ends)
				err = link_program(links, program, events[i].fd, cookie);
		}
	if (err)
		trigger__detach(trigger);
	return explain_attach(err);
}

int trigger__attach(struct trigger *trigger, int entry_event, int return_event)
{
	const struct trigger_event events[] = {{.fd = entry_event},
					       {.fd = return_event, .kind = TRIGGER_RETURN}};

	return trigger__attach_all(trigger, events, return_event < 0 ? 1 : 2);
}

static uint64_t time_of(const void *entry)
{
	return __atomic_load_n((const uint64_t *)entry, __ATOMIC_ACQUIRE);
}

/* An entry that is overwritten this often while it is read is left out. */
#define TRIES 8

bool log_entry__copy(void *out, const void *entry, size_t size)
{
	for (int i = 0; i < TRIES; i++) {
		uint64_t time_ns = time_of(entry);

		if (!time_ns)
			return false;
		memcpy(out, entry, size);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (time_of(entry) == time_ns && !memcmp(out, entry, size))
			return true;
	}
	return false;
}

int trigger__sample_gate(const struct trigger *trigger)
{
	return bpf_program__fd(trigger__skel(trigger)->progs.on_sample);
}

/* Reads a log's valid entries, one after the other. */
struct log_reader {
	const char *log; /* the map's memory: n entries; NULL: the trigger has no such map */
	size_t size, n, next;
};

/* 0 or -errno. Call log_reader__close() in any case. */
static int log_reader__open(struct log_reader *r, const struct bpf_map *map, size_t size, size_t n)
{
	void *p;

	*r = (struct log_reader){.size = size, .n = n};
	if (!bpf_map__autocreate(map))
		return 0;
	p = mmap(NULL, n * size, PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);
	if (p == MAP_FAILED)
		return -errno;
	r->log = p;
	return 0;
}

static void log_reader__close(struct log_reader *r)
{
	if (r->log)
		munmap((void *)r->log, r->n * r->size);
}

/* Copies the next valid entry. False: no more entries. */
static bool log_reader__next(struct log_reader *r, void *entry)
{
	while (r->log && r->next < r->n)
		if (log_entry__copy(entry, r->log + r->size * r->next++, r->size))
			return true;
	return false;
}

static int take_log(const struct bpf_map *map, int (*take)(void *ctx, const struct mt_entry *entry),
		    void *ctx)
{
	struct mt_entry entry;
	struct log_reader log;
	int err = log_reader__open(&log, map, sizeof(entry), MT_ENTRY_LOG);

	while (!err && log_reader__next(&log, &entry))
		err = take(ctx, &entry);
	log_reader__close(&log);
	return err;
}

int trigger__go_stacks(const struct trigger *trigger, bool of_parks,
		       int (*take)(void *ctx, const struct mt_go_stack *stack), void *ctx)
{
	const struct trigger_bpf *skel = trigger__skel(trigger);
	struct mt_go_stack stack;
	struct log_reader log;
	int err = log_reader__open(&log, of_parks ? skel->maps.park_stacks : skel->maps.ready_log,
				   sizeof(stack), MT_GO_STACKS);

	while (!err && log_reader__next(&log, &stack))
		err = take(ctx, &stack);
	log_reader__close(&log);
	return err;
}

uint64_t trigger__also_calls(const struct trigger *trigger)
{
	return trigger__skel(trigger)->bss->last_also;
}

uint64_t trigger__go_wait_hits(const struct trigger *trigger)
{
	return trigger__skel(trigger)->bss->n_go_wait_hits;
}

int trigger__entries(const struct trigger *trigger,
		     int (*take)(void *ctx, const struct mt_entry *entry), void *ctx)
{
	const struct trigger_bpf *skel = trigger__skel(trigger);
	int err = take_log(skel->maps.entry_log, take, ctx);

	if (!err)
		err = take_log(skel->maps.also_log, take, ctx);
	if (err || trigger->go_waits_stopped)
		return err;
	return take_log(skel->maps.park_log, take, ctx);
}

/*
 * If a region ends (and is deleted) at the wrong moment, the walk starts again from the first key:
 * hence the limit. The ended region is in the log.
 */
static int take_open(int map, int (*take)(void *ctx, const struct mt_entry *entry), void *ctx)
{
	uint32_t key, *last = NULL;
	struct mt_entry region;
	int err = 0;

	for (int i = 0; i < MT_OPEN_REGIONS && !err && !bpf_map_get_next_key(map, last, &key);
	     i++) {
		last = &key;
		if (!bpf_map_lookup_elem(map, &key, &region))
			err = take(ctx, &region);
	}
	return err;
}

int trigger__regions(const struct trigger *trigger,
		     int (*take)(void *ctx, const struct mt_entry *region), void *ctx)
{
	const struct trigger_bpf *skel = trigger__skel(trigger);
	int err = take_open(bpf_map__fd(skel->maps.open_regions), take, ctx);

	return err ? err : take_log(skel->maps.region_log, take, ctx);
}
