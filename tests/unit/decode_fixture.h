/* SPDX-License-Identifier: MIT */
/* A thread that runs hand-assembled code: its PT stream, and the branches it really took. */
#ifndef MTBPF_TESTS_DECODE_FIXTURE_H
#define MTBPF_TESTS_DECODE_FIXTURE_H

#include "../each_branch.h"
#include "pt_fixture.h"

#include <stdlib.h>

#include "decode/decode.h"
#include "decode/packet.h"
#include "util/meter.h"

#define PID	  42
#define TID	  43
#define BASE	  0x401000ull
#define CODE_SIZE 0x200
#define START_NS  1000
#define NO_TSC	  (1ull << 40)
#define NO_PSB	  (1u << 30)
/* Nothing here takes as many branches. */
#define TOO_MANY 100000

/* Offsets in the code. */
enum {
	F = 0x40,
	G = 0x60,
	HANDLER = 0x80,
	RESTORER = 0x90,
	SPIN = 0xa0,
	JUMP = 0xb0,
	JUMP_TO = 0xc0,
	CALL_F = 0xd0,
};

/* What is not said is a NOP. */
static inline void fill_code(uint8_t code[CODE_SIZE])
{
	static const struct {
		uint16_t at;
		uint8_t n, bytes[9];
	} pieces[] = {
		{0x00, 5, {0xe8, 0x3b}},	  /* call F */
		{0x05, 3, {0x48, 0xff, 0xc0}},	  /* inc %rax */
		{0x08, 2, {0xff, 0xd0}},	  /* call *%rax: G */
		{0x0a, 2, {0x75, 0x04}},	  /* jne 10 */
		{0x10, 2, {0xeb, 0x0e}},	  /* jmp 20 */
		{0x20, 2, {0x0f, 0x05}},	  /* syscall */
		{0x22, 5, {0xe8}},		  /* call 27 */
		{0x27, 1, {0x58}},		  /* pop %rax */
		{0x28, 2, {0xff, 0xe0}},	  /* jmp *%rax: 2a */
		{0x2a, 2, {0xeb, 0xd4}},	  /* jmp 0 */
		{F, 3, {0x55, 0x5d, 0xc3}},	  /* push; pop %rbp; ret */
		{G, 4, {0x74, 0x01, 0x90, 0xc3}}, /* je 63; nop; ret */
		{HANDLER, 2, {0x90, 0xc3}},	  /* nop; ret */
		{RESTORER, 9, {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05}}, /* mov; syscall */
		{SPIN, 2, {0xeb, 0xfe}},				    /* jmp SPIN */
		{JUMP, 2, {0xeb, 0x0e}},				    /* jmp JUMP_TO */
		{CALL_F, 5, {0xe8, 0x6b, 0xff, 0xff, 0xff}},		    /* call F */
	};

	memset(code, 0x90, CODE_SIZE);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		memcpy(code + pieces[i].at, pieces[i].bytes, pieces[i].n);
}

struct branches {
	VEC(struct branch) list;
};

struct traced {
	struct pt_stream stream;
	struct pt_bytes out;
	struct branches taken; /* what decoding should give; times: when it happened */
	uint32_t n_insns;      /* since the last of them */
	uint64_t now;
	struct recording rec;
	/* The last decoding. */
	struct branches seen;
	struct decode_totals totals;
	unsigned int n_decodings;
};

static inline void traced__map(struct traced *t, uint64_t time_ns, const char *path,
			       const uint8_t *code)
{
	struct rec_map map = {.time_ns = time_ns,
			      .start = BASE,
			      .len = CODE_SIZE,
			      .pid = PID,
			      .tid = PID,
			      .path = (char *)path};
	struct rec_image image = {
		.path = (char *)path, .start = BASE, .data = (uint8_t *)code, .size = CODE_SIZE};

	assert_int_equal(recording__add_map(&t->rec, &map), 0);
	assert_int_equal(recording__add_image(&t->rec, &image), 0);
}

static inline void traced__init(struct traced *t, uint32_t psb_period, uint64_t tsc_interval,
				bool compress)
{
	struct pt_stream_config config = {.psb_period = psb_period,
					  .tsc_interval = tsc_interval,
					  .return_compression = compress,
					  .cbr = 10};
	uint8_t code[CODE_SIZE];

	*t = (struct traced){.now = START_NS, .rec.pt = {.time_mult = 1}};
	pt_stream__init(&t->stream, &config, pt_bytes__emit, &t->out);
	pt_stream__time(&t->stream, t->now);
	fill_code(code);
	traced__map(t, 0, "[code]", code);
}

static inline void traced__fini(struct traced *t)
{
	VEC_FINI(&t->out.bytes);
	VEC_FINI(&t->taken.list);
	VEC_FINI(&t->seen.list);
	recording__fini(&t->rec);
}

/* A branch, after n more instructions. Addresses are offsets in the code. */
static inline void traced__expect(struct traced *t, enum branch_kind kind, uint32_t n,
				  uint64_t from, uint64_t to, uint8_t len)
{
	bool has_from = kind != BRANCH_BEGIN;
	bool has_to = kind < BRANCH_END_SYSCALL;
	struct branch *b = VEC_PUSH(&t->taken.list);

	assert_non_null(b);
	*b = (struct branch){.time_ns = t->now,
			     .from = has_from ? BASE + from : 0,
			     .to = has_to ? BASE + to : 0,
			     .n_insns = t->n_insns + n,
			     .kind = (uint8_t)kind,
			     .len = len};
	t->n_insns = 0;
}

static inline void traced__tick(struct traced *t)
{
	t->now += 10;
	pt_stream__time(&t->stream, t->now);
}

static inline void traced__enable(struct traced *t, uint64_t at)
{
	traced__tick(t);
	pt_stream__enable(&t->stream, BASE + at);
	traced__expect(t, BRANCH_BEGIN, 0, 0, at, 0);
}

static inline void traced__call(struct traced *t, uint32_t n, uint64_t from, uint64_t to)
{
	traced__tick(t);
	pt_stream__call(&t->stream, BASE + from + 5, BASE + to);
	traced__expect(t, BRANCH_CALL, n, from, to, 5);
}

static inline void traced__call_indirect(struct traced *t, uint32_t n, uint64_t from, uint64_t to)
{
	traced__tick(t);
	pt_stream__call_indirect(&t->stream, BASE + from + 2, BASE + to);
	traced__expect(t, BRANCH_CALL, n, from, to, 2);
}

static inline void traced__ret(struct traced *t, uint32_t n, uint64_t from, uint64_t to)
{
	traced__tick(t);
	pt_stream__ret(&t->stream, BASE + to);
	traced__expect(t, BRANCH_RETURN, n, from, to, 1);
}

/* jcc over `to` - `from` - 2 NOPs; not taken, they run and count. */
static inline void traced__cond(struct traced *t, uint32_t n, uint64_t from, uint64_t to,
				bool taken)
{
	traced__tick(t);
	pt_stream__cond(&t->stream, taken, BASE + (taken ? to : from + 2));
	if (taken)
		traced__expect(t, BRANCH_COND, n, from, to, 2);
	else
		t->n_insns += n + (uint32_t)(to - from - 2);
}

static inline void traced__jump(struct traced *t, uint32_t n, uint64_t from, uint64_t to)
{
	traced__tick(t);
	traced__expect(t, BRANCH_JUMP, n, from, to, 2);
}

static inline void traced__jump_indirect(struct traced *t, uint32_t n, uint64_t from, uint64_t to)
{
	traced__tick(t);
	pt_stream__jump_indirect(&t->stream, BASE + to);
	traced__expect(t, BRANCH_JUMP, n, from, to, 2);
}

static inline void traced__syscall(struct traced *t, uint32_t n, uint64_t from)
{
	traced__tick(t);
	pt_stream__disable(&t->stream);
	traced__expect(t, BRANCH_END_SYSCALL, n, from, 0, 2);
}

/* Left before the instruction at `at`. */
static inline void traced__async(struct traced *t, uint32_t n, uint64_t at)
{
	traced__tick(t);
	pt_stream__disable_async(&t->stream, BASE + at);
	traced__expect(t, BRANCH_END_ASYNC, n, at, 0, 0);
}

/* From 0 back to 0, with each kind of branch. */
static inline void traced__iterate(struct traced *t, bool jne, bool je)
{
	traced__call(t, 1, 0x00, F);
	traced__ret(t, 3, F + 2, 0x05);
	traced__call_indirect(t, 2, 0x08, G);
	traced__cond(t, 1, G, G + 3, je);
	traced__ret(t, 1, G + 3, 0x0a);
	traced__cond(t, 1, 0x0a, 0x10, jne);
	traced__jump(t, 1, 0x10, 0x20);
	traced__syscall(t, 1, 0x20);
	traced__enable(t, 0x22);
	traced__call(t, 1, 0x22, 0x27);
	traced__jump_indirect(t, 2, 0x28, 0x2a);
	traced__jump(t, 1, 0x2a, 0x00);
}

/* n iterations and an end. */
static inline void traced__run(struct traced *t, unsigned int n)
{
	traced__enable(t, 0);
	for (unsigned int i = 0; i < n; i++)
		traced__iterate(t, i & 1, i & 2);
	traced__async(t, 0, 0);
}

static inline int traced__take(void *ctx, const struct branch *branch)
{
	struct traced *t = ctx;
	struct branch *out = VEC_PUSH(&t->seen.list);

	assert_non_null(out);
	assert_true(t->seen.list.n < TOO_MANY);
	*out = *branch;
	return 0;
}

TAKE_EACH(traced__take_all, traced__take)

/* How it is decoded; the rest of the request is the fixture's. */
struct decoding {
	int (*run)(const struct decode_request *request);
	bool some_branches;
	unsigned int jobs;
	size_t region_size;
};

/* Decodes these bytes into t->seen. They are copied: reading past them shows. */
static inline void traced__decode_as(struct traced *t, const struct decoding *how,
				     const uint8_t *bytes, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);
	struct rec_aux aux = {.pid = PID, .tid = TID, .tsc = t->now, .data = copy, .size = n};
	struct images *images = images__new(&t->rec);
	struct code_map *map = code_map__new();
	struct meter meter = {0};
	const uint8_t *psb;

	if (n)
		memcpy(copy, bytes, n);
	t->seen.list.n = 0;
	t->totals = (struct decode_totals){0};
	assert_int_equal(how->run(&(struct decode_request){.rec = &t->rec,
							   .aux = &aux,
							   .images = images,
							   .map = map,
							   .take = traced__take_all,
							   .ctx = t,
							   .totals = &t->totals,
							   .meter = &meter,
							   .all_branches = !how->some_branches,
							   .jobs = how->jobs,
							   .region_size = how->region_size}),
			 0);
	psb = packet__find_psb(copy, copy + n);
	if (how->run == decode__run)
		assert_int_equal(meter.done, psb ? copy + n - psb : 0);
	code_map__free(map);
	images__free(images);
	free(copy);
}

static inline bool same_branch(const struct branch *a, const struct branch *b)
{
	return a->kind == b->kind && a->from == b->from && a->to == b->to && a->len == b->len &&
	       a->n_insns == b->n_insns && a->reason == b->reason;
}

static inline void print_branch(const char *who, const struct branch *b)
{
	print_message("%s: %s %" PRIx64 " -> %" PRIx64 " len %u, %u insns, at %" PRIu64 "\n", who,
		      branch_kind__name((enum branch_kind)b->kind), b->from, b->to, b->len,
		      b->n_insns, b->time_ns);
}

static inline void assert_identical(const struct branches *a, const struct branches *b)
{
	for (size_t i = 0; i < a->list.n && i < b->list.n; i++) {
		const struct branch *x = &a->list.v[i], *y = &b->list.v[i];

		if (same_branch(x, y) && x->time_ns == y->time_ns &&
		    x->n_branches == y->n_branches && !x->packet && !y->packet)
			continue;
		print_branch("one way", x);
		print_branch("another way", y);
		fail();
	}
	assert_int_equal(a->list.n, b->list.n);
}

/* Both ways give the same branches, the same totals. */
static inline void traced__decode_both(struct traced *t, const struct decoding *a,
				       const struct decoding *b, const uint8_t *bytes, size_t n)
{
	struct decode_totals totals;
	struct branches seen;

	traced__decode_as(t, a, bytes, n);
	seen = t->seen;
	totals = t->totals;
	t->seen = (struct branches){0};
	traced__decode_as(t, b, bytes, n);
	assert_identical(&seen, &t->seen);
	assert_memory_equal(&totals, &t->totals, sizeof(totals));
	VEC_FINI(&seen.list);
}

static const struct decoding one_go = {.run = decode__run, .jobs = 1};
static const struct decoding regions_alone = {.run = decode__run, .jobs = 1, .region_size = 1};
static const struct decoding regions_at_once = {.run = decode__run, .jobs = 3, .region_size = 1};

/* How many threads share the work makes no difference: tried with some of many. */
static inline void traced__decode_bytes(struct traced *t, const uint8_t *bytes, size_t n)
{
	if (t->n_decodings++ % 64 == 0)
		traced__decode_both(t, &regions_alone, &regions_at_once, bytes, n);
	traced__decode_as(t, &one_go, bytes, n);
}

/* And where no byte is damaged, nor does where it is cut. */
static inline void traced__decode(struct traced *t)
{
	traced__decode_both(t, &regions_alone, &regions_at_once, t->out.bytes.v, t->out.bytes.n);
	traced__decode_both(t, &regions_alone, &one_go, t->out.bytes.v, t->out.bytes.n);
}

/* The decoded branches, in full, but for their times. */
static inline void assert_decoded(const struct traced *t)
{
	for (size_t i = 0; i < t->taken.list.n || i < t->seen.list.n; i++) {
		const struct branch *a = i < t->taken.list.n ? &t->taken.list.v[i] : NULL;
		const struct branch *b = i < t->seen.list.n ? &t->seen.list.v[i] : NULL;

		if (a && b && same_branch(a, b))
			continue;
		print_message("branch %zu\n", i);
		if (a)
			print_branch("taken", a);
		if (b)
			print_branch("decoded", b);
		fail();
	}
}

#endif
