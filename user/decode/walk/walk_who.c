// SPDX-License-Identifier: MIT
/* Whose code runs, and how it looks now: the only place where that is decided. */
#include "decode/walk/walk_internal.h"

#include "decode/tsc.h"

/* Blocks that are gone take the addresses that calls return to with them. */
static void keep_returns(struct walker *w)
{
	for (unsigned int i = w->stale; i != w->top; i++) {
		unsigned int at = i % RETURN_DEPTH;

		w->kept[at] = (struct block_site){.ret_ip = w->ret_ips[at]};
		w->returns[at] = &w->kept[at];
	}
}

/* False: out of memory. */
static bool change_space(struct walker *w, pid_t pid)
{
	struct space *space = space__get(w->space->images, pid, w->space->tell_all);

	if (!space)
		return walker__fail(w);
	space__put(w->space);
	w->space = space;
	return true;
}

bool walker__is_other_thread(const struct walker *w)
{
	const struct rec_switch *who;
	uint64_t ns;

	if (!w->switches || !w->time.tsc)
		return false;
	ns = rec_pt__tsc_to_ns(w->time.config, tsc__extend(w->time.tsc, w->tsc_base));
	who = switches__at(w->switches, w->cpu, ns);
	return !who || !w->who || who->tid != w->who->tid;
}

/*
 * Threads change in the kernel: before the code of the next one is traced, the switch has been
 * recorded.
 */
static bool change_thread(struct walker *w, uint64_t time_ns)
{
	const struct rec_switch *who = switches__at(w->switches, w->cpu, time_ns);
	pid_t pid = who ? who->pid : 0;

	if (w->knows_who && who == w->who)
		return false;
	w->knows_who = true;
	w->who = who;
	walker__emit(w, OUTBOX_WHO, 0, (uintptr_t)who, 0, 0);
	return pid != w->space->pid && change_space(w, pid);
}

void walker__update_space(struct walker *w)
{
	bool cleared, changed;
	uint64_t ns = 0;

	if (w->time.tsc)
		ns = rec_pt__tsc_to_ns(w->time.config, tsc__extend(w->time.tsc, w->tsc_base));
	changed = w->switches && change_thread(w, ns);
	if (space__set_time(w->space, ns, &cleared))
		walker__fail(w);
	if (cleared || changed)
		keep_returns(w);
}
