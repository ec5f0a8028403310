// SPDX-License-Identifier: MIT
#include "walk.h"

#include <string.h>
#include <sys/syscall.h>

#include "walk_go.h"

/* How often threads add up what they did. */
#define COUNT_PERIOD 65536
/* An overflow loses what this many instructions do. */
#define LOST_INSTRUCTIONS   2000
#define MAX_PENDING_SIGNALS 8
#define NEVER		    (~0ull)

/* The oldest bytes are overwritten; `written` moves last, so that a whole packet is there or none.
 */
static void write_ring(void *ctx, const uint8_t *bytes, unsigned int len)
{
	struct walk *w = ctx;
	uint64_t at = w->out->written;

	for (unsigned int i = 0; i < len; i++)
		w->ring[(at + i) & w->ring_mask] = bytes[i];
	w->out->written = at + len;
	if (at + len >= w->overflow_at)
		w->alarm = 0;
}

void walk__init(struct walk *w, struct ptgen_shared *shared, uint32_t i,
		const struct signals *signals, FILE *truth_log)
{
	const struct ptgen_config *config = &shared->config;

	*w = (struct walk){
		.shared = shared,
		.out = &shared->threads[i],
		.stream = &shared->threads[i].stream,
		.ring = ptgen_shared__ring(shared, i),
		.ring_mask = config->ring_size - 1,
		.signals = signals,
		.truth_log = truth_log,
		.tsc_zero = shared->now,
		.alarm = i ? 0 : config->skip,
		.overflow_at = config->overflow_period ? config->overflow_period : NEVER,
	};
	w->out->start_tsc = shared->now;
	truth__init(&w->truth, NULL, w->out->tid);
	w->truth.distance = config->stack_distance;
	pt_stream__init(w->stream, &config->stream, write_ring, w);
}

void walk__fini(struct walk *w)
{
	truth__fini(&w->truth);
}

static uint64_t now(const struct walk *w)
{
	return w->tsc_zero + w->instructions * PTGEN_NOM_FREQ / PTGEN_CBR;
}

static void mark_time(struct walk *w)
{
	pt_stream__time(w->stream, now(w));
}

/* Whether packets are being written. */
static bool is_traced(const struct walk *w)
{
	return w->stream->enabled && !w->lost;
}

/* Away from user code: other threads' clocks have gone on meanwhile. */
static void pause(struct walk *w)
{
	uint64_t mine = now(w), latest = w->shared->now;

	while (latest < mine && !atomic_compare_exchange_weak(&w->shared->now, &latest, mine))
		;
	w->tsc_zero += PTGEN_SYSCALL_TICKS + (latest > mine ? latest - mine : 0);
}

static void leave_async(struct walk *w, uint64_t ip)
{
	if (is_traced(w)) {
		mark_time(w);
		pt_stream__disable_async(w->stream, ip);
		w->out->branches++;
	}
	pause(w);
}

/* The packets of the last instruction of p, which went to `to`. False: it cannot have gone there.
 */
static bool encode(struct walk *w, const struct block *p, uint64_t to)
{
	struct pt_stream *s = w->stream;

	switch ((enum insn_class)p->cls) {
	case INSN_OTHER:
		/* A repeated string instruction is a block of its own, once an iteration. */
		return to == p->end || to == p->last;
	case INSN_COND:
		if (to != p->end && to != p->target)
			return false;
		pt_stream__cond(s, to != p->end, to);
		w->out->branches += to != p->end;
		return true;
	case INSN_CALL:
		if (to != p->target)
			return false;
		pt_stream__call(s, p->end, to);
		break;
	case INSN_CALL_INDIRECT:
		pt_stream__call_indirect(s, p->end, to);
		break;
	case INSN_RET:
		pt_stream__ret(s, to);
		break;
	case INSN_JUMP:
		if (to != p->target)
			return false;
		break;
	case INSN_JUMP_INDIRECT:
	case INSN_FAR:
		pt_stream__jump_indirect(s, to);
		break;
	case INSN_SYSCALL:
	case INSN_INT3:
		return false;
	}
	w->out->branches++;
	return true;
}

static void log_truth(struct walk *w, const struct block *p, uint64_t to, uint64_t sp)
{
	uint64_t time_ns = ptgen__ns(now(w));

	if (w->shared->config.go)
		sp = walk_go__place(w, p, sp);
	/* "call next; pop" reads the IP, and enters nothing. */
	if ((p->cls == INSN_CALL || p->cls == INSN_CALL_INDIRECT) && to != p->end)
		truth__call(&w->truth, time_ns, to, sp);
	else if (p->cls == INSN_RET)
		truth__return(&w->truth, time_ns, to, sp - 8 - p->popped);
	else if (p->cls == INSN_JUMP_INDIRECT)
		truth__at(&w->truth, sp);
}

/* The block that ran has ended, and the thread is at `to` with its stack pointer at sp. */
static void go(struct walk *w, uint64_t to, uint64_t sp)
{
	const struct block *p = w->prev;

	w->instructions += p->count;
	if (p->cls == INSN_OTHER) {
		if (to == p->end)
			return;
		if (to == p->last) {
			w->instructions--; /* not until its last iteration */
			return;
		}
	}
	if (is_traced(w)) {
		mark_time(w);
		if (!encode(w, p, to)) {
			w->out->irregular++;
			leave_async(w, p->last);
		}
	}
	if (w->truth.log)
		log_truth(w, p, to, sp);
}

static void finish(struct walk *w, uint64_t ip)
{
	leave_async(w, ip);
	w->recording = false;
	w->out->ended = true;
}

/* When to look up next, at the latest. */
static void set_alarm(struct walk *w)
{
	uint64_t limit = w->shared->config.limit, recorded = w->shared->recorded;

	w->alarm = w->instructions + COUNT_PERIOD;
	if (recorded < limit && limit - recorded < COUNT_PERIOD)
		w->alarm = w->instructions + limit - recorded;
	if (w->lost && w->lost_until < w->alarm)
		w->alarm = w->lost_until;
	else if (!w->lost && w->out->written >= w->overflow_at)
		w->alarm = 0;
}

static void count(struct walk *w)
{
	uint64_t n = w->instructions - w->counted, limit = w->shared->config.limit;
	uint64_t recorded = atomic_fetch_add(&w->shared->recorded, n) + n;

	w->counted += n;
	w->out->instructions += n;
	if (limit && recorded >= limit)
		w->shared->stopping = true;
}

/* The first thread says when. */
static bool begins(struct walk *w)
{
	if (w->out == w->shared->threads && w->instructions >= w->shared->config.skip)
		w->shared->begun = true;
	return w->shared->begun;
}

static void begin(struct walk *w)
{
	w->recording = true;
	w->counted = w->instructions;
	w->truth.log = w->truth_log;
}

static void overflow(struct walk *w)
{
	w->lost = true;
	w->lost_until = w->instructions + LOST_INSTRUCTIONS;
	/* What the encoder holds back is lost as well. */
	w->out->branches -= (unsigned int)__builtin_popcount(w->stream->tnt_bits);
}

static void end_overflow(struct walk *w, uint64_t ip)
{
	mark_time(w);
	pt_stream__overflow(w->stream, ip);
	w->out->overflows++;
	w->out->branches++; /* the begin behind it */
	w->lost = false;
	w->overflow_at = w->out->written + w->shared->config.overflow_period;
}

/* Every now and then: what else than branches there is to do, before the block at ip. */
static void look_up(struct walk *w, uint64_t ip)
{
	if (w->out->ended)
		return;
	if (!w->recording && !begins(w)) {
		w->alarm = w->instructions + 1;
		return;
	}
	if (!w->recording)
		begin(w);
	if (w->lost && w->instructions >= w->lost_until)
		end_overflow(w, ip);
	else if (is_traced(w) && w->out->written >= w->overflow_at)
		overflow(w);
	count(w);
	if (w->shared->stopping)
		finish(w, ip);
	set_alarm(w);
}

static void log_signals(struct walk *w, const struct signal_frame *frames, int n)
{
	if (w->shared->config.go && !w->n_signals)
		walk_go__interrupted(w, &frames[n - 1]);
	w->n_signals += (unsigned int)n;
	while (n--)
		truth__signal(&w->truth, frames[n].entry, frames[n].slot + w->signal_shift);
}

/* The kernel set up frames: the innermost handler is about to run. */
static void signalled(struct walk *w, const struct signal_frame *innermost)
{
	struct signal_frame frames[MAX_PENDING_SIGNALS];
	const struct block *p = w->prev;
	const struct signal_frame *first;
	int n = 1;

	frames[0] = *innermost;
	while (n < MAX_PENDING_SIGNALS && signals__outer(w->signals, &frames[n - 1], &frames[n]))
		n++;
	first = &frames[n - 1];
	if (p && p->cls == INSN_INT3 && first->ip == p->end) {
		w->instructions += p->count;
		leave_async(w, p->last);
	} else if (p) {
		if (!first->is_exception || first->ip < p->start || first->ip >= p->end)
			go(w, first->ip, first->sp);
		leave_async(w, first->ip);
	}
	w->prev = NULL;
	if (w->truth.log)
		log_signals(w, frames, n);
}

static void enable(struct walk *w, uint64_t ip)
{
	mark_time(w);
	pt_stream__enable(w->stream, ip);
	w->out->branches++;
}

void walk__block(struct walk *w, const struct block *b, const struct cpu_regs *regs)
{
	struct signal_frame frame;

	w->out->busy = true;
	if (w->truth.log && w->shared->config.go)
		w->goroutine = goroutine__find(regs);
	if (b->is_handler && signals__frame(w->signals, b->start, regs, &frame))
		signalled(w, &frame);
	else if (w->prev)
		go(w, b->start, regs->rsp);
	else if (w->interrupted_sp && !w->n_signals)
		walk_go__resumed(w, b->start, regs->rsp);
	w->prev = b;
	if (w->instructions >= w->alarm || w->shared->stopping)
		look_up(w, b->start);
	if (!w->stream->enabled && w->recording)
		enable(w, b->start);
	if (w->truth.now.waiting)
		truth__ran(&w->truth, b->start);
	w->out->busy = false;
}

static void signal_returns(struct walk *w)
{
	truth__sigreturn(&w->truth);
	if (w->n_signals)
		w->n_signals--;
	if (!w->n_signals)
		w->signal_shift = 0;
}

void walk__syscall(struct walk *w, int64_t nr)
{
	if (!w->prev || w->prev->cls != INSN_SYSCALL)
		return;
	w->out->busy = true;
	w->instructions += w->prev->count;
	w->prev = NULL;
	if (is_traced(w)) {
		mark_time(w);
		pt_stream__disable(w->stream);
		w->out->branches++;
	}
	pause(w);
	if (nr == SYS_rt_sigreturn && w->truth.log)
		signal_returns(w);
	if (w->recording) {
		count(w);
		set_alarm(w);
	}
	w->out->busy = false;
}
