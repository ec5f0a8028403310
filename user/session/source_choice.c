// SPDX-License-Identifier: MIT
#include "session/source_choice.h"

#include <errno.h>

#include "capture/pt/pmu.h"
#include "util/log.h"

/* What only Intel PT can do is not done in another way: its own probe says that it is missing. */
static bool may_sample(const struct capture_options *options)
{
	struct pt_pmu pmu;

	return !options->immediate_stop && !options->freeze_method && !options->kernel_only &&
	       !options->full && pt_pmu__read(&pmu);
}

static const struct source_ops *ops_of(const struct capture_options *options)
{
	switch (options->source) {
	case SOURCE_SOFT:
		return &source_soft;
	case SOURCE_SAMPLE:
		return &source_sample;
	case SOURCE_PT:
		return &source_pt;
	default:
		break;
	}
	if (!may_sample(options))
		return &source_pt;
	log__info("no Intel PT here: the source is sample, which sees stacks, not every call "
		  "(-source pt insists)");
	return &source_sample;
}

const struct source_ops *source_choice__make(const struct capture_options *options)
{
	const struct source_ops *ops = ops_of(options);
	int err = ops->probe();

	if (!err)
		return ops;
	errno = -err;
	return NULL;
}

/* Known before anything is set in the target. What ptrace itself says would be EPERM. */
static int check_tracer(const struct process *process)
{
	pid_t tracer = process__tracer(process->pid);
	char name[PROCESS_COMM_SIZE];

	if (!tracer)
		return 0;
	process__thread_name(tracer, tracer, name);
	log__error("process %d (%s) is traced already, by process %d (%s)", process->pid,
		   process->comm, tracer, name);
	log__hint("a process has one tracer at a time: end that one, or wait for its end");
	return -EBUSY;
}

int source_choice__check(const struct source_ops *ops, const struct process *process, size_t n)
{
	if (ops->steps && n != 1) {
		log__error("-source soft steps one process, and these are several");
		log__hint("choose one with -pid PID");
		return -EINVAL;
	}
	return ops->steps ? check_tracer(process) : 0;
}
