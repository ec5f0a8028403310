// SPDX-License-Identifier: MIT
/* Chooses a session's source, and how the source finds callers. */
#include "session/session_internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "capture/code/live_code.h"
#include "capture/pt/pmu.h"
#include "capture/sample/sample_ring.h"
#include "sampled/sample_stack.h"
#include "util/log.h"

static const struct source_ops *ops_of(const struct capture_options *o)
{
#define SOURCE_OPS(number, name) &source_##name,
	/* In the order of their numbers, after SOURCE_AUTO. */
	static const struct source_ops *const all[] = {SOURCES(SOURCE_OPS)};
	struct pt_pmu pmu;

	if (o->source != SOURCE_AUTO)
		return all[o->source - 1];
	/* If an option needs Intel PT, source_pt.probe() reports that it is missing. */
	if (o->immediate_stop || o->power || o->freeze_method || o->kernel_only || o->full ||
	    !pt_pmu__read(&pmu))
		return &source_pt;
	log__info("no Intel PT here: using -source sample, which records stacks, not every call");
	return &source_sample;
}

/* Warns of options that this source ignores. */
static void say_without_effect(const struct capture_options *o, const struct source_ops *ops)
{
	const struct {
		bool is_given;
		const char *name;
		const struct source_ops *of;
		const char *others; /* why the others do not need it; or NULL */
	} all[] = {
		{o->multi_thread && !o->full, "-multi-thread", &source_pt,
		 "it records every thread anyway"},
		{strcmp(o->resolution, "normal"), "-timer-resolution", &source_pt, NULL},
		{o->freeze_method, "-freeze", &source_pt, NULL},
		{o->immediate_stop, "-immediate-stop", &source_pt,
		 "nothing is recorded after the trigger anyway"},
		{o->sample.rate != SAMPLE_RATE_AUTO, "-sample-rate", &source_sample,
		 "it follows every call"},
		{o->sample.unwind != UNWIND_AUTO, "-unwind", &source_sample,
		 "it follows every call"},
		{o->sample.syscall_thresh_ns, "-syscall-thresh", &source_sample, NULL},
		{o->truth, "-truth", &source_soft, NULL},
		{o->no_ret_compression, "-no-ret-compression", &source_soft, NULL},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].is_given && all[i].of != ops)
			log__warn("%s is ignored with -source %s%s%s", all[i].name, ops->name,
				  all[i].others ? ": " : "", all[i].others ?: "");
}

const struct source_ops *source_choice__make(const struct capture_options *options)
{
	const struct source_ops *ops = ops_of(options);
	int err = ops->probe ? ops->probe() : 0;

	if (!err) {
		say_without_effect(options, ops);
		return ops;
	}
	errno = -err;
	return NULL;
}

int source_choice__check(const struct source_ops *ops, const struct process *process, size_t n)
{
	char name[PROCESS_COMM_SIZE];
	pid_t tracer;

	if (!ops->steps)
		return 0;
	if (n != 1) {
		log__error("-source soft traces one process, but several were given");
		log__hint("choose one with -pid PID");
		return -EINVAL;
	}
	/* Checked before probes are set in the target; ptrace itself would only report EPERM. */
	tracer = process__tracer(process->pid);
	if (!tracer)
		return 0;
	process__thread_name(tracer, tracer, name);
	log__error("process %d (%s) is already traced by process %d (%s)", process->pid,
		   process->comm, tracer, name);
	log__hint("a process can have only one tracer: end that one, or wait for its end");
	return -EBUSY;
}

/* The default of perf record --call-graph dwarf. */
#define STACK_BYTES 8192u

#define TRIAL_MS   100
#define TRIAL_HZ   1000
#define TRIAL_RING (256u << 10)
/*
 * A process that does little yields few stacks: trials are repeated, at most TRIALS times, until
 * there are TRIAL_STACKS stacks. Fewer stacks may all be of threads that do not matter.
 */
#define TRIALS	     3
#define TRIAL_STACKS 10

static uint32_t bytes_of(const struct capture_options *o)
{
	uint64_t most = o->no_stack_copy ? 0 : o->stack_copy;

	return (uint32_t)(most < STACK_BYTES ? most : STACK_BYTES) & ~7u;
}

/* Records samples with both kinds of stacks for TRIAL_MS; adds the counts to *found. */
static int try_both(const struct capture_options *o, const struct process *process,
		    const struct cgroup *cgroup, struct chain_count *found, size_t *samples)
{
	struct source_config config = {.pid = process->pid,
				       .cgroup = cgroup,
				       .snapshot_size = TRIAL_RING,
				       .max_memory = o->max_memory,
				       .sample_rate = TRIAL_HZ,
				       .sample_stack = bytes_of(o),
				       .sample_gate = -1,
				       .is_silent = true,
				       .freeze_fd = -1};
	pid_t pid = process->pid;
	struct pid_set pids = {.v = &pid, .n = 1};
	struct source *source = NULL;
	struct images *images;
	struct recording rec;
	int err;

	recording__init(&rec);
	rec.pid = process->pid;
	err = vdso_image__add(&rec, process);
	if (!err)
		err = live_code__take(&rec, &pids, NULL);
	if (!err) {
		source = source_sample.open(&config);
		err = source ? source_sample.start(source) : -1;
	}
	if (!err) {
		usleep(1000 * TRIAL_MS);
		err = source_sample.freeze(source);
	}
	if (!err)
		err = source_sample.read(source, &rec);
	source_sample.close(source);
	*samples += rec.samples.n;
	images = err ? NULL : images__new(&rec);
	if (!err)
		err = images ? sample_stack__count(&rec, images, found) : -1;
	images__free(images);
	recording__fini(&rec);
	return err;
}

static int judge(const struct capture_options *o, const struct process *process,
		 const struct cgroup *cgroup, struct unwind_choice *choice)
{
	struct chain_count found = {0};
	size_t samples = 0;
	int err = 0;

	for (int i = 0; i < TRIALS && !err && found.unwound < TRIAL_STACKS; i++)
		err = try_both(o, process, cgroup, &found, &samples);
	if (err)
		return err;
	log__debug("unwind: %zu stacks; %zu could be unwound, %zu as far by frame pointers",
		   samples, found.unwound, found.reach);
	/*
	 * Frame pointers suffice if they reach as far as unwinding in nine of ten stacks. The
	 * others may be deeper than their copy, or end at a switch of stacks.
	 */
	if (found.unwound >= TRIAL_STACKS && found.reach >= found.unwound - found.unwound / 10)
		return 0;
	choice->stack = bytes_of(o);
	choice->calls = !counting__try(COUNTING_CALLS);
	if (found.unwound >= TRIAL_STACKS)
		log__info("unwind: frame pointers lead to the outermost caller in %zu of %zu "
			  "stacks: %s (-unwind fp does not)",
			  found.reach, found.unwound,
			  choice->calls ? "takes the calls that the CPU notes (LBR), and copies of "
					  "the stack when a thread goes to sleep"
					: "copies of the stack are unwound");
	return 0;
}

int unwind_choice__make(const struct capture_options *o, const struct process *process,
			const struct cgroup *cgroup, struct unwind_choice *choice)
{
	int err;

	*choice = (struct unwind_choice){0};
	switch (o->sample.unwind) {
	case UNWIND_FP:
		return 0;
	case UNWIND_DWARF:
		choice->stack = bytes_of(o);
		return 0;
	case UNWIND_LBR:
		choice->stack = bytes_of(o);
		err = counting__try(COUNTING_CALLS);
		choice->calls = !err;
		if (!err)
			return 0;
		/* Frame pointers instead would show less without a visible reason. */
		log__error("-unwind lbr: no call stacks by LBR here: %s", strerror(-err));
		log__hint("Intel CPUs since Haswell have them, but hypervisors rarely pass them "
			  "on; use -unwind auto");
		return -ENODEV;
	default:
		return bytes_of(o) && process ? judge(o, process, cgroup, choice) : 0;
	}
}
