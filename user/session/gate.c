// SPDX-License-Identifier: MIT
#include "session/gate.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int add(struct gate *gate, const struct uprobe_spec *spec, size_t probe,
	       enum trigger_probe kind)
{
	struct uprobe_spec *out = VEC_PUSH(&gate->specs);
	struct trigger_event *event = VEC_PUSH(&gate->events);

	if (!out || !event)
		return -ENOMEM;
	*out = *spec;
	*event = (struct trigger_event){.fd = -1, .kind = kind, .probe = (uint32_t)probe};
	return 0;
}

static int add_entry(struct gate *gate, const struct probe *probe, size_t number, pid_t pid)
{
	/* What leaves has the entry's stack pointer, not that of a place further in. */
	bool is_moved = gate->by_insn && !probe->site.at_entry;
	const struct uprobe_spec spec = {.path = probe->path,
					 .offset = is_moved ? probe->entry_offset : probe->offset,
					 .semaphore = probe->semaphore,
					 .pid = pid};

	int err = add(gate, &spec, number, TRIGGER_ENTRY);

	if (!err && !is_moved)
		gate->events.v[gate->events.n - 1].condition = probe->site.condition;
	return err;
}

static int add_return(struct gate *gate, const struct probe *probe, size_t number, pid_t pid)
{
	/* It replaces the return address: it must be set at the function's entry. */
	const struct uprobe_spec spec = {
		.path = probe->path, .offset = probe->entry_offset, .pid = pid, .on_return = true};

	return add(gate, &spec, number, TRIGGER_RETURN);
}

static int add_exits(struct gate *gate, const struct probe *probe, size_t number, pid_t pid)
{
	int err = 0;

	for (uint32_t i = 0; i < probe->exits.n && !err; i++) {
		const struct uprobe_spec spec = {.path = probe->path,
						 .offset = probe->entry_offset +
							   (uint64_t)(int64_t)probe->exits.at[i],
						 .pid = pid};

		err = add(gate, &spec, number, TRIGGER_RETURN);
		if (!err)
			gate->events.v[gate->events.n - 1].condition = probe->exits.condition[i];
	}
	return err;
}

static int add_places(struct gate *gate, const struct probes *probes, enum trigger_probe kind,
		      pid_t pid)
{
	int err = 0;

	for (size_t i = 0; i < probes->all.n && !err; i++) {
		const struct probe *probe = &probes->all.v[i];
		const struct uprobe_spec spec = {.path = probe->path,
						 .offset = probe->offset,
						 .semaphore = probe->semaphore,
						 .pid = pid,
						 .role = kind == TRIGGER_START ? UPROBE_STARTS
									       : UPROBE_STOPS};

		err = add(gate, &spec, i, kind);
	}
	return err;
}

static int add_regions(struct gate *gate, const struct start_stop *regions, pid_t pid)
{
	int err = add_places(gate, &regions->stops, TRIGGER_STOP, pid);

	return err ? err : add_places(gate, &regions->starts, TRIGGER_START, pid);
}

static int add_returns(struct gate *gate, const struct probe *probes, size_t n, pid_t pid)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		err = gate->by_insn ? add_exits(gate, &probes[i], i, pid)
				    : add_return(gate, &probes[i], i, pid);
	return err;
}

static int add_entries(struct gate *gate, const struct probe *probes, size_t n, pid_t pid)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		err = add_entry(gate, &probes[i], i, pid);
	return err;
}

/* The source's own come first. */
static int add_all(struct gate *gate, const struct trigger_config *config,
		   const struct probes *probes, const struct start_stop *regions)
{
	size_t n = config->stop_triggers ? 0 : probes->all.n;
	pid_t pid = config->tgid ? config->tgid : -1;
	int err = gate->by_return ? add_returns(gate, probes->all.v, n, pid)
				  : add_entries(gate, probes->all.v, n, pid);

	if (!err && config->regions)
		err = add_regions(gate, regions, pid);
	gate->n_deciding = gate->specs.n;
	return err || !gate->by_return ? err : add_entries(gate, probes->all.v, n, pid);
}

static bool has_conditions(const struct probes *probes)
{
	for (size_t i = 0; i < probes->all.n; i++)
		if (probes->all.v[i].site.condition)
			return true;
	return false;
}

int gate__open(struct gate *gate, const struct trigger_config *config, const struct probes *probes,
	       const struct start_stop *regions)
{
	struct trigger_config all = *config;
	int err;

	*gate = (struct gate){.by_return = trigger__needs_return(config),
			      .by_insn = config->returns_by_insn,
			      .regions = config->regions,
			      .sampling = config->sampling};
	err = add_all(gate, config, probes, regions);
	if (err)
		return err;
	all.conditional_entries = has_conditions(probes);
	gate->trigger = trigger__new(&all);
	return gate->trigger ? 0 : -errno;
}

int gate__attach(struct gate *gate, const int *source_events)
{
	struct trigger_event *events = calloc(gate->events.n, sizeof(*events));
	int err = events ? 0 : -ENOMEM;

	for (size_t i = 0; i < gate->events.n && !err; i++) {
		bool has_source = source_events && i < gate->n_deciding && source_events[i] >= 0;

		if (!has_source)
			gate->events.v[i].fd = uprobe_event__open(&gate->specs.v[i]);
		events[i] = gate->events.v[i];
		if (has_source)
			events[i].fd = source_events[i];
		if (events[i].fd < 0)
			err = events[i].fd;
	}
	if (!err)
		err = trigger__attach_all(gate->trigger, events, gate->events.n);
	free(events);
	return err;
}

int gate__of_samples(const struct gate *gate)
{
	return gate->trigger && gate->sampling ? trigger__sample_gate(gate->trigger) : -1;
}

struct entry_taker {
	struct recording *rec;
	uint64_t after_ns;
};

static int take_entry(void *ctx, const struct mt_entry *entry)
{
	struct entry_taker *taker = ctx;

	return entry->start_ns > taker->after_ns ? recording__add_entry(taker->rec, entry) : 0;
}

int gate__take_entries(struct gate *gate, struct recording *rec)
{
	struct entry_taker taker = {.rec = rec, .after_ns = gate->entries_until_ns};
	size_t first = rec->entries.n;
	int err;

	if (!gate->trigger || !gate->sampling)
		return 0;
	err = trigger__entries(gate->trigger, take_entry, &taker);
	for (size_t i = first; i < rec->entries.n; i++)
		if (rec->entries.v[i].start_ns > gate->entries_until_ns)
			gate->entries_until_ns = rec->entries.v[i].start_ns;
	return err;
}

static int take_region(void *ctx, const struct mt_entry *entry)
{
	struct entry_taker *taker = ctx;
	const struct mt_sched region = {.time_ns = entry->start_ns,
					.tid = entry->tid,
					.tgid = entry->tgid,
					.kind = MT_SCHED_REGION,
					.took = {.arg = entry->ip, .end_ns = entry->end_ns}};

	if (entry->end_ns && entry->end_ns <= taker->after_ns)
		return 0;
	return recording__add_sched_by(taker->rec, &region);
}

int gate__take_regions(struct gate *gate, struct recording *rec)
{
	struct entry_taker taker = {.rec = rec, .after_ns = gate->regions_until_ns};
	size_t first = rec->sched_bys.n;
	int err;

	if (!gate->trigger || !gate->sampling || !gate->regions)
		return 0;
	err = trigger__regions(gate->trigger, take_region, &taker);
	for (size_t i = first; i < rec->sched_bys.n; i++)
		if (rec->sched_bys.v[i].took.end_ns > gate->regions_until_ns)
			gate->regions_until_ns = rec->sched_bys.v[i].took.end_ns;
	return err;
}

int gate__take_hit(struct gate *gate, struct recording *rec)
{
	struct mt_hit hit;
	const uint8_t *stack;
	size_t size;
	int err, got = trigger__next(gate->trigger, &hit);

	if (got != 1)
		return got;
	stack = trigger__stack(gate->trigger, &size);
	err = recording__add_hit(rec, &hit);
	if (!err && size)
		err = recording__add_stack(rec, stack, size);
	return err ? err : 1;
}

void gate__detach(struct gate *gate)
{
	if (gate->trigger)
		trigger__detach(gate->trigger);
	for (size_t i = 0; i < gate->events.n; i++) {
		if (gate->events.v[i].fd >= 0)
			close(gate->events.v[i].fd);
		gate->events.v[i].fd = -1;
	}
}

void gate__close(struct gate *gate)
{
	gate__detach(gate);
	VEC_FINI(&gate->specs);
	VEC_FINI(&gate->events);
	trigger__free(gate->trigger);
	gate->trigger = NULL;
}
