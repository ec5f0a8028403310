// SPDX-License-Identifier: MIT
/* The callers at a trigger in a program without frame pointers, from probe to list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "sampled/sample_stack.h"
#include "soft_capture.h"

struct listed {
	struct soft_capture capture;
	struct recording rec;
	struct images *images;
	struct code_map *map;
	struct unwound list;
};

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Records nofp until it triggers, and lists the callers at its hit. */
static void record(struct listed *l, const char *threads, const char *const *options)
{
	const struct mt_hit *hit;
	size_t next = 0;

	if (geteuid()) {
		print_message("# skip: needs root for the probe\n");
		skip();
	}
	soft_capture__make(&l->capture, "nofp", WORDS("-scale", "small", "-threads", threads),
			   options, 0);
	recording__init(&l->rec);
	assert_int_equal(recording__read(&l->rec, l->capture.recording), 0);
	assert_int_equal(l->rec.hits.n, 1);
	l->images = images__new(&l->rec);
	l->map = code_map__new();
	hit = &l->rec.hits.v[0];
	assert_int_equal(hit_stack__find(&l->rec, hit, l->images, &l->list), 0);
	assert_int_equal(images__apply(l->images, (pid_t)hit->tgid, hit->time_ns, &next, l->map),
			 0);
}

static void end(struct listed *l)
{
	unwound__fini(&l->list);
	code_map__free(l->map);
	images__free(l->images);
	recording__fini(&l->rec);
	soft_capture__end(&l->capture);
}

static const char *name_at(const struct listed *l, size_t i)
{
	struct code_place place;

	if (i >= l->list.ips.n || !code_map__find(l->map, l->list.ips.v[i] - (i > 0), &place))
		return "nothing";
	return place.function->name;
}

/* Nothing is left out, and nothing is put in. */
static void expect_chain(const struct listed *l, const char *const *names)
{
	for (size_t i = 0; names[i]; i++)
		assert_string_equal(name_at(l, i), names[i]);
}

static void test_a_main_thread(void **state)
{
	struct listed l = {0};

	record(&l, "1", WORDS("-symbol", "one_iter"));
	expect_chain(&l, WORDS("one_iter", "visit", "relay_inner", "relay_outer", "handle", "serve",
			       "main"));
	assert_string_equal(name_at(&l, l.list.ips.n - 1), "_start");
	assert_true(l.list.is_whole);
	end(&l);
}

/* start_thread() and clone3(), which a stripped C library does not name. */
static void test_a_thread(void **state)
{
	struct listed l = {0};

	record(&l, "2", WORDS("-symbol", "one_iter"));
	expect_chain(&l, WORDS("one_iter", "visit", "relay_inner", "relay_outer", "handle", "serve",
			       "worker_main"));
	assert_int_equal(l.list.ips.n, 9);
	assert_true(l.list.is_whole);
	end(&l);
}

/* A return probe's hit is behind the return, in the caller. */
static void test_a_duration(void **state)
{
	struct listed l = {0};

	record(&l, "1", WORDS("-symbol", "visit", "-duration-thresh", "1us"));
	expect_chain(&l, WORDS("relay_inner", "relay_outer", "handle", "serve", "main"));
	assert_true(l.list.is_whole);
	end(&l);
}

/* In the library, which calls through its PLT. */
static void test_a_function_of_a_library(void **state)
{
	struct listed l = {0};

	record(&l, "1", WORDS("-symbol", "librelay.so:relay_inner"));
	expect_chain(&l, WORDS("relay_inner", "relay_outer", "handle", "serve", "main"));
	assert_true(l.list.is_whole);
	end(&l);
}

/* Frame pointers show the caller, which is at the stack pointer, and no further. */
static void test_no_copy(void **state)
{
	struct listed l = {0};

	record(&l, "1", WORDS("-symbol", "one_iter", "-no-stack-copy"));
	assert_int_equal(l.rec.stacks.n, 0);
	assert_string_equal(name_at(&l, 0), "one_iter");
	assert_string_equal(name_at(&l, 1), "visit");
	assert_true(l.list.ips.n < 7);
	assert_false(l.list.is_whole);
	end(&l);
}

/* A copy that ends in a large frame. */
static void test_a_small_copy(void **state)
{
	struct listed l = {0};

	record(&l, "1", WORDS("-symbol", "one_iter", "-stack-copy", "1K"));
	assert_int_equal(l.rec.stacks.n, 1);
	assert_int_equal(l.rec.stacks.v[0].size, 1024);
	expect_chain(&l, WORDS("one_iter", "visit", "relay_inner", "relay_outer"));
	assert_false(l.list.is_whole);
	end(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_main_thread),
		cmocka_unit_test(test_a_thread),
		cmocka_unit_test(test_a_duration),
		cmocka_unit_test(test_a_function_of_a_library),
		cmocka_unit_test(test_no_copy),
		cmocka_unit_test(test_a_small_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
