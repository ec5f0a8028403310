/* SPDX-License-Identifier: MIT */
/*
 * Proves on this machine what mtbpf says of a trace: records programs of its own, whose calls are
 * known, with each source that works here, and judges what is decoded.
 */
#ifndef MTBPF_SELFTEST_SELFTEST_H
#define MTBPF_SELFTEST_SELFTEST_H

#include <stdbool.h>
#include <stddef.h>

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

/*
 * Runs all checks and tells `on_result` each of their results, which lasts until it returns. 0, or
 * -errno after a line and a hint: the tests could not be run.
 */
int selftest__run(const struct selftest_options *options,
		  void (*on_result)(void *ctx, const struct selftest_result *result), void *ctx);

/* Prints results, as lines or as JSON, and counts them. */
struct selftest_results;

/* NULL: out of memory. */
struct selftest_results *selftest_results__new(bool json);
void selftest_results__free(struct selftest_results *results);

/* Of selftest__run(), with the results as ctx. Prints a line at once; JSON comes at the end. */
void selftest_results__take(void *results, const struct selftest_result *result);

/* Prints what is left, and fills n[] by enum selftest_verdict. 0 or -errno. */
int selftest_results__finish(const struct selftest_results *results,
			     unsigned int n[static SELFTEST_VERDICTS]);

#endif
