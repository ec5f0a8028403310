// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/fxt.h"
#include "trace/fxt_read.h"
#include "trace/codec.h"
#include "util/fs.h"

struct output {
	char folder[32], path[48];
};

static int make_folder(void **state)
{
	struct output *output = calloc(1, sizeof(*output));

	strcpy(output->folder, "/tmp/test_fxt_read.XXXXXX");
	assert_non_null(mkdtemp(output->folder));
	*state = output;
	return 0;
}

static int remove_folder(void **state)
{
	struct output *output = *state;

	fs__remove_dir(output->folder);
	free(output);
	return 0;
}

/* What our encoder writes: a slice in two halves, one whole, an arrow, names. */
static void write_trace(struct output *output, const char *name)
{
	const struct fxt_arg args[] = {
		{.key = "file", .kind = FXT_STRING, .string = "a.c"},
		{.key = "line", .kind = FXT_UINT, .number = 17},
		{.key = "insns", .kind = FXT_UINT, .number = 1ull << 40},
		{.key = "address", .kind = FXT_POINTER, .number = 0x401000},
	};
	struct fxt_event event = {.time_ns = 5,
				  .pid = 7,
				  .tid = 8,
				  .name = "f",
				  .category = "user",
				  .args = args,
				  .n_args = 4};
	struct sink *sink;
	struct fxt *fxt;
	uint64_t bytes;

	snprintf(output->path, sizeof(output->path), "%s/%s", output->folder, name);
	sink = sink__open(output->path);
	fxt = fxt__new(sink);
	fxt__name_process(fxt, 7, "service");
	fxt__name_track(fxt, 7, 8, 8, "worker");
	fxt__event(fxt, FXT_EVENT_BEGIN, 0, &event);
	fxt__end(fxt, 7, 8, 9);
	event.time_ns = 11;
	event.n_args = 0;
	fxt__event(fxt, FXT_EVENT_COMPLETE, 14, &event);
	fxt__flow(fxt, FXT_EVENT_FLOW_BEGIN,
		  &(struct fxt_flow){.time_ns = 12, .pid = 7, .tid = 8, .id = 3});
	fxt__free(fxt);
	assert_int_equal(sink__close(sink, &bytes), 0);
}

static struct fxt_reader *open_trace(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct fxt_reader *reader = fxt_reader__open(fd);

	close(fd);
	return reader;
}

static void expect_names(struct fxt_reader *reader, struct fxt_read *read)
{
	assert_int_equal(fxt_reader__next(reader, read), 1);
	assert_int_equal(read->kind, FXT_READ_PROCESS);
	assert_int_equal(read->pid, 7);
	assert_string_equal(read->name, "service");
	assert_int_equal(fxt_reader__next(reader, read), 1);
	assert_int_equal(read->kind, FXT_READ_THREAD);
	assert_int_equal(read->pid, 7);
	assert_int_equal(read->tid, 8);
	assert_string_equal(read->name, "worker");
}

static void expect_begin(struct fxt_reader *reader, struct fxt_read *read)
{
	assert_int_equal(fxt_reader__next(reader, read), 1);
	assert_int_equal(read->kind, FXT_READ_EVENT);
	assert_int_equal(read->event, FXT_EVENT_BEGIN);
	assert_int_equal(read->time_ns, 5);
	assert_int_equal(read->pid, 7);
	assert_int_equal(read->tid, 8);
	assert_string_equal(read->category, "user");
	assert_string_equal(read->name, "f");
	assert_int_equal(read->n_args, 4);
	assert_string_equal(fxt_read__arg(read, "file")->string, "a.c");
	assert_int_equal(fxt_read__arg(read, "line")->number, 17);
	assert_int_equal(fxt_read__arg(read, "insns")->number, 1ull << 40);
	assert_int_equal(fxt_read__arg(read, "address")->type, FXT_ARG_POINTER);
	assert_int_equal(fxt_read__arg(read, "address")->number, 0x401000);
	assert_null(fxt_read__arg(read, "module"));
}

static void read_back(struct output *output, const char *name)
{
	struct fxt_reader *reader;
	struct fxt_read read;

	write_trace(output, name);
	reader = open_trace(output->path);
	assert_non_null(reader);
	expect_names(reader, &read);
	expect_begin(reader, &read);
	assert_int_equal(fxt_reader__next(reader, &read), 1);
	assert_int_equal(read.event, FXT_EVENT_END);
	assert_int_equal(read.time_ns, 9);
	assert_int_equal(fxt_reader__next(reader, &read), 1);
	assert_int_equal(read.event, FXT_EVENT_COMPLETE);
	assert_int_equal(read.end_ns, 14);
	assert_int_equal(fxt_reader__next(reader, &read), 1);
	assert_int_equal(read.event, FXT_EVENT_FLOW_BEGIN);
	assert_int_equal(read.id, 3);
	assert_int_equal(fxt_reader__next(reader, &read), 0);
	fxt_reader__free(reader);
}

static void test_what_we_write(void **state)
{
	read_back(*state, "t.fxt");
}

static void test_gzip(void **state)
{
	read_back(*state, "t.fxt.gz");
}

static void test_zstd(void **state)
{
	read_back(*state, "t.fxt.zst");
}

/* In memory: of words, and of bytes at the end of them. */
static struct fxt_reader *open_words(const uint64_t *words, size_t n, size_t extra)
{
	int fd = memfd_create("fxt", 0);
	struct fxt_reader *reader;

	assert_int_equal(fs__write_fd(fd, words, n * sizeof(*words) + extra), 0);
	reader = fxt_reader__open(fd);
	close(fd);
	return reader;
}

static const uint64_t per_megahertz[] = {1 | 2 << 4, 1000000};

/* An instant of thread 0, which the record itself names, with strings in it. */
/* Ours have none such; somebody else's file is read as well. */
static void test_names_that_others_chose(void **state)
{
	static const char name[] = "w\x1b[3\nr";
	struct output *output = *state;
	struct fxt_reader *reader;
	struct fxt_read read;
	size_t len;
	char *data, *at;
	int fd;

	write_trace(output, "t.fxt");
	assert_int_equal(fs__read(output->path, &data, &len), 0);
	at = memmem(data, len, "worker", 6);
	assert_non_null(at);
	fd = open(output->path, O_WRONLY);
	assert_int_equal(pwrite(fd, name, 6, at - data), 6);
	close(fd);
	free(data);
	reader = open_trace(output->path);
	assert_int_equal(fxt_reader__next(reader, &read), 1);
	assert_int_equal(fxt_reader__next(reader, &read), 1);
	assert_string_equal(read.name, "w?[3?r");
	fxt_reader__free(reader);
}

static void test_what_others_write(void **state)
{
	const uint64_t words[] = {
		FXT_MAGIC,
		per_megahertz[0],
		per_megahertz[1],
		4 | 10 << 4 | 1ull << 20 | (0x8000ull | 1) << 32 | (0x8000ull | 9) << 48,
		3,
		70,
		80,
		'c',
		0x6766656463626161 /* "aabcdefg" */,
		'h',
		/* an i64 by its key "k", and its two words and that of the key */
		3 | 3 << 4 | (0x8000ull | 1) << 16,
		'k',
		(uint64_t)-5,
	};
	struct fxt_reader *reader;
	struct fxt_read read;

	reader = open_words(words, sizeof(words) / sizeof(words[0]), 0);
	assert_int_equal(fxt_reader__next(reader, &read), 1);
	assert_int_equal(read.time_ns, 3000);
	assert_int_equal(read.pid, 70);
	assert_int_equal(read.tid, 80);
	assert_string_equal(read.category, "c");
	assert_string_equal(read.name, "aabcdefgh");
	assert_int_equal((int64_t)fxt_read__arg(&read, "k")->number, -5);
	assert_int_equal(fxt_reader__next(reader, &read), 0);
	fxt_reader__free(reader);
}

static int first_of(const uint64_t *record, size_t n, size_t extra)
{
	uint64_t words[16] = {FXT_MAGIC};
	struct fxt_reader *reader;
	struct fxt_read read;
	int err;

	memcpy(&words[1], record, n * sizeof(*record));
	reader = open_words(words, n + 1, extra);
	assert_non_null(reader);
	err = fxt_reader__next(reader, &read);
	fxt_reader__free(reader);
	return err;
}

#define FIRST_OF(...)                                                                              \
	first_of((const uint64_t[]){__VA_ARGS__},                                                  \
		 sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), 0)

static void test_damage(void **state)
{
	assert_int_equal(FIRST_OF(4), -EBADMSG);				 /* no words */
	assert_int_equal(FIRST_OF(4 | 5 << 4, 1), -EBADMSG);			 /* cut short */
	assert_int_equal(FIRST_OF(4 | 1 << 4), -EBADMSG);			 /* no time */
	assert_int_equal(FIRST_OF(4 | 2 << 4 | 1 << 24, 1), 1);			 /* an instant */
	assert_int_equal(FIRST_OF(4 | 2 << 4 | 4 << 16 | 1 << 24, 1), -EBADMSG); /* no end */
	assert_int_equal(FIRST_OF(4 | 2 << 4 | 1 << 20 | 1 << 24, 1), -EBADMSG); /* no argument */
	/* An argument of no words, of which there could be any number; one longer than the record.
	 */
	assert_int_equal(FIRST_OF(4 | 3 << 4 | 1 << 20 | 1 << 24, 1, 2), -EBADMSG);
	assert_int_equal(FIRST_OF(4 | 3 << 4 | 1 << 20 | 1 << 24, 1, 2 | 3 << 4), -EBADMSG);
	/* A name longer than the record; a string that is. */
	assert_int_equal(FIRST_OF(4 | 2 << 4 | 1 << 24 | 0x8009ull << 48, 1), -EBADMSG);
	assert_int_equal(FIRST_OF(2 | 1 << 4 | 1 << 16 | 9ull << 32), -EBADMSG);
	assert_int_equal(FIRST_OF(1 | 2 << 4, 0), -EBADMSG); /* no ticks a second */
	assert_int_equal(FIRST_OF(15 | 1 << 4), -EBADMSG);   /* large */
	assert_int_equal(FIRST_OF(9 | 2 << 4, 1), 0);	     /* of no kind that we read */
	assert_int_equal(first_of((const uint64_t[]){9 | 1 << 4, 5}, 1, 3), -EBADMSG);
}

static void test_not_a_trace(void **state)
{
	const uint64_t words[] = {FXT_MAGIC + 1};

	assert_null(open_words(words, 1, 0));
	assert_int_equal(errno, EBADMSG);
	assert_null(open_words(words, 0, 0));
	assert_int_equal(errno, EBADMSG);
}

static void cut_file(const char *path, off_t by)
{
	int fd = open(path, O_RDWR);

	assert_int_equal(ftruncate(fd, lseek(fd, 0, SEEK_END) - by), 0);
	close(fd);
}

/* The last block is cut: what lies before is read, and then it is said. */
static void expect_cut(struct output *output, const char *name)
{
	char data[64];
	struct unpack *unpack;
	ssize_t n;
	int fd;

	write_trace(output, name);
	cut_file(output->path, 6);
	fd = open(output->path, O_RDONLY);
	unpack = unpack__open(fd);
	assert_non_null(unpack);
	do
		n = unpack__read(unpack, data, sizeof(data));
	while (n > 0);
	assert_int_equal(n, -EBADMSG);
	unpack__free(unpack);
	close(fd);
}

static void test_cut_archives(void **state)
{
	expect_cut(*state, "cut.fxt.gz");
	expect_cut(*state, "cut.fxt.zst");
}

/* Both from the beginning, though they have the same file. */
static void test_two_readers(void **state)
{
	struct output *output = *state;
	struct unpack *unpack[2];
	uint64_t words[2][2];
	int fd;

	write_trace(output, "two.fxt.gz");
	fd = open(output->path, O_RDONLY);
	for (int i = 0; i < 2; i++) {
		unpack[i] = unpack__open(fd);
		assert_int_equal(unpack__read(unpack[i], words[i], sizeof(words[i])), 16);
		assert_true(words[i][0] == FXT_MAGIC);
	}
	for (int i = 0; i < 2; i++)
		unpack__free(unpack[i]);
	close(fd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_we_write),
		TEST(test_names_that_others_chose),
		TEST(test_gzip),
		TEST(test_zstd),
		TEST(test_two_readers),
		TEST(test_cut_archives),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_what_others_write),
		cmocka_unit_test(test_not_a_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
