// SPDX-License-Identifier: MIT
/* Whose doing it was: by names, over many turns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "view/off_cpu.h"

static void add_call(struct call_tree *tree, enum off_reason reason)
{
	struct call *call = VEC_PUSH(&tree->calls);

	*call = (struct call){.kind = CALL_OFF_CPU, .reason = reason};
}

static void add_by(struct call_tree *tree, uint32_t call, pid_t tid, const char *comm, uint64_t ns)
{
	struct done_by *by = VEC_PUSH(&tree->done_by);

	*by = (struct done_by){.call = call, .tid = tid, .ns = ns};
	strcpy(by->comm, comm);
}

static void assert_blamed(struct call_tree *tree, const char *expected)
{
	struct off_cpu off_cpu = {0};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < tree->calls.n; i++)
		off_cpu__add(&off_cpu, tree, &tree->calls.v[i],
			     tree->calls.v[i].end_ns - tree->calls.v[i].start_ns);
	off_cpu__print(out, &off_cpu);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
	VEC_FINI(&tree->calls);
	VEC_FINI(&tree->done_by);
}

static void test_nobody(void **state)
{
	struct call_tree tree = {0};

	add_call(&tree, OFF_BLOCKED);
	assert_blamed(&tree, "");
}

/* Of most of the time nobody knows who ended it. */
static void test_a_waker_of_the_least(void **state)
{
	struct call_tree tree = {0};

	add_call(&tree, OFF_BLOCKED);
	tree.calls.v[0].end_ns = 900;
	add_call(&tree, OFF_BLOCKED);
	tree.calls.v[1].end_ns = 100;
	add_by(&tree, 1, 7, "holder", 100);
	assert_blamed(&tree, "");
}

/* Only 10 of the first call's 200 ns are in the iteration: A has caused 10 of them, B 60. */
static void test_a_part_of_a_call(void **state)
{
	struct call_tree tree = {0};
	struct off_cpu off_cpu = {0};

	add_call(&tree, OFF_BLOCKED);
	tree.calls.v[0].end_ns = 200;
	add_call(&tree, OFF_BLOCKED);
	tree.calls.v[1].end_ns = 60;
	add_by(&tree, 0, 7, "A", 200);
	add_by(&tree, 1, 8, "B", 60);
	off_cpu__add(&off_cpu, &tree, &tree.calls.v[0], 10);
	off_cpu__add(&off_cpu, &tree, &tree.calls.v[1], 60);
	assert_string_equal(off_cpu__most(&off_cpu)->comm, "B");
	assert_int_equal(off_cpu.names[0].ns, 10);
	VEC_FINI(&tree.calls);
	VEC_FINI(&tree.done_by);
}

/* One goroutine in two functions, and two in one. */
static void test_goroutines(void **state)
{
	static const struct {
		const char *comm, *in;
		uint64_t ns;
	} v[] = {{"goroutine 18", "main.f", 50},
		 {"goroutine 18", "main.g", 40},
		 {"goroutine 18", "main.f", 50},
		 {"goroutine 19", "main.f", 60}};
	struct call_tree tree = {0};

	for (uint32_t i = 0; i < 4; i++) {
		add_call(&tree, OFF_BLOCKED);
		add_by(&tree, i, 7, v[i].comm, v[i].ns);
		tree.done_by.v[i].is_goroutine = true;
		tree.done_by.v[i].in = v[i].in;
	}
	assert_blamed(&tree, ", made ready by goroutine 18 in main.f, goroutine 19 in main.f, "
			     "goroutine 18 in main.g");
}

static void add_wait(struct call_tree *tree, uint64_t ns, const char *text)
{
	add_call(tree, OFF_BLOCKED);
	tree->calls.v[tree->calls.n - 1].end_ns = ns;
	if (text)
		*VEC_PUSH(&tree->waits) =
			(struct waits_for){.call = (uint32_t)tree->calls.n - 1, .text = text};
}

static void assert_waits(struct call_tree *tree, const char *expected)
{
	const struct function inside = {.name = "chan receive"};
	struct off_cpu off_cpu = {0};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < tree->calls.n; i++)
		off_cpu__add(&off_cpu, tree, &tree->calls.v[i],
			     tree->calls.v[i].end_ns - tree->calls.v[i].start_ns);
	off_cpu__print_wait(out, &off_cpu, &inside);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
	VEC_FINI(&tree->calls);
	VEC_FINI(&tree->waits);
}

/* The longest wait is one of a kind that has little of the time. */
static void test_what_most_of_the_time_was_waited_for(void **state)
{
	struct call_tree tree = {0};

	add_wait(&tree, 50, "stop-the-world");
	for (int i = 0; i < 8; i++)
		add_wait(&tree, 40, "sync.Mutex.Lock");
	assert_waits(&tree, ": sync.Mutex.Lock");
}

static void test_what_as_much_was_waited_for(void **state)
{
	struct call_tree tree = {0};

	add_wait(&tree, 50, "select");
	add_wait(&tree, 10, "sleep");
	add_wait(&tree, 90, "sync.Mutex.Lock");
	assert_waits(&tree, ": sync.Mutex.Lock and select");
}

/* Of most of the time it is not known, and what is known is not said of it. */
static void test_a_wait_of_the_least(void **state)
{
	struct call_tree tree = {0};

	add_wait(&tree, 900, NULL);
	add_wait(&tree, 100, "stop-the-world");
	assert_waits(&tree, "");
	add_wait(&tree, 100, "chan receive");
	assert_waits(&tree, "");
}

static void test_a_waker(void **state)
{
	struct call_tree tree = {0};

	add_call(&tree, OFF_BLOCKED);
	add_by(&tree, 0, 7, "holder", 100);
	assert_blamed(&tree, ", woken by holder (7)");
}

/* No turn of theirs is the longest, but all together are. */
static void test_many_turns_of_one_program(void **state)
{
	struct call_tree tree = {0};

	add_call(&tree, OFF_PREEMPTED);
	add_call(&tree, OFF_PREEMPTED);
	add_call(&tree, OFF_RUNNABLE);
	add_by(&tree, 0, 7, "other", 50);
	add_by(&tree, 0, 8, "hog", 30);
	add_by(&tree, 2, 9, "hog", 30);
	assert_blamed(&tree, ", by hog (8), other (7)");
}

/* Programs that ran for a moment, before a hog, leave room for it. */
static void test_a_hog_after_many_names(void **state)
{
	struct call_tree tree = {0};
	char name[] = "a";

	add_call(&tree, OFF_PREEMPTED);
	tree.calls.v[0].end_ns = 150;
	for (pid_t i = 0; i < 2 * OFF_CPU_MAX; i++, name[0]++)
		add_by(&tree, 0, i + 1, name, 2);
	for (int i = 0; i < 10; i++)
		add_by(&tree, 0, 99, "hog", 11);
	assert_blamed(&tree, ", by hog (99)");
}

/* Who comes last, and gets the CPU often for a short time, is named as well. */
static void test_a_hog_of_many_short_turns(void **state)
{
	struct call_tree tree = {0};
	char name[2] = "a";

	add_call(&tree, OFF_PREEMPTED);
	for (pid_t i = 0; i < OFF_CPU_MAX; i++, name[0]++)
		add_by(&tree, 0, i + 1, name, 2);
	for (int i = 0; i < 100; i++)
		add_by(&tree, 0, 99, "hog", 1);
	assert_blamed(&tree, ", by hog (99)");
}

static void test_who_had_little_is_not_shown(void **state)
{
	struct call_tree tree = {0};

	add_call(&tree, OFF_PREEMPTED);
	add_by(&tree, 0, 1, "a", 90);
	add_by(&tree, 0, 2, "b", 90);
	add_by(&tree, 0, 3, "c", 29);
	assert_blamed(&tree, ", by a (1), b (2)");
}

static void test_more_names_than_are_told_apart(void **state)
{
	struct call_tree tree = {0};
	char name[16];

	add_call(&tree, OFF_PREEMPTED);
	for (int i = 0; i < 2 * OFF_CPU_MAX; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		add_by(&tree, 0, i + 1, name, 100 - (uint64_t)i);
	}
	assert_blamed(&tree, ", by n0 (1), n1 (2), n2 (3)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_goroutines),
		cmocka_unit_test(test_a_waker_of_the_least),
		cmocka_unit_test(test_a_part_of_a_call),
		cmocka_unit_test(test_what_most_of_the_time_was_waited_for),
		cmocka_unit_test(test_what_as_much_was_waited_for),
		cmocka_unit_test(test_a_wait_of_the_least),
		cmocka_unit_test(test_a_waker),
		cmocka_unit_test(test_many_turns_of_one_program),
		cmocka_unit_test(test_a_hog_after_many_names),
		cmocka_unit_test(test_a_hog_of_many_short_turns),
		cmocka_unit_test(test_who_had_little_is_not_shown),
		cmocka_unit_test(test_more_names_than_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
