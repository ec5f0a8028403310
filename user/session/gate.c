// SPDX-License-Identifier: MIT
#include "session/gate.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* What is set in the same way: the functions that trigger, or those beside them. */
struct probed {
	const struct probe *v;
	size_t n;
	pid_t pid;
	bool is_also, by_insn;
};

static int add(struct gate *gate, const struct uprobe_spec *spec, const struct trigger_event *what)
{
	struct uprobe_spec *out = VEC_PUSH(&gate->specs);
	struct trigger_event *event = VEC_PUSH(&gate->events);

	if (!out || !event)
		return -ENOMEM;
	gate->has_return_probes |= spec->on_return;
	*out = *spec;
	*event = *what;
	event->fd = -1;
	return 0;
}

static int add_entry(struct gate *gate, const struct probed *probed, size_t i)
{
	const struct probe *probe = &probed->v[i];
	/* What leaves has the entry's stack pointer, not that of a place further in. */
	bool is_moved = probed->by_insn && !probe->site.at_entry;
	const struct uprobe_spec spec = {.path = probe->path,
					 .offset = is_moved ? probe->entry_offset : probe->offset,
					 .semaphore = probe->semaphore,
					 .pid = probed->pid};

	return add(gate, &spec,
		   &(struct trigger_event){.probe = (uint32_t)i, .is_also = probed->is_also});
}

/* A return probe replaces the return address: it must be set at the function's entry. */
static int add_return(struct gate *gate, const struct probed *probed, size_t i, uint64_t at,
		      bool on_return)
{
	const struct uprobe_spec spec = {.path = probed->v[i].path,
					 .offset = probed->v[i].entry_offset + at,
					 .pid = probed->pid,
					 .on_return = on_return};

	return add(gate, &spec,
		   &(struct trigger_event){
			   .is_return = true, .probe = (uint32_t)i, .is_also = probed->is_also});
}

static int add_returns(struct gate *gate, const struct probed *probed, size_t i)
{
	const struct exit_sites *exits = &probed->v[i].exits;
	int err = 0;

	if (!probed->by_insn)
		return add_return(gate, probed, i, 0, true);
	for (uint32_t e = 0; e < exits->n && !err; e++)
		err = add_return(gate, probed, i, exits->at[e], false);
	return err;
}

/* Those that decide come first. */
static int add_all(struct gate *gate, const struct probed *probed)
{
	int err = 0;

	for (size_t i = 0; i < probed->n && !err && gate->by_return; i++)
		err = add_returns(gate, probed, i);
	gate->n_deciding = gate->specs.n;
	for (size_t i = 0; i < probed->n && !err; i++)
		err = add_entry(gate, probed, i);
	if (!gate->by_return)
		gate->n_deciding = gate->specs.n;
	return err;
}

static int add_also(struct gate *gate, const struct probed *probed)
{
	int err = 0;

	for (size_t i = 0; i < probed->n && !err; i++) {
		err = add_returns(gate, probed, i);
		if (!err)
			err = add_entry(gate, probed, i);
	}
	return err;
}

int gate__open(struct gate *gate, const struct trigger_config *config,
	       const struct gate_probes *probes)
{
	const pid_t pid = config->tgid ? config->tgid : -1;
	const struct probed triggers = {probes->v, probes->n, pid, false, config->returns_by_insn};
	const struct probed also = {probes->also, probes->n_also, pid, true, config->also_by_insn};
	int err;

	*gate = (struct gate){.by_return = trigger__needs_return(config),
			      .by_insn = config->returns_by_insn,
			      .sampling = config->sampling};
	err = add_all(gate, &triggers);
	if (!err)
		err = add_also(gate, &also);
	if (err)
		return err;
	gate->trigger = trigger__new(config);
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
