// SPDX-License-Identifier: MIT
/* A recording that is decoded to more than there is memory for. */
#include "decode_fixture.h"
#include "sanitizers.h"

#include <string.h>

#include "pipeline/pipeline.h"
#include "util/log.h"
#include "util/vec.h"

/* Three calls each, of 56 bytes. */
#define ITERATIONS 40000

static int set_up(void **state)
{
	struct recording *rec = calloc(1, sizeof(*rec));
	struct rec_aux aux = {.pid = PID, .tid = TID};
	struct traced t;

	assert_non_null(rec);
	traced__init(&t, 5000, 100, true);
	traced__run(&t, ITERATIONS);
	aux.tsc = t.now;
	aux.size = t.out.bytes.n;
	aux.data = malloc(aux.size);
	assert_non_null(aux.data);
	memcpy(aux.data, t.out.bytes.v, aux.size);
	*rec = t.rec;
	t.rec = (struct recording){0};
	traced__fini(&t);
	rec->pid = PID;
	assert_int_equal(recording__add_aux(rec, &aux), 0);
	*state = rec;
	return 0;
}

static int tear_down(void **state)
{
	struct recording *rec = *state;

	memory_limit__set(UINT64_MAX);
	recording__fini(rec);
	free(rec);
	return 0;
}

struct extent {
	size_t calls;
	uint64_t first_ns, last_ns;
};

static struct extent extent_of(struct recording *rec)
{
	struct extent extent = {0};
	struct decoded decoded;

	assert_int_equal(decoded__make(&decoded, rec, &(struct tree_options){0}), 0);
	assert_int_equal(decoded.trees.n, 1);
	extent.calls = decoded.trees.v[0].calls.n;
	extent.first_ns = decoded.totals.first_ns;
	extent.last_ns = decoded.totals.last_ns;
	assert_int_equal(decoded__is_whole(&decoded, rec), !rec->drops[DROP_LEFT_OUT]);
	decoded__fini(&decoded);
	return extent;
}

static void test_the_newest_is_decoded(void **state)
{
	struct recording *rec = *state;
	size_t size = rec->aux.v[0].size;
	struct extent all = extent_of(rec), newest;

	not_with_own_allocator();
	assert_int_equal(rec->drops[DROP_LEFT_OUT], 0);
	memory_limit__set(3u << 20);
	log__set_level(LOG_QUIET);
	newest = extent_of(rec);
	assert_in_range(newest.calls, 1000, all.calls * 3 / 4);
	assert_true(newest.first_ns > all.first_ns);
	assert_int_equal(newest.last_ns, all.last_ns);
	assert_int_equal(rec->drops[DROP_LEFT_OUT] + rec->aux.v[0].size, size);
}

static void test_what_fits_is_decoded_whole(void **state)
{
	struct recording *rec = *state;
	size_t calls = extent_of(rec).calls;

	memory_limit__set(100u << 20);
	assert_int_equal(extent_of(rec).calls, calls);
	assert_false(memory_limit__was_met());
}

static void test_small_rings_are_left_whole(void **state)
{
	struct recording *rec = *state;
	struct rec_aux *aux = &rec->aux.v[0];
	uint8_t *data = aux->data;

	aux->size = 60 << 10;
	assert_false(recording__leave_out_older_half(rec));
	assert_ptr_equal(aux->data, data);
	aux->size = 100 << 10;
	assert_true(recording__leave_out_older_half(rec));
	assert_ptr_equal(aux->data, data + (50 << 10));
	assert_int_equal(aux->size, 50 << 10);
	assert_true(aux->wrapped);
	assert_false(recording__leave_out_older_half(rec));
	assert_int_equal(rec->drops[DROP_LEFT_OUT], 50 << 10);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_the_newest_is_decoded),
		TEST(test_what_fits_is_decoded_whole),
		TEST(test_small_rings_are_left_whole),
	};

	return cmocka_run_group_tests_name("decode_memory", tests, NULL, NULL);
}
