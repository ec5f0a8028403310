// SPDX-License-Identifier: MIT
/* What triggers a session: what the user has named, or what the program brings itself. */
#include <errno.h>

#include "session/default_trigger.h"
#include "session/session_internal.h"
#include "session/source_choice.h"
#include "util/log.h"

static bool has_threshold(const struct capture_options *o)
{
	return threshold__is_set(&o->delay_thresh) || threshold__is_set(&o->duration_thresh);
}

static bool has_limits(const struct capture_options *o)
{
	return o->after_ns || o->min_interval_ns || o->skip || o->max_hits;
}

/* A call begins at its entry. */
static int check_duration(const struct session *s)
{
	if (!threshold__is_set(&s->options->duration_thresh) || !s->probe.is_inside)
		return 0;
	log__error("'%s' is inside a function: only a whole function's calls have a duration",
		   s->symbol);
	log__hint("name the function alone, or use -delay-thresh");
	return -EINVAL;
}

static int refuse_limits(void)
{
	log__error("-after, -min-interval, -skip and -max-hits are about a trigger, and the "
		   "program has no mtbpf_take_snapshot()");
	log__hint("add -symbol NAME ('mtbpf list -pid PID' shows them)");
	return -EINVAL;
}

static int refuse_threshold(void)
{
	log__error("a threshold needs a function to measure, and the program has no "
		   "mtbpf_take_snapshot()");
	log__hint("add -symbol NAME ('mtbpf list -pid PID' shows them)");
	return -EINVAL;
}

/* Where the user has named nothing. */
static int use_default(struct session *s, const struct process *process)
{
	if (!s->symbol)
		s->symbol = default_trigger__find(process, s->start->exec_path);
	if (s->symbol)
		log__info("no -symbol: the program's own trigger, %s", s->symbol);
	else if (has_threshold(s->options))
		return refuse_threshold();
	else if (has_limits(s->options))
		return refuse_limits();
	else
		log__info("no -symbol, and no mtbpf_take_snapshot() in the program: nothing "
			  "triggers");
	return 0;
}

void session__choose_symbol(struct session *s)
{
	s->symbol = s->options->symbol;
	if (!s->symbol && s->start->target &&
	    (target__is_cgroup(s->start->target) || s->start->target->pids.n > 1))
		s->symbol = default_trigger__of(s->start->target);
}

int session__find_trigger(struct session *s)
{
	const struct process *process = s->has_process ? &s->process : NULL;
	int err = process ? source_choice__check(s->ops, process, s->pids.n) : 0;

	if (!err && process && !s->cgroup && process__stopped(process->pid))
		log__warn("process %d is stopped, and runs nothing until 'kill -CONT %d'",
			  process->pid, process->pid);
	if (!err && !s->options->symbol)
		err = use_default(s, process);
	if (!err && s->symbol && s->pids.n == 1)
		err = probe__find(&s->probe, process, s->start->exec_path, s->symbol);
	return err ? err : check_duration(s);
}
