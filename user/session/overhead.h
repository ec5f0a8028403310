/* SPDX-License-Identifier: MIT */
/* -max-overhead while it is recorded: what the target does changes, and with it what is left. */
#ifndef MTBPF_SESSION_OVERHEAD_H
#define MTBPF_SESSION_OVERHEAD_H

#include <stdbool.h>

#include "capture/sample/sample_cost.h"
#include "session/sample_options.h"
#include "target/pid_set.h"

struct overhead {
	struct sample_cost cost; /* measured before */
	unsigned int hz;	 /* the rate now, */
	unsigned int first_hz;	 /* and at the start */
	struct sample_load seen; /* what the target had done when it was looked at last */
	struct sample_load lately;
	bool is_broken; /* no rate keeps it, which has been said */
};

/*
 * Looks at what the processes have done since it did last, and mends o->hz where that is far from
 * what -max-overhead allows: true then. Says once where it cannot be kept. What ended meanwhile is
 * not counted.
 */
bool overhead__look(struct overhead *o, const struct sample_options *options,
		    const struct pid_set *pids);

/* The same, of what they have done in all. */
bool overhead__take(struct overhead *o, const struct sample_options *options,
		    const struct sample_load *now);

/* How it ended, where that is not how it began. */
void overhead__say(const struct overhead *o, const struct sample_options *options);

#endif
