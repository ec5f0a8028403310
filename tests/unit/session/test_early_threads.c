// SPDX-License-Identifier: MIT
/* A recording of several threads, whose trace is written while it is decoded. */
#include "decode_fixture.h"

#include <unistd.h>

#include "decode/decode.h"
#include "pipeline/pipeline.h"

#define FIRST_TID 100
#define THREADS	  3

struct several {
	struct recording rec;
	char dir[32], path[48];
};

/* The one that is decoded last begins first. */
static void add_thread(struct recording *rec, unsigned int i)
{
	struct traced t;
	struct rec_aux aux = {.pid = PID, .tid = FIRST_TID + (pid_t)i};

	traced__init(&t, 5000, 100, true);
	t.now = START_NS + 100 * (THREADS - i);
	traced__run(&t, 400);
	aux.tsc = t.now;
	aux.size = t.out.bytes.n;
	aux.data = malloc(aux.size);
	assert_non_null(aux.data);
	memcpy(aux.data, t.out.bytes.v, aux.size);
	assert_int_equal(recording__add_aux(rec, &aux), 0);
	assert_int_equal(
		recording__add_thread(
			rec, &(struct rec_thread){.pid = PID, .tid = aux.tid, .comm = "worker"}),
		0);
	traced__fini(&t);
}

static int set_up(void **state)
{
	struct several *s = calloc(1, sizeof(*s));
	struct traced t;

	assert_non_null(s);
	traced__init(&t, 5000, 100, true);
	s->rec = t.rec;
	t.rec = (struct recording){0};
	traced__fini(&t);
	s->rec.pid = PID;
	for (unsigned int i = 0; i < THREADS; i++)
		add_thread(&s->rec, i);
	strcpy(s->dir, "/tmp/early-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	snprintf(s->path, sizeof(s->path), "%s/a.fxt", s->dir);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct several *s = *state;

	unlink(s->path);
	rmdir(s->dir);
	recording__fini(&s->rec);
	free(s);
	return 0;
}

/* A line a slice. To be freed. */
static char *text_of(const struct decoded *decoded)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(decoded__write_text(decoded, trace_text__tree, out), 0);
	fclose(out);
	return text;
}

static char *text_of_recording(struct several *s)
{
	struct decoded decoded;
	char *text;

	assert_int_equal(decoded__make(&decoded, &s->rec, &(struct tree_options){0}), 0);
	text = text_of(&decoded);
	decoded__fini(&decoded);
	return text;
}

static char *text_of_trace(const struct several *s)
{
	struct decoded decoded;
	char *text;

	assert_int_equal(decoded__make_from_fxt(&decoded, s->path), 0);
	text = text_of(&decoded);
	decoded__fini(&decoded);
	return text;
}

static void begin(struct several *s, struct decoded *decoded)
{
	assert_int_equal(decoded__make(decoded, &s->rec, &(struct tree_options){.trace = s->path}),
			 0);
}

static const struct call_tree *tree_of(const struct decoded *decoded, pid_t tid)
{
	for (size_t i = 0; i < decoded->trees.n; i++)
		if (decoded->trees.v[i].tid == tid)
			return &decoded->trees.v[i];
	fail();
	return NULL;
}

static void write_trace(const struct several *s, struct decoded *decoded)
{
	assert_int_equal(decoded__write_trace(decoded, &s->rec, s->path), 0);
	decoded__fini(decoded);
}

static void assert_same_text(char *a, char *b)
{
	assert_true(strlen(a) > 1000);
	assert_string_equal(a, b);
	free(a);
	free(b);
}

static void test_the_start_is_known_before(void **state)
{
	const struct several *s = *state;
	struct images *images = images__new(&s->rec);
	struct decode_bounds bounds;

	assert_non_null(images);
	assert_int_equal(decode__find_bounds(&s->rec, images, &bounds), 0);
	assert_int_equal(bounds.first_ns, START_NS + 100 + 10);
	images__free(images);
}

static void test_all_threads_are_written_as_they_come(void **state)
{
	struct several *s = *state;
	struct decoded decoded;

	begin(s, &decoded);
	assert_int_equal(decoded.totals.first_ns, decoded.base_ns);
	for (pid_t tid = FIRST_TID; tid < FIRST_TID + THREADS; tid++)
		assert_in_range(tree_of(&decoded, tid)->calls.n, 1, 500);
	write_trace(s, &decoded);
	assert_same_text(text_of_trace(s), text_of_recording(s));
}

/* The report compares iterations of the thread that triggered: nothing of it is missing. */
static void test_the_thread_with_a_hit_is_kept(void **state)
{
	struct several *s = *state;
	const pid_t tid = FIRST_TID + THREADS - 1;
	struct mt_hit hit = {.tgid = PID, .tid = (uint32_t)tid, .time_ns = START_NS + 20000};
	struct decoded decoded, all;

	assert_int_equal(VEC_ADD(&s->rec.hits, hit), 0);
	assert_int_equal(decoded__make(&all, &s->rec, &(struct tree_options){0}), 0);
	begin(s, &decoded);
	assert_int_equal(tree_of(&decoded, tid)->calls.n, tree_of(&all, tid)->calls.n);
	assert_in_range(tree_of(&decoded, FIRST_TID)->calls.n, 1,
			tree_of(&all, FIRST_TID)->calls.n / 2);
	decoded__fini(&all);
	write_trace(s, &decoded);
	assert_same_text(text_of_trace(s), text_of_recording(s));
}

static void test_what_a_thread_lost_is_a_gap(void **state)
{
	struct several *s = *state;
	struct rec_loss loss = {.time_ns = 1, .tid = FIRST_TID + 1, .aux_flags = 1};
	struct decoded decoded;

	assert_int_equal(recording__add_loss(&s->rec, &loss), 0);
	assert_int_equal(decoded__make(&decoded, &s->rec, &(struct tree_options){0}), 0);
	assert_int_equal(decoded.totals.gaps[GAP_LOST], 1);
	/* Up to where it went on: of one that nobody met on the way, there is no such place. */
	assert_int_equal(decoded.totals.gap_ns[GAP_LOST], START_NS + 200 + 10 - 1);
	decoded__fini(&decoded);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_the_start_is_known_before),
		TEST(test_all_threads_are_written_as_they_come),
		TEST(test_the_thread_with_a_hit_is_kept),
		TEST(test_what_a_thread_lost_is_a_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
