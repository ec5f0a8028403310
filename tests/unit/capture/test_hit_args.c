// SPDX-License-Identifier: MIT
/* Arguments of hits in a recording: what is written is read back, and lies are refused. */
#include "recording_dir_fixture.h"

#include "capture/recording/perf_data.h"

static void add_hit(struct recording *rec, uint32_t n_args, size_t stack)
{
	struct mt_hit *hit;

	add_hit_with_stack(rec, 3, stack);
	hit = &rec->hits.v[rec->hits.n - 1];
	hit->n_args = n_args;
	hit->args_read = (uint16_t)(0xaaa & ((1u << n_args) - 1));
	hit->args_signed = (uint16_t)(0x333 & ((1u << n_args) - 1));
	for (uint32_t i = 0; i < n_args && i < MT_ARGS_MAX; i++)
		hit->args[i] = UINT64_MAX / (i + 1);
}

static void test_arguments_are_read_back(void **state)
{
	struct fixture *f = *state;

	f->rec.hits.n = 0;
	for (uint32_t n = 0; n <= MT_ARGS_MAX; n++) {
		add_hit(&f->rec, n, 0);
		add_hit(&f->rec, n, 100 + n);
	}
	write_it(f);
	assert_int_equal(read_it(f), 0);
	assert_int_equal(f->back.hits.n, f->rec.hits.n);
	for (size_t i = 0; i < f->rec.hits.n; i++)
		assert_memory_equal(&f->rec.hits.v[i], &f->back.hits.v[i], sizeof(struct mt_hit));
}

/* With the argument that is looked for, changed to what it is given. */
static void write_lie(struct fixture *f, uint64_t truth, uint64_t lie)
{
	char path[PATH_MAX], *data;
	uint8_t *at;
	size_t size;

	write_it(f);
	snprintf(path, sizeof(path), "%s/data", f->path);
	assert_int_equal(fs__read(path, &data, &size), 0);
	at = memmem(data, size, &truth, sizeof(truth));
	assert_non_null(at);
	memcpy(at, &lie, sizeof(lie));
	write_file(f, "data", data, size);
	free(data);
}

static void test_more_than_there_are(void **state)
{
	const uint64_t truth = 2 | 0x5ull << 32 | 0x7ull << 48;
	const uint32_t lies[] = {3, MT_ARGS_MAX, MT_ARGS_MAX + 1, UINT32_MAX};
	struct fixture *f = *state;
	struct mt_hit *hit;

	f->rec.hits.n = 0;
	add_hit(&f->rec, 2, 0);
	hit = &f->rec.hits.v[0];
	hit->args_read = 5;
	hit->args_signed = 7;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		write_lie(f, truth, (truth & ~(uint64_t)UINT32_MAX) | lies[i]);
		assert_int_equal(read_it(f), -EINVAL);
		ASSERT_SAID(f, "a hit's record is damaged");
	}
	write_lie(f, truth, truth);
	assert_int_equal(read_it(f), 0);
}

/* There are bytes enough behind a call chain that is said to be shorter. */
static void test_more_than_there_is_room_for(void **state)
{
	struct fixture *f = *state;
	struct { /* in this order in the record */
		uint32_t stack_depth, copied;
	} counts = {40, 64};
	struct mt_hit *hit;
	char path[PATH_MAX], *data;
	size_t size;
	uint8_t *at;

	f->rec.hits.n = 0;
	add_hit_with_stack(&f->rec, counts.stack_depth, counts.copied);
	hit = &f->rec.hits.v[0];
	hit->stack[3] = MT_ARGS_MAX + 1;
	write_it(f);
	snprintf(path, sizeof(path), "%s/data", f->path);
	assert_int_equal(fs__read(path, &data, &size), 0);
	at = memmem(data, size, &counts, sizeof(counts));
	assert_non_null(at);
	*at = 3;
	write_file(f, "data", data, size);
	free(data);
	assert_int_equal(read_it(f), -EINVAL);
	ASSERT_SAID(f, "a hit's record is damaged");
}

/* -print and -key: of every length and kind, with and without a name, beside arguments. */
static void test_prints_are_read_back(void **state)
{
	static const char *const names[] = {"str(arg1)", "arg2", "retval\x1b", "arg4"};
	struct fixture *f = *state;
	struct mt_hit *hit;

	f->rec.hits.n = 0;
	f->rec.key = strdup("arg1->id");
	for (size_t i = 0; i < MT_PRINTS; i++)
		assert_int_equal(recording__add_print(&f->rec, names[i]), 0);
	for (uint16_t n = 0; n <= MT_TEXT_MAX; n += n < 20 ? 1 : 47) {
		add_hit(&f->rec, n % 3, n % 2 ? 100 : 0);
		hit = &f->rec.hits.v[f->rec.hits.n - 1];
		hit->key = 0x123456789abcdef0 + n;
		hit->since_tid = 77u + n;
		hit->n_prints = n % (MT_PRINTS + 1);
		for (uint32_t i = 0; i < hit->n_prints; i++) {
			struct mt_printed *print = &hit->prints[i];

			print->kind = i % 4;
			print->number = UINT64_MAX - i;
			print->is_signed = i & 1;
			print->is_cut = !(i & 1);
			print->length = n;
			memset(print->text, 'a' + (int)i, n);
		}
	}
	write_it(f);
	assert_int_equal(read_it(f), 0);
	assert_int_equal(f->back.hits.n, f->rec.hits.n);
	for (size_t i = 0; i < f->rec.hits.n; i++)
		assert_memory_equal(&f->rec.hits.v[i], &f->back.hits.v[i], sizeof(struct mt_hit));
	assert_string_equal(f->back.key, "arg1->id");
	assert_int_equal(f->back.prints.n, MT_PRINTS);
	assert_string_equal(f->back.prints.v[0], "str(arg1)");
	/* A name is shown: it is fit for a terminal. */
	assert_string_equal(f->back.prints.v[2], "retval?");
}

static void test_prints_that_lie(void **state)
{
	const uint64_t truth = 5 | (uint64_t)MT_PRINT_STRING << 16;
	const uint64_t lies[] = {MT_TEXT_MAX + 1, 5 | 4 << 16, 200, UINT64_MAX};
	struct fixture *f = *state;
	struct mt_hit *hit;

	f->rec.hits.n = 0;
	assert_int_equal(recording__add_print(&f->rec, "str(arg1)"), 0);
	add_hit(&f->rec, 0, 0);
	hit = &f->rec.hits.v[0];
	hit->n_prints = 1;
	hit->prints[0].kind = MT_PRINT_STRING;
	hit->prints[0].length = 5;
	memcpy(hit->prints[0].text, "abcde", 5);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		write_lie(f, truth, lies[i]);
		assert_int_equal(read_it(f), -EINVAL);
		ASSERT_SAID(f, "a hit's record is damaged");
	}
	write_lie(f, truth, truth);
	assert_int_equal(read_it(f), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_arguments_are_read_back),
		TEST(test_more_than_there_are),
		TEST(test_more_than_there_is_room_for),
		TEST(test_prints_are_read_back),
		TEST(test_prints_that_lie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
