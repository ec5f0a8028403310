/* SPDX-License-Identifier: MIT */
/* A function of our own that probes can be tried on: they touch no other process. */
#ifndef MTBPF_CAPTURE_PROBE_OWN_PROBE_H
#define MTBPF_CAPTURE_PROBE_OWN_PROBE_H

#include "capture/probe/uprobe_event.h"

/* Calls the function. */
void own_probe__hit(void);

/*
 * A probe of code of our program, at an address of this process, in it. 0, or -ENOENT where that is
 * none of it.
 */
int own_probe__spec_of(struct uprobe_spec *spec, uintptr_t address);
/* A probe of the function. 0, or -ENOENT where its place in our file is not found. */
int own_probe__spec(struct uprobe_spec *spec);

/*
 * Sets the probe, calls the function once, and removes the probe. 0; -ENODATA: it could be set, but
 * was not hit; or -errno of setting it. Prints an error only where there are no uprobe events at
 * all.
 */
int own_probe__try(void);

#endif
