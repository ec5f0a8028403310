// SPDX-License-Identifier: MIT
#include "decode/join.h"

#include "decode/tsc.h"
#include "decode/walk/walk.h"
#include "util/insn.h"

void joiner__init(struct joiner *j, const struct decode_request *request)
{
	*j = (struct joiner){.request = request, .totals = request->totals};
}

/* Recalibration may step back; time in a trace does not. */
static void set_time(struct joiner *j, uint64_t tsc)
{
	const struct decode_request *request = j->request;
	uint64_t ns;

	if (tsc == j->tsc || !tsc)
		return;
	j->tsc = tsc;
	ns = rec_pt__tsc_to_ns(&request->rec->pt, tsc__extend(tsc, request->aux->tsc));
	if (ns > j->time_ns)
		j->time_ns = ns;
}

static inline int hand_on(struct joiner *j, struct branch *b)
{
	struct decode_totals *totals = j->totals;

	b->time_ns = j->time_ns;
	b->n_insns += j->n_insns;
	b->n_branches += j->n_branches;
	b->packet = 0;
	j->n_insns = j->n_branches = 0;
	totals->branches++;
	totals->insns += b->n_insns;
	return j->request->fn(j->request->ctx, b);
}

/* Nothing comes before a BEGIN. */
static int hand_on_begin(struct joiner *j, struct branch *b)
{
	struct decode_totals *totals = j->totals;

	j->started = true;
	if (!totals->first_ns || j->time_ns < totals->first_ns)
		totals->first_ns = j->time_ns;
	return hand_on(j, b);
}

static int keep_counts(struct joiner *j, const struct branch *b)
{
	j->n_insns += b->n_insns;
	j->n_branches += b->n_branches;
	return 0;
}

static int update_map(struct joiner *j, const struct branch *b)
{
	const struct decode_request *r = j->request;
	int err = 0;

	if (r->before_map)
		err = r->before_map(r->before_map_ctx, j->time_ns, j->n_insns + b->n_insns);
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
		j->pace = (struct pace){.begin_ns = j->time_ns, .insns = j->totals->insns};
	else if (!j->tracing)
		j->pace.traced_ns -= j->time_ns - j->stopped_ns;
	j->tracing = true;
}

/* pace.traced_ns is less than nothing until then, and pace.insns what there was before it. */
static int end_stretch(struct joiner *j)
{
	const struct decode_request *request = j->request;
	uint64_t insns = j->totals->insns, end_ns = j->tracing ? j->time_ns : j->stopped_ns;
	struct pace pace = j->pace;

	if (!request->pace || !j->started || end_ns < pace.begin_ns + PACE_MIN_NS)
		return 0;
	pace.end_ns = end_ns;
	pace.traced_ns += end_ns - pace.begin_ns;
	pace.insns = insns - pace.insns;
	pace.cpu = request->aux->cpu;
	j->pace = (struct pace){.begin_ns = end_ns, .insns = insns};
	return request->pace(request->pace_ctx, &pace);
}

static int begin(struct joiner *j, const struct branch *b)
{
	struct branch begin = *b;

	begin.kind = BRANCH_BEGIN;
	start_tracing(j);
	j->async_ip = 0;
	if (j->in_gap)
		j->totals->gap_ns[j->gap_reason] += j->time_ns - j->gap_ns;
	j->in_gap = false;
	return hand_on_begin(j, &begin);
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
static int go_on(struct joiner *j, const struct branch *b)
{
	uint8_t code[INSN_MAX_LEN];
	struct branch at = *b, branch = {.from = j->async_ip, .to = b->to, .n_branches = 1};
	struct insn insn = {0};
	size_t n;
	int err;

	if (!j->async_ip || j->async_ip == b->to)
		return begin(j, b);
	n = code_map__read(j->request->map, j->async_ip, code, sizeof(code));
	if (!n || insn__decode(code, n, j->async_ip, &insn) || insn.target != b->to)
		return begin(j, b);
	at.to = j->async_ip;
	branch.kind = kind_of(&insn);
	branch.len = insn.len;
	err = begin(j, &at);
	return err ? err : hand_on(j, &branch);
}

static void say_mismatch(struct joiner *j, uint64_t ip)
{
	struct code_place place;

	if (code_map__find(j->request->map, ip, &place))
		images__mismatch(j->request->images, place.image);
}

/* One a break, however many errors follow before tracing goes on. */
static int gap(struct joiner *j, struct branch *b)
{
	if (b->reason == GAP_MISMATCH)
		say_mismatch(j, b->from);
	stop_tracing(j);
	j->async_ip = 0;
	if (j->in_gap)
		return keep_counts(j, b);
	j->in_gap = true;
	j->gap_reason = b->reason;
	j->gap_ns = j->time_ns;
	j->totals->gaps[b->reason]++;
	/* At the start there is nothing that it breaks. */
	return j->started ? hand_on(j, b) : keep_counts(j, b);
}

static int tell(struct joiner *j, const struct branch *b)
{
	const struct decode_request *r = j->request;
	struct pt_note event = {.time_ns = j->time_ns,
				.ip = b->from,
				.value = b->to,
				.pid = r->aux->pid,
				.tid = r->aux->tid,
				.cpu = r->aux->cpu,
				.kind = b->reason};

	keep_counts(j, b);
	return r->event ? r->event(r->event_ctx, &event) : 0;
}

static int take(struct joiner *j, struct branch *b)
{
	int err;

	switch (b->kind) {
	case OUTBOX_REST:
		return keep_counts(j, b);
	case OUTBOX_NOTE:
		return tell(j, b);
	case OUTBOX_START:
		err = update_map(j, b);
		if (err)
			return err;
		return j->tracing ? keep_counts(j, b) : begin(j, b);
	case BRANCH_BEGIN:
		err = update_map(j, b);
		return err ? err : go_on(j, b);
	case BRANCH_GAP:
		return gap(j, b);
	case BRANCH_END:
	case BRANCH_END_ASYNC:
	case BRANCH_END_SYSCALL:
		stop_tracing(j);
		j->async_ip = b->kind == BRANCH_END_ASYNC ? b->from : 0;
		return hand_on(j, b);
	default:
		return hand_on(j, b);
	}
}

int joiner__take(void *joiner, struct branch *branches, size_t n)
{
	struct joiner *j = joiner;
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		struct branch *b = &branches[i];

		set_time(j, b->time_ns);
		err = b->kind <= BRANCH_COND ? hand_on(j, b) : take(j, b);
	}
	if (j->started && j->time_ns > j->totals->last_ns)
		j->totals->last_ns = j->time_ns;
	return err ? err : end_stretch(j);
}
