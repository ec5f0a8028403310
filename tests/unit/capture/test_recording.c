// SPDX-License-Identifier: MIT
/* A recording's directory: what is written is read back. */
#include "recording_dir_fixture.h"

static void assert_same_meta(const struct recording *a, const struct recording *b)
{
	assert_string_equal(a->source, b->source);
	assert_string_equal(a->trigger, b->trigger);
	assert_string_equal(a->command, b->command);
	assert_string_equal(a->freeze, b->freeze);
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->threshold_ns, b->threshold_ns);
	assert_int_equal(a->reason, b->reason);
	assert_int_equal(a->frozen_ns, b->frozen_ns);
	assert_int_equal(a->unix_zero_ns, b->unix_zero_ns);
	assert_int_equal(a->probe_ip, b->probe_ip);
	assert_int_equal(a->stops.n, b->stops.n);
	for (size_t i = 0; i < a->stops.n; i++)
		assert_memory_equal(&a->stops.v[i], &b->stops.v[i], sizeof(a->stops.v[i]));
	assert_int_equal(a->images.n, b->images.n);
	for (size_t i = 0; i < a->images.n; i++) {
		assert_string_equal(a->images.v[i].path, b->images.v[i].path);
		assert_int_equal(a->images.v[i].start, b->images.v[i].start);
		assert_int_equal(a->images.v[i].is_elf, b->images.v[i].is_elf);
		assert_int_equal(a->images.v[i].size, b->images.v[i].size);
		assert_memory_equal(a->images.v[i].data, b->images.v[i].data, a->images.v[i].size);
	}
}

static void assert_same_pt(const struct rec_pt_config *a, const struct rec_pt_config *b)
{
	assert_int_equal(a->time_shift, b->time_shift);
	assert_int_equal(a->time_mult, b->time_mult);
	assert_int_equal(a->time_zero, b->time_zero);
	assert_int_equal(a->config, b->config);
	assert_int_equal(a->mtc_freq, b->mtc_freq);
	assert_int_equal(a->nom_freq, b->nom_freq);
	assert_int_equal(a->tsc_ctc_num, b->tsc_ctc_num);
	assert_int_equal(a->tsc_ctc_den, b->tsc_ctc_den);
	assert_int_equal(a->cpu_family, b->cpu_family);
	assert_int_equal(a->cpu_model, b->cpu_model);
	assert_int_equal(a->cpu_stepping, b->cpu_stepping);
}

static void assert_same_maps(const struct recording *a, const struct recording *b)
{
	assert_int_equal(a->maps.n, b->maps.n);
	for (size_t i = 0; i < a->maps.n; i++) {
		const struct rec_map *m = &a->maps.v[i], *n = &b->maps.v[i];

		assert_string_equal(m->path, n->path);
		assert_int_equal(m->time_ns, n->time_ns);
		assert_int_equal(m->start, n->start);
		assert_int_equal(m->len, n->len);
		assert_int_equal(m->pgoff, n->pgoff);
		assert_int_equal(m->ino, n->ino);
		assert_int_equal(m->maj, n->maj);
		assert_int_equal(m->min, n->min);
		assert_int_equal(m->pid, n->pid);
		assert_int_equal(m->tid, n->tid);
	}
}

/* PT that is not whole words gets PAD packets behind it; a thread without any has no stream. */
static void assert_same_threads(const struct recording *a, const struct recording *b)
{
	size_t at = 0;

	assert_int_equal(a->threads.n, b->threads.n);
	for (size_t i = 0; i < a->threads.n; i++) {
		assert_int_equal(a->threads.v[i].pid, b->threads.v[i].pid);
		assert_int_equal(a->threads.v[i].tid, b->threads.v[i].tid);
		assert_int_equal(a->threads.v[i].start_ns, b->threads.v[i].start_ns);
		assert_string_equal(a->threads.v[i].comm, b->threads.v[i].comm);
	}
	for (size_t i = 0; i < a->aux.n; i++) {
		const struct rec_aux *x = &a->aux.v[i], *y = &b->aux.v[at];

		if (!x->size)
			continue;
		assert_true(at++ < b->aux.n);
		assert_int_equal(x->pid, y->pid);
		assert_int_equal(x->tid, y->tid);
		assert_int_equal(x->tsc, y->tsc);
		assert_int_equal(y->size, (x->size + 7) / 8 * 8);
		assert_memory_equal(x->data, y->data, x->size);
		for (size_t j = x->size; j < y->size; j++)
			assert_int_equal(y->data[j], 0);
	}
	assert_int_equal(at, b->aux.n);
}

static void assert_same(const struct recording *a, const struct recording *b)
{
	assert_same_meta(a, b);
	assert_same_pt(&a->pt, &b->pt);
	assert_same_maps(a, b);
	assert_same_threads(a, b);
	assert_int_equal(a->losses.n, b->losses.n);
	for (size_t i = 0; i < a->losses.n; i++)
		assert_memory_equal(&a->losses.v[i], &b->losses.v[i], sizeof(struct rec_loss));
	assert_int_equal(a->hits.n, b->hits.n);
	for (size_t i = 0; i < a->hits.n; i++)
		assert_memory_equal(&a->hits.v[i], &b->hits.v[i], sizeof(struct mt_hit));
}

static void test_what_is_written_is_read(void **state)
{
	struct fixture *f = *state;

	write_it(f);
	assert_int_equal(read_it(f), 0);
	assert_same(&f->rec, &f->back);
	assert_string_equal(f->said.text, "");
}

/* A thread calls itself what it likes, and as often as it likes. */
static void test_names_of_threads(void **state)
{
	struct fixture *f = *state;
	struct rec_thread thread = {.pid = 70, .tid = 71, .comm = "a\x1b[31m\nb"};

	for (int i = 0; i < 2; i++) {
		assert_int_equal(recording__add_thread(&f->rec, &thread), 0);
		assert_string_equal(recording__find_thread(&f->rec, 70, 71)->comm, "a?[31m?b");
	}
}

static void test_300_threads(void **state)
{
	struct fixture *f = *state;

	recording__fini(&f->rec);
	recording__fill(&f->rec, 300);
	write_it(f);
	assert_int_equal(read_it(f), 0);
	assert_same(&f->rec, &f->back);
}

static void test_a_stream_of_no_intel_cpu(void **state)
{
	struct fixture *f = *state;

	f->rec.pt.cpu_family = f->rec.pt.cpu_model = f->rec.pt.cpu_stepping = 0;
	write_it(f);
	assert_int_equal(read_it(f), 0);
	assert_same(&f->rec, &f->back);
}

static void test_nothing_at_all(void **state)
{
	struct fixture *f = *state;

	recording__fini(&f->rec);
	recording__init(&f->rec);
	write_it(f);
	assert_int_equal(read_it(f), 0);
	assert_int_equal(f->back.maps.n + f->back.threads.n + f->back.aux.n + f->back.hits.n, 0);
	assert_string_equal(f->back.source, "");
}

static void test_nobody_else_may_read_it(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];
	struct stat st;

	write_it(f);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	snprintf(path, sizeof(path), "%s/data", f->path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void test_nothing_there(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(read_it(f), -ENOENT);
	ASSERT_SAID(f, TEXT_cannot_open, f->path, strerror(ENOENT));
}

static void test_data_that_is_no_recording(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];

	write_it(f);
	snprintf(path, sizeof(path), "%s/data", f->path);
	write_file(f, "data", "", 0);
	assert_int_equal(read_it(f), -EINVAL);
	ASSERT_SAID(f, TEXT_not_a_recording, path);
	write_file(f, "data", "#!/bin/sh\n", 10);
	assert_int_equal(read_it(f), -EINVAL);
	ASSERT_SAID(f, TEXT_not_perf_data);
}

static void test_data_that_is_a_pipe_does_not_block(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];

	write_it(f);
	snprintf(path, sizeof(path), "%s/data", f->path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(read_it(f), -EINVAL);
	ASSERT_SAID(f, TEXT_not_a_recording, path);
}

static void test_the_data_alone_is_a_perf_data(void **state)
{
	struct fixture *f = *state;

	write_it(f);
	strcat(f->path, "/data");
	assert_int_equal(read_it(f), 0);
	assert_string_equal(f->back.source, "perf");
	assert_int_equal(f->back.threads.n, f->rec.threads.n);
	/* But for the vdso, which is ours: it was written by the kernel that runs. */
	assert_true(f->back.images.n <= 1);
	if (f->back.images.n)
		assert_string_equal(f->back.images.v[0].path, "[vdso]");
}

static void test_an_old_recording_is_kept_once(void **state)
{
	struct fixture *f = *state;

	for (int i = 1; i <= 3; i++) {
		f->rec.pid = i;
		write_it(f);
	}
	assert_int_equal(read_it(f), 0);
	assert_int_equal(f->back.pid, 3);
	strcat(f->path, ".old");
	assert_int_equal(read_it(f), 0);
	assert_int_equal(f->back.pid, 2);
	strcat(f->path, ".old");
	assert_int_equal(access(f->path, F_OK), -1);
}

static void expect_refused(struct fixture *f)
{
	stderr_capture__begin(&f->said);
	assert_int_equal(recording_dir__create(f->path), -EEXIST);
	stderr_capture__end(&f->said);
	ASSERT_SAID(f, TEXT_in_the_way, f->path, f->path);
}

/* As root, "-o" must not move /dev/null or /home away. */
static void test_what_is_no_recording_stays(void **state)
{
	struct fixture *f = *state;
	char path[sizeof(f->path)], file[sizeof(f->path) + 16];

	strcpy(path, f->path);
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_refused(f);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(file, sizeof(file), "%s/letters", path);
	assert_int_equal(fs__write(file, "x", 1), 0);
	expect_refused(f);
	assert_int_equal(access(file, F_OK), 0);
	/* Nor is it removed where it stands in the way of what is to be kept. */
	snprintf(file, sizeof(file), "%s.old", path);
	assert_int_equal(rename(path, file), 0);
	write_it(f);
	expect_refused(f);
}

static void test_an_empty_folder_is_taken(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(mkdir(f->path, 0700), 0);
	write_it(f);
	assert_int_equal(read_it(f), 0);
	strcat(f->path, ".old");
	assert_int_equal(access(f->path, F_OK), -1);
}

static void test_a_place_that_cannot_be_written(void **state)
{
	struct fixture *f = *state;

	strcpy(f->path, "/proc/x.mtbpf");
	stderr_capture__begin(&f->said);
	assert_int_not_equal(recording_dir__create(f->path), 0);
	stderr_capture__end(&f->said);
	ASSERT_SAID(f, TEXT_cannot_create_recording, f->path, strerror(ENOENT));
	stderr_capture__begin(&f->said);
	assert_int_equal(recording__write(&f->rec, f->path), -ENOENT);
	stderr_capture__end(&f->said);
	ASSERT_SAID(f, TEXT_cannot_write_recording, f->path, strerror(ENOENT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_is_written_is_read),
		TEST(test_300_threads),
		TEST(test_names_of_threads),
		TEST(test_a_stream_of_no_intel_cpu),
		TEST(test_nothing_at_all),
		TEST(test_nobody_else_may_read_it),
		TEST(test_nothing_there),
		TEST(test_data_that_is_no_recording),
		TEST(test_data_that_is_a_pipe_does_not_block),
		TEST(test_the_data_alone_is_a_perf_data),
		TEST(test_an_old_recording_is_kept_once),
		TEST(test_what_is_no_recording_stays),
		TEST(test_an_empty_folder_is_taken),
		TEST(test_a_place_that_cannot_be_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
