// SPDX-License-Identifier: MIT
#include "decode/join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decode/pt_time.h"
#include "decode/walk/walker.h"
#include "util/insn.h"

/*
 * Most of what comes in is handed on where it lies. Where something is put among it, or left out,
 * it is copied until there are ALONE_MIN branches in a row: a batch has to be worth its way. What
 * is no branch becomes MOST_OF_ONE at most.
 */
#define ALONE_MIN   128
#define COPIED_MAX  1024
#define MOST_OF_ONE 4

int joiner__init(struct joiner *j, const struct decode_request *request)
{
	*j = (struct joiner){.request = request, .totals = request->totals, .base = UINT64_MAX};
	j->out = malloc(COPIED_MAX * sizeof(*j->out));
	return j->out ? 0 : -ENOMEM;
}

void joiner__fini(struct joiner *j)
{
	free(j->out);
}

void joiner__begin(struct joiner *j)
{
	*j = (struct joiner){
		.request = j->request, .totals = j->totals, .out = j->out, .base = UINT64_MAX};
}

static int hand_on(struct joiner *j)
{
	size_t n = j->n_out;

	j->n_out = 0;
	return n ? j->request->take(j->request->ctx, j->out, n) : 0;
}

/* As tsc__to_ns(), most of which is the same for all ticks with the same high bits. */
static inline uint64_t to_ns(struct joiner *j, uint64_t tsc)
{
	const struct rec_pt_config *pt = &j->request->rec->pt;
	uint64_t mask = (1ull << pt->time_shift) - 1, reference = j->request->aux->tsc;
	uint64_t base = tsc & ~mask;

	if (UNLIKELY(base != j->base)) {
		uint64_t first = tsc__extend(base, reference);

		/* They lie half a wrap away from the reference: not all before it, or behind it. */
		if (tsc__extend(base | mask, reference) - first != mask)
			return tsc__to_ns(tsc, reference, pt);
		j->base = base;
		j->base_ns = rec_pt__tsc_to_ns(pt, first);
	}
	return j->base_ns + (((tsc & mask) * pt->time_mult) >> pt->time_shift);
}

/* Recalibration may step back; time in a trace does not. */
static inline void set_time(struct joiner *j, uint64_t tsc)
{
	uint64_t ns;

	if (!tsc)
		return;
	ns = to_ns(j, tsc);
	if (ns > j->time_ns)
		j->time_ns = ns;
}

static inline void add(struct joiner *j, const struct branch *b)
{
	struct decode_totals *totals = j->totals;
	uint32_t n_insns = b->n_insns + j->n_insns;

	j->out[j->n_out++] = (struct branch){.time_ns = j->time_ns,
					     .from = b->from,
					     .to = b->to,
					     .n_insns = n_insns,
					     .n_branches = b->n_branches + j->n_branches,
					     .kind = b->kind,
					     .len = b->len,
					     .reason = b->reason};
	j->n_insns = j->n_branches = 0;
	totals->branches++;
	totals->insns += n_insns;
}

static void keep_counts(struct joiner *j, const struct branch *b)
{
	j->n_insns += b->n_insns;
	j->n_branches += b->n_branches;
}

/* Hands on what comes before, while the map shows the code that it ran in. */
static int update_map(struct joiner *j, const struct branch *b)
{
	const struct decode_request *r = j->request;
	int err;

	j->out[j->n_out++] = (struct branch){
		.time_ns = j->time_ns, .n_insns = j->n_insns + b->n_insns, .kind = ENTRY_MAP};
	if (!images__is_due(r->images, j->time_ns, j->next_map, r->map))
		return 0;
	err = hand_on(j);
	return err ? err : images__apply(r->images, r->aux->pid, j->time_ns, &j->next_map, r->map);
}

static void stop_tracing(struct joiner *j)
{
	if (j->tracing)
		j->stopped_ns = j->time_ns;
	j->tracing = false;
}

static void start_tracing(struct joiner *j)
{
	if (!j->started)
		j->speed = (struct speed){.begin_ns = j->time_ns, .insns = j->totals->insns};
	else if (!j->tracing)
		j->speed.traced_ns -= j->time_ns - j->stopped_ns;
	j->tracing = true;
}

/* speed.traced_ns is less than nothing until then, and speed.insns what there was before it. */
static void end_stretch(struct joiner *j)
{
	uint64_t insns = j->totals->insns, end_ns = j->tracing ? j->time_ns : j->stopped_ns;
	struct speed speed = j->speed;

	if (!j->started || end_ns < speed.begin_ns + SPEED_MIN_NS)
		return;
	speed.end_ns = end_ns;
	speed.traced_ns += end_ns - speed.begin_ns;
	speed.insns = insns - speed.insns;
	speed.cpu = j->request->aux->cpu;
	j->speed = (struct speed){.begin_ns = end_ns, .insns = insns};
	j->out[j->n_out++] = speed__entry(&speed);
}

static void begin(struct joiner *j, const struct branch *b)
{
	struct decode_totals *totals = j->totals;
	struct branch begin = *b;

	begin.kind = BRANCH_BEGIN;
	start_tracing(j);
	j->async_ip = 0;
	if (j->in_gap)
		totals->gap_ns[j->gap_reason] += j->time_ns - j->gap_ns;
	j->in_gap = false;
	j->started = true;
	if (!totals->first_ns || j->time_ns < totals->first_ns)
		totals->first_ns = j->time_ns;
	add(j, &begin);
}

static uint8_t kind_of(const struct insn *insn)
{
	switch ((enum insn_class)insn->cls) {
	case INSN_CALL:
		return BRANCH_CALL;
	case INSN_COND:
		return BRANCH_COND;
	default:
		return BRANCH_JUMP;
	}
}

/*
 * Under a probe the kernel does the instruction that was left: where that is a branch to the place
 * where tracing goes on, it happened, though no packet says so.
 */
static void go_on(struct joiner *j, const struct branch *b)
{
	uint8_t code[INSN_MAX_LEN];
	struct branch at = *b, branch = {.from = j->async_ip, .to = b->to, .n_branches = 1};
	struct insn insn = {0};
	size_t n = 0;

	if (j->async_ip && j->async_ip != b->to)
		n = code_map__read(j->request->map, j->async_ip, code, sizeof(code));
	if (!n || insn__decode(code, n, j->async_ip, &insn) || insn.target != b->to) {
		begin(j, b);
		return;
	}
	at.to = j->async_ip;
	branch.kind = kind_of(&insn);
	branch.len = insn.len;
	begin(j, &at);
	add(j, &branch);
}

static void say_mismatch(struct joiner *j, uint64_t ip)
{
	struct code_place place;

	if (code_map__find(j->request->map, ip, &place))
		images__mismatch(j->request->images, place.image);
}

/* One a break, however many errors follow before tracing goes on. */
static void gap(struct joiner *j, const struct branch *b)
{
	if (b->reason == GAP_MISMATCH)
		say_mismatch(j, b->from);
	stop_tracing(j);
	j->async_ip = 0;
	if (j->in_gap) {
		keep_counts(j, b);
		return;
	}
	j->in_gap = true;
	j->gap_reason = b->reason;
	j->gap_ns = j->time_ns;
	j->totals->gaps[b->reason]++;
	/* At the start there is nothing that it breaks. */
	if (j->started)
		add(j, b);
	else
		keep_counts(j, b);
}

static void note(struct joiner *j, const struct branch *b)
{
	struct branch *out = &j->out[j->n_out++];

	keep_counts(j, b);
	*out = *b;
	out->time_ns = j->time_ns;
	out->n_insns = out->n_branches = 0;
	out->cpu = j->request->aux->cpu;
}

/* Takes an entry that is more than a branch. */
static int take_other(struct joiner *j, const struct branch *b)
{
	int err = 0;

	switch (b->kind) {
	case RAW_REST:
		keep_counts(j, b);
		break;
	case ENTRY_NOTE:
		note(j, b);
		break;
	case RAW_START:
		err = update_map(j, b);
		if (j->tracing)
			keep_counts(j, b);
		else
			begin(j, b);
		break;
	case BRANCH_BEGIN:
		err = update_map(j, b);
		go_on(j, b);
		break;
	case BRANCH_GAP:
		gap(j, b);
		break;
	case BRANCH_END:
	case BRANCH_END_ASYNC:
	case BRANCH_END_SYSCALL:
		stop_tracing(j);
		j->async_ip = b->kind == BRANCH_END_ASYNC ? b->from : 0;
		add(j, b);
		break;
	default:
		break;
	}
	return err;
}

/* Has a place in the code before it and behind it, and changes nothing but where the thread is. */
static bool is_plain(const struct branch *b)
{
	return b->kind <= BRANCH_LEAVE;
}

/*
 * The first of them that are just branches, completed where they lie: as set_time() and add(), but
 * without a decision that is as good as random. How many there are.
 */
static size_t complete_plain(struct joiner *j, struct branch *raw, size_t n)
{
	uint64_t insns = 0, time_ns = j->time_ns;
	size_t i = 0;

	for (; i < n && is_plain(&raw[i]); i++) {
		struct branch *b = &raw[i];
		uint64_t ns = LIKELY(b->time_ns) ? to_ns(j, b->time_ns) : 0;

		time_ns = ns > time_ns ? ns : time_ns;
		b->time_ns = time_ns;
		b->packet = 0;
		insns += b->n_insns;
	}
	if (!i)
		return 0;
	j->time_ns = time_ns;
	j->totals->branches += i;
	j->totals->insns += insns + j->n_insns;
	raw->n_insns += j->n_insns;
	raw->n_branches += j->n_branches;
	j->n_insns = j->n_branches = 0;
	return i;
}

static int hand_on_plain(struct joiner *j, struct branch *v, size_t n)
{
	int err;

	if (n < ALONE_MIN) {
		memcpy(&j->out[j->n_out], v, n * sizeof(*v));
		j->n_out += n;
		return 0;
	}
	err = hand_on(j);
	return err ? err : j->request->take(j->request->ctx, v, n);
}

int joiner__take(void *joiner, struct branch *raw, size_t n)
{
	struct joiner *j = joiner;
	int err = 0;

	for (size_t i = 0; i < n && !err;) {
		size_t n_plain = complete_plain(j, &raw[i], n - i);

		if (n_plain)
			err = hand_on_plain(j, &raw[i], n_plain);
		i += n_plain;
		if (i < n && !err) {
			set_time(j, raw[i].time_ns);
			err = take_other(j, &raw[i++]);
		}
		if (j->n_out > COPIED_MAX - ALONE_MIN - MOST_OF_ONE && !err)
			err = hand_on(j);
	}
	if (j->started && j->time_ns > j->totals->last_ns)
		j->totals->last_ns = j->time_ns;
	if (err)
		return err;
	end_stretch(j);
	return hand_on(j);
}
