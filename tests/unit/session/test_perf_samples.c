// SPDX-License-Identifier: MIT
/* Text of perf script of samples, to trees. */
#include "perf/perf_text.h"

#include "sanitizers.h"
#include "tree_text.h"

#include <string.h>

#include "sampled/sampled.h"
#include "stack/stack.h"

struct fixture {
	struct perf_text text;
	char *seen; /* all trees: "tid depth from-to name" a line, in microseconds */
	size_t size;
	FILE *out;
};

static int set_up(void **state)
{
	static struct fixture f;

	f = (struct fixture){.text = {.threads = perf_threads__new(NULL, NULL),
				      .samples = perf_samples__new(false)}};
	f.out = open_memstream(&f.seen, &f.size);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	perf_samples__free(f->text.samples);
	perf_threads__free(f->text.threads);
	fclose(f->out);
	free(f->seen);
	return 0;
}

static void leave_out_inlined(struct fixture *f)
{
	perf_samples__free(f->text.samples);
	f->text.samples = perf_samples__new(true);
}

static int print_tree(void *ctx, struct call_tree *tree)
{
	struct fixture *f = ctx;

	for (size_t i = 0; i < tree->calls.n; i++) {
		const struct call *call = &tree->calls.v[i];

		fprintf(f->out, "%d %u %llu-%llu %s\n", tree->tid, call->depth,
			(unsigned long long)call->start_ns / 1000,
			(unsigned long long)call->end_ns / 1000, call__name(call));
	}
	call_tree__fini(tree);
	return 0;
}

static void assert_trees(struct fixture *f, const char *text, const char *expected)
{
	struct sampled_totals totals = {0};
	struct images *images;
	struct named_image *code;
	struct recording rec;

	recording__init(&rec);
	images = images__new(&rec);
	assert_int_equal(perf_text__take(&f->text, text, strlen(text)), 0);
	assert_int_equal(perf_samples__finish(f->text.samples, &rec, &code), 0);
	images__set_code(images, code);
	assert_int_equal(sampled__trees(&rec, images, print_tree, f, &totals), 0);
	images__free(images);
	recording__fini(&rec);
	fflush(f->out);
	assert_string_equal(f->seen, expected);
}

/* perf prints offsets in files: two functions may have the same. */
static void test_stacks(void **state)
{
	assert_trees(*state,
		     "prog 7 0.000010:     100000 cpu-clock:u: \n"
		     "\t            1010 leaf+0x10 (/bin/prog)\n"
		     "\t            1020 main+0x8 (/bin/prog)\n"
		     "\t            1020 start+0x20 (/lib/libc.so.6)\n"
		     "\n"
		     "prog 7 0.000110:     100000 cpu-clock:u: \n"
		     "\t            1014 leaf+0x14 (/bin/prog)\n"
		     "\t            1020 main+0x8 (/bin/prog)\n"
		     "\t            1020 start+0x20 (/lib/libc.so.6)\n"
		     "\n"
		     "prog 7 0.000210:     100000 cpu-clock:u: \n"
		     "\t            1010 other+0x0 (/lib/libc.so.6)\n"
		     "\t            1028 main+0x10 (/bin/prog)\n"
		     "\t            1020 start+0x20 (/lib/libc.so.6)\n"
		     "\n",
		     "7 0 10-210 start\n7 1 10-210 main\n7 2 10-160 leaf\n7 2 160-210 other\n");
}

/* -F comm,tid,time,ip,sym: no event, offset, or file. The same call goes on, and another begins. */
static void test_few_fields(void **state)
{
	assert_trees(*state,
		     "prog 7 0.000010: \n\t  1010 leaf\n\t  1020 main\n\n"
		     "prog 7 0.000020: \n\t  1014 leaf\n\t  1020 main\n\n"
		     "prog 7 0.000030: \n\t  1014 leaf\n\t  1030 main\n",
		     "7 0 10-30 main\n7 1 10-25 leaf\n7 1 25-30 leaf\n");
}

/* Without -g; the first two are of another thread. */
static void test_places(void **state)
{
	assert_trees(*state,
		     "  a b  8/9 [001]   0.000010:  1 cycles:u:   401000 f+0x0 (/x)\n"
		     "  a b  8/9 [001]   0.000020:  1 cycles:u:   401004 f+0x4 (/x)\n"
		     "  a b  8/8 [001]   0.000020:  1 cycles:u:   7f0010 [unknown] ([unknown])\n"
		     "  a b  8/8 [001]   0.000030:  1 cycles:u:   7f0010 [unknown] (/y)\n",
		     "8 0 20-25 [unknown]\n8 0 25-30 [y]\n9 0 10-20 f\n");
}

static void test_the_kernel(void **state)
{
	assert_trees(*state,
		     "p 7 0.000010: 1 cycles: \n"
		     "\tffffffff81000010 read+0x10 ([kernel.kallsyms])\n"
		     "\tffffffff81000020 entry+0x20 ([kernel.kallsyms])\n"
		     "\t            1020 main+0x8 (/bin/prog)\n\n",
		     "7 0 10-10 main\n7 1 10-10 [kernel]\n7 2 10-10 entry\n7 3 10-10 read\n");
}

#define INLINED                                                                                    \
	"p 7 0.000010: 1 cycles: \n"                                                               \
	"\t            1010 tiny+0x2 (inlined)\n"                                                  \
	"\t            1010 small (inlined)\n"                                                     \
	"\t            1010 leaf+0x10 (/bin/prog)\n"                                               \
	"\t            1020 main+0x8 (/bin/prog)\n\n"                                              \
	"p 7 0.000020: 1 cycles: \n"                                                               \
	"\t            1014 tiny+0x6 (inlined)\n"                                                  \
	"\t            1014 small (inlined)\n"                                                     \
	"\t            1014 leaf+0x14 (/bin/prog)\n"                                               \
	"\t            1020 main+0x8 (/bin/prog)\n\n"

/* Where it is in what it was inlined into changes as it goes on. */
static void test_inlined(void **state)
{
	assert_trees(*state, INLINED,
		     "7 0 10-20 main\n7 1 10-20 leaf\n7 2 10-20 small\n7 3 10-20 tiny\n");
}

static void test_without_inlined(void **state)
{
	leave_out_inlined(*state);
	assert_trees(*state, INLINED, "7 0 10-20 main\n7 1 10-20 leaf\n");
}

/* perf script --show-switch-events */
static void test_records_of_switches(void **state)
{
	struct fixture *f = *state;

	assert_trees(f,
		     "p 7/7 0.000010: 1 cycles: \n\t1010 f+0x0 (/x)\n\n"
		     "p 7/7 0.000020: PERF_RECORD_SWITCH OUT        \n"
		     "p 7/7 0.000030: PERF_RECORD_SWITCH IN         \n"
		     "p 7/7 0.000040: PERF_RECORD_SWITCH OUT preempt\n"
		     "p 7/7 0.000045: PERF_RECORD_SWITCH IN         \n"
		     "p 7/7 0.000050: 1 cycles: \n\t1010 f+0x0 (/x)\n\n",
		     "7 0 10-50 f\n7 1 20-30 [blocked]\n7 1 40-45 [preempted]\n");
	assert_int_equal(perf_samples__totals(f->text.samples)->ins, 2);
	assert_int_equal(perf_samples__totals(f->text.samples)->outs, 2);
	assert_int_equal(f->text.totals.other, 0);
}

/* Of all CPUs: the thread comes where another one leaves; of one that has no lines nothing is told.
 */
static void test_sched_switch(void **state)
{
	assert_trees(*state,
		     "p 7/8 [0] 0.000010: 1 cycles: \n\t1010 f+0x0 (/x)\n\n"
		     "p 7/8 [0] 0.000020: sched:sched_switch: prev_comm=p prev_pid=8 prev_prio=120 "
		     "prev_state=S ==> next_comm=q next_pid=9 next_prio=120\n"
		     "\tffffffff81000010 schedule+0x10 ([kernel.kallsyms])\n\t1010 f+0x0 (/x)\n\n"
		     "swapper 0/0 [0] 0.000030: sched:sched_switch: prev_comm=swapper/0 prev_pid=0 "
		     "prev_prio=120 prev_state=R ==> next_comm=p next_pid=8 next_prio=120\n\n"
		     "p 7/8 [0] 0.000040: 1 cycles: \n\t1010 f+0x0 (/x)\n\n",
		     "8 0 10-40 f\n8 1 15-35 [kernel]\n8 2 15-35 schedule\n8 3 20-30 [blocked]\n");
}

/* What perf makes of Intel PT: a line without a target may be of branches that were cut. */
static void test_no_samples(void **state)
{
	struct fixture *f = *state;

	assert_trees(f,
		     "p 7/7 0.000010: branches:u: 1010 f+0x0 (/x)\n"
		     "p 7/7 0.000010: 1010 f+0x0 (/x)\n"
		     "p 7/7 0.000010: cbr: cbr: 24 freq: 2400 MHz\n"
		     "\t1010 f+0x0\n"
		     "1010 f+0x0\n",
		     "7 0 10-10 f\n");
	assert_int_equal(f->text.totals.other, 3);
}

/* Page faults come in the middle of calls, and end none. */
static void test_faults(void **state)
{
	assert_trees(*state,
		     "p 7 0.000010: 1 cycles: \n\t1010 f+0x0 (/x)\n\n"
		     "p 7 0.000020: 1 page-faults:u: \n\t1010 g+0x0 (/x)\n\n"
		     "p 7 0.000030: 1 cycles: \n\t1010 f+0x0 (/x)\n\n",
		     "7 0 10-30 f\n");
}

/* A branch has more to tell. */
static void test_branches_first(void **state)
{
	struct fixture *f = *state;

	assert_trees(f,
		     "p 7 0.000010: branches: call 1010 f+0x0 (/x) => 2000 g+0x0 (/x)\n"
		     "p 7 0.000020: 1 cycles: \n\t1010 f+0x0 (/x)\n\n",
		     "");
	assert_int_equal(f->text.totals.other, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stacks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_few_fields, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_places, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_kernel, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_inlined, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_without_inlined, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_records_of_switches, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_sched_switch, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_samples, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_faults, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_branches_first, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
