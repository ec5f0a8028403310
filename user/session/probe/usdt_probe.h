/* SPDX-License-Identifier: MIT */
/* A probe on one place of a USDT probe. */
#ifndef MTBPF_SESSION_PROBE_USDT_PROBE_H
#define MTBPF_SESSION_PROBE_USDT_PROBE_H

#include "session/probe/probe.h"
#include "target/symbols/symbols_usdt.h"

/*
 * Fills all of probe but where its file and its process are. 0, or -errno after a line and a hint:
 * -EIO its code cannot be read, -EOPNOTSUPP the kernel takes no probe there.
 */
int usdt_probe__make(struct probe *probe, const struct usdt_match *match);

#endif
