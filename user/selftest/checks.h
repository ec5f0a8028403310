/* SPDX-License-Identifier: MIT */
/* Functions and types that the checks of all sources share. */
#ifndef MTBPF_SELFTEST_CHECKS_H
#define MTBPF_SELFTEST_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

#include "selftest/judge.h"
#include "selftest/noted.h"
#include "selftest/trial.h"

enum selftest_source { SELFTEST_PT, SELFTEST_SAMPLE, SELFTEST_SOFT, SELFTEST_SOURCES };

/* The names for -source. */
extern const char *const selftest_source_names[];

enum selftest_verdict { SELFTEST_PASSED, SELFTEST_FAILED, SELFTEST_SKIPPED, SELFTEST_VERDICTS };

/* "ok", "failed", "skipped" */
extern const char *const selftest_verdict_names[];

#define SELFTEST_TEXT_SIZE 256

struct selftest_result {
	enum selftest_source source;
	const char *name; /* static */
	enum selftest_verdict verdict;
	char found[SELFTEST_TEXT_SIZE]; /* what was found; if skipped, why */
	/* For a check that failed: what users lose, and what to do meanwhile. Static. */
	const char *loss, *meanwhile;
};

struct selftest_options {
	bool sources[SELFTEST_SOURCES]; /* which to test */
	const char *const *only;	/* names of checks, or of recordings; n_only 0: all */
	size_t n_only;
	const char *keep;   /* a folder that keeps the recordings, or NULL */
	const char *bundle; /* a file to write for another machine, or NULL */
	const char *replay; /* a bundle to judge instead of recording; or NULL */
};

struct checks {
	/* Set by the caller; all of it must stay valid. */
	const struct selftest_options *options;
	const char *dir;	 /* folder of the recordings */
	struct program_log *log; /* mapped MAP_SHARED */
	/* Called for each result; the result is valid until it returns. */
	void (*on_result)(void *ctx, const struct selftest_result *result);
	void *ctx;
	/* Set by the checks: the source that is tested now. */
	enum selftest_source source;
	const char *recording;
};

/* The loss for users if a check fails, and advice until it is repaired. */
struct loss {
	const char *what, *meanwhile;
};

extern const struct loss checks_no_loss;

/* Branches may follow the hit in the trace for at most this long. */
#define MOST_AFTER_HIT_NS 20000

/* True if -only names it, or was not given. */
bool checks__wants(const struct checks *test, const char *name);

/* Reports a result, unless -only names neither the check nor its recording. */
void checks__tell(const struct checks *test, const char *name, enum selftest_verdict verdict,
		  const struct loss *loss, const char *found, ...)
	__attribute__((format(printf, 5, 6)));

static inline enum selftest_verdict verdict_of(bool is_right)
{
	return is_right ? SELFTEST_PASSED : SELFTEST_FAILED;
}

/* False if a bundle is replayed that lacks the recording. */
bool checks__has(const struct checks *test, const char *recording);

/*
 * Records the programs, or reads the earlier recording. True: the trial can be judged. Otherwise
 * this check has been reported as failed. Call checks__end() in any case.
 */
bool checks__record(const struct checks *test, struct trial *trial, const char *check);
void checks__end(const struct checks *test, struct trial *trial);

/*
 * checks__time_error() returns the largest distance between the time of a note and its call in the
 * trace; checks__most_error() returns its limit, both in nanoseconds. The trace's clock is the
 * notes', except for Intel PT: there one shift must be right for all notes.
 */
uint64_t checks__time_error(const struct checks *test, const struct judged_calls *judged);
uint64_t checks__most_error(const struct checks *test);

/*
 * True if `perf trace` counted N_SYSCALLS system calls per iteration, and lost none. Writes its
 * counts to the text.
 */
bool checks__judge_perf_trace(const struct trial *trial, char text[static 100]);

/*
 * The first CPU of this type, as /sys/devices/TYPE/cpus of a hybrid CPU lists them ("cpu_core",
 * "cpu_atom"); -1: this machine lacks the type. `sysfs` is where sysfs is mounted.
 */
int checks__find_cpu(const char *sysfs, const char *type);

/* Makes all checks of one source that the options ask for. */
void checks__run(struct checks *checks, enum selftest_source source);

/* The checks of Intel PT beyond those that it shares with the single-stepper. */
void checks__run_pt(struct checks *test);

#endif
