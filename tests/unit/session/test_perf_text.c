// SPDX-License-Identifier: MIT
/* Text of perf script, to trees. */
#include "perf/perf_text.h"

#include "sanitizers.h"
#include "tree_text.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "stack/stack.h"
#include "util/meter.h"

#define SVC "(/usr/bin/svc)"

struct fixture {
	struct perf_text text;
};

static int set_up(void **state)
{
	static struct fixture fixture;

	fixture = (struct fixture){
		{.threads = perf_threads__new(NULL, NULL), .samples = perf_samples__new(false)}};
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	perf_samples__free(f->text.samples);
	perf_threads__free(f->text.threads);
	return 0;
}

static void take(struct fixture *f, const char *text)
{
	assert_int_equal(perf_text__take(&f->text, text, strlen(text)), 0);
}

/* The next thread's tree, in microseconds. */
static void assert_next_tree(struct fixture *f, const char *expected)
{
	struct call_tree tree = {0};

	assert_int_equal(perf_threads__next_tree(f->text.threads, &tree), 1);
	for (size_t i = 0; i < tree.calls.n; i++) {
		tree.calls.v[i].start_ns /= 1000;
		tree.calls.v[i].end_ns /= 1000;
	}
	assert_tree(&tree, expected);
	call_tree__fini(&tree);
}

static void assert_no_more(struct fixture *f)
{
	struct call_tree tree;

	assert_int_equal(perf_threads__next_tree(f->text.threads, &tree), 0);
}

static const char calls[] =
	"7/7 0.000010: branches:u: tr strt 0 [unknown] ([unknown]) => 401000 main+0x0 " SVC "\n"
	"7/7 0.000020: branches:u: call 401010 main+0x10 " SVC " => 402000 work+0x0 " SVC "\n"
	"7/7 0.000030: branches:u: call 402004 work+0x4 " SVC " => 403000 leaf+0x0 " SVC "\n"
	"7/7 0.000040: branches:u: return 403008 leaf+0x8 " SVC " => 402009 work+0x9 " SVC "\n"
	"7/7 0.000050: branches:u: jmp 402010 work+0x10 " SVC " => 404000 tail+0x0 " SVC "\n"
	"7/7 0.000060: branches:u: return 404001 tail+0x1 " SVC " => 401012 main+0x12 " SVC "\n"
	"7/7 0.000070: branches:u: tr end  syscall 401020 main+0x20 " SVC
	" => 0 [unknown] ([unknown])\n"
	"7/7 0.000080: branches:u: tr strt 0 [unknown] ([unknown]) => 401022 main+0x22 " SVC "\n"
	"7/7 0.000090: branches:u: return 401030 main+0x30 " SVC " => 405010 _start+0x10 " SVC "\n";

static const char calls_tree[] = "_start 10-90 inferred-start inferred-end\n"
				 "  main 10-90 inferred-start\n"
				 "    work 20-50\n"
				 "      leaf 30-40\n"
				 "    tail 50-60 by-jump\n"
				 "    [syscall] 70-80\n";

static void test_calls(void **state)
{
	struct fixture *f = *state;

	take(f, calls);
	assert_next_tree(f, calls_tree);
	assert_no_more(f);
	assert_int_equal(f->text.totals.lines, 9);
	assert_int_equal(f->text.totals.other, 0);
	assert_int_equal(f->text.totals.unknown_flags, 0);
	assert_int_equal(perf_threads__totals(f->text.threads)->decode.branches, 9);
}

/* Instructions that nobody counted are not said to be none. */
static void test_names_without_code(void **state)
{
	struct fixture *f = *state;
	struct call_tree tree = {0};

	take(f, calls);
	assert_int_equal(perf_threads__next_tree(f->text.threads, &tree), 1);
	assert_string_equal(tree.calls.v[0].function->module, "svc");
	assert_false(elf_image__has_code(tree.calls.v[0].function->image));
	call_tree__fini(&tree);
}

/* From a file in pieces, with lines that do not fit anywhere. */
static void test_reading(void **state)
{
	struct fixture *f = *state;
	char path[] = "/tmp/mtbpf-test-XXXXXX", *filler = malloc(1000001);
	int fd = mkstemp(path);
	struct meter meter = {0};

	assert_true(fd >= 0);
	unlink(path);
	memset(filler, 'x', 1000000);
	filler[1000000] = '\n';
	for (int i = 0; i < 3; i++) {
		assert_int_equal(write(fd, filler, 1000001), 1000001);
		if (i == 0)
			assert_int_equal(write(fd, calls, sizeof(calls) - 1), sizeof(calls) - 1);
	}
	/* Its last line has no end. */
	assert_int_equal(write(fd, "x 7/7 0.0001: branches: return 405020 x => 406000 y", 51), 51);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(perf_text__read(&f->text, fd, &meter), 0);
	assert_int_equal(meter.done, lseek(fd, 0, SEEK_END));
	assert_int_equal(f->text.totals.too_long, 3);
	assert_int_equal(f->text.totals.lines, 10);
	assert_int_equal(perf_threads__totals(f->text.threads)->decode.branches, 10);
	close(fd);
	free(filler);
}

static void test_unknown_flags(void **state)
{
	struct fixture *f = *state;

	take(f, "7/7 0.000010: branches: sideways 401000 main+0x0 => 401008 main+0x8\n"
		"7/7 0.000020: branches: call sideways 401010 main+0x10 => 402000 work+0x0\n"
		"7/7 0.000025: branches: 402004 work+0x4 => 402000 work+0x0\n"
		"7/7 0.000027: branches: jcc/miss,not_taken/ 402004 work+0x4 => 402010 work+0x10\n"
		"7/7 0.000030: branches: return 402020 work+0x20 => 401015 main+0x15\n"
		"7/7 0.000030: ptwrite: IP: 0 payload: 0x12\n");
	assert_next_tree(f, "main 10-30 inferred-start inferred-end\n"
			    "  work 20-30\n");
	assert_int_equal(f->text.totals.unknown_flags, 3);
	assert_int_equal(f->text.totals.not_taken, 1);
	assert_int_equal(f->text.totals.other, 1);
}

/* An error is a gap: of its kind, at its time, however early or late its line comes. */
static void test_errors(void **state)
{
	struct fixture *f = *state;

	take(f, " instruction trace error type 1 time 0.000025123 cpu -1 pid 7 tid 7 ip 0 code 7: "
		"Overflow packet\n"
		"7/7 0.000010: branches: tr strt 0 => 401000 main+0x0\n");
	/* That was before anything of the thread was seen. */
	assert_int_equal(perf_threads__totals(f->text.threads)->decode.gaps[GAP_OVERFLOW], 1);
	take(f, " instruction trace error type 1 time 0.000025123 cpu -1 pid 7 tid 7 ip 0 code 7: "
		"Overflow packet\n"
		"7/7 0.000020: branches: call 401010 main+0x10 => 402000 work+0x0\n"
		"7/7 0.000025: branches: tr strt 0 => 403000 leaf+0x0\n"
		"7/7 0.000030: branches: jcc 403010 leaf+0x10 => 403020 leaf+0x20\n"
		" instruction trace error type 1 cpu 0 pid 7 tid 7 ip 0x40 code 6: Trace doesn't "
		"match "
		"instruction\n"
		"7/7 0.000050: branches: jcc 404010 other+0x10 => 404020 other+0x20\n"
		/* Nobody has complained. */
		"7/7 0.000060: branches: tr strt 0 => 405000 last+0x0\n");
	assert_next_tree(f, "main 10-20 inferred-start inferred-end\n"
			    "  work 20-20 inferred-end\n"
			    "[gap: overflow] 20-25\n"
			    "leaf 25-30 inferred-start inferred-end\n"
			    "[gap: mismatch] 30-50\n"
			    "other 50-50 inferred-start inferred-end\n"
			    "[gap: lost] 50-60\n"
			    "last 60-60 inferred-start inferred-end\n");
	assert_int_equal(perf_threads__totals(f->text.threads)->decode.gaps[GAP_OVERFLOW], 2);
	assert_int_equal(perf_threads__totals(f->text.threads)->decode.gaps[GAP_LOST], 1);
}

static void test_threads(void **state)
{
	struct fixture *f = *state;
	struct call_tree tree = {0};

	take(f, "one   7/7 0.000010: branches: call 401000 main+0x0 => 402000 work+0x0\n"
		"two   7/8 0.000011: branches: call 401000 main+0x0 => 402000 work+0x0\n"
		"other 9/9 0.000012: branches: call 401000 start+0x0 => 402000 fun+0x0\n"
		"two   7/8 0.000013: branches: return 402010 work+0x10 => 401005 main+0x5\n"
		"three 7/7 0.000020: branches: return 402010 work+0x10 => 401005 main+0x5\n");
	assert_int_equal(perf_threads__next_tree(f->text.threads, &tree), 1);
	assert_string_equal(tree.comm, "three");
	assert_int_equal(tree.tid, 7);
	call_tree__fini(&tree);
	assert_next_tree(f, "main 11-13 inferred-start inferred-end\n  work 11-13\n");
	/* Another process has other code at the same addresses. */
	assert_next_tree(f, "start 12-12 inferred-start inferred-end\n  fun 12-12 inferred-end\n");
	assert_no_more(f);
}

/* perf before 6.2: of a page fault or an interrupt nothing is said but that the trace ends. */
static void test_bare_ends(void **state)
{
	struct fixture *f = *state;

	take(f, "7/7 0.000010: branches: call 401000 main+0x0 => 402000 work+0x0\n"
		"7/7 0.000020: branches: tr end 402008 work+0x8 => 0 [unknown]\n"
		"7/7 0.000050: branches: tr strt 0 [unknown] => 402008 work+0x8\n"
		"7/7 0.000060: branches: return 402010 work+0x10 => 401005 main+0x5\n");
	assert_next_tree(f, "main 10-60 inferred-start inferred-end\n"
			    "  work 10-60\n"
			    "    [untraced] 20-50\n");
}

/* Calls that perf gave one time have a length all the same, and keep their order. */
static void test_one_time_for_many(void **state)
{
	struct fixture *f = *state;

	take(f, "7/7 0.000010: branches: call 401000 main+0x0 => 402000 work+0x0\n"
		"7/7 0.000010: branches: call 402004 work+0x4 => 403000 leaf+0x0\n"
		"7/7 0.000010: branches: return 403001 leaf+0x1 => 402009 work+0x9\n"
		"7/7 0.000010: branches: return 402010 work+0x10 => 401005 main+0x5\n"
		"7/7 0.000050: branches: call 401010 main+0x10 => 402000 work+0x0\n"
		"7/7 0.000060: branches: return 402010 work+0x10 => 401015 main+0x15\n");
	assert_next_tree(f, "main 10-60 inferred-start inferred-end\n"
			    "  work 10-40\n"
			    "    leaf 20-30\n"
			    "  work 50-60\n");
}

static const char operator_calls[] =
	"7/7 0.000010: branches: call 401000 M.main+0x0 (/x) => 402000 M.( => )_12+0x0 (/x)\n"
	"7/7 0.000020: branches: return 402010 M.( => )_12+0x10 (/x) => 401005 M.main+0x5 (/x)\n";

static void test_arrows_in_names(void **state)
{
	struct fixture *f = *state;

	take(f, operator_calls);
	assert_int_equal(f->text.totals.other, 0);
	assert_next_tree(f, "M.main 10-20 inferred-start inferred-end\n  M.( => )_12 10-20\n");
}

/*
 * An event of the CPU, whose name is like that of perf's branches: a sample, as long as there are
 * no branches. One that has no target is neither.
 */
static void test_other_events(void **state)
{
	struct fixture *f = *state;

	take(f, "x 7/7 0.000010:   1000 branch-misses:u: 401000 main+0x0 (/x)\n"
		"x 7/7 0.000011:   1000 branches:u: 401000 main+0x0 (/x)\n"
		"x 7/7 0.000012: branch-misses:u: jmp 401000 main+0x0 (/x) => 401010 main+0x10 "
		"(/x)\n");
	assert_int_equal(f->text.totals.other, 1);
	assert_int_equal(f->text.totals.sampled, 2);
	assert_int_equal(f->text.totals.unknown_flags, 0);
	take(f, "x 7/7 0.000010: cpu_core/branches/u: odd 401000 main+0x0 => 401010 main+0x10\n");
	assert_int_equal(f->text.totals.other, 1);
	assert_int_equal(f->text.totals.unknown_flags, 1);
	take(f, "x 7/7 0.000011:   1000 branch-misses:u: 401000 main+0x0 (/x)\n");
	assert_int_equal(f->text.totals.other, 2);
	assert_int_equal(f->text.totals.sampled, 2);
}

/* The code of runtime.gogo() and of gogo(), which one goes on to, is not there: names are enough.
 */
static void test_goroutines(void **state)
{
	struct fixture *f = *state;

	take(f,
	     "7/7 0.000010: branches: call 401000 main.main+0x0 => 402000 runtime.gopark+0x0\n"
	     "7/7 0.000011: branches: call 402010 runtime.gopark+0x10 => 403000 runtime.mcall+0x0\n"
	     "7/7 0.000012: branches: call 403010 runtime.mcall+0x10 => 404000 runtime.park_m+0x0\n"
	     "7/7 0.000013: branches: call 404010 runtime.park_m+0x10 => 405000 "
	     "runtime.execute+0x0\n"
	     "7/7 0.000014: branches: call 405010 runtime.execute+0x10 => "
	     "406000 runtime.gogo.abi0+0x0\n"
	     "7/7 0.000015: branches: jmp 406010 runtime.gogo.abi0+0x10 => 407000 gogo+0x0\n"
	     "7/7 0.000016: branches: jmp 407010 gogo+0x10 => 402015 runtime.gopark+0x15\n"
	     "7/7 0.000017: branches: return 402020 runtime.gopark+0x20 => 401005 main.main+0x5\n"
	     "7/7 0.000020: branches: return 401020 main.main+0x20 => 408005 runtime.main+0x5\n");
	assert_next_tree(f, "runtime.main 10-20 inferred-start inferred-end\n"
			    "  main.main 10-20 inferred-start\n"
			    "    runtime.gopark 10-17\n"
			    "      runtime.mcall 11-16\n"
			    "        [switched out] 12-16\n");
}

static void test_times_backwards(void **state)
{
	struct fixture *f = *state;

	take(f, "7/7 0.000050: branches: call 401000 main+0x0 => 402000 work+0x0\n"
		"7/7 0.000040: branches: return 402010 work+0x10 => 401005 main+0x5\n");
	assert_next_tree(f, "main 50-50 inferred-start inferred-end\n  work 50-50\n");
	assert_int_equal(perf_threads__totals(f->text.threads)->moved, 1);
}

/* Letters for flags, seconds only to the microsecond, no offsets: 4.x. */
static void test_old_version(void **state)
{
	struct fixture *f = *state;

	take(f,
	     "svc  7 [000]  0.000010: branches: bB 0 [unknown] ([unknown]) => 401000 main " SVC "\n"
	     "svc  7 [000]  0.000020: branches: bc 401010 main " SVC " => 402000 work " SVC "\n"
	     "svc  7 [000]  0.000025: branches: bo 402010 work " SVC " => 402008 work " SVC "\n"
	     "svc  7 [000]  0.000030: branches: br 402020 work " SVC " => 401015 main " SVC "\n");
	assert_next_tree(f, "main 10-30 inferred-start inferred-end\n  work 20-30\n");
}

static void assert_well_formed_trees(struct fixture *f)
{
	for (;;) {
		struct call_tree tree = {0};

		if (perf_threads__next_tree(f->text.threads, &tree) <= 0)
			break;
		assert_well_formed(&tree);
		call_tree__fini(&tree);
	}
}

static void test_hostile(void **state)
{
	struct fixture *f = *state;
	static const char nul[] =
		"7/7 0.000010: branches: call 401000 a\0b+0x0 => 402000 w\0+0x0\n";
	char *names = malloc(600000);
	size_t n = 0;

	assert_int_equal(perf_text__take(&f->text, nul, sizeof(nul) - 1), 0);
	take(f, "7/7 0.000011: branches: call 402000 \x1b[31mred+0x0 => ffffffffffffffff x+0x0 "
		"(\xff)\n"
		"7/7 0.000012: branches: return ffffffffffffffff x+0xfffffffffffffffe => 1 y+0x10\n"
		"7/7 0.000013: branches: call 1 z.cold+0x0 => 2 .cold+0x0\n"
		"7/7 0.000014: branches: call 1 @plt+0x0 () => 2 _Z (())\n");
	n += (size_t)sprintf(names + n, "7/7 0.000015: branches: call 3 ");
	memset(names + n, 'n', 200000);
	n += 200000;
	n += (size_t)sprintf(names + n, "+0x1 (");
	memset(names + n, 'm', 200000);
	n += 200000;
	n += (size_t)sprintf(names + n, ") => 4 [unknown]\n");
	assert_int_equal(perf_text__take(&f->text, names, n), 0);
	free(names);
	assert_well_formed_trees(f);
}

/* More threads than are kept. */
static void test_too_many_threads(void **state)
{
	struct fixture *f = *state;

	not_with_thread_sanitizer("maps more memory for so many than a process may have");
	for (int i = 0; i < 16500; i++) {
		char line[96];

		sprintf(line, "%d/%d 0.1: branches: jmp 1 => 2\n", i % 3, 1000000 + i);
		take(f, line);
	}
	assert_true(f->text.totals.left_out > 0);
	assert_well_formed_trees(f);
}

static bool may_be(const void *bytes, size_t n)
{
	char path[] = "/tmp/mtbpf-test-XXXXXX";
	int fd = mkstemp(path);
	bool is;

	unlink(path);
	assert_int_equal(write(fd, bytes, n), n);
	is = perf_text__may_be(fd);
	close(fd);
	return is;
}

static void test_told_by_content(void **state)
{
	int pipes[2], null = open("/dev/null", O_RDONLY), dir = open("/tmp", O_RDONLY);

	assert_true(may_be("7/7 0.1: branches", 17));
	assert_false(may_be("PERFILE2 and more", 17));
	assert_false(may_be("binary\0", 7));
	assert_false(may_be("", 0));
	assert_int_equal(pipe(pipes), 0);
	assert_true(perf_text__may_be(pipes[0]));
	assert_false(perf_text__may_be(null));
	assert_false(perf_text__may_be(dir));
	close(pipes[0]);
	close(pipes[1]);
	close(null);
	close(dir);
}

static int stop_at_second(void *ctx, pid_t tid, const struct branch *branch)
{
	int *n = ctx;

	return ++*n == 2 ? -EINTR : 0;
}

static void test_tap(void **state)
{
	int n = 0;
	struct perf_text text = {.threads = perf_threads__new(stop_at_second, &n)};

	assert_int_equal(perf_text__take(&text, calls, sizeof(calls) - 1), -EINTR);
	assert_int_equal(n, 2);
	perf_threads__free(text.threads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_calls, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_names_without_code, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reading, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unknown_flags, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_errors, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_threads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bare_ends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_time_for_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_arrows_in_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_events, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_goroutines, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_times_backwards, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_old_version, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hostile, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_too_many_threads, set_up, tear_down),
		cmocka_unit_test(test_told_by_content),
		cmocka_unit_test(test_tap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
