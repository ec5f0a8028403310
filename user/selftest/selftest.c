// SPDX-License-Identifier: MIT
#include "selftest/selftest.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "check/check.h"
#include "selftest/bundle.h"
#include "selftest/judge.h"
#include "selftest/perf_judge.h"
#include "selftest/programs.h"
#include "selftest/trial.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/signals.h"
#include "util/units.h"

const char *const selftest_source_names[] = {
	[SELFTEST_PT] = "pt", [SELFTEST_SAMPLE] = "sample", [SELFTEST_SOFT] = "soft", NULL};

struct selftest {
	const struct selftest_options *options;
	void (*on_result)(void *ctx, const struct selftest_result *result);
	void *ctx;
	char dir[PATH_MAX];
	struct program_log *log;     /* shared with the children */
	enum selftest_source source; /* that is tested now */
	FILE *results;		     /* the bundle's list of them, or NULL */
};

static void tell(const struct selftest *test, const char *name, enum selftest_verdict verdict,
		 const char *loss, const char *found, ...) __attribute__((format(printf, 5, 6)));

static void tell(const struct selftest *test, const char *name, enum selftest_verdict verdict,
		 const char *loss, const char *found, ...)
{
	struct selftest_result result = {
		.source = test->source, .name = name, .verdict = verdict, .loss = loss};
	va_list ap;

	va_start(ap, found);
	vsnprintf(result.found, sizeof(result.found), found, ap);
	va_end(ap);
	if (test->results)
		fprintf(test->results, "%s\t%s\t%s\t%s\n", selftest_source_names[test->source],
			name, selftest_verdict_names[verdict], result.found);
	test->on_result(test->ctx, &result);
}

static enum selftest_verdict verdict_of(bool is_right)
{
	return is_right ? SELFTEST_PASSED : SELFTEST_FAILED;
}

/* A bundle need not have all recordings, and the user need not want all of them. */
static bool is_wanted(const struct selftest *test, const char *recording)
{
	const struct selftest_options *options = test->options;
	bool is_chosen = !options->n_only;

	for (size_t i = 0; i < options->n_only; i++)
		if (!strcmp(options->only[i], recording))
			is_chosen = true;
	return is_chosen && (!options->replay || trial__is_there(test->dir, recording));
}

/* Records these programs, or reads what was recorded. True: the trial can be judged. Otherwise the
 * result has been told. */
static bool record(const struct selftest *test, struct trial *trial, const char *name,
		   const char *const *options, unsigned int programs)
{
	char why[TRIAL_TEXT_SIZE];

	*trial = (struct trial){.dir = test->dir,
				.name = name,
				.source = selftest_source_names[test->source],
				.options = options,
				.programs = programs,
				.log = test->log,
				.is_portable = test->options->bundle};
	if (test->options->replay ? trial__load(trial, why) : trial__make(trial, why))
		return true;
	tell(test, "recording", SELFTEST_FAILED,
	     "nothing can be recorded this way here: 'mtbpf check' says what is missing", "%s: %s",
	     name, why);
	return false;
}

/* ---- what the programs called */

struct program_check {
	enum program program;
	const char *name;
	const char *loss;
};

#define WAIT_FOR_MEND "; keep the recording (-keep) and report it"

static const struct program_check program_checks[] = {
	{PROGRAM_CALLS, "calls", "stacks are wrong everywhere" WAIT_FOR_MEND},
	{PROGRAM_TAIL_CALLS, "tail calls",
	 "stacks of optimised code may be too deep, or lack functions" WAIT_FOR_MEND},
	{PROGRAM_RECURSION, "recursion", "deep stacks may be wrong" WAIT_FOR_MEND},
	{PROGRAM_UNWINDING, "exceptions",
	 "stacks are wrong after an exception, until the thread leaves the function that caught "
	 "it" WAIT_FOR_MEND},
	{PROGRAM_LONGJMP, "longjmp", "stacks are wrong after a longjmp()" WAIT_FOR_MEND},
	{PROGRAM_SIGNALS, "signals", "stacks are wrong in signal handlers and after" WAIT_FOR_MEND},
	{PROGRAM_THREADS, "threads",
	 "other threads than the one that triggers are wrong or missing" WAIT_FOR_MEND},
	{PROGRAM_FORK, "fork", "stacks are wrong after a fork()" WAIT_FOR_MEND},
	{PROGRAM_LIBRARY, "libraries",
	 "stacks are wrong in functions that libraries call" WAIT_FOR_MEND},
	{PROGRAM_JIT, "code without file",
	 "there are gaps where JIT-compiled code runs" WAIT_FOR_MEND},
	{PROGRAM_SYSCALLS, "system calls", "system calls are missing or too many" WAIT_FOR_MEND},
	{PROGRAM_FAULTS, "page faults", "page faults are missing" WAIT_FOR_MEND},
	{PROGRAM_STACKS, "second stack",
	 "stacks are wrong in programs with coroutines" WAIT_FOR_MEND},
};

#define N_PROGRAM_CHECKS (sizeof(program_checks) / sizeof(program_checks[0]))
#define ALL_PROGRAMS	 ((1u << PROGRAMS) - 1)
/* What is traced branch by branch. */
#define TRACED_PROGRAMS (ALL_PROGRAMS & ~(1u << PROGRAM_TIME))

/* What a program does beside its calls. */
static bool is_right_beside(const struct selftest *test, const struct program_check *check,
			    const struct judged_calls *judged, char text[static 80])
{
	text[0] = '\0';
	if (check->program == PROGRAM_SYSCALLS) {
		snprintf(text, 80, ", %u of %u system calls", judged->syscalls, N_SYSCALLS);
		return judged->syscalls == N_SYSCALLS;
	}
	if (check->program == PROGRAM_FAULTS && test->source == SELFTEST_PT) {
		snprintf(text, 80, ", %u of %u page faults or more", judged->untraced, N_FAULTS);
		return judged->untraced >= N_FAULTS;
	}
	return true;
}

static void judge_program(const struct selftest *test, const struct trial *trial,
			  const struct program_check *check, struct judged_calls *sum)
{
	struct judged_calls judged;
	char beside[80], unnoted[64] = "";
	bool is_right;

	if (judge__calls(&trial->decoded, trial->iteration, check->program, trial->hit->time_ns,
			 &judged)) {
		tell(test, check->name, SELFTEST_FAILED, check->loss, "out of memory");
		return;
	}
	is_right = is_right_beside(test, check, &judged, beside) && judged.noted &&
		   judged.right == judged.noted && !judged.unnoted;
	if (judged.unnoted)
		snprintf(unnoted, sizeof(unnoted), ", and %u that it did not make", judged.unnoted);
	judged_calls__add(sum, &judged);
	tell(test, check->name, is_right ? SELFTEST_PASSED : SELFTEST_FAILED, check->loss,
	     "%u of %u calls at their depth%s%s", judged.right, judged.noted, unnoted, beside);
}

/*
 * How far the times of notes are outside of their calls. The trace's clock is the notes', except
 * for Intel PT: there one shift must be right for all notes.
 */
static uint64_t find_error(const struct selftest *test, const struct judged_calls *judged)
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
static uint64_t most_error(const struct selftest *test)
{
	return test->source == SELFTEST_PT ? 5 * 1000 : 5 * 1000 * 1000;
}

static void judge_times(const struct selftest *test, const struct judged_calls *sum)
{
	uint64_t error_ns = find_error(test, sum);
	char error[UNITS_TEXT_SIZE], most[UNITS_TEXT_SIZE];

	tell(test, "times", verdict_of(error_ns <= most_error(test)),
	     "times in the trace are wrong; the order of calls is right" WAIT_FOR_MEND,
	     "the clock as the programs read it is at most %s outside of their calls; at most %s "
	     "is "
	     "right",
	     units__format_duration(error, error_ns),
	     units__format_duration(most, most_error(test)));
}

static void judge_gaps(const struct selftest *test, const struct trial *trial)
{
	const struct decode_totals *totals = &trial->decoded.totals;
	uint64_t n = 0;

	for (int reason = 0; reason < GAP_REASONS; reason++)
		n += totals->gaps[reason];
	tell(test, "gaps", n ? SELFTEST_FAILED : SELFTEST_PASSED,
	     "parts of traces are missing: 'mtbpf decode' names the reasons" WAIT_FOR_MEND,
	     "%" PRIu64 " in %" PRIu64 " branches", n, totals->branches);
}

/* At most so long may branches be recorded after the hit. */
#define MOST_AFTER_HIT_NS 20000

static void judge_freeze(const struct selftest *test, const struct trial *trial)
{
	char after[UNITS_TEXT_SIZE];
	int64_t n = trial->decoded.behind_hit;

	if (n < 0) {
		tell(test, "freeze", SELFTEST_FAILED,
		     "the moment of the hit is not in the trace" WAIT_FOR_MEND,
		     "the hit is not found in the trace");
		return;
	}
	tell(test, "freeze",
	     trial->decoded.behind_hit_ns <= MOST_AFTER_HIT_NS ? SELFTEST_PASSED : SELFTEST_FAILED,
	     "the trace is frozen late, and looks back less far: try another -freeze" WAIT_FOR_MEND,
	     "%" PRId64 " branches after the hit, in %s", n,
	     units__format_duration(after, trial->decoded.behind_hit_ns));
}

static void judge_target(const struct selftest *test, const struct trial *trial, const char *name)
{
	const char *harm;

	if (test->options->replay)
		return;
	harm = trial__find_harm(trial);
	tell(test, name, verdict_of(!harm),
	     "programs that were recorded may be disturbed: do not use this source "
	     "here" WAIT_FOR_MEND,
	     "%s", harm ?: "it runs on, and nothing is left in it");
}

static void test_branches(const struct selftest *test)
{
	static const char *const none[] = {NULL};
	static const char *const threads[] = {"-multi-thread", NULL};
	bool is_pt = test->source == SELFTEST_PT;
	struct trial trial;
	struct judged_calls sum = JUDGED_NONE;

	if (!is_wanted(test, selftest_source_names[test->source]))
		return;
	if (record(test, &trial, selftest_source_names[test->source], is_pt ? threads : none,
		   TRACED_PROGRAMS)) {
		for (size_t i = 0; i < N_PROGRAM_CHECKS; i++)
			judge_program(test, &trial, &program_checks[i], &sum);
		judge_times(test, &sum);
		judge_gaps(test, &trial);
		if (is_pt)
			judge_freeze(test, &trial);
		judge_target(test, &trial, "target afterwards");
	}
	trial__end(&trial);
}

/* Programs whose functions are all entered by calls, in code that is in files: perf needs that. */
#define PERFS_PROGRAMS                                                                             \
	(1u << PROGRAM_CALLS | 1u << PROGRAM_RECURSION | 1u << PROGRAM_LONGJMP |                   \
	 1u << PROGRAM_LIBRARY | 1u << PROGRAM_SYSCALLS)

static void test_with_perf(const struct selftest *test)
{
	static const char *const none[] = {NULL};
	const char *name = test->source == SELFTEST_PT ? "pt-perf" : "soft-perf";
	char recording[PATH_MAX];
	struct perf_calls calls;
	struct trial trial;
	int err;

	if (!is_wanted(test, name))
		return;
	if (record(test, &trial, name, none, PERFS_PROGRAMS)) {
		snprintf(recording, sizeof(recording), "%.*s/%s.mtbpf", PATH_MAX - 40, test->dir,
			 name);
		err = perf_judge__count(&trial.decoded, recording, &calls);
		if (err == -ENOENT)
			tell(test, "perf's judgement", SELFTEST_SKIPPED, "",
			     "perf is not installed");
		else
			tell(test, "perf's judgement",
			     verdict_of(!err && calls.ours && calls.perfs == calls.ours &&
					!calls.errors),
			     "perf decodes recordings otherwise than mtbpf does" WAIT_FOR_MEND,
			     "perf script finds %u of %u calls, and %u errors", calls.perfs,
			     calls.ours, calls.errors);
	}
	trial__end(&trial);
}

/* ---- Intel PT: options that change what the CPU or the kernel does */

struct variant {
	const char *name, *recording;
	const char *const options[6];
	unsigned int programs;
	const char *needs;   /* a check of `mtbpf check`, or NULL */
	bool is_frozen_late; /* from user space: any number of branches may follow the hit */
	void (*judge)(const struct selftest *test, const struct variant *variant,
		      const struct trial *trial);
};

/* All programs that ran. */
static int judge_all(const struct trial *trial, struct judged_calls *sum)
{
	struct judged_calls judged;
	int err = 0;

	*sum = JUDGED_NONE;
	for (int program = 0; program < PROGRAMS && !err; program++) {
		if (!(trial->programs & 1u << program))
			continue;
		err = judge__calls(&trial->decoded, trial->iteration, (enum program)program,
				   trial->hit->time_ns, &judged);
		judged_calls__add(sum, &judged);
	}
	return err;
}

static void judge_variant(const struct selftest *test, const struct variant *variant,
			  const struct trial *trial)
{
	const struct decoded *decoded = &trial->decoded;
	char after[UNITS_TEXT_SIZE], error[UNITS_TEXT_SIZE];
	struct judged_calls sum;
	bool is_right;

	is_right = !judge_all(trial, &sum) && sum.noted && sum.right == sum.noted && !sum.unnoted;
	if (find_error(test, &sum) > most_error(test) || decoded->behind_hit < 0)
		is_right = false;
	if (!variant->is_frozen_late && decoded->behind_hit_ns > MOST_AFTER_HIT_NS)
		is_right = false;
	tell(test, variant->name, verdict_of(is_right),
	     "recordings with this option are wrong: leave it out" WAIT_FOR_MEND,
	     "%u of %u calls at their depth, times at most %s off, %" PRId64
	     " branches in %s after the hit",
	     sum.right, sum.noted, units__format_duration(error, find_error(test, &sum)),
	     decoded->behind_hit, units__format_duration(after, decoded->behind_hit_ns));
}

#define SNAPSHOTS 20

static void judge_snapshots(const struct selftest *test, const struct variant *variant,
			    const struct trial *trial)
{
	const struct decoded *decoded = &trial->decoded;
	unsigned int n = 0;
	bool has_gaps = false;

	for (size_t i = 0; i < decoded->hits.n; i++)
		n += decoded->hits.v[i].n_args > 0;
	for (int reason = 0; reason < GAP_REASONS; reason++)
		if (reason != GAP_BETWEEN && decoded->totals.gaps[reason])
			has_gaps = true;
	tell(test, variant->name, verdict_of(n == SNAPSHOTS && !has_gaps),
	     "several captures in one trace are wrong: -multi-snapshot" WAIT_FOR_MEND,
	     "%u of %u snapshots, %s gaps in them", n, SNAPSHOTS, has_gaps ? "with" : "without");
}

static const struct variant variants[] = {
	{.name = "freeze: pause",
	 .recording = "pt-pause",
	 .options = {"-freeze", "pause"},
	 .programs = 1u << PROGRAM_CALLS,
	 .needs = "freeze_pause",
	 .judge = judge_variant},
	{.name = "freeze: refresh",
	 .recording = "pt-refresh",
	 .options = {"-freeze", "refresh"},
	 .programs = 1u << PROGRAM_CALLS,
	 .needs = "freeze_refresh",
	 .judge = judge_variant},
	{.name = "freeze: disable",
	 .recording = "pt-disable",
	 .options = {"-freeze", "disable"},
	 .programs = 1u << PROGRAM_CALLS,
	 .needs = "freeze_disable",
	 .judge = judge_variant,
	 .is_frozen_late = true},
	{.name = "timer: low",
	 .recording = "pt-low",
	 .options = {"-timer-resolution", "low"},
	 .programs = 1u << PROGRAM_CALLS,
	 .judge = judge_variant},
	{.name = "timer: high",
	 .recording = "pt-high",
	 .options = {"-timer-resolution", "high"},
	 .programs = 1u << PROGRAM_CALLS,
	 .judge = judge_variant},
	{.name = "small ring",
	 .recording = "pt-small",
	 .options = {"-snapshot-size", "16K", "-skip", "30"},
	 .programs = 1u << PROGRAM_CALLS,
	 .judge = judge_variant},
	{.name = "20 snapshots",
	 .recording = "pt-snapshots",
	 .options = {"-multi-snapshot", "20"},
	 .programs = 1u << PROGRAM_CALLS,
	 .judge = judge_snapshots},
};

static void test_variant(const struct selftest *test, const struct variant *variant)
{
	struct check_result result;
	struct trial trial;

	if (!is_wanted(test, variant->recording))
		return;
	if (!test->options->replay && variant->needs && check__one(variant->needs, &result) &&
	    result.state == CHECK_MISSING) {
		tell(test, variant->name, SELFTEST_SKIPPED, "", "%s", result.reason);
		return;
	}
	if (record(test, &trial, variant->recording, variant->options, variant->programs))
		variant->judge(test, variant, &trial);
	trial__end(&trial);
}

/* ---- samples */

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Two stacks a millisecond apart bound what is known of the time between them. */
#define MOST_OFF_SAMPLED_NS (4 * 1000 * 1000)
/* Switches are exact. */
#define MOST_OFF_EXACT_NS (1000 * 1000)

static void judge_function_time(const struct selftest *test, const struct trial *trial,
				const char *name, const char *function)
{
	char is[UNITS_TEXT_SIZE], was[UNITS_TEXT_SIZE];
	struct judged_time judged;
	bool is_right;

	judge__time(&trial->decoded, trial->iteration, function, &judged);
	is_right = difference(judged.true_ns, judged.slices_ns) <= MOST_OFF_SAMPLED_NS;
	tell(test, name, is_right && judged.has_caller ? SELFTEST_PASSED : SELFTEST_FAILED,
	     "how long functions took is wrong in traces by samples" WAIT_FOR_MEND,
	     "%s, by its own clock %s%s", units__format_duration(is, judged.slices_ns),
	     units__format_duration(was, judged.true_ns),
	     judged.has_caller ? "" : "; its caller is missing");
}

static void judge_sleep(const struct selftest *test, const struct trial *trial, const char *name)
{
	char is[UNITS_TEXT_SIZE], was[UNITS_TEXT_SIZE];
	struct judged_time judged;
	uint64_t off_cpu_ns;

	judge__time(&trial->decoded, trial->iteration, "mtbpf_selftest_time_sleep", &judged);
	off_cpu_ns = judged.blocked_ns + judged.waited_ns;
	/* The time on the way to sleep and back is not part of it. */
	tell(test, name,
	     judged.blocked_ns >= SLEEP_NS && off_cpu_ns <= judged.true_ns &&
			     judged.true_ns - off_cpu_ns <= MOST_OFF_EXACT_NS
		     ? SELFTEST_PASSED
		     : SELFTEST_FAILED,
	     "how long a thread was blocked is wrong in traces by samples" WAIT_FOR_MEND,
	     "blocked for %s, by its own clock %s", units__format_duration(is, judged.blocked_ns),
	     units__format_duration(was, judged.true_ns));
}

/* Callers are found in one of two ways, each of which is tested. */
static const struct unwinding {
	const char *recording;
	const char *const options[3];
	const char *long_name, *short_name, *sleep_name, *target_name;
} unwindings[] = {
	{"sample-fp",
	 {"-unwind", "fp", NULL},
	 "long call, fp",
	 "short call, fp",
	 "sleep, fp",
	 "target afterwards, fp"},
	{"sample-dwarf",
	 {"-unwind", "dwarf", NULL},
	 "long call, dwarf",
	 "short call, dwarf",
	 "sleep, dwarf",
	 "target afterwards, dwarf"},
};

static void test_samples(const struct selftest *test)
{
	for (size_t i = 0; i < sizeof(unwindings) / sizeof(unwindings[0]); i++) {
		const struct unwinding *how = &unwindings[i];
		struct trial trial;

		if (!is_wanted(test, how->recording))
			continue;
		if (record(test, &trial, how->recording, how->options, 1u << PROGRAM_TIME)) {
			judge_function_time(test, &trial, how->long_name,
					    "mtbpf_selftest_time_long");
			judge_function_time(test, &trial, how->short_name,
					    "mtbpf_selftest_time_short");
			judge_sleep(test, &trial, how->sleep_name);
			judge_target(test, &trial, how->target_name);
		}
		trial__end(&trial);
	}
}

/* ---- all sources */

/* Why the source cannot be tested here; "": it can. */
static void find_obstacle(enum selftest_source source, char why[static SELFTEST_TEXT_SIZE])
{
	static const char *const needs[SELFTEST_SOURCES] = {[SELFTEST_PT] = "intel_pt",
							    [SELFTEST_SAMPLE] = "sample",
							    [SELFTEST_SOFT] = "ptrace"};
	struct check_result result;

	why[0] = '\0';
	if (check__one(needs[source], &result) && result.state == CHECK_MISSING)
		snprintf(why, SELFTEST_TEXT_SIZE, "%s: %s", needs[source], result.reason);
}

static void test_source(struct selftest *test, enum selftest_source source)
{
	char why[SELFTEST_TEXT_SIZE] = "";

	test->source = source;
	if (!test->options->replay)
		find_obstacle(source, why);
	if (why[0]) {
		tell(test, "all", SELFTEST_SKIPPED, "", "%s", why);
		return;
	}
	if (source == SELFTEST_SAMPLE) {
		test_samples(test);
	} else {
		test_branches(test);
		test_with_perf(test);
	}
	for (size_t i = 0; source == SELFTEST_PT && i < sizeof(variants) / sizeof(variants[0]); i++)
		test_variant(test, &variants[i]);
}

/* ---- the folder of the recordings */

static int make_folder(struct selftest *test)
{
	const char *tmp = getenv("TMPDIR");

	if (test->options->keep) {
		snprintf(test->dir, sizeof(test->dir), "%s", test->options->keep);
		if (!mkdir(test->dir, 0700) || errno == EEXIST)
			return 0;
	} else {
		snprintf(test->dir, sizeof(test->dir), "%s/mtbpf-selftest-XXXXXX", tmp ?: "/tmp");
		if (mkdtemp(test->dir))
			return 0;
	}
	log__error("cannot make the folder %s: %s", test->dir, strerror(errno));
	log__hint(test->options->keep ? "choose another place with -keep" : "set TMPDIR");
	return -EINVAL;
}

static int test_sources(struct selftest *test)
{
	test->log = mmap(NULL, sizeof(*test->log), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (test->log == MAP_FAILED) {
		log__error("out of memory");
		return -ENOMEM;
	}
	for (int source = 0; source < SELFTEST_SOURCES; source++)
		if (test->options->sources[source])
			test_source(test, (enum selftest_source)source);
	munmap(test->log, sizeof(*test->log));
	return 0;
}

/* results.txt: a line for each result, its parts separated by tabs. */
static int begin_results(struct selftest *test)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.*s/results.txt", PATH_MAX - 20, test->dir);
	test->results = fopen(path, "we");
	if (test->results)
		return 0;
	log__error("cannot write %s: %s", path, strerror(errno));
	log__hint("choose another place with -keep");
	return -EIO;
}

static int write_bundle(struct selftest *test)
{
	int err = fclose(test->results) ? -errno : bundle__write_facts(test->dir);

	if (err) {
		log__error("cannot write into %s: %s", test->dir, strerror(-err));
		log__hint("choose another place with -keep");
		return err;
	}
	return bundle__pack(test->dir, test->options->bundle);
}

int selftest__run(const struct selftest_options *options,
		  void (*on_result)(void *ctx, const struct selftest_result *result), void *ctx)
{
	struct selftest test = {.options = options, .on_result = on_result, .ctx = ctx};
	int err = make_folder(&test);

	if (err)
		return err;
	/* Ctrl-C removes the folder, too. */
	if (!options->keep) {
		stop__begin("");
		stop__set_partial(test.dir);
	}
	if (options->replay)
		err = bundle__unpack(options->replay, test.dir);
	else if (options->bundle)
		err = begin_results(&test);
	if (!err)
		err = test_sources(&test);
	if (!err && options->bundle)
		err = write_bundle(&test);
	if (!options->keep) {
		fs__remove_dir(test.dir);
		stop__set_partial(NULL);
		stop__end();
	}
	return err;
}
