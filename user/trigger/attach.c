// SPDX-License-Identifier: MIT
/* Attaches the trigger's programs to the events of its probes. */
#include "trigger/trigger.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "trigger.skel.h"
#include "trigger/kernel_probes.h"
#include "trigger/trigger_internal.h"
#include "util/insn.h"
#include "util/log.h"

static void close_go_wait_links(struct trigger *trigger)
{
	while (trigger->go_wait_links.n)
		close(trigger->go_wait_links.v[--trigger->go_wait_links.n]);
}

void trigger__stop_go_waits(struct trigger *trigger)
{
	close_go_wait_links(trigger);
	trigger->go_waits_stopped = true;
}

/* Closes the entries' links first: a call without a return probe would stay open. */
void trigger__detach(struct trigger *trigger)
{
	close_go_wait_links(trigger);
	while (trigger->links.n)
		close(trigger->links.v[--trigger->links.n]);
	kernel_probes__free(trigger->kernel_probes);
	trigger->kernel_probes = NULL;
}

int trigger__attach_kernel_probes(struct trigger *trigger, const struct kernel_probe *all, size_t n)
{
	trigger->kernel_probes = kernel_probes__attach(trigger->skel, all, n);
	return trigger->kernel_probes ? 0 : -errno;
}

static const struct bpf_program *program_of(const struct trigger *trigger,
					    const struct trigger_event *event)
{
	const struct trigger_bpf *skel = trigger->skel;
	bool lru = trigger->latch == TRIGGER_LATCH_LRU_HASH;

	if (event->kind == TRIGGER_FREEZE)
		return skel->progs.on_freeze;
	if (event->is_function)
		return event->kind == TRIGGER_RETURN ? skel->progs.on_function_return
		       : event->kind == TRIGGER_STOP ? skel->progs.on_function_stop
						     : skel->progs.on_function;
	if (event->is_also && event->kind == TRIGGER_RETURN)
		return lru ? skel->progs.on_also_return_lru : skel->progs.on_also_return;
	if (event->is_also)
		return lru ? skel->progs.on_also_lru : skel->progs.on_also;
	switch (event->kind) {
	case TRIGGER_GO_PARK:
		return skel->progs.on_go_park;
	case TRIGGER_GO_READY:
		return skel->progs.on_go_ready;
	case TRIGGER_GO_EXECUTE:
		return skel->progs.on_go_execute;
	case TRIGGER_RETURN:
		return lru ? skel->progs.on_return_lru : skel->progs.on_return;
	case TRIGGER_START:
		return skel->progs.on_start;
	case TRIGGER_STOP:
		return lru ? skel->progs.on_stop_lru : skel->progs.on_stop;
	default:
		return lru ? skel->progs.on_hit_lru : skel->progs.on_hit;
	}
}

_Static_assert(INSN_CONDITION == MT_CONDITION, "the program takes it as it is");

int trigger__program(const struct trigger *trigger, const struct trigger_event *event,
		     uint64_t *cookie)
{
	*cookie = event->probe | (uint64_t)event->condition << MT_CONDITION_SHIFT;
	return bpf_program__fd(program_of(trigger, event));
}

/*
 * Does not use bpf_program__attach_perf_event(): that enables the event at once, disables it at the
 * end, and takes the caller's descriptor. In a group with Intel PT the source decides that.
 */
static int link_event(struct trigger *trigger, const struct trigger_event *event)
{
	uint64_t cookie;
	int program = trigger__program(trigger, event, &cookie);
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = cookie);
	int link = bpf_link_create(program, event->fd, BPF_PERF_EVENT, &opts);

	if (link < 0)
		return -errno;
	if (trigger_event__is_go_wait(event) ? !VEC_ADD(&trigger->go_wait_links, link)
					     : !VEC_ADD(&trigger->links, link))
		return 0;
	close(link);
	return -ENOMEM;
}

static void explain_attach(int err)
{
	log__error("cannot attach the trigger to the probe: %s", strerror(-err));
	if (err == -EPERM || err == -EACCES)
		log__hint("needs CAP_BPF and CAP_PERFMON, or root");
	else if (err == -EINVAL)
		log__hint("mtbpf works on Linux 6.1 or later");
}

/* How often the clock looks, and interrupts a CPU, during a threshold. */
#define LOOKS_PER_STALL 32
#define LOOK_LEAST_NS	250000
#define LOOK_MOST_NS	10000000

uint64_t trigger__stall_period_ns(uint64_t stall_thresh_ns)
{
	uint64_t period_ns = stall_thresh_ns / LOOKS_PER_STALL;

	if (period_ns < LOOK_LEAST_NS)
		return LOOK_LEAST_NS;
	return period_ns < LOOK_MOST_NS ? period_ns : LOOK_MOST_NS;
}

/* 0, or -errno after a message. */
static int link_program(struct trigger *trigger, const struct bpf_program *program, int event,
			uint64_t cookie)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = cookie);
	int *link = VEC_PUSH(&trigger->links);
	int err;

	if (!link)
		return -ENOMEM;
	*link = bpf_link_create(bpf_program__fd(program), event, BPF_PERF_EVENT, &opts);
	if (*link >= 0)
		return 0;
	err = -errno;
	trigger->links.n--;
	explain_attach(err);
	return err;
}

int trigger__attach_clock(struct trigger *trigger, int event)
{
	return link_program(trigger, trigger->skel->progs.on_stall_clock, event, 0);
}

int trigger__attach_breakpoint(struct trigger *trigger, int event, const struct kernel_probe *probe)
{
	return link_program(
		trigger, kernel_probes__breakpoint(trigger->skel, probe->what.roles), event,
		(probe->what.probe & MT_BREAKPOINT_PROBE) | probe->entry << MT_BREAKPOINT_SHIFT);
}

bool trigger_event__is_go_wait(const struct trigger_event *event)
{
	return event->kind == TRIGGER_GO_PARK || event->kind == TRIGGER_GO_READY ||
	       event->kind == TRIGGER_GO_EXECUTE;
}

bool trigger_event__is_end(const struct trigger_event *event)
{
	return event->kind == TRIGGER_RETURN || event->kind == TRIGGER_STOP ||
	       event->kind == TRIGGER_GO_EXECUTE;
}

static int link_those(struct trigger *trigger, const struct trigger_event *events, size_t n,
		      bool ends)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		if (trigger_event__is_end(&events[i]) == ends)
			err = link_event(trigger, &events[i]);
	return err;
}

int trigger__attach_all(struct trigger *trigger, const struct trigger_event *events, size_t n)
{
	int err;

	trigger__detach(trigger);
	/* Links the ends first: a call without a return probe would stay open. */
	err = link_those(trigger, events, n, true);
	if (!err)
		err = link_those(trigger, events, n, false);
	if (err) {
		trigger__detach(trigger);
		explain_attach(err);
	}
	return err;
}

int trigger__attach(struct trigger *trigger, int entry_event, int return_event)
{
	const struct trigger_event events[] = {{.fd = entry_event},
					       {.fd = return_event, .kind = TRIGGER_RETURN}};

	return trigger__attach_all(trigger, events, return_event < 0 ? 1 : 2);
}
