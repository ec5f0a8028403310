// SPDX-License-Identifier: (GPL-2.0-only OR MIT)
#include "pt_stream.h"

static unsigned int put_le(uint8_t *out, uint64_t value, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		out[i] = (uint8_t)(value >> (8 * i));
	return n;
}

/* "PSB Packet": 02 82, eight times. */
unsigned int pt_packet__psb(uint8_t *out)
{
	for (unsigned int i = 0; i < 16; i += 2) {
		out[i] = 0x02;
		out[i + 1] = 0x82;
	}
	return 16;
}

/* "PSBEND Packet" */
unsigned int pt_packet__psbend(uint8_t *out)
{
	return put_le(out, 0x2302, 2);
}

/* "OVF Packet" */
unsigned int pt_packet__ovf(uint8_t *out)
{
	return put_le(out, 0xf302, 2);
}

/* "TSC Packet" */
unsigned int pt_packet__tsc(uint8_t *out, uint64_t tsc)
{
	out[0] = 0x19;
	return 1 + put_le(out + 1, tsc, 7);
}

/* "TMA Packet": the fast counter has 9 bits. */
unsigned int pt_packet__tma(uint8_t *out, uint16_t ctc, uint16_t fast)
{
	return put_le(out, 0x7302 | (uint64_t)ctc << 16 | (uint64_t)(fast & 0x1ff) << 40, 7);
}

/* "MTC Packet" */
unsigned int pt_packet__mtc(uint8_t *out, uint8_t ctc)
{
	return put_le(out, 0x59 | (uint32_t)ctc << 8, 2);
}

/* "CYC Packet": 5 bits in the first byte, above Exp in bit 2; then 7 per byte, above bit 0. */
unsigned int pt_packet__cyc(uint8_t *out, uint64_t cycles)
{
	unsigned int n = 1;

	out[0] = (uint8_t)(cycles << 3 | (cycles >> 5 ? 7 : 3));
	for (cycles >>= 5; cycles; cycles >>= 7)
		out[n++] = (uint8_t)(cycles << 1 | (cycles >> 7 ? 1 : 0));
	return n;
}

/* "CBR Packet" */
unsigned int pt_packet__cbr(uint8_t *out, uint8_t ratio)
{
	return put_le(out, 0x0302 | (uint32_t)ratio << 16, 4);
}

/* "MODE Packets", MODE.Exec: leaf 000, CS.L = 1, CS.D = 0. */
unsigned int pt_packet__mode_exec_64(uint8_t *out)
{
	return put_le(out, 0x0199, 2);
}

/* "TNT Packet": bit 0 clear, the newest bit in bit 1, a stop bit above the oldest. */
unsigned int pt_packet__tnt(uint8_t *out, uint8_t bits, unsigned int n)
{
	out[0] = (uint8_t)(1u << (n + 1) | (uint32_t)bits << 1);
	return 1;
}

/* "TIP Packet" and those of the same form: TIP.PGE, TIP.PGD, FUP. */
unsigned int pt_packet__ip(uint8_t *out, enum pt_ip_packet packet, enum pt_ip_bytes bytes,
			   uint64_t ip)
{
	static const uint8_t lengths[] = {
		[PT_IP_SUPPRESSED] = 0, [PT_IP_UPDATE_16] = 2, [PT_IP_UPDATE_32] = 4,
		[PT_IP_SEXT_48] = 6,	[PT_IP_UPDATE_48] = 6, [PT_IP_FULL] = 8,
	};

	out[0] = (uint8_t)(packet | bytes << 5);
	return 1 + put_le(out + 1, ip, lengths[bytes]);
}

/* "PTW Packet": 4 or 8 bytes by bits 6:5 of the second byte, IP in bit 7. */
unsigned int pt_packet__ptw(uint8_t *out, uint64_t value, bool is_wide, bool has_ip)
{
	out[0] = 0x02;
	out[1] = (uint8_t)(0x12 | (is_wide ? 0x20 : 0) | (has_ip ? 0x80 : 0));
	return 2 + put_le(out + 2, value, is_wide ? 8 : 4);
}

/* "Control Flow Event (CFE) Packet" */
unsigned int pt_packet__cfe(uint8_t *out, uint8_t type, uint8_t vector, bool has_ip)
{
	return put_le(
		out, 0x1302 | (uint32_t)(type | (has_ip ? 0x80 : 0)) << 16 | (uint32_t)vector << 24,
		4);
}

/* "Event Data (EVD) Packet" */
unsigned int pt_packet__evd(uint8_t *out, uint8_t type, uint64_t value)
{
	out[0] = 0x02;
	out[1] = 0x53;
	out[2] = type;
	return 3 + put_le(out + 3, value, 8);
}

/* "TraceStop Packet" */
unsigned int pt_packet__trace_stop(uint8_t *out)
{
	return put_le(out, 0x8302, 2);
}

enum pt_ip_bytes pt_packet__compress_ip(uint64_t ip, uint64_t last, bool known)
{
	if (known && ip >> 16 == last >> 16)
		return PT_IP_UPDATE_16;
	if (known && ip >> 32 == last >> 32)
		return PT_IP_UPDATE_32;
	if (ip == (uint64_t)((int64_t)(ip << 16) >> 16))
		return PT_IP_SEXT_48;
	return PT_IP_FULL;
}

#define TNT_MAX 6
/* The most MTC packets that are written at once after a pause. */
#define MTC_MAX 64
#define NEVER	(~0ull)

void pt_stream__init(struct pt_stream *stream, const struct pt_stream_config *config,
		     void (*emit)(void *ctx, const uint8_t *bytes, unsigned int len), void *ctx)
{
	*stream =
		(struct pt_stream){.config = *config, .emit = emit, .ctx = ctx, .next_mtc = NEVER};
}

void pt_stream__time(struct pt_stream *stream, uint64_t tsc)
{
	if (tsc > stream->now)
		stream->now = tsc;
}

static void emit(struct pt_stream *stream, const uint8_t *bytes, unsigned int len)
{
	stream->emit(stream->ctx, bytes, len);
	stream->since_psb += len;
}

/* SDM "Cycle-Accurate Mode": before a packet that happened at `tsc`, the cycles up to then. */
static void emit_cyc(struct pt_stream *stream, uint64_t tsc)
{
	const struct pt_stream_config *config = &stream->config;
	uint8_t packet[PT_PACKET_MAX];
	uint64_t cycles;

	if (!config->nom_freq)
		return;
	cycles = tsc * config->cbr / config->nom_freq;
	if (stream->started && cycles > stream->cycles)
		emit(stream, packet, pt_packet__cyc(packet, cycles - stream->cycles));
	stream->cycles = cycles;
}

static void flush_tnt(struct pt_stream *stream)
{
	uint8_t packet[PT_PACKET_MAX];

	if (!stream->tnt_count)
		return;
	emit_cyc(stream, stream->tnt_time);
	emit(stream, packet, pt_packet__tnt(packet, stream->tnt_bits, stream->tnt_count));
	stream->tnt_bits = 0;
	stream->tnt_count = 0;
}

static uint64_t mtc_period(const struct pt_stream *stream)
{
	return (uint64_t)stream->config.ctc_ticks << stream->config.mtc_freq;
}

static void emit_tsc(struct pt_stream *stream)
{
	uint16_t ticks = stream->config.ctc_ticks;
	uint8_t packet[PT_PACKET_MAX];

	emit(stream, packet, pt_packet__tsc(packet, stream->now));
	stream->last_tsc = stream->now;
	if (!ticks)
		return;
	emit(stream, packet,
	     pt_packet__tma(packet, (uint16_t)(stream->now / ticks),
			    (uint16_t)(stream->now % ticks)));
	stream->next_mtc = (stream->now / mtc_period(stream) + 1) * mtc_period(stream);
}

static void resync_time(struct pt_stream *stream)
{
	flush_tnt(stream);
	emit_cyc(stream, stream->now);
	emit_tsc(stream);
}

/* Writes the MTC packets that are due, each at its own time; after a long pause a TSC instead. */
static void emit_mtc(struct pt_stream *stream)
{
	uint64_t period = mtc_period(stream);
	uint8_t packet[PT_PACKET_MAX];

	if (stream->now - stream->next_mtc >= MTC_MAX * period) {
		resync_time(stream);
		return;
	}
	flush_tnt(stream);
	for (; stream->now >= stream->next_mtc; stream->next_mtc += period) {
		emit_cyc(stream, stream->next_mtc);
		emit(stream, packet, pt_packet__mtc(packet, (uint8_t)(stream->next_mtc / period)));
	}
}

/*
 * Call this before a packet whose time matters. The TNT bits that are held back happened before:
 * they are written first.
 */
static void update_time(struct pt_stream *stream, uint64_t interval)
{
	if (stream->now >= stream->next_mtc)
		emit_mtc(stream);
	if (stream->now == stream->last_tsc || stream->now - stream->last_tsc < interval)
		return;
	resync_time(stream);
}

/*
 * Writes the time before tracing is turned on or off: as before any packet if MTC packets keep the
 * time, as on real CPUs; otherwise always with a TSC packet.
 */
static void begin_switch(struct pt_stream *stream)
{
	bool by_mtc = stream->config.ctc_ticks && !stream->config.tsc_at_switch;

	update_time(stream, by_mtc ? stream->config.tsc_interval : 0);
	flush_tnt(stream);
	emit_cyc(stream, stream->now);
}

static void emit_ip(struct pt_stream *stream, enum pt_ip_packet kind, uint64_t ip)
{
	uint8_t packet[PT_PACKET_MAX];
	enum pt_ip_bytes bytes = pt_packet__compress_ip(ip, stream->last_ip, stream->last_ip_known);

	emit(stream, packet, pt_packet__ip(packet, kind, bytes, ip));
	stream->last_ip = ip;
	stream->last_ip_known = true;
}

static void emit_pgd(struct pt_stream *stream)
{
	uint8_t packet[PT_PACKET_MAX];

	emit(stream, packet, pt_packet__ip(packet, PT_TIP_PGD, PT_IP_SUPPRESSED, 0));
	stream->enabled = false;
	/*
	 * The SDM keeps the return stack across this; forgetting it only costs bytes, and spares
	 * decoders that disagree on it.
	 */
	stream->depth = 0;
}

/* SDM "Packet Stream Boundary Plus (PSB+)": the state a decoder needs to start here. FUP only while
 * enabled. */
static void emit_psb(struct pt_stream *stream, uint64_t ip)
{
	uint8_t packet[PT_PACKET_MAX];

	flush_tnt(stream);
	emit_cyc(stream, stream->now);
	stream->since_psb = 0;
	stream->started = true;
	emit(stream, packet, pt_packet__psb(packet));
	emit_tsc(stream);
	emit(stream, packet, pt_packet__cbr(packet, stream->config.cbr));
	emit(stream, packet, pt_packet__mode_exec_64(packet));
	stream->last_ip_known = false;
	if (stream->enabled)
		emit_ip(stream, PT_FUP, ip);
	emit(stream, packet, pt_packet__psbend(packet));
	/* A compressed RET never refers back past a PSB: its CALL may have been overwritten. */
	stream->depth = 0;
}

/*
 * Call this directly after a branch packet, when every decoder is exactly at the branch's target:
 * elsewhere, perf would skip the direct calls up to the FUP.
 */
static void psb_if_due(struct pt_stream *stream, uint64_t ip)
{
	if (stream->since_psb >= stream->config.psb_period)
		emit_psb(stream, ip);
}

void pt_stream__enable(struct pt_stream *stream, uint64_t ip)
{
	if (!stream->started || stream->since_psb >= stream->config.psb_period)
		emit_psb(stream, 0);
	begin_switch(stream);
	emit_ip(stream, PT_TIP_PGE, ip);
	stream->enabled = true;
}

static void add_tnt(struct pt_stream *stream, bool taken)
{
	update_time(stream, stream->config.tsc_interval);
	stream->tnt_bits = (uint8_t)(stream->tnt_bits << 1 | taken);
	stream->tnt_time = stream->now;
	if (++stream->tnt_count == TNT_MAX)
		flush_tnt(stream);
}

static void add_tip(struct pt_stream *stream, uint64_t to)
{
	update_time(stream, stream->config.tsc_interval);
	flush_tnt(stream);
	emit_cyc(stream, stream->now);
	emit_ip(stream, PT_TIP, to);
	psb_if_due(stream, to);
}

static void push_return(struct pt_stream *stream, uint64_t return_ip)
{
	stream->returns[stream->top] = return_ip;
	stream->top = (stream->top + 1) % PT_RETURN_DEPTH;
	if (stream->depth < PT_RETURN_DEPTH)
		stream->depth++;
}

void pt_stream__cond(struct pt_stream *stream, bool taken, uint64_t to)
{
	add_tnt(stream, taken);
	psb_if_due(stream, to);
}

void pt_stream__call(struct pt_stream *stream, uint64_t return_ip, uint64_t to)
{
	/* "call next; pop" reads the IP: such a call is not remembered (SDM "Indirect Transfer
	 * Compression for Returns"). */
	if (to != return_ip)
		push_return(stream, return_ip);
}

void pt_stream__call_indirect(struct pt_stream *stream, uint64_t return_ip, uint64_t to)
{
	push_return(stream, return_ip);
	add_tip(stream, to);
}

void pt_stream__jump_indirect(struct pt_stream *stream, uint64_t to)
{
	add_tip(stream, to);
}

void pt_stream__ret(struct pt_stream *stream, uint64_t to)
{
	uint8_t last = (uint8_t)((stream->top + PT_RETURN_DEPTH - 1) % PT_RETURN_DEPTH);

	if (!stream->config.return_compression) {
		add_tip(stream, to);
		return;
	}
	if (stream->depth && stream->returns[last] == to) {
		stream->depth--;
		stream->top = last;
		add_tnt(stream, true);
		psb_if_due(stream, to);
		return;
	}
	/*
	 * Decoders disagree on what a return that missed leaves on their stacks (libipt keeps the
	 * entry, perf pops it): compress again only from the next call on.
	 */
	stream->depth = 0;
	add_tip(stream, to);
}

void pt_stream__disable(struct pt_stream *stream)
{
	stream->event.type = 0;
	begin_switch(stream);
	emit_pgd(stream);
}

void pt_stream__disable_async(struct pt_stream *stream, uint64_t ip)
{
	struct pt_stream_event event = stream->event;
	uint8_t packet[PT_PACKET_MAX];

	begin_switch(stream);
	/*
	 * SDM "Event Trace": the packets of an event precede the FUP of its branch: first its data
	 * (EVD), then the CFE.
	 */
	stream->event.type = 0;
	if (event.type && event.has_address)
		emit(stream, packet, pt_packet__evd(packet, PT_EVD_PFA, event.address));
	if (event.type)
		emit(stream, packet, pt_packet__cfe(packet, event.type, event.vector, false));
	emit_ip(stream, PT_FUP, ip);
	emit_pgd(stream);
}

void pt_stream__leave_range(struct pt_stream *stream, uint64_t to)
{
	begin_switch(stream);
	emit_ip(stream, PT_TIP_PGD, to);
	stream->enabled = false;
	stream->depth = 0;
}

void pt_stream__ptwrite(struct pt_stream *stream, uint64_t value, bool is_wide, uint64_t ip)
{
	uint8_t packet[PT_PACKET_MAX];

	update_time(stream, stream->config.tsc_interval);
	flush_tnt(stream);
	emit_cyc(stream, stream->now);
	emit(stream, packet, pt_packet__ptw(packet, value, is_wide, ip));
	if (ip)
		emit_ip(stream, PT_FUP, ip);
}

void pt_stream__trace_stop(struct pt_stream *stream)
{
	uint8_t packet[PT_PACKET_MAX];

	emit(stream, packet, pt_packet__trace_stop(packet));
}

void pt_stream__count_cycles(struct pt_stream *stream, uint8_t nom_freq)
{
	if (nom_freq && !stream->config.nom_freq)
		stream->cycles = stream->now * stream->config.cbr / nom_freq;
	stream->config.nom_freq = nom_freq;
}

void pt_stream__overflow(struct pt_stream *stream, uint64_t ip)
{
	uint8_t packet[PT_PACKET_MAX];

	/* Bits held back are lost as well. */
	stream->tnt_bits = 0;
	stream->tnt_count = 0;
	stream->depth = 0;
	emit_cyc(stream, stream->now);
	emit(stream, packet, pt_packet__ovf(packet));
	stream->last_ip_known = false;
	emit_tsc(stream);
	emit_ip(stream, PT_FUP, ip);
}

void pt_stream__flush(struct pt_stream *stream)
{
	flush_tnt(stream);
}
