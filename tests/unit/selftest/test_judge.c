// SPDX-License-Identifier: MIT
/* The judge of `mtbpf selftest` finds each way in which a trace differs from the notes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "decode/pt_note.h"
#include "mtbpf_shared.h"
#include "selftest/checks.h"
#include "selftest/judge.h"
#include "util/fs.h"

#define TID	  7
#define SHIFT_NS  1000000
#define NO_PARENT CALL_NO_PARENT

/* The calls of PROGRAM_CALLS in short: one main function, which calls two others. */
struct fixture {
	struct iteration iteration;
	struct call_tree tree;
	struct decoded decoded;
	struct function functions[4];
	struct judged_calls judged;
};

static uint16_t number_of(const char *name)
{
	for (unsigned int i = 0; i < n_program_functions; i++)
		if (!strcmp(program_functions[i].name, name))
			return (uint16_t)i;
	fail_msg("no function %s", name);
	return 0;
}

static void note(struct fixture *f, const char *function, uint16_t depth, uint64_t time_ns)
{
	f->iteration.calls[f->iteration.n++] = (struct noted_call){
		.time_ns = time_ns, .tid = TID, .function = number_of(function), .depth = depth};
}

static void add(struct fixture *f, const struct function *function, uint64_t start_ns,
		uint64_t end_ns, uint32_t parent)
{
	assert_int_equal(VEC_ADD(&f->tree.calls, (struct call){.start_ns = start_ns + SHIFT_NS,
							       .end_ns = end_ns + SHIFT_NS,
							       .function = function,
							       .kind = CALL_FUNCTION,
							       .parent = parent}),
			 0);
}

static int make(void **state)
{
	static const char *const names[] = {"mtbpf_selftest_calls_main",
					    "mtbpf_selftest_calls_leaf", "main",
					    "mtbpf_selftest_calls_middle"};
	struct fixture *f = calloc(1, sizeof(*f));

	for (int i = 0; i < 4; i++)
		f->functions[i].name = names[i];
	f->tree.tid = TID;
	note(f, names[0], 0, 1010);
	note(f, names[1], 1, 1110);
	note(f, names[1], 1, 1210);
	/* main() calls the program, which makes no note of it. */
	add(f, &f->functions[2], 900, 2000, NO_PARENT);
	add(f, &f->functions[0], 1000, 1300, 0);
	add(f, &f->functions[1], 1100, 1150, 1);
	add(f, &f->functions[1], 1200, 1250, 1);
	*state = f;
	return 0;
}

static int end(void **state)
{
	struct fixture *f = *state;

	VEC_FINI(&f->tree.calls);
	free(f);
	return 0;
}

static void judge(struct fixture *f)
{
	f->decoded.trees.v = &f->tree;
	f->decoded.trees.n = 1;
	assert_int_equal(judge__calls(&f->decoded, &f->iteration, PROGRAM_CALLS, 2000 + SHIFT_NS,
				      &f->judged),
			 0);
	assert_int_equal(f->judged.noted, 3);
}

static void test_right(void **state)
{
	struct fixture *f = *state;

	judge(f);
	assert_int_equal(f->judged.right, 3);
	assert_int_equal(f->judged.unnoted, 0);
	/* The leaves are the shortest: each has its note 10 ns after its begin, of 50. */
	assert_int_equal(f->judged.least_shift_ns, SHIFT_NS - 10);
	assert_int_equal(f->judged.most_shift_ns, SHIFT_NS + 40);
}

static void test_missing_call(void **state)
{
	struct fixture *f = *state;

	f->tree.calls.n--;
	judge(f);
	assert_int_equal(f->judged.right, 2);
	assert_int_equal(f->judged.unnoted, 0);
}

static void test_call_that_was_not_made(void **state)
{
	struct fixture *f = *state;

	add(f, &f->functions[3], 1260, 1270, 1);
	judge(f);
	/* It takes the first one's place: as many as were noted are looked at. */
	assert_int_equal(f->judged.right, 2);
	assert_int_equal(f->judged.unnoted, 1);
}

static void test_wrong_depth(void **state)
{
	struct fixture *f = *state;

	f->tree.calls.v[3].parent = 2;
	judge(f);
	assert_int_equal(f->judged.right, 2);
	assert_int_equal(f->judged.unnoted, 1);
}

static void test_other_function(void **state)
{
	struct fixture *f = *state;

	f->tree.calls.v[2].function = &f->functions[3];
	judge(f);
	assert_int_equal(f->judged.right, 2);
	assert_int_equal(f->judged.unnoted, 1);
}

/* The first leaf's note is 45 ns after its end, the second's where it should be. */
static void test_times(void **state)
{
	struct fixture *f = *state;

	f->iteration.calls[1].time_ns = 1195;
	judge(f);
	assert_int_equal(f->judged.right, 3);
	assert_int_equal(f->judged.least_shift_ns, SHIFT_NS - 10);
	assert_int_equal(f->judged.most_shift_ns, SHIFT_NS - 45);
}

static void test_sum(void **state)
{
	struct judged_calls sum = JUDGED_NONE;

	judged_calls__add(&sum, &(struct judged_calls){3, 2, 1, -5, 7, 1, 2, 4, 5, 4, 1});
	judged_calls__add(&sum, &(struct judged_calls){4, 4, 0, 3, 9, 0, 1, 1, 2, 2, 0});
	assert_int_equal(sum.noted, 7);
	assert_int_equal(sum.right, 6);
	assert_int_equal(sum.unnoted, 1);
	assert_int_equal(sum.least_shift_ns, 3);
	assert_int_equal(sum.most_shift_ns, 7);
	assert_int_equal(sum.syscalls, 1);
	assert_int_equal(sum.untraced, 3);
	assert_int_equal(sum.in_kernel, 5);
	assert_int_equal(sum.noted_events, 7);
	assert_int_equal(sum.events, 6);
	assert_int_equal(sum.unnoted_events, 1);
}

/* A call that began before the trace does not tell when. */
static void test_start_before_the_trace(void **state)
{
	struct fixture *f = *state;

	f->tree.calls.v[2].start_ns = 1120 + SHIFT_NS;
	f->tree.calls.v[2].flags = CALL_INFERRED_START;
	judge(f);
	assert_int_equal(f->judged.right, 3);
	assert_int_equal(f->judged.least_shift_ns, SHIFT_NS - 10);
}

/* The kernel's function counts at any depth below the call; the program's own does not. */
static void test_in_kernel(void **state)
{
	static const struct function entry = {.name = "entry_SYSCALL_64"},
				     getppid = {.name = "__x64_sys_getppid"},
				     own = {.name = "mtbpf_sys_getppid"};
	struct fixture *f = *state;

	add(f, &entry, 1120, 1140, 2);
	add(f, &getppid, 1125, 1130, 4);
	add(f, &own, 1131, 1132, 2);
	judge(f);
	assert_int_equal(f->judged.right, 3);
	assert_int_equal(f->judged.in_kernel, 1);
}

static void write_cpus(const char *root, const char *type, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/devices", root);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/devices/%s", root, type);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/devices/%s/cpus", root, type);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* As sysfs of a hybrid CPU has them. */
static void test_cores(void **state)
{
	char root[] = "/tmp/mtbpf-test-cores-XXXXXX";

	assert_non_null(mkdtemp(root));
	assert_int_equal(checks__find_cpu(root, "cpu_core"), -1);
	write_cpus(root, "cpu_core", "0-7\n");
	write_cpus(root, "cpu_atom", "16-23\n");
	write_cpus(root, "cpu_lowpower", "\n");
	assert_int_equal(checks__find_cpu(root, "cpu_core"), 0);
	assert_int_equal(checks__find_cpu(root, "cpu_atom"), 16);
	assert_int_equal(checks__find_cpu(root, "cpu_lowpower"), -1);
	assert_int_equal(fs__remove_dir(root), 0);
}

/* The ring holds earlier iterations as well. */
static void test_iteration_before(void **state)
{
	struct fixture *f = *state;
	struct call_tree earlier = f->tree;

	f->tree.calls.v = NULL;
	f->tree.calls.n = f->tree.calls.cap = 0;
	for (size_t i = 0; i < earlier.calls.n; i++)
		add(f, earlier.calls.v[i].function, earlier.calls.v[i].start_ns - SHIFT_NS - 500,
		    earlier.calls.v[i].end_ns - SHIFT_NS - 500, earlier.calls.v[i].parent);
	for (size_t i = 0; i < earlier.calls.n; i++)
		add(f, earlier.calls.v[i].function, earlier.calls.v[i].start_ns - SHIFT_NS,
		    earlier.calls.v[i].end_ns - SHIFT_NS,
		    earlier.calls.v[i].parent == NO_PARENT ? NO_PARENT
							   : earlier.calls.v[i].parent + 4);
	judge(f);
	assert_int_equal(f->judged.right, 3);
	assert_int_equal(f->judged.unnoted, 0);
	/* If the last iteration lacks a call, the iteration before does not replace it. */
	f->tree.calls.v[7].function = &f->functions[2];
	judge(f);
	assert_int_equal(f->judged.right, 2);
	assert_int_equal(f->judged.unnoted, 0);
	free(earlier.calls.v);
}

/* Calls after the hit belong to the next iteration. */
static void test_after_the_hit(void **state)
{
	struct fixture *f = *state;

	add(f, &f->functions[0], 2500, 2600, NO_PARENT);
	judge(f);
	assert_int_equal(f->judged.right, 3);
	assert_int_equal(f->judged.unnoted, 0);
}

static void test_parts(void **state)
{
	struct fixture *f = *state;

	add(f, NULL, 1220, 1230, 3);
	f->tree.calls.v[4].kind = CALL_SYSCALL;
	add(f, NULL, 1230, 1240, 3);
	f->tree.calls.v[5].kind = CALL_UNTRACED;
	judge(f);
	assert_int_equal(f->judged.syscalls, 1);
	assert_int_equal(f->judged.untraced, 1);
}

static void add_exception(struct fixture *f, uint8_t vector, uint64_t address, uint32_t parent)
{
	struct call *call;

	add(f, NULL, 1115, 1120, parent);
	call = &f->tree.calls.v[f->tree.calls.n - 1];
	call->kind = CALL_UNTRACED;
	call->reason = PT_EVENT_EXCEPTION + vector;
	call->entry_ip = address;
	call->depth = f->tree.calls.v[parent].depth + 1;
}

/* The second leaf touches a new page: a slice that tells it, and its address, is right. */
static void test_page_fault(void **state)
{
	struct fixture *f = *state;

	for (int i = 1; i < 4; i++)
		f->tree.calls.v[i].depth = i == 1 ? 1 : 2;
	f->iteration.calls[2].event = NOTED_EXCEPTION;
	f->iteration.calls[2].vector = 14;
	f->iteration.calls[2].value = 0x7000;
	judge(f);
	assert_int_equal(f->judged.noted_events, 1);
	assert_int_equal(f->judged.events, 0);
	add_exception(f, 14, 0x7000, 3);
	judge(f);
	assert_int_equal(f->judged.right, 3);
	assert_int_equal(f->judged.events, 1);
	assert_int_equal(f->judged.unnoted_events, 0);
	/* Another address, and another vector. */
	f->tree.calls.v[4].entry_ip = 0x8000;
	judge(f);
	assert_int_equal(f->judged.events, 0);
	assert_int_equal(f->judged.unnoted_events, 0);
	f->tree.calls.v[4].entry_ip = 0x7000;
	f->tree.calls.v[4].reason = PT_EVENT_EXCEPTION + 15;
	judge(f);
	assert_int_equal(f->judged.events, 0);
	assert_int_equal(f->judged.unnoted_events, 1);
	/* In another function, as one that it did not note. */
	f->tree.calls.v[4].parent = 1;
	f->tree.calls.v[4].depth = 2;
	judge(f);
	assert_int_equal(f->judged.events, 0);
	assert_int_equal(f->judged.unnoted_events, 1);
}

/* Values are judged with their function, thread and time. */
static void test_ptwrite(void **state)
{
	struct fixture *f = *state;
	struct pt_note value = {.kind = PT_NOTE_PTWRITE,
				.tid = TID,
				.time_ns = 1120 + SHIFT_NS,
				.value = 42,
				.in = f->functions[1].name};

	f->iteration.calls[1].event = NOTED_PTWRITE;
	f->iteration.calls[1].value = 42;
	f->decoded.events.v = &value;
	f->decoded.events.n = 1;
	judge(f);
	assert_int_equal(f->judged.noted_events, 1);
	assert_int_equal(f->judged.events, 1);
	value.value = 43;
	judge(f);
	assert_int_equal(f->judged.events, 0);
	assert_int_equal(f->judged.unnoted_events, 1);
	value = (struct pt_note){.kind = PT_NOTE_PTWRITE,
				 .tid = TID,
				 .time_ns = 1120 + SHIFT_NS,
				 .value = 42,
				 .in = f->functions[0].name};
	judge(f);
	assert_int_equal(f->judged.events, 0);
	value.in = f->functions[1].name;
	value.time_ns = 1220 + SHIFT_NS;
	judge(f);
	assert_int_equal(f->judged.events, 0);
}

static void test_hit(void **state)
{
	struct hit_mark hits[] = {{.n_args = 1, .args_read = 1, .args = {5}},
				  {.n_args = 1, .args_read = 0, .args = {6}}};
	struct decoded decoded = {0};
	uint64_t k = 0;

	assert_null(judge__find_hit(&decoded, &k));
	decoded.hits.v = hits;
	decoded.hits.n = 2;
	assert_ptr_equal(judge__find_hit(&decoded, &k), &hits[0]);
	assert_int_equal(k, 5);
}

/* PROGRAM_TIME: a function of 40 us, half of it blocked, whose slices lack the last 10 us. */
static void test_time(void **state)
{
	struct fixture *f = *state;
	struct function main_function = {.name = "mtbpf_selftest_time_main"};
	struct function sleeper = {.name = "mtbpf_selftest_time_sleep"};
	struct judged_time judged;

	f->iteration.n = 0;
	f->tree.calls.n = 0;
	note(f, sleeper.name, 1, 10000);
	note(f, sleeper.name, 1, 50000);
	add(f, &main_function, 5000, 45000, NO_PARENT);
	add(f, &sleeper, 5000, 40000, 0);
	add(f, NULL, 15000, 35000, 1);
	f->tree.calls.v[2].kind = CALL_OFF_CPU;
	f->tree.calls.v[2].reason = OFF_BLOCKED;
	for (int i = 0; i < 3; i++) {
		f->tree.calls.v[i].start_ns -= SHIFT_NS;
		f->tree.calls.v[i].end_ns -= SHIFT_NS;
	}
	f->decoded.trees.v = &f->tree;
	f->decoded.trees.n = 1;
	judge__time(&f->decoded, &f->iteration, sleeper.name, &judged);
	assert_int_equal(judged.true_ns, 40000);
	assert_int_equal(judged.slices_ns, 30000);
	assert_int_equal(judged.blocked_ns, 20000);
	assert_true(judged.has_caller);
	main_function.name = "main";
	judge__time(&f->decoded, &f->iteration, sleeper.name, &judged);
	assert_false(judged.has_caller);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_right),
		TEST(test_missing_call),
		TEST(test_call_that_was_not_made),
		TEST(test_wrong_depth),
		TEST(test_other_function),
		TEST(test_times),
		TEST(test_iteration_before),
		TEST(test_after_the_hit),
		TEST(test_parts),
		TEST(test_page_fault),
		TEST(test_ptwrite),
		TEST(test_hit),
		TEST(test_sum),
		TEST(test_in_kernel),
		TEST(test_start_before_the_trace),
		cmocka_unit_test(test_cores),
		TEST(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
