/* SPDX-License-Identifier: MIT */
/* Functions and types that the checks of all sources share. */
#ifndef MTBPF_SELFTEST_CHECKS_COMMON_H
#define MTBPF_SELFTEST_CHECKS_COMMON_H

#include <stdbool.h>
#include <stddef.h>

#include "selftest/judge.h"
#include "selftest/programs.h"
#include "selftest/trial.h"

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
	/* Called for each result; the result is valid until it returns. */
	void (*on_result)(void *ctx, const struct selftest_result *result);
	void *ctx;
	/* Set by the checks: what is tested now. */
	enum selftest_source source;
	const char *recording;
};

/* If a check fails: the user's loss, and advice until it is mended. */
struct loss {
	const char *what, *meanwhile;
};

extern const struct loss checks_no_loss;

/* The limit for branches after the hit. */
#define MOST_AFTER_HIT_NS 20000

/* True if -only names it, or was not given. */
bool checks__wants(const struct checks *test, const char *name);
bool checks__wants_any(const struct checks *test, const char *const *names, size_t n);

/* Tells a result, unless -only names neither the check nor its recording. */
void checks__tell(const struct checks *test, const char *name, enum selftest_verdict verdict,
		  const struct loss *loss, const char *found, ...)
	__attribute__((format(printf, 5, 6)));

/* The same, whatever -only names. */
void checks__tell_always(const struct checks *test, const char *name, enum selftest_verdict verdict,
			 const struct loss *loss, const char *found, ...)
	__attribute__((format(printf, 5, 6)));

static inline enum selftest_verdict verdict_of(bool is_right)
{
	return is_right ? SELFTEST_PASSED : SELFTEST_FAILED;
}

/* False for a recording that the replayed bundle does not have. */
bool checks__has(const struct checks *test, const char *recording);

/*
 * Records the programs, or reads what was recorded. True: the trial can be judged. Otherwise this
 * check has been told as failed. checks__end() in any case.
 */
bool checks__record(const struct checks *test, struct trial *trial, const char *check);
void checks__end(const struct checks *test, struct trial *trial);

/*
 * The largest distance between the time of a note and its call in the trace, and its limit. The
 * trace's clock is the notes', except for Intel PT: there one shift must be right for all notes.
 */
uint64_t checks__time_error(const struct checks *test, const struct judged_calls *judged);
uint64_t checks__most_error(const struct checks *test);

/* Tells as this check whether the target is as it was before. */
void checks__judge_target(const struct checks *test, const struct trial *trial, const char *name);

/* True if `perf trace` counted as many system calls. The text says what it counted. */
bool checks__judge_perf_trace(const struct trial *trial, char text[static 100]);

/*
 * The first CPU of this type, as /sys/devices/TYPE/cpus of a hybrid CPU lists them ("cpu_core",
 * "cpu_atom"); -1: this machine lacks the type. `sysfs` is where sysfs is mounted.
 */
int checks__find_cpu(const char *sysfs, const char *type);

/* The checks of Intel PT beyond those that it shares with the single-stepper, and of samples. */
void checks__run_pt(struct checks *test);
void checks__run_sample(struct checks *test);

#endif
