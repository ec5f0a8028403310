// SPDX-License-Identifier: MIT
/* A recording that is cut short while it is mapped: an error, and no trace. */
#include "decode_fixture.h"

#include <errno.h>
#include <unistd.h>

#include "pipeline/pipeline.h"
#include "stderr_capture.h"
#include "util/signals.h"
#include "util/fs.h"
#include "util/log.h"

#define PAGE 4096

struct kept {
	struct recording rec; /* as it was read */
	char dir[32], path[64], data[80], trace[64];
};

/* Its PT fills several pages. */
static void record(struct recording *rec)
{
	struct traced t;
	struct rec_aux aux = {.pid = PID, .tid = TID};

	traced__init(&t, 5000, 100, true);
	traced__run(&t, 40000);
	assert_true(t.out.bytes.n > 8 * PAGE);
	aux.size = t.out.bytes.n;
	aux.data = malloc(aux.size);
	assert_non_null(aux.data);
	memcpy(aux.data, t.out.bytes.v, aux.size);
	*rec = t.rec;
	t.rec = (struct recording){0};
	rec->pid = PID;
	rec->source = strdup("soft");
	assert_int_equal(recording__add_aux(rec, &aux), 0);
	traced__fini(&t);
}

static int set_up(void **state)
{
	struct kept *k = calloc(1, sizeof(*k));
	struct recording rec;

	assert_non_null(k);
	strcpy(k->dir, "/tmp/cut-XXXXXX");
	assert_non_null(mkdtemp(k->dir));
	snprintf(k->path, sizeof(k->path), "%s/x.mtbpf", k->dir);
	snprintf(k->data, sizeof(k->data), "%s/data", k->path);
	snprintf(k->trace, sizeof(k->trace), "%s/x.fxt", k->dir);
	record(&rec);
	assert_int_equal(recording_dir__create(k->path), 0);
	assert_int_equal(recording__write(&rec, k->path), 0);
	recording__fini(&rec);
	recording__init(&k->rec);
	*state = k;
	return 0;
}

/* In the test itself: cmocka has its own handlers around each function that it calls. */
static void read_recording(struct kept *k)
{
	assert_int_equal(recording__read(&k->rec, k->path), 0);
}

static int tear_down(void **state)
{
	struct kept *k = *state;

	recording__fini(&k->rec);
	fs__remove_dir(k->dir);
	free(k);
	return 0;
}

static int decode(struct kept *k, struct stderr_capture *said)
{
	struct decoded decoded;
	int err;

	stderr_capture__begin(said);
	err = decoded__make(&decoded, &k->rec, &(struct tree_options){.trace = k->trace});
	decoded__fini(&decoded);
	stderr_capture__end(said);
	return err;
}

/* The first: what is cut stays remembered. */
static void test_a_whole_one(void **state)
{
	struct stderr_capture said;

	read_recording(*state);
	assert_int_equal(decode(*state, &said), 0);
	assert_string_equal(said.text, "");
	assert_false(cut_files__any());
}

static void test_cut_while_it_is_decoded(void **state)
{
	struct kept *k = *state;
	struct stderr_capture said;

	read_recording(k);
	assert_int_equal(truncate(k->data, PAGE), 0);
	assert_int_equal(decode(k, &said), -EIO);
	assert_string_equal(said.text, "mtbpf: the recording was truncated while it was read\n"
				       "hint: another process may be writing it: decode it later, "
				       "or decode a copy\n");
	assert_int_not_equal(access(k->trace, F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_whole_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cut_while_it_is_decoded, set_up, tear_down),
	};

	/* If decoding is slow, a line would tell its progress. */
	log__set_level(LOG_QUIET);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
