/* SPDX-License-Identifier: MIT */
/*
 * A uprobe that many perf events share: an entry in tracefs' uprobe_events. With events of the
 * uprobe PMU each hit would run the BPF program once an event.
 */
#ifndef MTBPF_CAPTURE_PROBE_TRACEFS_PROBE_H
#define MTBPF_CAPTURE_PROBE_TRACEFS_PROBE_H

#include <stdint.h>

#include "capture/probe/uprobe_event.h"

struct tracefs_probe;

/*
 * Creates the probe, not yet enabled; `number` tells it from others of ours. *id is attr.config of
 * a PERF_TYPE_TRACEPOINT event on it. tracefs is mounted for
 * us alone where the machine has it nowhere. The entry outlives its maker, so a small process of
 * ours waits for our end, however it comes, and removes it. 0, or -errno after one line and a hint
 * on stderr.
 */
int tracefs_probe__create(struct tracefs_probe **probe, const struct uprobe_spec *spec,
			  size_t number, uint32_t *id);
/* Removes it; every event on it must be closed. NULL is fine. */
void tracefs_probe__remove(struct tracefs_probe *probe);

/*
 * Whether a probe could be created, without creating one. 0 and *place (NULL: mounted nowhere, but
 * we can mount it for us alone), or -errno. Prints nothing.
 */
int tracefs_probe__try(const char **place);

#endif
