// SPDX-License-Identifier: MIT
#include "oracle/oracle.h"

#include <errno.h>
#include <intel-pt.h>

#include "oracle/oracle_internal.h"
#include "decode/pt_time.h"
#include "util/log.h"

static void set_time(struct decoder *d, uint64_t tsc)
{
	uint64_t now = tsc__to_ns(tsc, d->aux->tsc, &d->rec->pt);

	/* Recalibration may step back; time in a trace does not. */
	if (now > d->time_ns)
		d->time_ns = now;
}

/* Of the packet that libipt has read last: ahead of the branches it hands over. */
static void update_time(struct decoder *d)
{
	uint32_t lost_mtc, lost_cyc;
	uint64_t tsc;

	/* Before the first TSC packet libipt says 0, and from 2.1 on all ones. */
	if (pt_blk_time(d->blk, &tsc, &lost_mtc, &lost_cyc) >= 0 && tsc && tsc != UINT64_MAX)
		set_time(d, tsc);
}

/* Of the event, while libipt has read on to the next. */
static void take_time(struct decoder *d, const struct pt_event *event)
{
	if (event->has_tsc)
		set_time(d, event->tsc);
}

static int apply_maps(struct decoder *d)
{
	return images__apply(d->images, d->aux->pid, d->time_ns, &d->next_map, d->map);
}

/* A PSB: the time of where tracing goes on behind a gap. */
static int on_status(struct decoder *d, const struct pt_event *event)
{
	if (d->tracing)
		return 0;
	take_time(d, event);
	return apply_maps(d);
}

static int on_event(struct decoder *d, const struct pt_event *event)
{
	int err;

	if (event->status_update)
		return on_status(d, event);
	switch (event->type) {
	case ptev_tick:
		/* Of the branch that ended the last block, which is pending still. */
		take_time(d, event);
		return 0;
	case ptev_enabled:
		take_time(d, event);
		/* Code mapped while the thread was in the kernel is there before it runs. */
		err = apply_maps(d);
		return err ? err : decoder__go_on(d, event->variant.enabled.ip);
	case ptev_disabled:
		take_time(d, event);
		return decoder__end_sync(d);
	case ptev_async_disabled:
		err = decoder__leave_at(d, event->variant.async_disabled.at);
		take_time(d, event);
		return err ? err : decoder__end_async(d, event->variant.async_disabled.at);
	case ptev_async_branch:
		err = decoder__leave_at(d, event->variant.async_branch.from);
		take_time(d, event);
		return err ? err
			   : decoder__enter(d, event->variant.async_branch.from,
					    event->variant.async_branch.to);
	case ptev_overflow:
		err = decoder__gap(d, GAP_OVERFLOW, 0);
		update_time(d);
		return err;
	default:
		return 0;
	}
}

/* Code that takes more direct branches in a row is not what ran: it would go on for ever. */
#define MAX_DIRECT (1u << 12)

/* Where it goes is in no packet. */
static bool is_direct(const struct insn *insn)
{
	return insn->cls == INSN_CALL || insn->cls == INSN_JUMP;
}

static int on_block(struct decoder *d, const struct pt_block *block)
{
	int err;

	/* A trap that ends what is traced is none of its branches; one whose handler is, is. */
	if (d->tracing && d->last_insn.cls == INSN_INT3)
		d->pending = true;
	err = d->tracing ? decoder__resolve(d, block->ip) : decoder__begin(d, block->ip);
	d->n_insns += block->ninsn;
	d->totals->insns += block->ninsn;
	d->last_ip = block->end_ip;
	d->last_insn = decoder__fetch(d, block->end_ip);
	d->pending = d->last_insn.cls != INSN_OTHER && d->last_insn.cls != INSN_INT3;
	d->n_direct = is_direct(&d->last_insn) ? d->n_direct + 1 : 0;
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
	err = decoder__resolve(d, block.ip);
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
		if (d->n_direct > MAX_DIRECT)
			*status = -pte_bad_query;
		if (*status < 0)
			return err;
	}
	return err;
}

/* To the next PSB; -pte_eos in *status where none is left. */
static int synchronise(struct decoder *d, int *status)
{
	uint64_t before = 0, at;
	bool first = pt_blk_get_sync_offset(d->blk, &before) < 0;

	d->n_direct = 0;
	*status = pt_blk_sync_forward(d->blk);
	if (*status < 0) {
		/* A damaged PSB+ is skipped, as long as there is another one. */
		if (pt_blk_get_sync_offset(d->blk, &at) < 0 || (!first && at <= before))
			*status = -pte_eos;
		return 0;
	}
	if (*status & pts_event_pending)
		return 0; /* it tells the time */
	update_time(d);
	return apply_maps(d);
}

static int decode_all(struct decoder *d)
{
	struct branch branch = {.kind = BRANCH_END};
	int err = 0, status = 0;

	while (!err && status != -pte_eos) {
		err = synchronise(d, &status);
		if (!err && status >= 0)
			err = decode_region(d, &status);
		if (err || status >= 0)
			break; /* the end of the stream */
		if (status == -pte_eos)
			continue;
		log__debug("thread %d: decoding stops near %#llx: %s", d->aux->tid,
			   (unsigned long long)d->last_ip, pt_errstr(pt_errcode(status)));
		err = decoder__gap(d, reason_of(status), d->last_ip);
	}
	if (err || !d->tracing)
		return err;
	branch.from = d->last_ip;
	return decoder__hand_on(d, &branch);
}

#define PSB_SIZE 16

static int read_code(uint8_t *buffer, size_t size, const struct pt_asid *asid, uint64_t ip,
		     void *context)
{
	size_t n = code_map__read(context, ip, buffer, size);

	return n ? (int)n : -pte_nomap;
}

struct oracle_filter oracle__filter;

static void configure_filter(struct pt_conf_addr_filter *filter)
{
	if (!oracle__filter.end)
		return;
	filter->config.ctl.addr0_cfg = 1;
	filter->addr0_a = oracle__filter.start;
	filter->addr0_b = oracle__filter.end - 1;
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
	configure_filter(&config->addr_filter);
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

int oracle__run(const struct decode_request *request)
{
	struct decoder d = {.rec = request->rec,
			    .aux = request->aux,
			    .images = request->images,
			    .map = request->map,
			    .take = request->take,
			    .ctx = request->ctx,
			    .totals = request->totals};
	struct pt_config config;
	int err;

	/* Less than a PSB; libipt would look for one behind the end. */
	if (d.aux->size < PSB_SIZE)
		return 0;
	configure(&config, d.rec, d.aux);
	d.blk = pt_blk_alloc_decoder(&config);
	if (!d.blk)
		return -EINVAL;
	err = pt_image_set_callback(pt_blk_get_image(d.blk), read_code, d.map);
	if (err < 0)
		err = -ENOMEM;
	else
		err = decode_all(&d);
	pt_blk_free_decoder(d.blk);
	return err;
}
