// SPDX-License-Identifier: GPL-2.0-only
#include "softpt.h"

#include <linux/module.h>
#include <linux/slab.h>

/* What the real driver says where the trace unit was away for a while (inside VMX). */
static bool partial;
module_param(partial, bool, 0644);
MODULE_PARM_DESC(partial, "flag the next end of a trace as PARTIAL, once");

/* A ring that is broken so keeps what came first. */
#define STALE_AFTER (32 << 10)

void *softpt_aux__setup(struct perf_event *event, void **pages, int nr_pages, bool snapshot)
{
	struct softpt_buffer *buffer = kzalloc(sizeof(*buffer), GFP_KERNEL);

	if (!buffer)
		return NULL;
	buffer->pages = pages;
	buffer->size = (u64)nr_pages << PAGE_SHIFT;
	buffer->snapshot = snapshot;
	return buffer;
}

void softpt_aux__free(void *buffer)
{
	kfree(buffer);
}

void softpt_aux__write(void *ctx, const u8 *bytes, unsigned int len)
{
	struct softpt_buffer *buffer = ((struct softpt_event *)ctx)->buffer;
	unsigned int i;

	if (!buffer->snapshot && buffer->written + len > buffer->space) {
		buffer->lost = true;
		return;
	}
	buffer->total += len;
	if (buffer->total > STALE_AFTER && softpt_step__broken() == SOFTPT_BROKEN_STALE)
		return;
	for (i = 0; i < len; i++) {
		((u8 *)buffer->pages[buffer->at >> PAGE_SHIFT])[offset_in_page(buffer->at)] =
			bytes[i];
		buffer->at = (buffer->at + 1) & (buffer->size - 1);
	}
	buffer->written += len;
}

int softpt_aux__begin(struct softpt_cpu *cpu, struct perf_event *event)
{
	struct softpt_buffer *buffer = perf_aux_output_begin(&cpu->handle, event);

	if (!buffer)
		return -EINVAL;
	buffer->at = cpu->handle.head & (buffer->size - 1);
	buffer->space = cpu->handle.size;
	buffer->written = 0;
	buffer->lost = false;
	softpt_event(event)->buffer = buffer;
	return 0;
}

void softpt_aux__end(struct softpt_cpu *cpu)
{
	struct perf_event *event = cpu->handle.event;
	struct softpt_buffer *buffer = softpt_event(event)->buffer;

	softpt_event(event)->buffer = NULL;
	if (buffer->lost)
		perf_aux_output_flag(&cpu->handle, PERF_AUX_FLAG_TRUNCATED);
	if (xchg(&partial, false))
		perf_aux_output_flag(&cpu->handle, PERF_AUX_FLAG_PARTIAL);
	/* As arch/x86/events/intel/pt.c: pt_event_stop(): the head is an offset in the buffer. */
	if (buffer->snapshot) {
		if (softpt_step__broken() == SOFTPT_BROKEN_END)
			buffer->at = (buffer->at - 2048) & (buffer->size - 1);
		cpu->handle.head = buffer->at;
		perf_aux_output_end(&cpu->handle, buffer->size);
	} else {
		perf_aux_output_end(&cpu->handle, buffer->written);
	}
}

bool softpt_aux__turn(struct softpt_cpu *cpu)
{
	struct perf_event *event = cpu->handle.event;
	struct softpt_buffer *buffer = softpt_event(event)->buffer;
	bool lost = buffer->lost;

	if (buffer->snapshot)
		return true;
	if (!lost && cpu->handle.head + buffer->written < cpu->handle.wakeup)
		return true;
	softpt_aux__end(cpu);
	if (softpt_aux__begin(cpu, event)) {
		event->hw.state = PERF_HES_STOPPED;
		return false;
	}
	if (lost && softpt_event(event)->stream.enabled)
		pt_stream__overflow(&softpt_event(event)->stream, cpu->ip);
	return true;
}
