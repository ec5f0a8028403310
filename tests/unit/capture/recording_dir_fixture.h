/* SPDX-License-Identifier: MIT */
/* A recording's directory in a folder of its own, written and read back. */
#ifndef MTBPF_TESTS_RECORDING_DIR_FIXTURE_H
#define MTBPF_TESTS_RECORDING_DIR_FIXTURE_H

#include "recording_fixture.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "said.h"
#include "stderr_capture.h"
#include "util/fs.h"

struct fixture {
	char folder[40], path[64];
	struct recording rec, back;
	struct stderr_capture said;
};

static inline int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->folder, "/tmp/test_recording.XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	snprintf(f->path, sizeof(f->path), "%s/x.mtbpf", f->folder);
	recording__fill(&f->rec, 10);
	recording__init(&f->back);
	*state = f;
	return 0;
}

static inline int tear_down(void **state)
{
	struct fixture *f = *state;

	recording__fini(&f->rec);
	recording__fini(&f->back);
	assert_int_equal(fs__remove_dir(f->folder), 0);
	free(f);
	return 0;
}

static inline void write_it(struct fixture *f)
{
	assert_int_equal(recording_dir__create(f->path), 0);
	assert_int_equal(recording__write(&f->rec, f->path), 0);
}

/* Reads it, and keeps what was said. */
static inline int read_it(struct fixture *f)
{
	int err;

	recording__fini(&f->back);
	recording__init(&f->back);
	stderr_capture__begin(&f->said);
	err = recording__read(&f->back, f->path);
	stderr_capture__end(&f->said);
	return err;
}

static inline void write_file(struct fixture *f, const char *name, const void *data, size_t size)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", f->path, name);
	assert_int_equal(fs__write(path, data, size), 0);
}

/* An error with a text of tests/messages, and a hint. */
#define ASSERT_SAID(f, ...)                                                                        \
	do {                                                                                       \
		ASSERT_ERROR((f)->said.text, __VA_ARGS__);                                         \
		assert_non_null(strstr((f)->said.text, "hint: "));                                 \
	} while (0)

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
