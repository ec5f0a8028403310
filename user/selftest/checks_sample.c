// SPDX-License-Identifier: MIT
/* Samples: the times of functions and of a sleep. */
#include "selftest/checks_common.h"

#include "util/units.h"

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
	checks__tell(test, name, verdict_of(is_right && judged.has_caller), &loss,
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
	checks__tell(test, name,
		     verdict_of(judged.blocked_ns >= SLEEP_NS && off_cpu_ns <= judged.true_ns &&
				judged.true_ns - off_cpu_ns <= MOST_OFF_EXACT_NS),
		     &loss, "blocked for %s, by its own clock %s",
		     units__format_duration(is, judged.blocked_ns),
		     units__format_duration(was, judged.true_ns));
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

void checks__run_sample(struct checks *test)
{
	for (size_t i = 0; i < sizeof(unwindings) / sizeof(unwindings[0]); i++) {
		const struct unwinding *how = &unwindings[i];
		const char *const names[] = {how->recording, how->long_name, how->short_name,
					     how->sleep_name, how->target_name};
		struct trial trial = {.options = how->options, .programs = 1u << PROGRAM_TIME};

		test->recording = how->recording;
		if (!checks__wants_any(test, names, sizeof(names) / sizeof(names[0])) ||
		    !checks__has(test, how->recording))
			continue;
		if (checks__record(test, &trial, how->long_name)) {
			judge_function_time(test, &trial, how->long_name,
					    "mtbpf_selftest_time_long");
			judge_function_time(test, &trial, how->short_name,
					    "mtbpf_selftest_time_short");
			judge_sleep(test, &trial, how->sleep_name);
			checks__judge_target(test, &trial, how->target_name);
		}
		checks__end(test, &trial);
	}
}
