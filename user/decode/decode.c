// SPDX-License-Identifier: MIT
#include "decode/decode.h"

#include <errno.h>
#include <intel-pt.h>
#include <string.h>

#include "decode/tsc.h"
#include "util/insn.h"
#include "util/log.h"

struct decoder {
	struct pt_block_decoder *blk;
	const struct recording *rec;
	const struct rec_aux *aux;
	struct images *images;
	struct code_map *map;
	size_t next_map;
	branch_fn fn;
	void *ctx;
	struct decode_totals *totals;
	uint64_t time_ns;
	uint32_t n_insns;  /* since the last branch handed on */
	bool tracing;	   /* between a BEGIN and its END */
	bool in_gap;	   /* a gap has been handed on, and no BEGIN since */
	uint64_t async_ip; /* where the last END_ASYNC left; 0 after anything else */
	/* The last block's last instruction, a branch whose target the next block tells. */
	bool pending;
	uint64_t last_ip;
	struct insn last_insn;
};

static void set_time(struct decoder *d, uint64_t tsc)
{
	uint64_t now = rec_pt__tsc_to_ns(&d->rec->pt, tsc__extend(tsc, d->aux->tsc));

	/* Recalibration may step back; time in a trace does not. */
	if (now > d->time_ns)
		d->time_ns = now;
}

/* Of the packet that libipt has read last. */
static void update_time(struct decoder *d)
{
	uint32_t lost_mtc, lost_cyc;
	uint64_t tsc;

	if (pt_blk_time(d->blk, &tsc, &lost_mtc, &lost_cyc) >= 0 && tsc)
		set_time(d, tsc);
}

/* Of the event, while libipt has read on to the next. */
static void take_time(struct decoder *d, const struct pt_event *event)
{
	if (event->has_tsc)
		set_time(d, event->tsc);
}

static int hand_on(struct decoder *d, struct branch *branch)
{
	branch->time_ns = d->time_ns;
	branch->n_insns = d->n_insns;
	d->n_insns = 0;
	d->totals->branches++;
	if (!d->totals->first_ns || d->time_ns < d->totals->first_ns)
		d->totals->first_ns = d->time_ns;
	if (d->time_ns > d->totals->last_ns)
		d->totals->last_ns = d->time_ns;
	return d->fn(d->ctx, branch);
}

static int begin(struct decoder *d, uint64_t ip)
{
	struct branch branch = {.kind = BRANCH_BEGIN, .to = ip};

	d->tracing = true;
	d->in_gap = false;
	d->async_ip = 0;
	return hand_on(d, &branch);
}

/* len 0 where it cannot be decoded, which libipt has just done. */
static struct insn fetch_insn(struct decoder *d, uint64_t ip)
{
	uint8_t code[INSN_MAX_LEN];
	size_t n = code_map__read(d->map, ip, code, sizeof(code));
	struct insn insn;

	if (!n || insn__decode(code, n, ip, &insn))
		return (struct insn){0};
	return insn;
}

static uint8_t kind_of(const struct insn *insn)
{
	switch ((enum insn_class)insn->cls) {
	case INSN_CALL:
	case INSN_CALL_INDIRECT:
		return BRANCH_CALL;
	case INSN_RET:
		return BRANCH_RETURN;
	case INSN_COND:
		return BRANCH_COND;
	default:
		return BRANCH_JUMP;
	}
}

/* The pending branch went to `to`. */
static int resolve(struct decoder *d, uint64_t to)
{
	struct branch branch = {.from = d->last_ip,
				.to = to,
				.kind = kind_of(&d->last_insn),
				.len = d->last_insn.len};

	if (!d->pending)
		return 0;
	d->pending = false;
	if (branch.kind == BRANCH_COND && to == d->last_ip + branch.len)
		return 0; /* not taken */
	return hand_on(d, &branch);
}

/* Left user code by the pending instruction: a syscall, under a user-only filter. */
static int end_sync(struct decoder *d)
{
	struct branch branch = {.from = d->last_ip, .len = d->last_insn.len};
	bool far = d->last_insn.cls == INSN_SYSCALL || d->last_insn.cls == INSN_FAR;

	branch.kind = d->pending && far ? BRANCH_END_SYSCALL : BRANCH_END;
	d->pending = false;
	d->tracing = false;
	d->async_ip = 0;
	return hand_on(d, &branch);
}

static int end_async(struct decoder *d, const struct pt_event *event)
{
	uint64_t at = event->variant.async_disabled.at;
	struct branch branch = {.kind = BRANCH_END_ASYNC, .from = at};
	/* A branch without a packet of its own happened before the time of the event. */
	int err = resolve(d, at);

	take_time(d, event);
	d->tracing = false;
	d->async_ip = at;
	return err ? err : hand_on(d, &branch);
}

/*
 * Tracing goes on at ip. Under a probe the kernel does the instruction that was left: where that is
 * a branch to ip, it happened, though no packet says so.
 */
static int go_on(struct decoder *d, uint64_t ip)
{
	uint64_t from = d->async_ip;
	struct insn insn = from && from != ip ? fetch_insn(d, from) : (struct insn){0};
	int err;

	if (!insn.target || insn.target != ip)
		return begin(d, ip);
	err = begin(d, from);
	d->last_ip = from;
	d->last_insn = insn;
	d->pending = true;
	return err ? err : resolve(d, ip);
}

/* One a break, however many errors follow before tracing goes on. */
static int gap(struct decoder *d, enum gap_reason reason, uint64_t ip)
{
	struct branch branch = {.kind = BRANCH_GAP, .from = ip, .reason = (uint8_t)reason};

	d->pending = false;
	d->tracing = false;
	d->async_ip = 0;
	if (d->in_gap)
		return 0;
	d->in_gap = true;
	d->totals->gaps[reason]++;
	return hand_on(d, &branch);
}

static int on_event(struct decoder *d, const struct pt_event *event)
{
	int err = 0;

	if (event->status_update)
		return 0;
	switch (event->type) {
	case ptev_tick:
		/* Of the branch that ended the last block, which is pending still. */
		take_time(d, event);
		return 0;
	case ptev_enabled:
		take_time(d, event);
		/* Code mapped while the thread was in the kernel is there before it runs. */
		err = images__apply(d->images, d->aux->pid, d->time_ns, &d->next_map, d->map);
		return err ? err : go_on(d, event->variant.enabled.ip);
	case ptev_disabled:
		take_time(d, event);
		return end_sync(d);
	case ptev_async_disabled:
		return end_async(d, event);
	case ptev_overflow:
		return gap(d, GAP_OVERFLOW, 0);
	default:
		return 0;
	}
}

static int on_block(struct decoder *d, const struct pt_block *block)
{
	int err = d->tracing ? resolve(d, block->ip) : begin(d, block->ip);

	d->n_insns += block->ninsn;
	d->totals->insns += block->ninsn;
	d->last_ip = block->end_ip;
	d->last_insn = fetch_insn(d, block->end_ip);
	d->pending = d->last_insn.cls != INSN_OTHER && d->last_insn.cls != INSN_INT3;
	return err;
}

static enum gap_reason reason_of(int status)
{
	switch (-status) {
	case pte_nomap:
		return GAP_UNMAPPED;
	case pte_bad_opc:
	case pte_bad_packet:
		return GAP_BAD_PACKET;
	default:
		return GAP_MISMATCH;
	}
}

/* Where it goes is in no packet. */
static bool is_direct(const struct insn *insn)
{
	return insn->cls == INSN_CALL || insn->cls == INSN_JUMP;
}

/*
 * No packet is left. Where the last one sent the thread is known, and that it began there; not
 * how far it ran.
 */
static int resolve_last(struct decoder *d)
{
	struct pt_block block = {0};
	int err;

	if (!d->pending || is_direct(&d->last_insn))
		return 0;
	pt_blk_next(d->blk, &block, sizeof(block));
	if (!block.ninsn)
		return 0;
	err = resolve(d, block.ip);
	d->last_ip = block.ip;
	return err;
}

/* From one PSB to the end or to the first error, which is left in *status. */
static int decode_region(struct decoder *d, int *status)
{
	int err = 0;

	while (!err) {
		struct pt_event event;
		struct pt_block block;

		while (!err && *status >= 0 && *status & pts_event_pending) {
			*status = pt_blk_event(d->blk, &event, sizeof(event));
			if (*status >= 0)
				err = on_event(d, &event);
		}
		if (err || *status < 0)
			return err;
		if (*status & pts_eos)
			return resolve_last(d);
		block.ninsn = 0;
		*status = pt_blk_next(d->blk, &block, sizeof(block));
		if (block.ninsn)
			err = on_block(d, &block);
		if (*status < 0)
			return err;
	}
	return err;
}

static int decode_all(struct decoder *d)
{
	struct branch branch = {.kind = BRANCH_END};
	int err = 0;

	while (!err) {
		int status = pt_blk_sync_forward(d->blk);

		if (status < 0)
			break; /* no PSB is left */
		update_time(d);
		err = images__apply(d->images, d->aux->pid, d->time_ns, &d->next_map, d->map);
		if (!err)
			err = decode_region(d, &status);
		if (!err && status < 0 && status != -pte_eos) {
			log__debug("thread %d: decoding stops near %#llx: %s", d->aux->tid,
				   (unsigned long long)d->last_ip, pt_errstr(pt_errcode(status)));
			err = gap(d, reason_of(status), d->last_ip);
		}
		if (!err && status >= 0)
			break; /* the end of the stream */
	}
	if (err || !d->tracing)
		return err;
	branch.from = d->last_ip;
	return hand_on(d, &branch);
}

static int read_code(uint8_t *buffer, size_t size, const struct pt_asid *asid, uint64_t ip,
		     void *context)
{
	size_t n = code_map__read(context, ip, buffer, size);

	return n ? (int)n : -pte_nomap;
}

static void configure(struct pt_config *config, const struct recording *rec,
		      const struct rec_aux *aux)
{
	pt_config_init(config);
	config->begin = aux->data;
	config->end = aux->data + aux->size;
	config->mtc_freq = (uint8_t)rec->pt.mtc_freq;
	config->nom_freq = (uint8_t)rec->pt.nom_freq;
	config->cpuid_0x15_ebx = rec->pt.tsc_ctc_num;
	config->cpuid_0x15_eax = rec->pt.tsc_ctc_den;
	config->flags.variant.block.end_on_call = 1;
	config->flags.variant.block.end_on_jump = 1;
	/* A branch's time, taken before libipt reads on. */
	config->flags.variant.block.enable_tick_events = 1;
	if (!rec->pt.cpu_family)
		return;
	config->cpu.vendor = pcv_intel;
	config->cpu.family = (uint16_t)rec->pt.cpu_family;
	config->cpu.model = (uint8_t)rec->pt.cpu_model;
	config->cpu.stepping = (uint8_t)rec->pt.cpu_stepping;
	if (pt_cpu_errata(&config->errata, &config->cpu) < 0)
		log__debug("libipt does not know the errata of CPU %u/%u/%u", rec->pt.cpu_family,
			   rec->pt.cpu_model, rec->pt.cpu_stepping);
}

int decode__thread(const struct recording *rec, const struct rec_aux *aux, struct images *images,
		   struct code_map *map, branch_fn fn, void *ctx, struct decode_totals *totals)
{
	struct decoder d = {.rec = rec,
			    .aux = aux,
			    .images = images,
			    .map = map,
			    .fn = fn,
			    .ctx = ctx,
			    .totals = totals};
	struct pt_config config;
	int err;

	if (!aux->size)
		return 0;
	configure(&config, rec, aux);
	d.blk = pt_blk_alloc_decoder(&config);
	if (!d.blk) {
		log__error("libipt refuses the stream of thread %d", aux->tid);
		log__hint("its description in the recording is damaged");
		return -EINVAL;
	}
	err = pt_image_set_callback(pt_blk_get_image(d.blk), read_code, map);
	if (err < 0)
		err = -ENOMEM;
	else
		err = decode_all(&d);
	pt_blk_free_decoder(d.blk);
	return err;
}
