// SPDX-License-Identifier: MIT
#include "session/hit_cost.h"

#include <errno.h>
#include <unistd.h>

#include "capture/probe/own_probe.h"
#include "trigger/trigger.h"
#include "util/clock.h"
#include "util/log.h"

#define CALLS  200
#define ROUNDS 5
#define NEVER  3600000000000ull

/* This instruction is single-stepped under a probe, as is the return instruction after it. */
__attribute__((noinline, noipa)) static void hit_stepped(void)
{
	__asm__ volatile("test %eax, %eax");
}

/* The quickest of some rounds, for one call. */
static uint64_t time_calls(void (*call)(void))
{
	uint64_t best = UINT64_MAX;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start_ns = clock__now_ns(), ns;

		for (int i = 0; i < CALLS; i++)
			call();
		ns = clock__now_ns() - start_ns;
		best = ns < best ? ns : best;
	}
	return best / CALLS;
}

/* The offset of its return instruction. */
static uint64_t return_at(void (*call)(void))
{
	const uint8_t *code = (const uint8_t *)(uintptr_t)call;
	uint64_t at = 0;

	while (code[at] != 0xc3 && at < 16)
		at++;
	return at;
}

static int open_probe(void (*call)(void), uint64_t further, bool on_return)
{
	struct uprobe_spec spec;
	int err = own_probe__spec_of(&spec, (uintptr_t)call + further);

	spec.on_return = on_return;
	return err ? err : uprobe_event__open(&spec);
}

static int attach(struct trigger *trigger, const struct hit_kind *kind, void (*call)(void),
		  int fds[static 2])
{
	fds[0] = open_probe(call, 0, false);
	if (fds[0] < 0)
		return fds[0];
	if (kind->returns) {
		fds[1] = open_probe(call, kind->by_insn ? return_at(call) : 0, !kind->by_insn);
		if (fds[1] < 0)
			return fds[1];
	}
	return trigger__attach(trigger, fds[0], fds[1]);
}

static int measure(const struct hit_kind *kind, uint64_t *ns)
{
	const struct trigger_config config = {
		.tgid = getpid(),
		.delay_thresh_ns = kind->returns ? 0 : NEVER,
		.duration_thresh_ns = kind->returns ? NEVER : 0,
		.returns_by_insn = kind->by_insn,
		.sampling = kind->sampling,
	};
	void (*call)(void) = kind->emulated ? own_probe__hit : hit_stepped;
	struct trigger *trigger = trigger__new(&config);
	int fds[2] = {-1, -1}, err = trigger ? 0 : -errno;
	uint64_t off_ns = time_calls(call), on_ns;

	if (!err)
		err = attach(trigger, kind, call, fds);
	on_ns = time_calls(call);
	if (trigger)
		trigger__detach(trigger);
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	trigger__free(trigger);
	*ns = on_ns > off_ns ? on_ns - off_ns : 0;
	return err;
}

int hit_cost__measure(const struct hit_kind *kind, uint64_t *ns)
{
	enum log_level level = log__level();
	int err;

	/* Errors are reported when the probe is set in the target. */
	if (level < LOG_VERBOSE)
		log__set_level(LOG_SILENT);
	err = measure(kind, ns);
	log__set_level(level);
	return err;
}
