// SPDX-License-Identifier: MIT
/* What triggers a session: what the user has named, or what the program brings itself. */
#include <errno.h>

#include "session/probe/also.h"
#include "session/probe/default_trigger.h"
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
	for (size_t i = 0; i < s->probes.all.n; i++) {
		if (!threshold__is_set(&s->options->duration_thresh) ||
		    !s->probes.all.v[i].is_inside)
			continue;
		log__error(
			"'%s' is inside a function: only a whole function's calls have a duration",
			s->symbols.names.v[i]);
		log__hint("name the function alone, or use -delay-thresh");
		return -EINVAL;
	}
	return 0;
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
	const char *own = session__symbol(s);

	if (!own)
		own = default_trigger__find(process, s->start->exec_path);
	if (own && !s->symbols.names.n && selectors__add(&s->symbols, own))
		return -ENOMEM;
	if (own)
		log__info("no -symbol: the program's own trigger, %s", own);
	else if (has_threshold(s->options))
		return refuse_threshold();
	else if (has_limits(s->options))
		return refuse_limits();
	else
		log__info("no -symbol, and no mtbpf_take_snapshot() in the program: nothing "
			  "triggers");
	return 0;
}

int session__choose_symbols(struct session *s)
{
	const struct target *target = s->start->target;
	const char *own = NULL;

	if (!s->options->symbols.n && target && (target__is_cgroup(target) || target->pids.n > 1))
		own = default_trigger__of(target);
	return own ? selectors__add(&s->symbols, own)
		   : selectors__split(&s->symbols, &s->options->symbols, "-symbol");
}

const char *session__symbol(const struct session *s)
{
	return s->symbols.names.n ? s->symbols.names.v[0] : NULL;
}

static int refuse_also(const struct session *s)
{
	log__error("-also belongs to -source sample: %s shows every call", s->ops->name);
	log__hint("leave -also out");
	return -EINVAL;
}

static int find_also(struct session *s, const struct process *process)
{
	static const struct probes none = {0};
	const struct option_list *texts = &s->options->sample.also;
	const struct probe_source in = {process, s->start->exec_path};
	/* With a duration the returns of those that trigger are probed anyway. */
	bool have_returns = session__measures_duration(s) && !probes__are_library(&s->probes);

	if (!texts->n)
		return 0;
	if (s->ops != &source_sample)
		return refuse_also(s);
	return also__find(&s->also, texts, &in, have_returns ? &s->probes : &none);
}

int session__find_trigger(struct session *s)
{
	const struct process *process = s->has_process ? &s->process : NULL;
	int err = process ? source_choice__check(s->ops, process, s->pids.n) : 0;

	if (!err && process && !s->cgroup && process__stopped(process->pid))
		log__warn("process %d is stopped, and runs nothing until 'kill -CONT %d'",
			  process->pid, process->pid);
	if (!err && !s->options->symbols.n)
		err = use_default(s, process);
	if (!err)
		err = probes__find(&s->probes, &s->symbols, process, s->start->exec_path);
	if (!err)
		err = find_also(s, process);
	return err ? err : check_duration(s);
}
