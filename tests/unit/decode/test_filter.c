// SPDX-License-Identifier: MIT
/* Parts of a recording: they are what all of it has there, and no more of it is decoded. */
#include "decode/filter.h"

#include "decode_fixture.h"

#include "decode/decode.h"
#include "util/log.h"

#define PSB_PERIOD 2000
#define THREADS	   3

struct seen {
	struct branches threads[THREADS];
	unsigned int current;
	struct selection *selection; /* NULL: all */
};

static int take(void *ctx, const struct branch *b)
{
	struct seen *seen = ctx;
	struct branch *out = VEC_PUSH(&seen->threads[seen->current].list);

	assert_non_null(out);
	*out = *b;
	return 0;
}

TAKE_EACH(take_each, take)

static int take_all(void *ctx, struct branch *v, size_t n)
{
	struct seen *seen = ctx;
	struct branch_batch batch = {v, n};

	if (seen->selection)
		assert_int_equal(selection__take(seen->selection, v, n, &batch), 0);
	return take_each(seen, batch.v, batch.n);
}

static int begin_thread(void *ctx, pid_t pid, pid_t tid, struct code_map *map)
{
	struct seen *seen = ctx;

	seen->current = (unsigned int)(tid - TID);
	assert_true(seen->current < THREADS);
	if (seen->selection)
		selection__begin_thread(seen->selection, map);
	return 0;
}

static int end_thread(void *ctx)
{
	return 0;
}

static void seen__fini(struct seen *seen)
{
	for (int i = 0; i < THREADS; i++)
		VEC_FINI(&seen->threads[i].list);
}

/* Each begins a while after the one before it. */
static void add_thread(struct recording *rec, int i)
{
	struct traced t;
	struct rec_aux aux = {.pid = PID, .tid = TID + i};

	traced__init(&t, PSB_PERIOD, 100, true);
	t.now = START_NS + 5000ull * (unsigned int)i;
	pt_stream__time(&t.stream, t.now);
	traced__run(&t, 1500);
	aux.tsc = t.now;
	aux.size = t.out.bytes.n;
	aux.data = malloc(aux.size);
	assert_non_null(aux.data);
	memcpy(aux.data, t.out.bytes.v, aux.size);
	assert_int_equal(recording__add_aux(rec, &aux), 0);
	traced__fini(&t);
}

static int set_up(void **state)
{
	struct recording *rec = malloc(sizeof(*rec));
	struct traced t;

	log__set_level(LOG_QUIET);
	assert_non_null(rec);
	traced__init(&t, PSB_PERIOD, 100, true);
	*rec = t.rec;
	t.rec = (struct recording){0};
	traced__fini(&t);
	for (int i = 0; i < THREADS; i++)
		add_thread(rec, i);
	*state = rec;
	return 0;
}

static int tear_down(void **state)
{
	recording__fini(*state);
	free(*state);
	return 0;
}

static void decode(const struct recording *rec, struct seen *seen, struct decode_totals *totals)
{
	struct images *images = images__new(rec);
	struct branch_receiver receiver = {
		.begin = begin_thread, .take = take_all, .end = end_thread, .ctx = seen};

	assert_non_null(images);
	assert_int_equal(decode__threads(rec, images, true, &receiver, totals), 0);
	images__free(images);
}

static size_t bytes_of(const struct recording *rec)
{
	size_t n = 0;

	for (size_t i = 0; i < rec->aux.n; i++)
		n += rec->aux.v[i].size;
	return n;
}

/* Gives the recording back what a filter has taken from it. */
static void restore(struct recording *rec, const size_t sizes[THREADS])
{
	for (size_t i = 0; i < rec->aux.n; i++) {
		struct rec_aux *aux = &rec->aux.v[i];

		aux->data -= aux->left_out;
		aux->left_out = 0;
		aux->size = sizes[i];
	}
}

static bool same(const struct branch *a, const struct branch *b)
{
	return a->time_ns == b->time_ns && a->from == b->from && a->to == b->to &&
	       a->kind == b->kind && a->n_insns == b->n_insns;
}

/*
 * What lies in [from, to] is there; before it at most where the thread was, and behind it an END.
 * Returns how many there are of all of these.
 */
static size_t check_thread(const struct branches *all, const struct branches *part,
			   const struct decode_filter *f)
{
	size_t i = 0, k = 0, first;

	while (i < all->list.n && all->list.v[i].time_ns < f->from_ns)
		i++;
	first = i;
	if (first && (first == all->list.n || all->list.v[first].time_ns > f->to_ns) &&
	    !part->list.n)
		return 0;
	/* Running, or left again. */
	if (first && part->list.n) {
		const struct branch *before = &all->list.v[first - 1];
		bool is_off = before->kind >= BRANCH_END_SYSCALL;

		assert_int_equal(part->list.v[0].kind, BRANCH_BEGIN);
		assert_int_equal(part->list.v[0].time_ns, f->from_ns);
		k = is_off ? 2 : 1;
		if (is_off)
			assert_int_equal(part->list.v[1].kind, before->kind);
	}
	for (; i < all->list.n && all->list.v[i].time_ns <= f->to_ns; i++, k++) {
		assert_true(k < part->list.n);
		if (!same(&all->list.v[i], &part->list.v[k])) {
			print_branch("all", &all->list.v[i]);
			print_branch("part", &part->list.v[k]);
			fail();
		}
	}
	if (i < all->list.n && k && part->list.v[k - 1].kind < BRANCH_END_SYSCALL) {
		assert_int_equal(part->list.v[k].kind, BRANCH_END);
		assert_int_equal(part->list.v[k++].time_ns, f->to_ns);
	}
	assert_int_equal(k, part->list.n);
	return k;
}

static void test_a_part_is_what_all_has_there(void **state)
{
	struct recording *rec = *state;
	struct seen all = {0};
	struct decode_totals totals = {0};
	size_t sizes[THREADS];
	unsigned int seed = 1;

	for (size_t i = 0; i < THREADS; i++)
		sizes[i] = rec->aux.v[i].size;
	decode(rec, &all, &totals);
	for (int round = 0; round < 300; round++) {
		uint64_t span = totals.last_ns - totals.first_ns + 20000;
		uint64_t a = totals.first_ns - 10000 + (uint64_t)rand_r(&seed) % span;
		uint64_t len = (uint64_t)rand_r(&seed) % (round % 2 ? 300 : span);
		struct decode_filter f = {.from_ns = round % 7 ? a : 0,
					  .to_ns = round % 5 ? a + len : UINT64_MAX};
		struct decode_totals part_totals = {0}, ignored = {0};
		struct filter_totals found = {0};
		struct selection *selection = malloc(sizeof(*selection));
		struct seen part = {.selection = selection};
		size_t n = 0;

		assert_non_null(selection);
		selection__init(selection, &f, &part_totals, &found);
		decode_filter__narrow(&f, rec);
		decode(rec, &part, &ignored);
		/* A PSB before it, and two behind it. */
		if (round % 2 && round % 7 && round % 5)
			assert_true(bytes_of(rec) < THREADS * 4 * (PSB_PERIOD + 500));
		for (int i = 0; i < THREADS; i++)
			n += check_thread(&all.threads[i], &part.threads[i], &f);
		assert_int_equal(found.branches, n);
		assert_int_equal(part_totals.branches, n);
		assert_true(!n ||
			    (part_totals.first_ns >= f.from_ns && part_totals.last_ns <= f.to_ns));
		restore(rec, sizes);
		seen__fini(&part);
		selection__fini(selection);
		free(selection);
	}
	seen__fini(&all);
}

static void test_bounds_are_those_of_all(void **state)
{
	struct recording *rec = *state;
	struct images *images = images__new(rec);
	struct decode_totals totals = {0};
	struct decode_bounds bounds;
	struct seen all = {0};

	assert_non_null(images);
	decode(rec, &all, &totals);
	assert_int_equal(decode__find_bounds(rec, images, &bounds), 0);
	assert_int_equal(bounds.first_ns, totals.first_ns);
	assert_int_equal(bounds.last_ns, totals.last_ns);
	images__free(images);
	seen__fini(&all);
}

/* Where no PSB tells the time, all of it is needed. */
static void test_without_times_nothing_is_left_out(void **state)
{
	struct recording rec = {.pt = {.time_mult = 1}};
	struct decode_filter f = {.from_ns = START_NS + 50, .to_ns = START_NS + 60};
	struct rec_aux aux = {.pid = PID, .tid = TID, .size = 64};

	aux.data = calloc(1, aux.size);
	assert_non_null(aux.data);
	for (int i = 0; i < 16; i++)
		aux.data[i + 8] = i & 1 ? 0x82 : 0x02;
	assert_int_equal(recording__add_aux(&rec, &aux), 0);
	decode_filter__narrow(&f, &rec);
	assert_int_equal(rec.aux.v[0].size, 64);
	assert_int_equal(rec.aux.v[0].left_out, 0);
	recording__fini(&rec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_part_is_what_all_has_there, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_bounds_are_those_of_all, set_up, tear_down),
		cmocka_unit_test(test_without_times_nothing_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
