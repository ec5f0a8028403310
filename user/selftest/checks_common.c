// SPDX-License-Identifier: MIT
#include "selftest/checks_common.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "selftest/bundle.h"
#include "util/fs.h"
#include "util/units.h"

const char *const selftest_source_names[] = {
	[SELFTEST_PT] = "pt", [SELFTEST_SAMPLE] = "sample", [SELFTEST_SOFT] = "soft", NULL};

const struct loss checks_no_loss = {"", ""};

bool checks__wants(const struct checks *test, const char *name)
{
	const struct selftest_options *options = test->options;

	for (size_t i = 0; i < options->n_only; i++)
		if (!strcmp(options->only[i], name))
			return true;
	return !options->n_only;
}

bool checks__wants_any(const struct checks *test, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (checks__wants(test, names[i]))
			return true;
	return false;
}

static void tell(const struct checks *test, const char *name, enum selftest_verdict verdict,
		 const struct loss *loss, const char *found, va_list args)
{
	struct selftest_result result = {.source = test->source,
					 .name = name,
					 .verdict = verdict,
					 .loss = loss->what,
					 .meanwhile = loss->meanwhile};

	vsnprintf(result.found, sizeof(result.found), found, args);
	test->on_result(test->ctx, &result);
}

void checks__tell(const struct checks *test, const char *name, enum selftest_verdict verdict,
		  const struct loss *loss, const char *found, ...)
{
	va_list args;

	if (!checks__wants(test, name) && !checks__wants(test, test->recording))
		return;
	va_start(args, found);
	tell(test, name, verdict, loss, found, args);
	va_end(args);
}

void checks__tell_always(const struct checks *test, const char *name, enum selftest_verdict verdict,
			 const struct loss *loss, const char *found, ...)
{
	va_list args;

	va_start(args, found);
	tell(test, name, verdict, loss, found, args);
	va_end(args);
}

bool checks__has(const struct checks *test, const char *recording)
{
	return !test->options->replay || trial__is_there(test->dir, recording);
}

bool checks__record(const struct checks *test, struct trial *trial, const char *check)
{
	static const struct loss loss = {"nothing can be recorded this way here",
					 "'mtbpf check' says what is missing; try another -source"};
	char why[TRIAL_TEXT_SIZE];

	trial->dir = test->dir;
	trial->name = test->recording;
	trial->source = selftest_source_names[test->source];
	trial->log = test->log;
	trial->is_portable = test->options->bundle;
	if (test->options->replay ? trial__load(trial, why) : trial__make(trial, why))
		return true;
	checks__tell_always(test, check, SELFTEST_FAILED, &loss, "%s: %s", test->recording, why);
	return false;
}

void checks__end(const struct checks *test, struct trial *trial)
{
	char recording[PATH_MAX];

	trial__end(trial);
	if (!test->options->bundle)
		return;
	snprintf(recording, sizeof(recording), "%.*s/%s.mtbpf", PATH_MAX - 40, test->dir,
		 test->recording);
	/* A trial that failed may lack it. */
	if (!access(recording, F_OK) && bundle__prepare(recording))
		fs__remove_dir(recording);
}

uint64_t checks__time_error(const struct checks *test, const struct judged_calls *judged)
{
	int64_t error;

	if (!judged->right)
		return 0;
	if (test->source == SELFTEST_PT)
		error = (judged->least_shift_ns - judged->most_shift_ns + 1) / 2;
	else
		error = judged->least_shift_ns > -judged->most_shift_ns ? judged->least_shift_ns
									: -judged->most_shift_ns;
	return error > 0 ? (uint64_t)error : 0;
}

/* The stepper reads the clock at each branch, after it has stopped the thread. */
uint64_t checks__most_error(const struct checks *test)
{
	return test->source == SELFTEST_PT ? 5 * 1000 : 5 * 1000 * 1000;
}

void checks__judge_target(const struct checks *test, const struct trial *trial, const char *name)
{
	static const struct loss loss = {"programs that were recorded may be disturbed",
					 "do not use this source here"};
	const char *harm;

	/* trial__find_harm() takes a while. */
	if (test->options->replay ||
	    (!checks__wants(test, name) && !checks__wants(test, test->recording)))
		return;
	harm = trial__find_harm(trial);
	checks__tell(test, name, verdict_of(!harm), &loss, "%s",
		     harm ?: "it runs on, and nothing is left in it");
}

bool checks__judge_perf_trace(const struct trial *trial, char text[static 100])
{
	const struct perf_syscalls *seen = &trial->perf_syscalls;

	snprintf(text, 100, "perf trace counts %u in %u iterations%s", seen->calls,
		 seen->iterations, seen->lost ? ", and has lost some" : "");
	return seen->calls == N_SYSCALLS * seen->iterations && !seen->lost;
}
