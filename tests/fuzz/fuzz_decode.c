// SPDX-License-Identifier: MIT
/*
 * libFuzzer: code and PT bytes to branches. Decoded by several threads they must be the same as by
 * one; without damage, the same in regions as in one go; and as long as neither sees damage, the
 * same as libipt's.
 *
 *   input: flags, two bytes of code's length, the code, the packets behind a first PSB+
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/decode.h"
#include "each_branch.h"
#include "oracle/oracle.h"
#include "util/log.h"
#include "util/vec.h"

#define BASE	  0x401000ull
#define CODE_SIZE 0x200
#define PID	  42
/* Code may loop without packets for as long as there are any. */
#define MAX_BRANCHES 100000

enum flags {
	FLAG_OFF = 1 << 0,    /* tracing is off at the PSB */
	FLAG_MIDDLE = 1 << 1, /* it is on, in the middle of the code */
};

struct taken {
	VEC(struct branch) list;
	struct decode_totals totals;
	int err;
};

static int take(void *ctx, const struct branch *b)
{
	struct taken *taken = ctx;
	struct branch *out = taken->list.n < MAX_BRANCHES ? VEC_PUSH(&taken->list) : NULL;

	if (!out)
		return 77;
	*out = *b;
	return 0;
}

TAKE_EACH(take_all, take)

static void decode(struct taken *taken, int (*run)(const struct decode_request *),
		   const struct recording *rec, const struct rec_aux *aux, size_t region_size,
		   unsigned int jobs)
{
	struct images *images = images__new(rec);
	struct code_map *map = code_map__new();

	*taken = (struct taken){0};
	taken->err = run(&(struct decode_request){.rec = rec,
						  .aux = aux,
						  .images = images,
						  .map = map,
						  .take = take_all,
						  .ctx = taken,
						  .totals = &taken->totals,
						  .all_branches = true,
						  .jobs = jobs,
						  .region_size = region_size});
	code_map__free(map);
	images__free(images);
}

static void print(const char *who, const struct taken *taken, size_t i)
{
	const struct branch *b = &taken->list.v[i];

	if (i >= taken->list.n) {
		fprintf(stderr, "%s: nothing\n", who);
		return;
	}
	fprintf(stderr, "%s: %s %llx -> %llx len %u, %u insns, at %llu\n", who,
		branch_kind__name((enum branch_kind)b->kind), (unsigned long long)b->from,
		(unsigned long long)b->to, b->len, b->n_insns, (unsigned long long)b->time_ns);
}

static void fail(const char *what, const struct taken *ours, const struct taken *theirs, size_t i)
{
	fprintf(stderr, "%s: branch %zu\n", what, i);
	for (size_t k = i > 3 ? i - 3 : 0; k <= i; k++) {
		print("ours  ", ours, k);
		print("theirs", theirs, k);
	}
	abort();
}

static bool same(const struct branch *a, const struct branch *b)
{
	return a->kind == b->kind && a->from == b->from && a->to == b->to && a->len == b->len &&
	       a->n_insns == b->n_insns;
}

static void compare(const char *what, const struct taken *a, const struct taken *b)
{
	if (a->err || b->err)
		return;
	for (size_t i = 0; i < a->list.n || i < b->list.n; i++)
		if (i >= a->list.n || i >= b->list.n ||
		    memcmp(&a->list.v[i], &b->list.v[i], sizeof(struct branch)))
			fail(what, a, b, i);
	if (memcmp(&a->totals, &b->totals, sizeof(a->totals)))
		fail(what, a, b, a->list.n);
}

static uint64_t count_gaps(const struct taken *t)
{
	uint64_t n = 0;

	for (int i = 0; i < GAP_REASONS; i++)
		n += t->totals.gaps[i];
	return n;
}

static bool is_damaged(const struct taken *t)
{
	return count_gaps(t) > 0;
}

/* Damage before anything is known is counted, and no branch. */
static bool begins_damaged(const struct taken *t)
{
	uint64_t n = count_gaps(t);

	for (size_t i = 0; i < t->list.n; i++)
		n -= t->list.v[i].kind == BRANCH_GAP;
	return n > 0;
}

/*
 * Behind damage each goes on in its own way, and where a return's target is concerned there are two
 * rules: a call's entry is used up by every return, or by compressed ones only.
 */
static bool may_differ(const struct taken *t, size_t i)
{
	switch (t->list.v[i].kind) {
	case BRANCH_BEGIN: /* behind damage at the very start, which is no gap yet */
	case BRANCH_GAP:
	case BRANCH_RETURN:
	case BRANCH_END:
		return true;
	default:
		return false;
	}
}

/*
 * Did ours conclude from the place where tracing continued that the thread had left before it?
 * libipt follows the code to the next instruction that can end tracing.
 */
static bool left_where_it_continued(const struct taken *ours, size_t i)
{
	const struct branch *b = &ours->list.v[i];

	return b->kind == BRANCH_END_ASYNC && i + 1 < ours->list.n && b[1].kind == BRANCH_BEGIN &&
	       b[1].to == b->from;
}

static void compare_oracle(const struct taken *ours, const struct taken *oracle)
{
	/* Each goes on in another place. */
	if (begins_damaged(ours) || begins_damaged(oracle))
		return;
	for (size_t i = 0; i < ours->list.n && i < oracle->list.n; i++) {
		const struct branch *a = &ours->list.v[i], *b = &oracle->list.v[i];

		/* A damaged PSB+ is no gap: one may have begun at another PSB. */
		if (a->kind == BRANCH_BEGIN && a->time_ns != b->time_ns)
			return;
		if (same(a, b))
			continue;
		if (!may_differ(ours, i) && !may_differ(oracle, i) &&
		    !left_where_it_continued(ours, i))
			fail("the oracle differs", ours, oracle, i);
		return;
	}
}

static void add_code(struct recording *rec, const uint8_t *bytes, size_t n)
{
	uint8_t code[CODE_SIZE];
	struct rec_map map = {
		.start = BASE, .len = CODE_SIZE, .pid = PID, .tid = PID, .path = "[code]"};
	struct rec_image image = {.path = "[code]", .start = BASE, .data = code, .size = CODE_SIZE};

	memset(code, 0x90, sizeof(code));
	memcpy(code, bytes, n < sizeof(code) ? n : sizeof(code));
	if (recording__add_map(rec, &map) || recording__add_image(rec, &image))
		abort();
}

/* PSB, TSC, MODE.Exec of 64-bit code, FUP where tracing is on, PSBEND; then the input's. */
static size_t make_stream(uint8_t *out, uint8_t flags, const uint8_t *bytes, size_t n)
{
	static const uint8_t psb[] = {2,    0x82, 2,	0x82, 2,    0x82, 2,	0x82, 2,
				      0x82, 2,	  0x82, 2,    0x82, 2,	  0x82, 0x19, 0,
				      1,    0,	  0,	0,    0,    0,	  0x99, 1};
	uint64_t ip = BASE + (flags & FLAG_MIDDLE ? CODE_SIZE / 2 : 0);
	size_t len = sizeof(psb);

	memcpy(out, psb, len);
	if (!(flags & FLAG_OFF)) {
		out[len] = 0x7d; /* FUP, 48 bits, sign extended */
		memcpy(out + len + 1, &ip, 6);
		len += 7;
	}
	out[len++] = 2;
	out[len++] = 0x23;
	memcpy(out + len, bytes, n);
	return len + n;
}

static void check(const uint8_t *data, size_t n)
{
	size_t code_len = (data[1] | (size_t)data[2] << 8) % CODE_SIZE;
	struct recording rec = {.pt = {.time_mult = 1}};
	struct taken whole, cut, by_threads = {0}, oracle;
	struct rec_aux aux = {.pid = PID, .tid = PID, .tsc = 1};
	uint8_t *stream = malloc(64 + n);

	if (!stream)
		abort();
	if (code_len > n - 3)
		code_len = n - 3;
	add_code(&rec, data + 3, code_len);
	aux.size = make_stream(stream, data[0], data + 3 + code_len, n - 3 - code_len);
	/* Of its exact size: reading past it shows. */
	aux.data = malloc(aux.size);
	if (!aux.data)
		abort();
	memcpy(aux.data, stream, aux.size);
	decode(&whole, decode__run, &rec, &aux, 0, 1);
	decode(&cut, decode__run, &rec, &aux, 1, 1);
	if (!is_damaged(&whole) && !is_damaged(&cut))
		compare("in regions it differs", &whole, &cut);
	/* Starting threads takes longer than all the rest. */
	if (n % 16 == 0) {
		decode(&by_threads, decode__run, &rec, &aux, 1, 3);
		compare("by threads it differs", &cut, &by_threads);
	}
	decode(&oracle, oracle__run, &rec, &aux, 0, 1);
	compare_oracle(&whole, &oracle);
	VEC_FINI(&whole.list);
	VEC_FINI(&cut.list);
	VEC_FINI(&by_threads.list);
	VEC_FINI(&oracle.list);
	free(aux.data);
	free(stream);
	recording__fini(&rec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	log__set_level(LOG_QUIET);
	if (n >= 3 && n < 8192)
		check(data, n);
	return 0;
}
