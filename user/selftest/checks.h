/* SPDX-License-Identifier: MIT */
/* The checks of a selftest: what is recorded for each, and what its trace must show. */
#ifndef MTBPF_SELFTEST_CHECKS_H
#define MTBPF_SELFTEST_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

#include "selftest/programs.h"

enum selftest_source { SELFTEST_PT, SELFTEST_SAMPLE, SELFTEST_SOFT, SELFTEST_SOURCES };

/* As -source names them. */
extern const char *const selftest_source_names[];

enum selftest_verdict { SELFTEST_PASSED, SELFTEST_FAILED, SELFTEST_SKIPPED, SELFTEST_VERDICTS };

/* "ok", "failed", "skipped" */
extern const char *const selftest_verdict_names[];

#define SELFTEST_TEXT_SIZE 200

struct selftest_result {
	enum selftest_source source;
	const char *name; /* static */
	enum selftest_verdict verdict;
	char found[SELFTEST_TEXT_SIZE]; /* what was found; of one that is skipped, why */
	/* Static, of a check that failed: what a user loses by it, and what to do meanwhile. */
	const char *loss, *meanwhile;
};

struct selftest_options {
	bool sources[SELFTEST_SOURCES]; /* which to test */
	const char *const *only;	/* names of checks, or of recordings; n_only 0: all */
	size_t n_only;
	const char *keep;   /* a folder that keeps the recordings, or NULL */
	const char *bundle; /* a file to write for another machine, or NULL */
	const char *replay; /* a bundle: it is judged, and nothing is recorded; or NULL */
};

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
