// SPDX-License-Identifier: MIT
// test_tags=slow
/*
 * Decoded stacks of coroutines against the true ones: each call and return on its own stack, as
 * deep as it was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "truth_compare.h"
#include "util/fs.h"

struct outcome {
	size_t events, wrong;
};

/* Options of ptgen, "--", the program in its folder and its arguments; before it, environment. */
static struct outcome run(const char *environment, const char *command)
{
	const char *folder = getenv("O");
	char dir[] = "/tmp/mtbpf-test-XXXXXX", recording[64], truth[64], line[512];
	struct outcome outcome = {0};

	folder = folder ? folder : "build";
	assert_non_null(mkdtemp(dir));
	snprintf(recording, sizeof(recording), "%s/r.mtbpf", dir);
	snprintf(truth, sizeof(truth), "%s/truth", dir);
	snprintf(line, sizeof(line),
		 "PATH=%s/tests/ptgen/programs:$PATH; %s %s/tests/ptgen/ptgen -o %s -truth %s %s "
		 ">%s/out 2>&1",
		 folder, environment, folder, recording, truth, command, dir);
	assert_int_equal(system(line), 0);
	outcome.events = truth_compare__count(recording, truth, &outcome.wrong);
	print_message("%s: %zu calls and returns, %zu not as deep as they were\n", command,
		      outcome.events, outcome.wrong);
	assert_int_equal(fs__remove_dir(dir), 0);
	return outcome;
}

/* Frames behind gaps, in the finished trees. */
struct behind_gaps {
	unsigned long calls, right, gaps, soon_right, soon, later_right, later;
};

static struct behind_gaps judge(const char *environment, const char *command)
{
	const char *folder = getenv("O");
	char dir[] = "/tmp/mtbpf-test-XXXXXX", line[512], end[8];
	struct behind_gaps g = {0};
	FILE *out;

	folder = folder ? folder : "build";
	assert_non_null(mkdtemp(dir));
	snprintf(line, sizeof(line),
		 "PATH=%s/tests/ptgen/programs:$PATH; %s %s/tests/ptgen/ptgen -o %s/r.mtbpf "
		 "-truth %s/truth -timing cyc -overflow 64K %s >%s/out 2>&1 && "
		 "%s/tests/stacks/judge %s/r.mtbpf %s/truth",
		 folder, environment, folder, dir, dir, command, dir, folder, dir, dir);
	out = popen(line, "r");
	assert_non_null(out);
	assert_int_equal(fscanf(out,
				" calls %lu right %lu gaps %lu soon %lu of %lu later %lu of %lu "
				"end %7s",
				&g.calls, &g.right, &g.gaps, &g.soon_right, &g.soon, &g.later_right,
				&g.later, end),
			 8);
	assert_int_equal(pclose(out), 0);
	print_message("%s: behind %lu gaps %lu of %lu frames are right, later %lu of %lu\n",
		      command, g.gaps, g.soon_right, g.soon, g.later_right, g.later);
	assert_int_equal(fs__remove_dir(dir), 0);
	return g;
}

static void skip_without_qemu(void)
{
	if (system("qemu-x86_64 -help 2>/dev/null | grep -qe -plugin")) {
		print_message("# skip: there is no qemu-x86_64 that takes plugins\n");
		skip();
	}
}

static struct outcome run_switches(const char *program, const char *how, const char *what)
{
	char command[128];

	snprintf(command, sizeof(command), "-stack-distance 256K -- %s %s %s 200", program, how,
		 what);
	return run("", command);
}

static void check(const char *what)
{
	static const char *const ways[][2] = {{"switches", "context"},
					      {"switches", "ret"},
					      {"switches", "jump"},
					      {"switches-static", "context"}};

	skip_without_qemu();
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct outcome outcome = run_switches(ways[i][0], ways[i][1], what);

		assert_in_range(outcome.events, 1000, 100000);
		assert_int_equal(outcome.wrong, 0);
	}
}

static void test_one(void **state)
{
	check("one");
}

static void test_many(void **state)
{
	check("many");
}

static void test_short(void **state)
{
	check("short");
}

static void test_signal(void **state)
{
	check("signal");
}

/*
 * All wait at one place, and are told apart by their first return that no other would make: at the
 * return to that place the wrong one may still be taken.
 */
static void test_nested(void **state)
{
	struct outcome outcome;

	skip_without_qemu();
	outcome = run_switches("switches", "ret", "nested");
	assert_in_range(outcome.events, 20000, 100000);
	assert_in_range(outcome.wrong, 1, 8 * 200);
	assert_int_equal(run_switches("switches", "jump", "nested").wrong, 0);
}

static void test_ring(void **state)
{
	skip_without_qemu();
	assert_in_range(run_switches("switches", "context", "ring").wrong, 0, 1);
	assert_in_range(run_switches("switches", "ret", "ring").wrong, 0, 1);
	assert_int_equal(run_switches("switches", "jump", "ring").wrong, 0);
}

/*
 * Which of them runs behind a gap is told by what it returns to. The environment and the folder
 * move the gaps: of one program's few the frames that are right vary by a percent, so all count
 * together.
 */
static void test_gaps(void **state)
{
	static const char *const what[] = {"context many 5000", "ret many 5000", "ret nested 5000",
					   "ret ring 20000"};
	struct behind_gaps all = {0};

	skip_without_qemu();
	for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		char command[128];
		struct behind_gaps g;

		snprintf(command, sizeof(command), "-stack-distance 256K -- switches %s", what[i]);
		g = judge("", command);
		assert_in_range(g.gaps, 2, 100);
		assert_true(g.soon_right >= g.soon * 97 / 100);
		assert_true(g.later_right >= g.later * 99 / 100);
		all.soon += g.soon;
		all.soon_right += g.soon_right;
	}
	assert_true(all.soon_right >= all.soon * 99 / 100);
}

static void skip_without_goroutines(void)
{
	const char *folder = getenv("O");
	char path[128];

	skip_without_qemu();
	snprintf(path, sizeof(path), "%s/tests/ptgen/programs/goroutines",
		 folder ? folder : "build");
	if (access(path, X_OK)) {
		print_message("# skip: goroutines was not built: no Go compiler\n");
		skip();
	}
}

/* What one thread does, and as little of the runtime's own as there can be. */
#define ONE_THREAD "GOMAXPROCS=1 GODEBUG=asyncpreemptoff=1 GOGC=off"

/* As in nested, but those that wait are all of Go's: they have parked, or their stacks grow. */
static void test_goroutines(void **state)
{
	struct outcome outcome;

	skip_without_goroutines();
	outcome = run(ONE_THREAD, "-go -- goroutines 20");
	assert_in_range(outcome.events, 100000, 1000000);
	assert_in_range(outcome.wrong, 0, outcome.events / 30);
}

/* Some frames are called within a gap, and are left by a panic. */
static void test_goroutines_behind_gaps(void **state)
{
	struct behind_gaps g;

	skip_without_goroutines();
	g = judge(ONE_THREAD, "-go -- goroutines 20");
	assert_in_range(g.gaps, 2, 100);
	assert_true(g.soon_right >= g.soon * 8 / 10);
	assert_true(g.later_right >= g.later * 95 / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_goroutines),
		cmocka_unit_test(test_goroutines_behind_gaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
