/* SPDX-License-Identifier: MIT */
/* The checks of a selftest: what is recorded for each, and what its trace must show. */
#ifndef MTBPF_SELFTEST_CHECKS_H
#define MTBPF_SELFTEST_CHECKS_H

#include "selftest/programs.h"
#include "selftest/selftest.h"

struct checks {
	/* Set by the caller; all of it must stay valid. */
	const struct selftest_options *options;
	const char *dir;	 /* has the recordings, or gets them */
	struct program_log *log; /* mapped MAP_SHARED */
	/* Called for each result, which lasts until it returns. */
	void (*on_result)(void *ctx, const struct selftest_result *result);
	void *ctx;
	/* The checks' own: what is tested now. */
	enum selftest_source source;
	const char *recording;
};

/* Makes all checks of one source that the options ask for. */
void checks__run(struct checks *checks, enum selftest_source source);

/*
 * The first CPU of this type, as /sys/devices/TYPE/cpus of a hybrid CPU lists them ("cpu_core",
 * "cpu_atom"); -1: the machine has none. `sysfs` is where sysfs is mounted.
 */
int checks__find_cpu(const char *sysfs, const char *type);

#endif
