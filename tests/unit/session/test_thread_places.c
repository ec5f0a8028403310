// SPDX-License-Identifier: MIT
/* Where threads were at a stall: rings of waits, lines that threads share, and JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "mtbpf_shared.h"
#include "util/cleanup.h"
#include "view/thread_places.h"

static struct thread_places places;

static void add(pid_t tid, pid_t owner, enum thread_doing doing)
{
	struct thread_place place = {.tid = tid,
				     .comm = "w",
				     .doing = doing,
				     .owner = owner,
				     .first_name = places.names.n,
				     .n_names = 2,
				     .is_whole = true};

	snprintf(place.waits_for, sizeof(place.waits_for), "futex");
	assert_int_equal(VEC_ADD(&places.all, place), 0);
	assert_int_equal(VEC_ADD(&places.names, "lock"), 0);
	assert_int_equal(VEC_ADD(&places.names, "main"), 0);
}

static int begin(void **state)
{
	places = (struct thread_places){0};
	return 0;
}

static int end(void **state)
{
	thread_places__fini(&places);
	return 0;
}

static char *print(void)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	thread_places__print(out, &places);
	fclose(out);
	return text;
}

static void expect_ring(const pid_t *tids, size_t n)
{
	size_t ring[16];

	assert_int_equal(thread_places__deadlock(&places, ring), n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(places.all.v[ring[i]].tid, tids[i]);
}

static void test_a_chain_is_no_ring(void **state)
{
	add(1, 2, THREAD_WAITS);
	add(2, 3, THREAD_WAITS);
	add(3, 0, THREAD_RUNS);
	/* Its owner is no thread that is known. */
	add(4, 99, THREAD_WAITS);
	places.all.v[0].is_stalled = true;
	expect_ring(NULL, 0);
}

static void test_a_ring_begins_with_the_stalled_thread(void **state)
{
	add(1, 2, THREAD_WAITS);
	add(2, 3, THREAD_WAITS);
	add(3, 1, THREAD_WAITS);
	add(4, 1, THREAD_WAITS);
	places.all.v[2].is_stalled = true;
	expect_ring((const pid_t[]){3, 1, 2}, 3);
}

static void test_a_ring_that_the_stalled_thread_waits_for(void **state)
{
	_cleanup_free_ char *text = NULL;

	add(1, 2, THREAD_WAITS);
	add(2, 3, THREAD_WAITS);
	add(3, 2, THREAD_WAITS);
	places.all.v[0].is_stalled = true;
	text = print();
	assert_non_null(
		strstr(text, "* 1 (w) waits for a mutex held by thread 2 (w): lock < main\n"));
	assert_non_null(
		strstr(text, "deadlock: thread 2 waits for a mutex held by thread 3, which waits "
			     "for one held by thread 2\n")
			?: strstr(text,
				  "deadlock: thread 3 waits for a mutex held by thread 2, which "
				  "waits for one held by thread 3\n"));
}

static void test_a_thread_that_waits_for_itself(void **state)
{
	_cleanup_free_ char *text = NULL;

	add(7, 7, THREAD_WAITS);
	places.all.v[0].is_stalled = true;
	text = print();
	assert_non_null(strstr(
		text, "deadlock: thread 7 waits for a mutex held by thread 7, which is itself\n"));
}

static void test_threads_in_one_place_share_a_line(void **state)
{
	_cleanup_free_ char *text = NULL;

	for (int i = 0; i < 12; i++)
		add(10 + i, 0, THREAD_WAITS);
	places.all.v[3].is_stalled = true;
	text = print();
	assert_non_null(strstr(text, "  * 13 (w) waits in futex: lock < main\n"));
	assert_non_null(strstr(text,
			       "    10 (w), 11 (w), 12 (w), 14 (w), 15 (w), 16 (w), 17 (w), 18 "
			       "(w), and 3 more, each waits in futex: lock < main\n"));
	assert_null(strstr(text, "deadlock"));
	assert_non_null(strstr(text, "it is not known who holds what thread 13 waits for"));
}

static void test_one_that_computes_is_not_blocked(void **state)
{
	_cleanup_free_ char *text = NULL;

	add(1, 0, THREAD_READY);
	places.all.v[0].is_stalled = true;
	text = print();
	assert_non_null(strstr(text, "thread 1 waits for nothing: "));
}

static void test_json(void **state)
{
	const struct hit_mark hit = {.reason = MT_HIT_STALL, .value_ns = 5, .tid = 1, .pid = 1};
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	cJSON *root, *threads;

	add(1, 2, THREAD_WAITS);
	add(2, 1, THREAD_WAITS);
	places.all.v[0].is_stalled = true;
	assert_int_equal(thread_places__print_json(out, &places, &hit), 0);
	fclose(out);
	root = cJSON_Parse(text);
	threads = cJSON_GetObjectItem(root, "threads");
	assert_int_equal(cJSON_GetArraySize(threads), 2);
	assert_int_equal(cJSON_GetObjectItem(cJSON_GetArrayItem(threads, 0), "mutex_of")->valueint,
			 2);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "deadlock")), 2);
	assert_string_equal(
		cJSON_GetObjectItem(cJSON_GetObjectItem(root, "hit"), "reason")->valuestring,
		"stall");
	cJSON_Delete(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_chain_is_no_ring, begin, end),
		cmocka_unit_test_setup_teardown(test_a_ring_begins_with_the_stalled_thread, begin,
						end),
		cmocka_unit_test_setup_teardown(test_a_ring_that_the_stalled_thread_waits_for,
						begin, end),
		cmocka_unit_test_setup_teardown(test_a_thread_that_waits_for_itself, begin, end),
		cmocka_unit_test_setup_teardown(test_threads_in_one_place_share_a_line, begin, end),
		cmocka_unit_test_setup_teardown(test_one_that_computes_is_not_blocked, begin, end),
		cmocka_unit_test_setup_teardown(test_json, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
