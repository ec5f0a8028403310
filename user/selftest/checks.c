// SPDX-License-Identifier: MIT
#include "selftest/checks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check/check.h"
#include "decode/branch.h"
#include "selftest/bundle.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/units.h"

const char *const selftest_source_names[] = {
	[SELFTEST_PT] = "pt", [SELFTEST_SAMPLE] = "sample", [SELFTEST_SOFT] = "soft", NULL};

const struct loss checks_no_loss = {"", ""};

bool checks__wants(const struct checks *test, const char *name)
{
	const struct selftest_options *options = test->options;

	return !options->n_only ||
	       FIND_IN(options->only, options->n_only, only, !strcmp(*only, name));
}

static bool wants_any(const struct checks *test, const char *const *names, size_t n)
{
	return FIND_IN(names, n, name, checks__wants(test, *name));
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

/* Reports a result regardless of -only. */
static __attribute__((format(printf, 5, 6))) void
tell_always(const struct checks *test, const char *name, enum selftest_verdict verdict,
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
	static const struct loss cannot_record = {
		"nothing can be recorded this way here",
		"'mtbpf check' says what is missing; try another -source"};
	static const struct loss cannot_read = {"this recording cannot be checked",
						"make the bundle again"};
	const struct loss *loss = test->options->replay ? &cannot_read : &cannot_record;
	char why[TRIAL_TEXT_SIZE];

	trial->dir = test->dir;
	trial->name = test->recording;
	trial->source = selftest_source_names[test->source];
	trial->log = test->log;
	trial->is_portable = test->options->bundle;
	if (test->options->replay ? trial__load(trial, why) : trial__make(trial, why))
		return true;
	tell_always(test, check, SELFTEST_FAILED, loss, "%s: %s", test->recording, why);
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
	/* After a failed trial, the recording may be missing. */
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

/*
 * The single-stepper's limit is larger: it reads the clock at each branch, after it has stopped the
 * thread.
 */
uint64_t checks__most_error(const struct checks *test)
{
	return test->source == SELFTEST_PT ? 5 * 1000 : 5 * 1000 * 1000;
}

/* Reports as this check whether the target is as it was before. */
static void judge_target(const struct checks *test, const struct trial *trial, const char *name)
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
		     harm ?: "the target runs on, and no probe is left in it");
}

bool checks__judge_perf_trace(const struct trial *trial, char text[static 100])
{
	const struct perf_syscalls *seen = &trial->perf_syscalls;

	snprintf(text, 100, "perf trace counts %u in %u iterations%s", seen->calls,
		 seen->iterations, seen->lost ? ", and has lost some" : "");
	return seen->calls == N_SYSCALLS * seen->iterations && !seen->lost;
}

/* ---- the checks of each source */

/* Samples: the times of functions and of a sleep. */

/* The largest error that is accepted for a function's time: samples are a millisecond apart. */
#define MOST_OFF_SAMPLED_NS (4 * 1000 * 1000)
/* The largest error that is accepted for a sleep: switches are recorded exactly. */
#define MOST_OFF_EXACT_NS (1000 * 1000)

static void judge_function_time(const struct checks *test, const struct trial *trial,
				const char *name, const char *function)
{
	static const struct loss loss = {"how long functions took is wrong in traces by samples",
					 "try the other -unwind, or perf record"};
	struct judged_time judged;
	bool is_right;

	judge__time(&trial->decoded, trial->iteration, function, &judged);
	is_right = llabs((long long)(judged.true_ns - judged.slices_ns)) <= MOST_OFF_SAMPLED_NS;
	checks__tell(test, name, verdict_of(is_right && judged.has_caller), &loss,
		     "%s in the trace, %s by the program's own clock%s", DURATION(judged.slices_ns),
		     DURATION(judged.true_ns), judged.has_caller ? "" : "; its caller is missing");
}

static void judge_sleep(const struct checks *test, const struct trial *trial, const char *name)
{
	static const struct loss loss = {
		"how long a thread was blocked is wrong in traces by samples",
		"compare with 'perf sched timehist'"};
	char is[UNITS_TEXT_SIZE];
	struct judged_time judged;
	uint64_t off_cpu_ns;

	judge__time(&trial->decoded, trial->iteration, "mtbpf_selftest_time_sleep", &judged);
	off_cpu_ns = judged.blocked_ns + judged.waited_ns;
	/*
	 * The thread runs on the way to sleep and back, so the call takes longer than the time off
	 * the CPU.
	 */
	checks__tell(test, name,
		     verdict_of(judged.blocked_ns >= SLEEP_NS && off_cpu_ns <= judged.true_ns &&
				judged.true_ns - off_cpu_ns <= MOST_OFF_EXACT_NS),
		     &loss,
		     "blocked for %s in the trace; the call took %s by the program's own clock",
		     units__format_duration(is, judged.blocked_ns), DURATION(judged.true_ns));
}

/* Callers are found in two ways, and both are tested. */
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

/* The checks of samples. */
static void run_sample(struct checks *test)
{
	for (size_t i = 0; i < sizeof(unwindings) / sizeof(unwindings[0]); i++) {
		const struct unwinding *how = &unwindings[i];
		const char *const names[] = {how->recording, how->long_name, how->short_name,
					     how->sleep_name, how->target_name};
		struct trial trial = {.options = how->options, .programs = 1u << PROGRAM_TIME};

		test->recording = how->recording;
		if (!wants_any(test, names, sizeof(names) / sizeof(names[0])) ||
		    !checks__has(test, how->recording))
			continue;
		if (checks__record(test, &trial, how->long_name)) {
			judge_function_time(test, &trial, how->long_name,
					    "mtbpf_selftest_time_long");
			judge_function_time(test, &trial, how->short_name,
					    "mtbpf_selftest_time_short");
			judge_sleep(test, &trial, how->sleep_name);
			judge_target(test, &trial, how->target_name);
		}
		checks__end(test, &trial);
	}
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
	{PROGRAM_TRAPS,
	 "traps",
	 {"stacks are wrong after an int3, an invalid opcode, a division by zero or a bad address",
	  REST_IS_RIGHT}},
	{PROGRAM_STACKS,
	 "second stack",
	 {"stacks are wrong in programs with coroutines", "use -source sample for them"}},
};

#define N_PROGRAM_CHECKS (sizeof(program_checks) / sizeof(program_checks[0]))
#define ALL_PROGRAMS	 ((1u << PROGRAMS) - 1)
/* The programs that are traced branch by branch. */
#define TRACED_PROGRAMS                                                                            \
	(ALL_PROGRAMS & ~(1u << PROGRAM_TIME | 1u << PROGRAM_ANY_THREAD | 1u << PROGRAM_BUSY |     \
			  1u << PROGRAM_PTWRITE))

/* Judges the system calls or page faults of a program that makes them. */
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
						 : " (the kernel counts another number)");
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
		checks__tell(test, check->name, SELFTEST_FAILED, &check->loss, "out of memory");
		return;
	}
	/* A bundle of an older version may lack this program. */
	if (test->options->replay && !judged.noted)
		return;
	is_right = is_right_beside(test, check, trial, &judged, beside) && judged.noted &&
		   judged.right == judged.noted && !judged.unnoted;
	if (judged.unnoted)
		snprintf(unnoted, sizeof(unnoted), ", and %u calls that the program did not make",
			 judged.unnoted);
	judged_calls__add(sum, &judged);
	checks__tell(test, check->name, is_right ? SELFTEST_PASSED : SELFTEST_FAILED, &check->loss,
		     "%u of %u calls at the right depth%s%s", judged.right, judged.noted, unnoted,
		     beside);
}

static void judge_times(const struct checks *test, const struct judged_calls *sum)
{
	static const struct loss loss = {
		"times in the trace are wrong; the order of calls is right",
		"trust durations only roughly, or use -source sample"};
	uint64_t error_ns = checks__time_error(test, sum);

	checks__tell(
		test, "times", verdict_of(error_ns <= checks__most_error(test)), &loss,
		"the times that functions noted are at most %s outside of their calls; limit %s",
		DURATION(error_ns), DURATION(checks__most_error(test)));
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
	checks__tell(test, "gaps", n ? SELFTEST_FAILED : SELFTEST_PASSED, &loss,
		     "%" PRIu64 " in %" PRIu64 " branches%s", n, totals->branches, reasons);
}

static void judge_freeze(const struct checks *test, const struct trial *trial)
{
	static const struct loss loss = {"the trace is frozen late, and looks back less far",
					 "try another -freeze, and a larger -snapshot-size"};
	int64_t n = trial->decoded.behind_hit;

	if (n < 0) {
		checks__tell(test, "freeze", SELFTEST_FAILED, &loss,
			     "the hit is not found in the trace");
		return;
	}
	checks__tell(test, "freeze", verdict_of(trial->decoded.behind_hit_ns <= MOST_AFTER_HIT_NS),
		     &loss, "%" PRId64 " branches after the hit, in %s", n,
		     DURATION(trial->decoded.behind_hit_ns));
}

/* Checks of the same recording that need all programs. */
static const char *const common_checks[] = {"times", "gaps", "freeze", "target afterwards"};
#define N_COMMON_CHECKS (sizeof(common_checks) / sizeof(common_checks[0]))

/* Returns the programs that the checks named by -only need. */
static unsigned int choose_programs(const struct checks *test)
{
	unsigned int programs = 0;

	if (checks__wants(test, test->recording) || wants_any(test, common_checks, N_COMMON_CHECKS))
		return TRACED_PROGRAMS;
	for (size_t i = 0; i < N_PROGRAM_CHECKS; i++)
		if (checks__wants(test, program_checks[i].name))
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
	if (!trial.programs || !checks__has(test, test->recording))
		return;
	if (checks__record(test, &trial, "recording")) {
		for (size_t i = 0; i < N_PROGRAM_CHECKS; i++)
			if (trial.programs & 1u << program_checks[i].program)
				judge_program(test, &trial, &program_checks[i], &sum);
		judge_times(test, &sum);
		judge_gaps(test, &trial);
		if (is_pt)
			judge_freeze(test, &trial);
		judge_target(test, &trial, "target afterwards");
	}
	checks__end(test, &trial);
}

/* Programs whose functions are all entered by calls, in code that is in files: perf needs that. */
#define PERFS_PROGRAMS                                                                             \
	(1u << PROGRAM_CALLS | 1u << PROGRAM_RECURSION | 1u << PROGRAM_LONGJMP |                   \
	 1u << PROGRAM_LIBRARY | 1u << PROGRAM_SYSCALLS)

/* Calls of the programs' functions in one recording. */
struct perf_calls {
	unsigned int perfs;  /* calls that `perf script` finds */
	unsigned int ours;   /* calls in the trace */
	unsigned int errors; /* errors that perf reports */
};

static bool is_programs(const char *function)
{
	return FIND_IN(program_functions, n_program_functions, f, !strcmp(f->name, function));
}

/*
 * Starts `perf script`, with the program files in the recording's folder, which has them if it
 * comes from another machine. Returns its pid; -1: no process.
 */
static pid_t start_perf_script(const char *recording, int out)
{
	char images[PATH_MAX + 8];
	const char *const words[] = {
		"perf", "--buildid-dir",	 images, "script", "-i", recording, "--itrace=be",
		"-F",	"tid,flags,ip,sym,addr", NULL};
	pid_t pid = fork();

	if (pid)
		return pid;
	snprintf(images, sizeof(images), "%s/images", recording);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execvp("perf", (char *const *)words);
	_exit(127);
}

/* 0; -ENOENT: perf is not installed; -EIO: it has failed and found no calls; or another -errno. */
static int count_with_perf(const struct decoded *decoded, const char *recording,
			   struct perf_calls *calls)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	int ends[2], status;
	pid_t pid;
	FILE *f;

	*calls = (struct perf_calls){0};
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = start_perf_script(recording, ends[1]);
	close(ends[1]);
	f = fdopen(ends[0], "r");
	/* "1234  call  55ba45e3a990 iterate =>  55ba45e3aa50 mtbpf_selftest_calls_main" */
	while (f && getline(&line, &size, f) > 0) {
		char *name;

		line[strcspn(line, "\n")] = '\0';
		name = strrchr(line, ' ');
		if (strstr(line, "instruction trace error"))
			calls->errors++;
		else if (name && strstr(line, " call ") && is_programs(name + 1))
			calls->perfs++;
	}
	/* Closes the pipe before the wait: perf must not block on a pipe that nobody reads. */
	if (f)
		fclose(f);
	else
		close(ends[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		status = -1;
	else if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return -ENOENT;
	/* perf may end with an error, or crash, after it has printed all branches. */
	if (status && !calls->perfs)
		return -EIO;
	VEC_EACH(&decoded->trees, tree) {
		VEC_EACH(&tree->calls, call)
			calls->ours += call->kind == CALL_FUNCTION && call->function &&
				       !(call->flags & CALL_INFERRED_START) &&
				       is_programs(call->function->name);
	}
	return 0;
}

/* Compares the calls with those that `perf script` finds in the same recording. */
static void judge_with_perf(const struct checks *test, const struct trial *trial)
{
	static const struct loss loss = {"perf decodes recordings otherwise than mtbpf does",
					 "compare with 'perf script --itrace=be' if it matters"};
	char recording[PATH_MAX];
	struct perf_calls calls;
	struct utsname name;
	int err;

	if (test->options->replay && trial->rec.os_release && !uname(&name) &&
	    strcmp(trial->rec.os_release, name.release)) {
		checks__tell(test, "perf's judgement", SELFTEST_SKIPPED, &checks_no_loss,
			     "perf would use the vDSO of this kernel, but the recording is from %s",
			     trial->rec.os_release);
		return;
	}
	snprintf(recording, sizeof(recording), "%.*s/%s.mtbpf", PATH_MAX - 40, test->dir,
		 test->recording);
	err = count_with_perf(&trial->decoded, recording, &calls);
	if (err == -ENOENT)
		checks__tell(test, "perf's judgement", SELFTEST_SKIPPED, &checks_no_loss,
			     "perf is not installed");
	else if (err)
		checks__tell(test, "perf's judgement", SELFTEST_FAILED, &loss,
			     "perf script failed: %s", strerror(-err));
	else
		checks__tell(test, "perf's judgement",
			     verdict_of(calls.ours && calls.perfs == calls.ours && !calls.errors),
			     &loss, "perf script finds %u of %u calls, and %u errors", calls.perfs,
			     calls.ours, calls.errors);
}

/* Compares the system calls with those that `perf trace` counted during the recording. */
static void judge_perf_trace(const struct checks *test, const struct trial *trial)
{
	static const struct loss loss = {"system calls are missing or too many",
					 "count them with 'perf trace -s'"};
	struct judged_calls judged;
	char counted[100];
	bool is_right;

	/* `perf trace` needs a running target. */
	if (test->options->replay)
		return;
	if (!trial->perf_syscalls.iterations) {
		checks__tell(test, "perf trace", SELFTEST_SKIPPED, &checks_no_loss, "%s",
			     trial->perf_error == -ENOENT ? "perf is not installed"
							  : "perf trace sees nothing here");
		return;
	}
	if (judge__calls(&trial->decoded, trial->iteration, PROGRAM_SYSCALLS, trial->hit->time_ns,
			 &judged))
		judged.syscalls = 0;
	is_right = checks__judge_perf_trace(trial, counted);
	checks__tell(test, "perf trace", verdict_of(is_right && judged.syscalls == N_SYSCALLS),
		     &loss, "%u system calls in the trace; %s", judged.syscalls, counted);
}

static void test_with_perf(struct checks *test)
{
	static const char *const none[] = {NULL};
	struct trial trial = {.options = none, .programs = PERFS_PROGRAMS, .has_perf_trace = true};

	test->recording = test->source == SELFTEST_PT ? "pt-perf" : "soft-perf";
	if ((!checks__wants(test, test->recording) && !checks__wants(test, "perf's judgement") &&
	     !checks__wants(test, "perf trace")) ||
	    !checks__has(test, test->recording))
		return;
	if (checks__record(test, &trial, "perf's judgement")) {
		judge_with_perf(test, &trial);
		judge_perf_trace(test, &trial);
	}
	checks__end(test, &trial);
}

/* ---- all sources */

void checks__run(struct checks *test, enum selftest_source source)
{
	static const char *const needs[SELFTEST_SOURCES] = {[SELFTEST_PT] = "intel_pt",
							    [SELFTEST_SAMPLE] = "sample",
							    [SELFTEST_SOFT] = "ptrace"};
	struct check_result result;

	test->source = source;
	test->recording = selftest_source_names[source];
	if (!test->options->replay && check__one(needs[source], &result) &&
	    result.state == CHECK_MISSING) {
		tell_always(test, "all", SELFTEST_SKIPPED, &checks_no_loss, "%s: %s", needs[source],
			    result.reason);
		return;
	}
	if (source == SELFTEST_SAMPLE) {
		run_sample(test);
		return;
	}
	test_branches(test);
	test_with_perf(test);
	if (source == SELFTEST_PT)
		checks__run_pt(test);
}
