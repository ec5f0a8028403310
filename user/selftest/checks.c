// SPDX-License-Identifier: MIT
#include "selftest/checks.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check/check.h"
#include "decode/branch.h"
#include "selftest/judge.h"
#include "selftest/trial.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/units.h"

const char *const selftest_source_names[] = {
	[SELFTEST_PT] = "pt", [SELFTEST_SAMPLE] = "sample", [SELFTEST_SOFT] = "soft", NULL};

/* What a user loses if a check fails, and what to do until it is mended. */
struct loss {
	const char *what, *meanwhile;
};

static const struct loss no_loss = {"", ""};

/* Without names the user wants everything. */
static bool is_named(const struct checks *test, const char *name)
{
	const struct selftest_options *options = test->options;

	for (size_t i = 0; i < options->n_only; i++)
		if (!strcmp(options->only[i], name))
			return true;
	return !options->n_only;
}

static void tell(const struct checks *test, const char *name, enum selftest_verdict verdict,
		 const struct loss *loss, const char *found, ...)
	__attribute__((format(printf, 5, 6)));

static void tell(const struct checks *test, const char *name, enum selftest_verdict verdict,
		 const struct loss *loss, const char *found, ...)
{
	struct selftest_result result = {.source = test->source,
					 .name = name,
					 .verdict = verdict,
					 .loss = loss->what,
					 .meanwhile = loss->meanwhile};
	va_list ap;

	if (!is_named(test, name) && !is_named(test, test->recording))
		return;
	va_start(ap, found);
	vsnprintf(result.found, sizeof(result.found), found, ap);
	va_end(ap);
	test->on_result(test->ctx, &result);
}

static enum selftest_verdict verdict_of(bool is_right)
{
	return is_right ? SELFTEST_PASSED : SELFTEST_FAILED;
}

/* A bundle need not have all recordings. */
static bool is_there(const struct checks *test, const char *recording)
{
	return !test->options->replay || trial__is_there(test->dir, recording);
}

/*
 * Records the programs, or reads what was recorded. True: the trial can be judged. Otherwise the
 * result has been told, as that of this check.
 */
static bool record(const struct checks *test, struct trial *trial, const char *check)
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
	tell(test, check, SELFTEST_FAILED, &loss, "%s: %s", test->recording, why);
	return false;
}

/* ---- what the programs called */

struct program_check {
	enum program program;
	const char *name;
	struct loss loss;
};

#define REST_IS_RIGHT "trust what comes before it in the trace, and other threads"

static const struct program_check program_checks[] = {
	{PROGRAM_CALLS, "calls", {"stacks are wrong everywhere", "use -source sample"}},
	{PROGRAM_TAIL_CALLS,
	 "tail calls",
	 {"stacks of optimised code may be too deep, or lack functions",
	  "build the target with -fno-optimize-sibling-calls, or use -source sample"}},
	{PROGRAM_RECURSION, "recursion", {"deep stacks may be wrong", "use -source sample"}},
	{PROGRAM_EXCEPTIONS,
	 "exceptions",
	 {"stacks are wrong after an exception, until the function that caught it returns",
	  REST_IS_RIGHT}},
	{PROGRAM_UNWINDING,
	 "forced unwinding",
	 {"stacks are wrong after pthread_cancel() and pthread_exit()", REST_IS_RIGHT}},
	{PROGRAM_LONGJMP,
	 "longjmp",
	 {"stacks are wrong after a longjmp(), until its function returns", REST_IS_RIGHT}},
	{PROGRAM_SIGNALS,
	 "signals",
	 {"stacks are wrong in signal handlers and after them", REST_IS_RIGHT}},
	{PROGRAM_THREADS,
	 "threads",
	 {"other threads than the one that triggers are wrong or missing",
	  "trust the thread that triggers only"}},
	{PROGRAM_FORK, "fork", {"stacks are wrong after a fork()", REST_IS_RIGHT}},
	{PROGRAM_LIBRARY,
	 "libraries",
	 {"stacks are wrong in functions that libraries call", "trust the program's own calls"}},
	{PROGRAM_JIT,
	 "code without file",
	 {"there are gaps where JIT-compiled code runs", "use -source sample for such programs"}},
	{PROGRAM_SYSCALLS,
	 "system calls",
	 {"system calls are missing or too many", "count them with 'perf trace -s'"}},
	{PROGRAM_FAULTS,
	 "page faults",
	 {"page faults are missing", "count them with 'perf stat -e page-faults'"}},
	{PROGRAM_STACKS,
	 "second stack",
	 {"stacks are wrong in programs with coroutines", "use -source sample for them"}},
};

#define N_PROGRAM_CHECKS (sizeof(program_checks) / sizeof(program_checks[0]))
#define ALL_PROGRAMS	 ((1u << PROGRAMS) - 1)
/* What is traced branch by branch. */
#define TRACED_PROGRAMS                                                                            \
	(ALL_PROGRAMS & ~(1u << PROGRAM_TIME | 1u << PROGRAM_ANY_THREAD | 1u << PROGRAM_BUSY))

/* What a program does beside its calls. */
static bool is_right_beside(const struct checks *test, const struct program_check *check,
			    const struct trial *trial, const struct judged_calls *judged,
			    char text[static 80])
{
	unsigned int counted = trial->iteration->kernels_syscalls;

	text[0] = '\0';
	if (check->program == PROGRAM_SYSCALLS) {
		snprintf(text, 80, ", %u of %u system calls%s", judged->syscalls, N_SYSCALLS,
			 !counted		 ? ""
			 : counted == N_SYSCALLS ? " (the kernel counts as many)"
						 : " (the kernel counts others)");
		return judged->syscalls == N_SYSCALLS && (!counted || counted == N_SYSCALLS);
	}
	if (check->program == PROGRAM_FAULTS && test->source == SELFTEST_PT) {
		snprintf(text, 80, ", %u of %u page faults or more", judged->untraced, N_FAULTS);
		return judged->untraced >= N_FAULTS;
	}
	return true;
}

static void judge_program(const struct checks *test, const struct trial *trial,
			  const struct program_check *check, struct judged_calls *sum)
{
	struct judged_calls judged;
	char beside[80], unnoted[64] = "";
	bool is_right;

	if (judge__calls(&trial->decoded, trial->iteration, check->program, trial->hit->time_ns,
			 &judged)) {
		tell(test, check->name, SELFTEST_FAILED, &check->loss, "out of memory");
		return;
	}
	is_right = is_right_beside(test, check, trial, &judged, beside) && judged.noted &&
		   judged.right == judged.noted && !judged.unnoted;
	if (judged.unnoted)
		snprintf(unnoted, sizeof(unnoted), ", and %u that it did not make", judged.unnoted);
	judged_calls__add(sum, &judged);
	tell(test, check->name, is_right ? SELFTEST_PASSED : SELFTEST_FAILED, &check->loss,
	     "%u of %u calls at their depth%s%s", judged.right, judged.noted, unnoted, beside);
}

/*
 * How far the times of notes are outside of their calls. The trace's clock is the notes', except
 * for Intel PT: there one shift must be right for all notes.
 */
static uint64_t find_error(const struct checks *test, const struct judged_calls *judged)
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
static uint64_t most_error(const struct checks *test)
{
	return test->source == SELFTEST_PT ? 5 * 1000 : 5 * 1000 * 1000;
}

static void judge_times(const struct checks *test, const struct judged_calls *sum)
{
	static const struct loss loss = {
		"times in the trace are wrong; the order of calls is right",
		"trust durations only roughly, or use -source sample"};
	uint64_t error_ns = find_error(test, sum);
	char error[UNITS_TEXT_SIZE], most[UNITS_TEXT_SIZE];

	tell(test, "times", verdict_of(error_ns <= most_error(test)), &loss,
	     "clock readings are at most %s outside of their calls; limit %s",
	     units__format_duration(error, error_ns),
	     units__format_duration(most, most_error(test)));
}

static void judge_gaps(const struct checks *test, const struct trial *trial)
{
	static const struct loss loss = {"parts of traces are missing",
					 "try -timer-resolution low and a larger -snapshot-size"};
	const struct decode_totals *totals = &trial->decoded.totals;
	char reasons[120] = "";
	uint64_t n = 0;
	size_t len = 0;

	for (int reason = 0; reason < GAP_REASONS; reason++) {
		if (!totals->gaps[reason])
			continue;
		n += totals->gaps[reason];
		if (len < sizeof(reasons))
			len += (size_t)snprintf(reasons + len, sizeof(reasons) - len,
						"%s%s %" PRIu64, len ? ", " : ": ",
						gap_reason__name((enum gap_reason)reason),
						totals->gaps[reason]);
	}
	tell(test, "gaps", n ? SELFTEST_FAILED : SELFTEST_PASSED, &loss,
	     "%" PRIu64 " in %" PRIu64 " branches%s", n, totals->branches, reasons);
}

/* At most so long may branches be recorded after the hit. */
#define MOST_AFTER_HIT_NS 20000

static void judge_freeze(const struct checks *test, const struct trial *trial)
{
	static const struct loss loss = {"the trace is frozen late, and looks back less far",
					 "try another -freeze, and a larger -snapshot-size"};
	char after[UNITS_TEXT_SIZE];
	int64_t n = trial->decoded.behind_hit;

	if (n < 0) {
		tell(test, "freeze", SELFTEST_FAILED, &loss, "the hit is not found in the trace");
		return;
	}
	tell(test, "freeze", verdict_of(trial->decoded.behind_hit_ns <= MOST_AFTER_HIT_NS), &loss,
	     "%" PRId64 " branches after the hit, in %s", n,
	     units__format_duration(after, trial->decoded.behind_hit_ns));
}

static void judge_target(const struct checks *test, const struct trial *trial, const char *name)
{
	static const struct loss loss = {"programs that were recorded may be disturbed",
					 "do not use this source here"};
	const char *harm;

	/* trial__find_harm() takes a while. */
	if (test->options->replay || (!is_named(test, name) && !is_named(test, test->recording)))
		return;
	harm = trial__find_harm(trial);
	tell(test, name, verdict_of(!harm), &loss, "%s",
	     harm ?: "it runs on, and nothing is left in it");
}

static bool is_any_named(const struct checks *test, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_named(test, names[i]))
			return true;
	return false;
}

/* Checks of the same recording that need all programs. */
static const char *const common_checks[] = {"times", "gaps", "freeze", "target afterwards"};
#define N_COMMON_CHECKS (sizeof(common_checks) / sizeof(common_checks[0]))

/* Only those that the named checks need. */
static unsigned int choose_programs(const struct checks *test)
{
	unsigned int programs = 0;

	if (is_named(test, test->recording) || is_any_named(test, common_checks, N_COMMON_CHECKS))
		return TRACED_PROGRAMS;
	for (size_t i = 0; i < N_PROGRAM_CHECKS; i++)
		if (is_named(test, program_checks[i].name))
			programs |= 1u << program_checks[i].program;
	return programs;
}

static void test_branches(struct checks *test)
{
	static const char *const none[] = {NULL};
	static const char *const threads[] = {"-multi-thread", NULL};
	bool is_pt = test->source == SELFTEST_PT;
	struct trial trial = {.options = is_pt ? threads : none};
	struct judged_calls sum = JUDGED_NONE;

	test->recording = selftest_source_names[test->source];
	trial.programs = choose_programs(test);
	if (!trial.programs || !is_there(test, test->recording))
		return;
	if (record(test, &trial, "recording")) {
		for (size_t i = 0; i < N_PROGRAM_CHECKS; i++)
			if (trial.programs & 1u << program_checks[i].program)
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

static void test_with_perf(struct checks *test)
{
	static const struct loss loss = {"perf decodes recordings otherwise than mtbpf does",
					 "compare with 'perf script --itrace=be' where it matters"};
	static const char *const none[] = {NULL};
	struct trial trial = {.options = none, .programs = PERFS_PROGRAMS};
	char recording[PATH_MAX];
	struct perf_calls calls;
	int err;

	test->recording = test->source == SELFTEST_PT ? "pt-perf" : "soft-perf";
	if ((!is_named(test, test->recording) && !is_named(test, "perf's judgement")) ||
	    !is_there(test, test->recording))
		return;
	if (record(test, &trial, "perf's judgement")) {
		snprintf(recording, sizeof(recording), "%.*s/%s.mtbpf", PATH_MAX - 40, test->dir,
			 test->recording);
		err = judge__with_perf(&trial.decoded, recording, &calls);
		if (err == -ENOENT)
			tell(test, "perf's judgement", SELFTEST_SKIPPED, &no_loss,
			     "perf is not installed");
		else
			tell(test, "perf's judgement",
			     verdict_of(!err && calls.ours && calls.perfs == calls.ours &&
					!calls.errors),
			     &loss, "perf script finds %u of %u calls, and %u errors", calls.perfs,
			     calls.ours, calls.errors);
	}
	trial__end(&trial);
}

/* ---- Intel PT: options that change what the CPU or the kernel does */

struct variant {
	const char *name, *recording;
	const char *const options[6];
	unsigned int programs;
	const char *needs;    /* a check of `mtbpf check`, or NULL */
	const char *overhead; /* the name of a second check: of PROGRAM_BUSY; or NULL */
	const char *cores;    /* runs on a CPU of this type, and only where there is one */
	bool is_of_cgroup;
	bool is_untimed;     /* no packets tell the time between two system calls */
	bool is_frozen_late; /* from user space: any number of branches may follow the hit */
	bool is_of_plain;    /* runs where all CPUs are of one type, on the last of them */
	void (*judge)(const struct checks *test, const struct variant *variant,
		      const struct trial *trial);
	struct loss loss;
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

/*
 * What every variant must have: the calls, their times, and an end near the hit. `also` and
 * `is_also` are what this one must have beside them.
 */
static void judge_with(const struct checks *test, const struct variant *variant,
		       const struct trial *trial, const char *also, bool is_also)
{
	const struct decoded *decoded = &trial->decoded;
	char after[UNITS_TEXT_SIZE], error[UNITS_TEXT_SIZE], times[64] = "";
	struct judged_calls sum;
	uint64_t error_ns;
	bool is_right;

	is_right = !judge_all(trial, &sum) && sum.noted && sum.right == sum.noted && !sum.unnoted;
	error_ns = find_error(test, &sum);
	if (!variant->is_untimed) {
		is_right = is_right && error_ns <= most_error(test);
		snprintf(times, sizeof(times), ", times at most %s off",
			 units__format_duration(error, error_ns));
	}
	if (decoded->behind_hit < 0 ||
	    (!variant->is_frozen_late && decoded->behind_hit_ns > MOST_AFTER_HIT_NS))
		is_right = false;
	tell(test, variant->name, verdict_of(is_right && is_also), &variant->loss,
	     "%u of %u calls at their depth%s, %" PRId64 " branches in %s after the hit%s",
	     sum.right, sum.noted, times, decoded->behind_hit,
	     units__format_duration(after, decoded->behind_hit_ns), also);
}

static void judge_variant(const struct checks *test, const struct variant *variant,
			  const struct trial *trial)
{
	judge_with(test, variant, trial, "", true);
}

#define SMALL_RING (32 * 1024)

static void judge_small_ring(const struct checks *test, const struct variant *variant,
			     const struct trial *trial)
{
	size_t most = 0;
	bool is_full;

	for (size_t i = 0; i < trial->rec.aux.n; i++)
		if (trial->rec.aux.v[i].size > most)
			most = trial->rec.aux.v[i].size;
	is_full = most >= SMALL_RING;
	judge_with(test, variant, trial,
		   is_full ? "; the ring has wrapped" : "; the ring has not wrapped", is_full);
}

static void judge_any_thread(const struct checks *test, const struct variant *variant,
			     const struct trial *trial)
{
	bool is_other = trial->hit->tid != trial->first;

	judge_with(test, variant, trial,
		   is_other ? "; another thread hit" : "; the hit is of the wrong thread",
		   is_other);
}

static void judge_kernel(const struct checks *test, const struct variant *variant,
			 const struct trial *trial)
{
	unsigned int counted = trial->iteration->kernels_syscalls;
	struct judged_calls judged;
	char also[80];

	if (judge__calls(&trial->decoded, trial->iteration, PROGRAM_SYSCALLS, trial->hit->time_ns,
			 &judged))
		judged.in_kernel = 0;
	snprintf(also, sizeof(also), "; the kernel's getppid() %u times, its tracepoint counts %u",
		 judged.in_kernel, counted);
	judge_with(test, variant, trial, also,
		   judged.in_kernel == N_SYSCALLS && (!counted || counted == N_SYSCALLS));
}

/* What recording costs is shown; how much is too much depends on the target. */
static void judge_overhead(const struct checks *test, const struct variant *variant,
			   const struct trial *trial)
{
	static const struct loss loss = {"what recording costs is not known here",
					 "watch the target's latency while you record"};
	uint64_t recorded_ns = trial->iteration->busy_ns, plain_ns = trial->log->plain_busy_ns;
	uint64_t traced_ns = judge__busy_ns(&trial->decoded);
	size_t bytes = recording__traced_bytes(&trial->rec);
	bool is_known = recorded_ns && plain_ns && traced_ns && bytes;

	tell(test, variant->overhead, verdict_of(is_known), &loss,
	     "a loop of calls takes %.2f times as long; %.1f MB of trace per second of it",
	     plain_ns ? (double)recorded_ns / (double)plain_ns : 0,
	     traced_ns ? (double)bytes / 1e6 / ((double)traced_ns / 1e9) : 0);
}

#define SNAPSHOTS 20

static void judge_snapshots(const struct checks *test, const struct variant *variant,
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
	tell(test, variant->name, verdict_of(n == SNAPSHOTS && !has_gaps), &variant->loss,
	     "%u of %u snapshots, %s gaps in them", n, SNAPSHOTS, has_gaps ? "with" : "without");
}

#define RESOLUTION_LOSS                                                                            \
	{                                                                                          \
		"recordings with this -timer-resolution are wrong", "use another one"              \
	}
#define FREEZE_LOSS                                                                                \
	{                                                                                          \
		"recordings with this -freeze are wrong", "use another one"                        \
	}
#define CORES_LOSS                                                                                 \
	{                                                                                          \
		"recordings of what runs on these cores are wrong",                                \
			"bind the target to other cores: taskset"                                  \
	}

static const struct variant variants[] = {
	{.name = "freeze: pause",
	 .recording = "pt-pause",
	 .options = {"-freeze", "pause"},
	 .programs = 1u << PROGRAM_CALLS,
	 .needs = "freeze_pause",
	 .judge = judge_variant,
	 .loss = FREEZE_LOSS},
	{.name = "freeze: refresh",
	 .recording = "pt-refresh",
	 .options = {"-freeze", "refresh"},
	 .programs = 1u << PROGRAM_CALLS,
	 .needs = "freeze_refresh",
	 .judge = judge_variant,
	 .loss = FREEZE_LOSS},
	{.name = "freeze: disable",
	 .recording = "pt-disable",
	 .options = {"-freeze", "disable"},
	 .programs = 1u << PROGRAM_CALLS,
	 .needs = "freeze_disable",
	 .judge = judge_variant,
	 .is_frozen_late = true,
	 .loss = FREEZE_LOSS},
	{.name = "timer: low",
	 .recording = "pt-low",
	 .options = {"-timer-resolution", "low", "-skip", "3"},
	 .programs = 1u << PROGRAM_CALLS | 1u << PROGRAM_BUSY,
	 .overhead = "overhead: low",
	 .judge = judge_variant,
	 .loss = RESOLUTION_LOSS},
	{.name = "timer: normal",
	 .recording = "pt-normal",
	 .options = {"-timer-resolution", "normal", "-skip", "3"},
	 .programs = 1u << PROGRAM_CALLS | 1u << PROGRAM_BUSY,
	 .overhead = "overhead: normal",
	 .judge = judge_variant,
	 .loss = RESOLUTION_LOSS},
	{.name = "timer: high",
	 .recording = "pt-high",
	 .options = {"-timer-resolution", "high", "-skip", "3"},
	 .programs = 1u << PROGRAM_CALLS | 1u << PROGRAM_BUSY,
	 .overhead = "overhead: high",
	 .judge = judge_variant,
	 .loss = RESOLUTION_LOSS},
	{.name = "returns compressed",
	 .recording = "pt-retcomp",
	 .options = {"-timer-resolution", "custom:noretcomp=0"},
	 .programs = 1u << PROGRAM_CALLS | 1u << PROGRAM_RECURSION,
	 .is_untimed = true,
	 .judge = judge_variant,
	 .loss = {"recordings with compressed returns are wrong", "use -timer-resolution high"}},
	{.name = "returns in full",
	 .recording = "pt-noretcomp",
	 .options = {"-timer-resolution", "custom:noretcomp"},
	 .programs = 1u << PROGRAM_CALLS | 1u << PROGRAM_RECURSION,
	 .is_untimed = true,
	 .judge = judge_variant,
	 .loss = {"recordings with noretcomp are wrong, and with -timer-resolution high",
		  "use -timer-resolution normal"}},
	{.name = "small ring",
	 .recording = "pt-small",
	 .options = {"-snapshot-size", "32K", "-skip", "10"},
	 .programs = 1u << PROGRAM_CALLS | 1u << PROGRAM_BUSY,
	 .judge = judge_small_ring,
	 .loss = {"recordings whose ring has wrapped are wrong", "use a larger -snapshot-size"}},
	{.name = "20 snapshots",
	 .recording = "pt-snapshots",
	 .options = {"-multi-snapshot", "20"},
	 .programs = 1u << PROGRAM_CALLS,
	 .judge = judge_snapshots,
	 .loss = {"several captures in one trace are wrong", "do not use -multi-snapshot"}},
	{.name = "any thread",
	 .recording = "pt-any",
	 .programs = 1u << PROGRAM_CALLS | 1u << PROGRAM_ANY_THREAD,
	 .options = {"-multi-thread"},
	 .judge = judge_any_thread,
	 .loss = {"a hit by another thread than the first is lost, or its trace is",
		  "trigger in the first thread only"}},
	{.name = "cgroup",
	 .recording = "pt-cgroup",
	 .programs = 1u << PROGRAM_CALLS | 1u << PROGRAM_THREADS | 1u << PROGRAM_ANY_THREAD,
	 .is_of_cgroup = true,
	 .judge = judge_any_thread,
	 .loss = {"-cgroup does not work: its trace is by CPU", "use -pid or -name"}},
	{.name = "kernel",
	 .recording = "pt-kernel",
	 .options = {"-trace-include-kernel"},
	 .programs = 1u << PROGRAM_CALLS | 1u << PROGRAM_SYSCALLS,
	 .needs = "kernel_code",
	 .judge = judge_kernel,
	 .loss = {"-trace-include-kernel is wrong",
		  "do not use it; 'perf trace' tells system calls"}},
	{.name = "cores: all",
	 .recording = "pt-cores",
	 .programs = 1u << PROGRAM_CALLS,
	 .is_of_plain = true,
	 .judge = judge_variant,
	 .loss = CORES_LOSS},
	{.name = "cores: cpu_core",
	 .recording = "pt-cpu_core",
	 .programs = 1u << PROGRAM_CALLS,
	 .cores = "cpu_core",
	 .judge = judge_variant,
	 .loss = CORES_LOSS},
	{.name = "cores: cpu_atom",
	 .recording = "pt-cpu_atom",
	 .programs = 1u << PROGRAM_CALLS,
	 .cores = "cpu_atom",
	 .judge = judge_variant,
	 .loss = CORES_LOSS},
	{.name = "cores: cpu_lowpower",
	 .recording = "pt-cpu_lowpower",
	 .programs = 1u << PROGRAM_CALLS,
	 .cores = "cpu_lowpower",
	 .judge = judge_variant,
	 .loss = CORES_LOSS},
};

int checks__find_cpu(const char *sysfs, const char *type)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX], *end;
	size_t len;
	long cpu;

	snprintf(path, sizeof(path), "%s/devices/%s/cpus", sysfs, type);
	if (fs__read(path, &text, &len))
		return -1;
	cpu = strtol(text, &end, 10);
	return end == text || cpu < 0 || cpu > INT_MAX ? -1 : (int)cpu;
}

/* The CPU that the variant wants, from 1 on; 0: any; -1: this machine has no such CPU. */
static int choose_cpu(const struct variant *variant)
{
	int cpu;

	if (variant->cores) {
		cpu = checks__find_cpu("/sys", variant->cores);
		return cpu < 0 ? -1 : cpu + 1;
	}
	if (!variant->is_of_plain)
		return 0;
	/* Hybrid machines have a check of each type instead. */
	if (checks__find_cpu("/sys", "cpu_core") >= 0)
		return -1;
	return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static bool is_possible(const struct checks *test, const struct variant *variant)
{
	struct check_result result;

	if (variant->needs && check__one(variant->needs, &result) &&
	    result.state == CHECK_MISSING) {
		tell(test, variant->name, SELFTEST_SKIPPED, &no_loss, "%s", result.reason);
		return false;
	}
	return true;
}

static void test_variant(struct checks *test, const struct variant *variant)
{
	bool is_replayed = test->options->replay;
	int cpu = is_replayed ? 0 : choose_cpu(variant);
	struct trial trial = {.options = variant->options,
			      .programs = variant->programs,
			      .is_of_cgroup = variant->is_of_cgroup,
			      .cpu = cpu};

	test->recording = variant->recording;
	if (cpu < 0 || !is_there(test, variant->recording))
		return;
	if (!is_named(test, variant->recording) && !is_named(test, variant->name) &&
	    !(variant->overhead && is_named(test, variant->overhead)))
		return;
	if (!is_replayed && !is_possible(test, variant))
		return;
	if (record(test, &trial, variant->name)) {
		variant->judge(test, variant, &trial);
		if (variant->overhead)
			judge_overhead(test, variant, &trial);
	}
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

static void judge_function_time(const struct checks *test, const struct trial *trial,
				const char *name, const char *function)
{
	static const struct loss loss = {"how long functions took is wrong in traces by samples",
					 "try the other -unwind, or perf record"};
	char is[UNITS_TEXT_SIZE], was[UNITS_TEXT_SIZE];
	struct judged_time judged;
	bool is_right;

	judge__time(&trial->decoded, trial->iteration, function, &judged);
	is_right = difference(judged.true_ns, judged.slices_ns) <= MOST_OFF_SAMPLED_NS;
	tell(test, name, verdict_of(is_right && judged.has_caller), &loss,
	     "%s, by its own clock %s%s", units__format_duration(is, judged.slices_ns),
	     units__format_duration(was, judged.true_ns),
	     judged.has_caller ? "" : "; its caller is missing");
}

static void judge_sleep(const struct checks *test, const struct trial *trial, const char *name)
{
	static const struct loss loss = {
		"how long a thread was blocked is wrong in traces by samples",
		"compare with 'perf sched timehist'"};
	char is[UNITS_TEXT_SIZE], was[UNITS_TEXT_SIZE];
	struct judged_time judged;
	uint64_t off_cpu_ns;

	judge__time(&trial->decoded, trial->iteration, "mtbpf_selftest_time_sleep", &judged);
	off_cpu_ns = judged.blocked_ns + judged.waited_ns;
	/* The time on the way to sleep and back is not part of it. */
	tell(test, name,
	     verdict_of(judged.blocked_ns >= SLEEP_NS && off_cpu_ns <= judged.true_ns &&
			judged.true_ns - off_cpu_ns <= MOST_OFF_EXACT_NS),
	     &loss, "blocked for %s, by its own clock %s",
	     units__format_duration(is, judged.blocked_ns),
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

static void test_samples(struct checks *test)
{
	for (size_t i = 0; i < sizeof(unwindings) / sizeof(unwindings[0]); i++) {
		const struct unwinding *how = &unwindings[i];
		const char *const names[] = {how->recording, how->long_name, how->short_name,
					     how->sleep_name, how->target_name};
		struct trial trial = {.options = how->options, .programs = 1u << PROGRAM_TIME};

		test->recording = how->recording;
		if (!is_any_named(test, names, sizeof(names) / sizeof(names[0])) ||
		    !is_there(test, how->recording))
			continue;
		if (record(test, &trial, how->long_name)) {
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

void checks__run(struct checks *test, enum selftest_source source)
{
	char why[SELFTEST_TEXT_SIZE] = "";

	test->source = source;
	test->recording = selftest_source_names[source];
	if (!test->options->replay)
		find_obstacle(source, why);
	if (why[0]) {
		/* Whatever was named is skipped. */
		test->recording = test->options->n_only ? test->options->only[0] : "all";
		tell(test, "all", SELFTEST_SKIPPED, &no_loss, "%s", why);
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
