// SPDX-License-Identifier: MIT
/* meta.json: missing, of another version, damaged, or leading out of the recording. */
#include "recording_dir_fixture.h"

static void test_without_meta_it_is_incomplete(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];

	write_it(f);
	snprintf(path, sizeof(path), "%s/meta.json", f->path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(read_it(f), -ENODATA);
	ASSERT_SAID(f, TEXT_incomplete_recording, f->path);
}

static void check_meta(struct fixture *f, const char *meta, int err)
{
	write_file(f, "meta.json", meta, strlen(meta));
	assert_int_equal(read_it(f), err);
	if (err == -EPROTO)
		ASSERT_SAID(f, TEXT_newer_recording, f->path);
	else
		ASSERT_SAID(f, TEXT_cannot_read_meta, f->path, strerror(-err));
}

static void test_meta_of_a_newer_version(void **state)
{
	struct fixture *f = *state;

	write_it(f);
	check_meta(f, "{\"version\": 3}", -EPROTO);
	check_meta(f, "{\"version\": 1e300}", -EPROTO);
}

static void test_damaged_meta(void **state)
{
	static const char *const all[] = {
		"",
		"{",
		"[]",
		"1",
		"null",
		"{\"version\": \"1\"}",
		"{\"version\": 0}",
		"{\"version\": 1, \"images\": [1]}",
		"{\"version\": 1, \"images\": {\"x\": null}}",
		"{\"version\": 1, \"images\": [{\"path\": \"[vdso]\"}]}",
		"{\"version\": 1, \"images\": [{\"file\": \"images/0\"}]}"};
	struct fixture *f = *state;

	write_it(f);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		check_meta(f, all[i], -EINVAL);
}

/* Whoever sent it may have thought of the terminal. */
static void test_names_in_meta_are_fit_to_be_shown(void **state)
{
	struct fixture *f = *state;
	const char *meta =
		"{\"version\": 1, \"command\": \"a\\u001b[31m\", \"trigger\": \"b\\nc\", "
		"\"freeze\": \"d\\u009b\", \"source\": \"e\\u0007\", \"reason\": -2, "
		"\"open_files\": [{\"pid\": 1, \"fd\": 3, \"path\": \"/f\\u001b\"}]}";

	write_it(f);
	write_file(f, "meta.json", meta, strlen(meta));
	assert_int_equal(read_it(f), 0);
	assert_string_equal(f->back.command, "a?[31m");
	assert_string_equal(f->back.trigger, "b?c");
	assert_string_equal(f->back.freeze, "d??");
	assert_string_equal(f->back.source, "e?");
	assert_int_equal(f->back.reason, 0);
	assert_string_equal(recording__find_open_file(&f->back, 1, 3), "/f?");
}

static void test_numbers_that_do_not_fit_are_none(void **state)
{
	struct fixture *f = *state;
	const char *meta = "{\"version\": 1, \"stops\": [{\"inode\": \"1\", \"offset\": \"2\", "
			   "\"major\": 4294967297, \"minor\": 8}]}";

	write_it(f);
	write_file(f, "meta.json", meta, strlen(meta));
	assert_int_equal(read_it(f), 0);
	assert_int_equal(f->back.stops.n, 1);
	assert_int_equal(f->back.stops.v[0].maj, 0);
	assert_int_equal(f->back.stops.v[0].min, 8);
}

static void test_threads_at_a_stall(void **state)
{
	const uint64_t ips[] = {0x401000, 0x7f0000001234};
	const struct rec_thread_state thread = {.hit = 3,
						.pid = 10,
						.tid = 11,
						.comm = "a\x1b[m",
						.is_ready = true,
						.syscall = 202,
						.arg = 0xffffffffffffff00,
						.owner = 12,
						.n_ips = 2,
						.is_whole = true};
	const char *damaged = "{\"version\": 1, \"threads_at_stall\": [{\"stack\": [1]}]}";
	const struct rec_thread_state *back;
	struct fixture *f = *state;

	f->rec.stall_thresh_ns = 5000;
	f->rec.stall_from = MT_STALL_REGION;
	assert_int_equal(recording__add_thread_state(&f->rec, &thread, ips), 0);
	assert_int_equal(recording__add_thread_state(&f->rec, &thread, ips), 0);
	write_it(f);
	assert_int_equal(read_it(f), 0);
	assert_int_equal(f->back.stall_thresh_ns, 5000);
	assert_int_equal(f->back.stall_from, MT_STALL_REGION);
	assert_int_equal(f->back.thread_states.n, 2);
	back = &f->back.thread_states.v[1];
	assert_string_equal(back->comm, "a?[m");
	assert_int_equal(back->hit, 3);
	assert_int_equal(back->tid, 11);
	assert_int_equal(back->syscall, 202);
	assert_true(back->arg == 0xffffffffffffff00);
	assert_int_equal(back->owner, 12);
	assert_true(back->is_ready && back->is_whole && !back->is_on_cpu && !back->is_stopped);
	assert_int_equal(back->n_ips, 2);
	assert_true(f->back.state_ips.v[back->first_ip + 1] == ips[1]);
	check_meta(f, damaged, -EINVAL);
}

static void test_meta_that_lacks_what_is_not_needed(void **state)
{
	struct fixture *f = *state;
	const char *meta = "{\"version\": 1, \"pid\": \"x\", \"threshold_ns\": 5, \"source\": 1}";

	write_it(f);
	write_file(f, "meta.json", meta, strlen(meta));
	assert_int_equal(read_it(f), 0);
	assert_int_equal(f->back.pid, 0);
	assert_null(f->back.source);
}

static void test_images_outside_of_the_recording_are_refused(void **state)
{
	static const char *const files[] = {
		"../../etc/passwd", "/etc/passwd", "images/../../x", "images/",
		"images/0/../1",    "images/0x",   "meta.json",	     ""};
	struct fixture *f = *state;
	char meta[256];

	write_it(f);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(meta, sizeof(meta),
			 "{\"version\": 1, \"images\": [{\"path\": \"[vdso]\", \"file\": \"%s\"}]}",
			 files[i]);
		check_meta(f, meta, -EINVAL);
		assert_int_equal(f->back.images.n, 0);
	}
}

static void test_an_image_that_is_not_there(void **state)
{
	struct fixture *f = *state;

	write_it(f);
	check_meta(f, "{\"version\": 1, \"images\": [{\"path\": \"x\", \"file\": \"images/9\"}]}",
		   -ENOENT);
}

static void test_files_that_are_links_or_pipes_are_refused(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];

	write_it(f);
	snprintf(path, sizeof(path), "%s/images/0", f->path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(read_it(f), -ELOOP);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(read_it(f), -EINVAL);
	ASSERT_SAID(f, "cannot read ");
}

static void test_mutated_meta(void **state)
{
	struct fixture *f = *state;
	unsigned int seed = 3;
	char *text = NULL;
	size_t n;
	char path[PATH_MAX];

	write_it(f);
	snprintf(path, sizeof(path), "%s/meta.json", f->path);
	assert_int_equal(fs__read(path, &text, &n), 0);
	for (int round = 0; round < 300; round++) {
		char *copy = malloc(n);

		memcpy(copy, text, n);
		for (int i = rand_r(&seed) % 4; i >= 0; i--)
			copy[(size_t)rand_r(&seed) % n] = (char)rand_r(&seed);
		write_file(f, "meta.json", copy, round % 2 ? n : (size_t)rand_r(&seed) % n);
		read_it(f);
		free(copy);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_without_meta_it_is_incomplete),
		TEST(test_meta_of_a_newer_version),
		TEST(test_damaged_meta),
		TEST(test_names_in_meta_are_fit_to_be_shown),
		TEST(test_meta_that_lacks_what_is_not_needed),
		TEST(test_images_outside_of_the_recording_are_refused),
		TEST(test_an_image_that_is_not_there),
		TEST(test_files_that_are_links_or_pipes_are_refused),
		TEST(test_numbers_that_do_not_fit_are_none),
		TEST(test_threads_at_a_stall),
		TEST(test_mutated_meta),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
