/* SPDX-License-Identifier: MIT */
/* The trigger on its probe's events: joins trigger with the events that capture opens. */
#ifndef MTBPF_SESSION_GATE_H
#define MTBPF_SESSION_GATE_H

#include "capture/recording/recording.h"
#include "capture/probe/uprobe_event.h"
#include "session/probe.h"
#include "trigger/trigger.h"

struct gate {
	struct trigger *trigger;
	bool sampling;	/* for a source that samples */
	bool by_return; /* the return probe decides, and the entry only starts the clock */
	struct uprobe_spec entry, ret;
	uint64_t entries_until_ns; /* entries that began later have not been taken */
	int own_entry, own_return; /* events that are ours; -1: none, or the source's */
};

/* Loads the trigger for a probe. 0, or -errno after a line and a hint. gate__close() in any case.
 */
int gate__open(struct gate *gate, const struct trigger_config *config, const struct probe *probe);

/* The probe that decides: the one whose event a source may want in its own group. */
const struct uprobe_spec *gate__deciding(const struct gate *gate);

/*
 * Sets the probes and attaches. source_event is the deciding event where the source has opened it;
 * -1: it is opened here. 0, or -errno after a line and a hint.
 */
int gate__attach(struct gate *gate, int source_event);

/* What lets a source's samples pass until the trigger: a BPF program, or -1 where it needs none. */
int gate__of_samples(const struct gate *gate);
/* Adds the latest hits to rec, but those that an earlier snapshot has. 0 or -errno. */
int gate__take_entries(struct gate *gate, struct recording *rec);
/* Adds the next hit to rec, with its stack: 1; 0 none waiting; or -errno. */
int gate__take_hit(struct gate *gate, struct recording *rec);

/* Removes the probes that are ours; the trigger stays loaded, and may be attached again. */
void gate__detach(struct gate *gate);
/* Detaches, and removes the probes that are ours. */
void gate__close(struct gate *gate);

#endif
