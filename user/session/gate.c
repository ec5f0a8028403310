// SPDX-License-Identifier: MIT
#include "session/gate.h"

#include <errno.h>
#include <unistd.h>

int gate__open(struct gate *gate, const struct trigger_config *config, const struct probe *probe)
{
	pid_t pid = config->tgid ? config->tgid : -1;

	*gate = (struct gate){
		.by_return = trigger__needs_return(config),
		.entry = {.path = probe->path,
			  .offset = probe->offset,
			  .semaphore = probe->semaphore,
			  .pid = pid},
		/* It replaces the return address: it must be set at the function's entry. */
		.ret = {.path = probe->path,
			.offset = probe->entry_offset,
			.pid = pid,
			.on_return = true},
		.sampling = config->sampling,
		.own_entry = -1,
		.own_return = -1,
	};
	gate->trigger = trigger__new(config);
	return gate->trigger ? 0 : -errno;
}

const struct uprobe_spec *gate__deciding(const struct gate *gate)
{
	return gate->by_return ? &gate->ret : &gate->entry;
}

static int open_own(struct gate *gate, bool is_return)
{
	int *own = is_return ? &gate->own_return : &gate->own_entry;

	*own = uprobe_event__open(is_return ? &gate->ret : &gate->entry);
	return *own < 0 ? *own : 0;
}

int gate__attach(struct gate *gate, int source_event)
{
	int entry, ret, err = 0;

	if (source_event < 0)
		err = open_own(gate, gate->by_return);
	if (!err && gate->by_return)
		err = open_own(gate, false);
	if (err)
		return err;
	entry = gate->own_entry >= 0 ? gate->own_entry : source_event;
	ret = gate->own_return >= 0 ? gate->own_return : source_event;
	return trigger__attach(gate->trigger, entry, gate->by_return ? ret : -1);
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
	if (gate->own_entry >= 0)
		close(gate->own_entry);
	if (gate->own_return >= 0)
		close(gate->own_return);
	gate->own_entry = gate->own_return = -1;
}

void gate__close(struct gate *gate)
{
	gate__detach(gate);
	trigger__free(gate->trigger);
	gate->trigger = NULL;
}
