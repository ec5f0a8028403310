// SPDX-License-Identifier: MIT
#include "decode/filter.h"

#include "decode/packet.h"
#include "decode/pt_time.h"
#include "target/symbols/symbols.h"

/* ---- the bytes of the rings that have the wanted time */

/* A ring whose PSBs tell their times. */
struct psb_clock {
	struct packet_reader reader;
	const struct rec_pt_config *pt;
	uint64_t tsc; /* a full TSC value near those of all PSBs (they have 56 bits of it) */
	const uint8_t *end;
};

/* The first PSB from `at` on with a time, or NULL. */
static const uint8_t *next_psb(struct psb_clock *clock, const uint8_t *at, uint64_t *time_ns)
{
	while ((at = packet__find_psb(at, clock->end))) {
		uint64_t tsc, ratio;

		packet__read_psb_plus(&clock->reader, at, &tsc, &ratio);
		*time_ns = tsc__to_ns(tsc, clock->tsc, clock->pt);
		if (tsc)
			return at;
		at += PSB_SIZE;
	}
	return NULL;
}

/* The last PSB at or before ns, found by bisection since their times ascend; or NULL. */
static const uint8_t *last_psb_before(struct psb_clock *clock, const uint8_t *begin, uint64_t ns)
{
	const uint8_t *low = begin, *high = clock->end, *found = NULL;

	while (low < high) {
		const uint8_t *middle = low + (high - low) / 2, *psb;
		uint64_t time_ns;

		psb = next_psb(clock, middle, &time_ns);
		if (psb && psb < high && time_ns <= ns) {
			found = psb;
			low = psb + 1;
		} else {
			high = middle;
		}
	}
	return found;
}

void decode_filter__narrow(const struct decode_filter *f, struct recording *rec)
{
	VEC_EACH(&rec->aux, aux) {
		const uint8_t *begin = aux->data, *end = begin + aux->size, *psb;
		struct psb_clock clock = {.pt = &rec->pt, .tsc = aux->tsc, .end = end};
		uint64_t time_ns;

		packet_reader__init(&clock.reader, aux->data, aux->size);
		psb = f->from_ns ? last_psb_before(&clock, begin, f->from_ns) : NULL;
		begin = psb ?: begin;
		if (f->to_ns < UINT64_MAX) {
			psb = last_psb_before(&clock, begin, f->to_ns);
			/*
			 * The packets up to to_ns end at the next PSB, whose PSB+ is needed to
			 * complete them: the bytes end at the PSB after that one.
			 */
			psb = next_psb(&clock, psb ? psb + PSB_SIZE : begin, &time_ns);
			psb = psb ? next_psb(&clock, psb + PSB_SIZE, &time_ns) : NULL;
			end = psb ?: end;
		}
		packet_reader__fini(&clock.reader);
		aux->left_out += (size_t)(begin - aux->data);
		aux->size = (size_t)(end - begin);
		aux->data += begin - aux->data;
	}
}

/* ---- the branches within the wanted time */

enum { IS_START = 1, IS_STOP = 2 };

static int deliver(struct selection *s, const struct branch *b)
{
	struct decode_totals *t = s->totals;

	/* A gap before the first branch does not interrupt anything. */
	if (s->is_empty && b->kind == BRANCH_GAP)
		return 0;
	s->is_empty = false;
	s->found->branches++;
	t->branches++;
	t->insns += b->n_insns;
	if (b->kind == BRANCH_GAP) {
		t->gaps[b->reason]++;
		s->gap_ns = b->time_ns;
		s->gap_reason = b->reason;
	} else if (b->kind == BRANCH_BEGIN && s->is_in_gap && b->time_ns > s->gap_ns) {
		t->gap_ns[s->gap_reason] += b->time_ns - s->gap_ns;
	}
	s->is_in_gap = b->kind == BRANCH_GAP;
	if (b->kind == BRANCH_BEGIN && (!t->first_ns || b->time_ns < t->first_ns))
		t->first_ns = b->time_ns;
	if (b->time_ns > t->last_ns)
		t->last_ns = b->time_ns;
	s->is_running = b->kind < BRANCH_END_SYSCALL;
	s->ip = b->to;
	return VEC_ADD(&s->out, *b);
}

/*
 * IS_START or IS_STOP if the branch calls one of these functions, also by a tail call. A BEGIN at a
 * function's first instruction counts as a call, since signal handlers begin with one, unless the
 * thread was interrupted at that instruction (usually by a probe).
 */
static unsigned int called_by(struct selection *s, const struct branch *b)
{
	bool is_jump = b->kind == BRANCH_JUMP || b->kind == BRANCH_COND;
	const struct decode_filter *filter = s->filter;
	struct known_function *known;
	struct code_place to, from;

	if (!filter->start && !filter->stop)
		return 0;
	if (b->kind != BRANCH_CALL && b->kind != BRANCH_ENTER && !is_jump &&
	    (b->kind != BRANCH_BEGIN || b->to == s->async_ip))
		return 0;
	if (!code_map__find(s->map, b->to, &to) || to.entry != b->to)
		return 0;
	if (is_jump && code_map__find(s->map, b->from, &from) && from.function == to.function)
		return 0;
	known = &s->known[(uintptr_t)to.function / sizeof(*to.function) % SELECTION_KNOWN];
	if (known->function != to.function) {
		known->function = to.function;
		known->is = filter->start && function__is_meant(to.function, filter->start);
		if (filter->stop && function__is_meant(to.function, filter->stop))
			known->is |= IS_STOP;
	}
	return known->is;
}

/* The region begins with the call of its function. */
static int enter_region(struct selection *s, const struct branch *b)
{
	struct branch gap = {.time_ns = s->left_ns, .kind = BRANCH_GAP, .reason = GAP_FILTERED};
	struct branch begin = {.time_ns = b->time_ns, .to = b->from, .kind = BRANCH_BEGIN};
	struct branch call = *b;
	int err = s->has_left ? deliver(s, &gap) : 0;

	s->is_inside = true;
	call.n_insns = call.n_branches = b->kind != BRANCH_BEGIN;
	if (!err && b->kind != BRANCH_BEGIN)
		err = deliver(s, &begin);
	return err ? err : deliver(s, &call);
}

static int take_in_region(struct selection *s, const struct branch *b)
{
	unsigned int calls = called_by(s, b);

	s->found->starts += calls & IS_START;
	s->found->stops += (calls & IS_STOP) != 0;
	s->async_ip = b->kind == BRANCH_END_ASYNC ? b->from : 0;
	/* If start and stop are the same function, one region follows the other. */
	if (s->is_inside && calls != IS_STOP)
		return deliver(s, b);
	if (s->is_inside) {
		/* The region ends before the call. */
		struct branch end = {.time_ns = b->time_ns,
				     .from = b->from,
				     .n_insns = b->n_insns,
				     .kind = BRANCH_END};

		s->is_inside = false;
		s->has_left = true;
		s->left_ns = b->time_ns;
		return s->is_running ? deliver(s, &end) : 0;
	}
	return calls & IS_START ? enter_region(s, b) : 0;
}

/* Hands on a BEGIN at the part's start, if it is known where the thread is. */
static int begin_part(struct selection *s)
{
	const struct branch *b = &s->before;
	struct branch begin = {.time_ns = s->filter->from_ns, .to = b->to, .kind = BRANCH_BEGIN};
	struct branch end = {
		.time_ns = begin.time_ns, .from = b->from, .kind = b->kind, .len = b->len};
	bool is_off = b->kind == BRANCH_END_SYSCALL || b->kind == BRANCH_END_ASYNC;
	int err;

	if (s->is_in)
		return 0;
	s->is_in = true;
	s->is_inside = !s->filter->start;
	if (!s->has_before || !s->is_inside || (b->kind > BRANCH_BEGIN && !is_off))
		return 0;
	if (is_off)
		begin.to = b->from;
	err = deliver(s, &begin);
	return err || !is_off ? err : deliver(s, &end);
}

static int take(struct selection *s, const struct branch *b)
{
	int err;

	if (b->time_ns < s->filter->from_ns) {
		s->before = *b;
		s->has_before = true;
		return 0;
	}
	if (b->time_ns > s->filter->to_ns && s->is_over)
		return 0;
	err = begin_part(s);
	if (b->time_ns > s->filter->to_ns) {
		struct branch end = {
			.time_ns = s->filter->to_ns, .from = s->ip, .kind = BRANCH_END};

		s->is_over = true;
		return err || !s->is_running ? err : deliver(s, &end);
	}
	return err ? err : take_in_region(s, b);
}

int selection__take(struct selection *s, const struct branch *v, size_t n, struct branch_batch *out)
{
	int err = 0;

	s->out.n = 0;
	for (size_t i = 0; i < n && !err; i++)
		err = branch__is_entry(&v[i]) ? VEC_ADD(&s->out, v[i]) : take(s, &v[i]);
	*out = (struct branch_batch){s->out.v, s->out.n};
	return err;
}

void selection__init(struct selection *s, const struct decode_filter *filter,
		     struct decode_totals *totals, struct filter_totals *found)
{
	*s = (struct selection){.filter = filter, .totals = totals, .found = found};
}

void selection__fini(struct selection *s)
{
	VEC_FINI(&s->out);
}

void selection__begin_thread(struct selection *s, struct code_map *map)
{
	s->map = map;
	s->is_empty = true;
	s->has_before = s->is_in = s->is_over = s->is_inside = s->has_left = false;
	s->is_running = s->is_in_gap = false;
	s->async_ip = 0;
}

bool decode_filter__has_time(const struct decode_filter *f, uint64_t time_ns)
{
	return time_ns >= f->from_ns && time_ns <= f->to_ns;
}

bool decode_filter__has(const struct decode_filter *f, uint64_t begin_ns, uint64_t end_ns)
{
	return !f->start && !f->stop && begin_ns >= f->from_ns && end_ns <= f->to_ns;
}
