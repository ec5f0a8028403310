// SPDX-License-Identifier: MIT
/* What is lost: counted, said, and kept with the recording. */
#include "recording_dir_fixture.h"

#include <linux/perf_event.h>

#include "capture/sample/sample_ring.h"

static void test_each_kind_has_its_words(void **state)
{
	char text[DROP_TEXT_SIZE];

	for (int i = 0; i < DROPS; i++) {
		assert_non_null(drop__name((enum drop)i));
		drop__format(text, (enum drop)i, 12);
		assert_memory_equal(text, "12 ", 3);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(drop__name((enum drop)i), drop__name((enum drop)j));
	}
	assert_string_equal(drop__format(text, DROP_TRIGGERS, 1),
			    "1 trigger: the kernel's buffer was full");
	assert_string_equal(drop__format(text, DROP_RECORDS, 2),
			    "2 records of mappings and threads: code of those is not known");
}

static void test_what_the_kernel_says_is_counted_with_the_rest(void **state)
{
	struct rec_loss records = {.time_ns = 1, .records = 7};
	struct rec_loss trace = {.time_ns = 2, .aux_flags = PERF_AUX_FLAG_TRUNCATED};
	uint64_t counts[DROPS];
	struct recording rec;

	recording__init(&rec);
	assert_int_equal(recording__drops(&rec, counts), 0);
	assert_int_equal(recording__add_loss(&rec, &records), 0);
	assert_int_equal(recording__add_loss(&rec, &trace), 0);
	rec.drops[DROP_RECORDS] = 1;
	rec.drops[DROP_BUSY] = 3;
	assert_int_equal(recording__drops(&rec, counts), 12);
	assert_int_equal(counts[DROP_RECORDS], 8);
	assert_int_equal(counts[DROP_TRACE], 1);
	assert_int_equal(counts[DROP_BUSY], 3);
	assert_int_equal(counts[DROP_TRIGGERS], 0);
	recording__fini(&rec);
}

static void test_a_recording_keeps_them(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < DROPS; i++)
		f->rec.drops[i] = i % 2 ? 0 : (uint64_t)i + (1ull << 60);
	write_it(f);
	assert_int_equal(read_it(f), 0);
	assert_memory_equal(f->back.drops, f->rec.drops, sizeof(f->rec.drops));
}

static void add_throttle(struct recording *rec, uint64_t until_ns, size_t cut)
{
	struct sample_record_ids ids = {.until_ns = until_ns};
	struct {
		struct perf_event_header header;
		uint64_t time_ns, id, stream_id;
	} record = {{PERF_RECORD_THROTTLE, 0, sizeof(record)}, 50, 0, 0};

	assert_int_equal(sample_record__add(&ids, rec, &record, sizeof(record) - cut), 0);
}

static void test_sampling_that_was_throttled(void **state)
{
	struct recording rec;

	recording__init(&rec);
	add_throttle(&rec, 0, 0);
	add_throttle(&rec, 50, 0);
	assert_int_equal(rec.drops[DROP_THROTTLED], 2);
	/* Behind the hit, or no whole record. */
	add_throttle(&rec, 49, 0);
	add_throttle(&rec, 0, 8);
	assert_int_equal(rec.drops[DROP_THROTTLED], 2);
	recording__fini(&rec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_kind_has_its_words),
		cmocka_unit_test(test_what_the_kernel_says_is_counted_with_the_rest),
		cmocka_unit_test_setup_teardown(test_a_recording_keeps_them, set_up, tear_down),
		cmocka_unit_test(test_sampling_that_was_throttled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
