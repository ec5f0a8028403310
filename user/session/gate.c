// SPDX-License-Identifier: MIT
#include "session/gate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "capture/perf/perf_clock.h"
#include "capture/probe/uprobe_event.h"
#include "target/process.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

static int add(struct gate *gate, const struct uprobe_spec *spec, const struct trigger_event *what)
{
	struct trigger_event event = *what;

	event.fd = -1;
	gate->has_return_probes |= spec->on_return && !spec->function;
	return VEC_ADD(&gate->specs, *spec) || VEC_ADD(&gate->events, event) ? -ENOMEM : 0;
}

/* True if the function's returns are probed at its instructions that return. */
static bool is_by_insn(const struct gate *gate, const struct trigger_event *event)
{
	return event->is_also ? gate->also_by_insn : gate->by_insn;
}

/*
 * Adds one place of the probe. at: the instruction's offset in the file, or, for a breakpoint on a
 * return, its address; other probes in the kernel do not use it.
 */
static int add_place(struct gate *gate, const struct probe *probe,
		     const struct trigger_event *event, uint64_t at)
{
	static const enum mt_role roles[] = {[TRIGGER_ENTRY] = MT_ROLE_HITS,
					     [TRIGGER_RETURN] = MT_ROLE_RETURNS,
					     [TRIGGER_START] = MT_ROLE_STARTS,
					     [TRIGGER_STOP] = MT_ROLE_STOPS};
	bool is_return = event->kind == TRIGGER_RETURN;
	struct uprobe_spec spec = {.path = probe->path,
				   .offset = at,
				   .semaphore = is_return ? 0 : probe->semaphore,
				   .pid = gate->pid,
				   .on_return = is_return && !is_by_insn(gate, event)};
	struct kernel_probe kernel = probe->kernel;

	if (!probe__in_kernel(probe)) {
		if (gate->bounds && event->kind == TRIGGER_START)
			spec.role = UPROBE_STARTS;
		if (gate->bounds && event->kind == TRIGGER_STOP)
			spec.role = UPROBE_STOPS;
		return add(gate, &spec, event);
	}
	/* A kprobe is a perf event: it can be in the group of the source, and freeze the source. */
	if (gate->function_events && kernel.kind == KERNEL_PROBE_FUNCTION &&
	    event->kind != TRIGGER_START)
		return add(gate,
			   &(struct uprobe_spec){.function = probe->kernel.name,
						 .pid = gate->pid,
						 .on_return = is_return},
			   &(struct trigger_event){.probe = event->probe,
						   .kind = event->kind,
						   .is_function = true});
	kernel.what.roles = (uint8_t)roles[event->kind];
	kernel.what.probe = event->probe;
	if (kernel.kind == KERNEL_PROBE_BREAKPOINT && is_return)
		kernel.address = at;
	return VEC_ADD(&gate->kernel_probes, kernel) ? -ENOMEM : 0;
}

/* Adds the places of one probe at which an event of this kind happens. */
static int add_probe(struct gate *gate, const struct probe *probe, struct trigger_event event)
{
	bool by_insn = is_by_insn(gate, &event);
	int err = 0;

	if (event.kind == TRIGGER_START || event.kind == TRIGGER_STOP)
		return add_place(gate, probe, &event, probe->offset);
	if (event.kind != TRIGGER_RETURN) {
		/* Exits are matched with the stack pointer at the function's entry. */
		bool is_moved = event.kind == TRIGGER_ENTRY && by_insn && !probe->site.at_entry;

		event.condition = is_moved ? 0 : probe->site.condition;
		return add_place(gate, probe, &event,
				 is_moved ? probe->entry_offset : probe->offset);
	}
	/*
	 * A return probe replaces the return address: it must be set at the function's entry.
	 * Breakpoints are set on the instructions that return.
	 */
	if (probe__in_kernel(probe))
		by_insn = probe->kernel.kind == KERNEL_PROBE_BREAKPOINT;
	if (!by_insn)
		return add_place(gate, probe, &event, probe->entry_offset);
	for (uint32_t e = 0; e < probe->exits.n && !err; e++) {
		event.condition = probe->exits.condition[e];
		err = add_place(gate, probe, &event,
				probe->entry_offset + (uint64_t)(int64_t)probe->exits.at[e]);
	}
	return err;
}

/* Adds the probes, with the numbers from what.probe on. */
static int add_probes(struct gate *gate, const struct probe *v, size_t n, struct trigger_event what)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++, what.probe++)
		err = add_probe(gate, &v[i], what);
	return err;
}

/* Deciding probes come first. regions is NULL without -start and -stop. */
static int add_all(struct gate *gate, const struct probe *v, size_t n,
		   const struct start_stop *regions)
{
	const struct trigger_event entries = {.kind = TRIGGER_ENTRY},
				   returns = {.kind = TRIGGER_RETURN};
	int err = add_probes(gate, v, n, gate->by_return ? returns : entries);

	if (!err && gate->freezes_by_call)
		err = add(gate, &(struct uprobe_spec){.function = MT_FREEZE_CALL, .pid = gate->pid},
			  &(struct trigger_event){.kind = TRIGGER_FREEZE});
	if (!err && regions)
		err = add_probes(gate, regions->stops.all.v, regions->stops.all.n,
				 (struct trigger_event){.kind = TRIGGER_STOP});
	/* Without `bounds` the start probes resume nothing: they do not count as deciding. */
	if (!gate->bounds)
		gate->n_deciding = gate->specs.n;
	if (!err && regions)
		err = add_probes(gate, regions->starts.all.v, regions->starts.all.n,
				 (struct trigger_event){.kind = TRIGGER_START,
							.probe = (uint32_t)regions->stops.all.n});
	if (gate->bounds)
		gate->n_deciding = gate->specs.n;
	return err || !gate->by_return ? err : add_probes(gate, v, n, entries);
}

/* True if the program at the probe calls MT_FREEZE_CALL in the thread that hit. */
static bool may_freeze_by_call(const struct probe *probe)
{
	return probe->kernel.kind == KERNEL_PROBE_SYSCALL ||
	       probe->kernel.kind == KERNEL_PROBE_TRACEPOINT ||
	       probe->kernel.kind == KERNEL_PROBE_SIGNAL;
}

/*
 * Functions are probed by kprobes, inside of whose handlers the kernel runs no other kprobe, so
 * that MT_FREEZE_CALL does not freeze there: their own events do.
 */
const struct probe *gate__find_unfrozen(const struct probe *probes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct probe *probe = &probes[i];
		bool is_function = probe->kernel.kind == KERNEL_PROBE_FUNCTION;

		if (!probe__in_kernel(probe))
			continue;
		if ((!is_function && !may_freeze_by_call(probe)) ||
		    !kprobe_event__try(is_function ? probe->kernel.name : MT_FREEZE_CALL))
			return probe;
	}
	return NULL;
}

/* The source pauses and resumes by breakpoints of its own, beside those that the programs need. */
static int add_to_source(struct gate *gate)
{
	int err = 0;

	for (size_t i = 0; i < gate->n_deciding && !err; i++)
		err = VEC_ADD(&gate->of_source, gate->specs.v[i]) ? -ENOMEM : 0;
	VEC_EACH_WHILE(&gate->kernel_probes, probe, !err && gate->bounds) {
		const struct uprobe_spec spec = {
			.breakpoint = probe->address,
			.pid = gate->pid,
			.role = probe->what.roles == MT_ROLE_STARTS ? UPROBE_STARTS : UPROBE_STOPS};

		if (probe->kind == KERNEL_PROBE_BREAKPOINT &&
		    probe->what.roles & (MT_ROLE_STARTS | MT_ROLE_STOPS))
			err = VEC_ADD(&gate->of_source, spec) ? -ENOMEM : 0;
	}
	return err;
}

static int check_breakpoints(const struct gate *gate, size_t n_of_source)
{
	size_t n = 0;

	for (size_t i = 0; i < gate->kernel_probes.n; i++)
		n += gate->kernel_probes.v[i].kind == KERNEL_PROBE_BREAKPOINT;
	if (!n)
		return 0;
	for (size_t i = 0; i < gate->of_source.n; i++)
		n_of_source += gate->of_source.v[i].breakpoint != 0;
	n += n_of_source;
	if (n <= BREAKPOINTS_MAX)
		return 0;
	log__error("these functions of a JIT need %zu breakpoints together%s, and a CPU has %d", n,
		   n_of_source ? ", with those that begin and end the trace at -start and -stop"
			       : "",
		   BREAKPOINTS_MAX);
	log__hint("name fewer functions; one that was compiled N times needs N times as many "
		  "breakpoints");
	return -ENOSPC;
}

static int add_go_waits(struct gate *gate, const struct go_waits *waits)
{
	const struct {
		const struct probes *probes;
		enum trigger_probe kind;
	} all[] = {{&waits->execute, TRIGGER_GO_EXECUTE},
		   {&waits->ready, TRIGGER_GO_READY},
		   {&waits->park, TRIGGER_GO_PARK}};
	int err = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && !err; i++)
		err = add_probes(gate, all[i].probes->all.v, all[i].probes->all.n,
				 (struct trigger_event){.kind = all[i].kind});
	return err;
}

int gate__open(struct gate *gate, const struct trigger_config *config,
	       const struct gate_probes *probes)
{
	struct trigger_event also = {.kind = TRIGGER_RETURN, .is_also = true};
	struct trigger_config all = *config;
	bool freezes = probes->of_source && !gate__find_unfrozen(probes->v, probes->n);
	int err;

	*gate = (struct gate){.pid = config->tgid ? config->tgid : -1,
			      .by_return = trigger__needs_return(config),
			      .by_insn = config->returns_by_insn,
			      .also_by_insn = config->also_by_insn,
			      .by_links = config->by_links,
			      .regions = config->regions && !config->by_key,
			      .by_key = config->by_key,
			      .bounds =
				      config->regions && !config->by_key && !config->only_measured,
			      .go_waits = config->go_waits,
			      .stall_thresh_ns = config->limits.stall_thresh_ns,
			      .sampling = config->sampling};
	/*
	 * Decides by which events the source, if it freezes by events, freezes at hits in the
	 * kernel.
	 */
	VEC_EACH_WHILE(probes, probe, freezes) {
		gate->function_events |= probe->kernel.kind == KERNEL_PROBE_FUNCTION;
		gate->freezes_by_call |= may_freeze_by_call(probe);
	}
	err = add_all(gate, probes->v, config->stop_triggers ? 0 : probes->n,
		      config->regions ? probes->regions : NULL);
	if (!err)
		err = add_probes(gate, probes->also, probes->n_also, also);
	also.kind = TRIGGER_ENTRY;
	if (!err)
		err = add_probes(gate, probes->also, probes->n_also, also);
	if (!err && config->go_waits)
		err = add_go_waits(gate, probes->go_waits);
	if (!err && probes->of_source)
		err = add_to_source(gate);
	if (!err)
		err = check_breakpoints(gate, probes->n_breakpoints);
	if (err)
		return err;
	all.conditional_entries = false;
	VEC_EACH(&gate->events, event)
		all.conditional_entries |= event->kind != TRIGGER_RETURN && event->condition;
	all.function_events = gate->function_events;
	all.freezes_by_call = gate->freezes_by_call;
	all.kernel_probes = gate->kernel_probes.v;
	all.n_kernel_probes = gate->kernel_probes.n;
	gate->trigger = trigger__new(&all);
	return gate->trigger ? 0 : -errno;
}

/* True if the probe's file can no longer be opened, because its process has exited. */
static bool is_of_gone(const struct uprobe_spec *spec, int err)
{
	return !spec->function && spec->pid < 0 && (err == -ENOENT || err == -ESRCH) &&
	       access(spec->path, F_OK);
}

static int check_gone(size_t n_gone, size_t n_set)
{
	if (n_gone)
		log__info("%zu probes are not set: their processes have ended", n_gone);
	return n_gone && !n_set ? -ESRCH : 0;
}

/* Opens the ends first: the end of a call that was already entered must not be missed. */
static int open_links(struct gate *gate)
{
	size_t n_gone = 0, n_set = 0;

	for (int ends = 1; ends >= 0; ends--) {
		for (size_t i = 0; i < gate->events.n; i++) {
			struct trigger_event *event = &gate->events.v[i];
			uint64_t cookie;
			int program;

			if (trigger_event__is_end(event) != ends ||
			    (trigger_event__is_go_wait(event) && !gate->go_waits))
				continue;
			program = trigger__program(gate->trigger, event, &cookie);
			event->fd = uprobe_link__open(&gate->specs.v[i], program, cookie);
			if (event->fd < 0 && !is_of_gone(&gate->specs.v[i], event->fd))
				return event->fd;
			*(event->fd < 0 ? &n_gone : &n_set) += 1;
		}
	}
	return check_gone(n_gone, n_set);
}

static int attach_events(struct gate *gate,
			 int (*source_event)(const struct source *source, size_t i),
			 const struct source *source)
{
	struct trigger_event *events = calloc(gate->events.n, sizeof(*events));
	int err = events ? 0 : -ENOMEM;
	bool of_source = false;
	size_t n = 0, n_gone = 0;

	for (size_t i = 0; i < gate->events.n && !err; i++) {
		int theirs = source_event && i < gate->n_deciding ? source_event(source, i) : -1;

		/* gate__stop_go_waits() has removed these probes. */
		if (trigger_event__is_go_wait(&gate->events.v[i]) && !gate->go_waits)
			continue;
		of_source |= theirs >= 0;
		if (theirs < 0)
			gate->events.v[i].fd = uprobe_event__open(&gate->specs.v[i]);
		events[n] = gate->events.v[i];
		if (theirs >= 0)
			events[n].fd = theirs;
		if (events[n].fd >= 0)
			n++;
		else if (is_of_gone(&gate->specs.v[i], events[n].fd))
			n_gone++;
		else
			err = events[n].fd;
	}
	if (!err)
		err = check_gone(n_gone, n);
	if (!err)
		err = trigger__attach_all(gate->trigger, events, n);
	/*
	 * Waits for handlers that began before the program was attached: their hits overflow the
	 * source's event. Handlers of kprobes are not preempted, so that no wait is needed.
	 */
	if (!err && of_source && !gate->specs.v[0].function)
		err = uprobe_event__settle(&gate->specs.v[0]);
	free(events);
	return err;
}

/* Sets the breakpoint on every CPU: threads of the target may run on any of them. */
static int set_breakpoint(struct gate *gate, const struct kernel_probe *probe)
{
	int n_cpus = get_nprocs_conf(), err = 0;

	for (int cpu = 0; cpu < n_cpus && !err; cpu++) {
		int event = breakpoint_event__open(cpu, probe->address);

		if (event == -ENODEV) /* the CPU is offline */
			continue;
		err = event < 0 ? event : trigger__attach_breakpoint(gate->trigger, event, probe);
		if (event < 0) {
			log__error("cannot set a hardware breakpoint on CPU %d: %s", cpu,
				   strerror(-event));
			log__hint(
				event == -ENOSPC
					? "all four breakpoints are in use: end the debugger, "
					  "perf or other mtbpf that uses them"
					: "needs CAP_PERFMON, or root; some VMs lack breakpoints");
		} else {
			close(event);
		}
	}
	return err;
}

/* Sets the ends first: the end of a call that was already entered must not be missed. */
static int set_breakpoints(struct gate *gate)
{
	int err = 0;

	for (int ends = 1; ends >= 0; ends--)
		VEC_EACH_WHILE(&gate->kernel_probes, probe, !err)
			if (probe->kind == KERNEL_PROBE_BREAKPOINT &&
			    kernel_probe__is_end(probe) == ends)
				err = set_breakpoint(gate, probe);
	return err;
}

int gate__attach(struct gate *gate, int (*source_event)(const struct source *source, size_t i),
		 const struct source *source)
{
	int err = gate->by_links ? open_links(gate) : attach_events(gate, source_event, source);

	if (!err && gate->stall_thresh_ns) {
		int fd = perf_clock__open_timer(trigger__stall_period_ns(gate->stall_thresh_ns));

		err = fd < 0 ? fd : trigger__attach_clock(gate->trigger, fd);
		if (fd >= 0) {
			close(fd);
		} else {
			log__error("cannot open the timer of -stall-thresh: %s", strerror(-fd));
			log__hint("needs CAP_PERFMON, or root");
		}
	}
	if (!err && gate->kernel_probes.n)
		err = trigger__attach_kernel_probes(gate->trigger, gate->kernel_probes.v,
						    gate->kernel_probes.n);
	if (!err)
		err = set_breakpoints(gate);
	gate->attached = !err;
	return err;
}

void gate__begin(struct gate *gate)
{
	/* Everything since the attachment belongs to the first recording. */
	if (gate->frozen)
		gate->began_ns = clock__now_ns();
	gate->frozen = false;
	trigger__thaw(gate->trigger);
}

void gate__freeze(struct gate *gate)
{
	gate->frozen = true;
	trigger__freeze(gate->trigger);
}

/* Copies what is new in a log of the BPF programs to the recording. */
struct log_reader {
	struct recording *rec;
	uint64_t after_ns, began_ns;
	bool of_parks; /* the stacks are those of goroutines that begin to wait */
};

/* Finds the same call, which an earlier snapshot of this recording has as open. NULL: none has. */
static struct mt_entry *find_open(struct recording *rec, const struct mt_entry *entry)
{
	for (size_t i = rec->entries.n; i-- > 0;) {
		struct mt_entry *other = &rec->entries.v[i];

		if (other->start_ns == entry->start_ns && other->tid == entry->tid &&
		    other->ip == entry->ip && !other->end_ns)
			return other;
	}
	return NULL;
}

static int take_entry(void *ctx, const struct mt_entry *entry)
{
	struct log_reader *reader = ctx;
	bool is_hit = entry->kind == MT_ENTRY_HIT || entry->kind == MT_ENTRY_KERNEL;
	/* A hit without a return has only its start. */
	uint64_t end_ns = entry->end_ns || !is_hit ? entry->end_ns : entry->start_ns;
	struct mt_entry *open;

	if (entry->start_ns > reader->after_ns)
		return end_ns && end_ns < reader->began_ns ? 0
							   : VEC_ADD(&reader->rec->entries, *entry);
	/*
	 * If the call ended after recording was resumed, the previous snapshot has it as still
	 * open, since the log is not written while the recording is frozen.
	 */
	if (!reader->began_ns || entry->end_ns < reader->began_ns)
		return 0;
	open = find_open(reader->rec, entry);
	if (!open)
		return VEC_ADD(&reader->rec->entries, *entry);
	*open = *entry;
	return 0;
}

/*
 * Adds the stack of a goroutine that begins to wait; or a goroutine's wake-up, and its stack as one
 * more sample of the thread that woke it.
 */
static int take_go_stack(void *ctx, const struct mt_go_stack *stack)
{
	struct log_reader *reader = ctx;
	const struct mt_entry entry = {.start_ns = stack->time_ns,
				       .tid = stack->tid,
				       .tgid = stack->tgid,
				       .kind = MT_ENTRY_READY,
				       .goroutine = stack->goroutine,
				       .goid = stack->goid,
				       .ip = stack->stack[0]};
	const struct rec_sample sample = {.time_ns = stack->time_ns,
					  .pid = (pid_t)stack->tgid,
					  .tid = (pid_t)stack->tid,
					  .cpu = stack->cpu,
					  .at_park = reader->of_parks,
					  .n_ips = stack->depth};
	int err;

	if (stack->time_ns <= reader->after_ns || stack->time_ns < reader->began_ns ||
	    stack->depth > MT_GO_STACK_DEPTH)
		return 0;
	err = reader->of_parks ? 0 : VEC_ADD(&reader->rec->entries, entry);
	return err ? err : recording__add_sample(reader->rec, &sample, stack->stack);
}

/* Raises *until_ns to the latest start among the recording's entries from `first` on. */
static void note_latest(const struct recording *rec, size_t first, uint64_t *until_ns)
{
	for (size_t i = first; i < rec->entries.n; i++)
		if (rec->entries.v[i].start_ns > *until_ns)
			*until_ns = rec->entries.v[i].start_ns;
}

int gate__take_entries(struct gate *gate, struct recording *rec)
{
	struct log_reader reader = {
		.rec = rec, .after_ns = gate->entries_until_ns, .began_ns = gate->began_ns};
	struct log_reader of_ready = {
		.rec = rec, .after_ns = gate->ready_until_ns, .began_ns = gate->began_ns};
	size_t first = rec->entries.n;
	int err;

	if (!gate->trigger || !gate->sampling)
		return 0;
	err = trigger__entries(gate->trigger, take_entry, &reader);
	note_latest(rec, first, &gate->entries_until_ns);
	if (err || !gate->go_waits)
		return err;
	first = rec->entries.n;
	err = trigger__go_stacks(gate->trigger, false, take_go_stack, &of_ready);
	note_latest(rec, first, &gate->ready_until_ns);
	reader.of_parks = true;
	return err ? err : trigger__go_stacks(gate->trigger, true, take_go_stack, &reader);
}

static int take_region(void *ctx, const struct mt_entry *entry)
{
	struct log_reader *reader = ctx;
	const struct mt_sched region = {.time_ns = entry->start_ns,
					.tid = entry->tid,
					.tgid = entry->tgid,
					.kind = MT_SCHED_REGION,
					.took = {.arg = entry->ip, .end_ns = entry->end_ns}};

	if (entry->end_ns &&
	    (entry->end_ns <= reader->after_ns || entry->end_ns < reader->began_ns))
		return 0;
	return recording__add_sched_by(reader->rec, &region);
}

int gate__take_regions(struct gate *gate, struct recording *rec)
{
	struct log_reader reader = {
		.rec = rec, .after_ns = gate->regions_until_ns, .began_ns = gate->began_ns};
	size_t first = rec->sched_bys.n;
	int err;

	if (!gate->trigger || !gate->sampling || !gate->regions)
		return 0;
	err = trigger__regions(gate->trigger, take_region, &reader);
	for (size_t i = first; i < rec->sched_bys.n; i++)
		if (rec->sched_bys.v[i].took.end_ns > gate->regions_until_ns)
			gate->regions_until_ns = rec->sched_bys.v[i].took.end_ns;
	return err;
}

/*
 * True if the address is in the kernel's page to which return probes redirect returns, or if the
 * mappings cannot be read.
 */
static bool is_trampoline(pid_t pid, uint64_t address)
{
	_cleanup_mappings_ struct mappings maps = {0};
	const struct mapping *map;

	if (mappings__read(&maps, pid))
		return true;
	map = mappings__find(&maps, address);
	return map && !strcmp(map->path, "[uprobes]");
}

/* At most this many bytes of a JIT function's frame are searched. */
#define JIT_FRAME_MAX (64u << 10)

/*
 * The return address alone does not tell whether a call of a JIT's function is open: if its code
 * was replaced, the call may have returned where no breakpoint is, and an interpreter makes all
 * calls from one place. The thread must still be in the code, or be about to return to it.
 */
static bool is_in_code(pid_t pid, const struct mt_hit *question, const struct kernel_probe *probe)
{
	uint64_t from = question->bp, size = question->sp - from;
	_cleanup_free_ uint64_t *words = NULL;
	bool found = question->stack[0] >= probe->entry && question->stack[0] < probe->end;
	ssize_t got;

	if (found || from > question->sp)
		return found;
	if (size > JIT_FRAME_MAX) {
		size = JIT_FRAME_MAX;
		from = question->sp - size;
	}
	words = malloc(size ? size : 1);
	got = words ? process__read_memory(pid, from, words, size) : -1;
	return got > 0 &&
	       FIND_IN(words, (size_t)got / 8, word, *word > probe->entry && *word < probe->end);
}

/*
 * If the memory cannot be read, the call counts as open; a call of a JIT's function only if the
 * thread is in its code.
 */
static void answer(struct gate *gate, const struct mt_hit *question)
{
	pid_t pid = (pid_t)question->tgid;
	const struct kernel_probe *jit = VEC_FIND(&gate->kernel_probes, probe,
						  probe->kind == KERNEL_PROBE_BREAKPOINT &&
							  probe->entry == question->probe_ip);
	uint64_t now;
	bool is_open = process__read_memory(pid, question->sp, &now, sizeof(now)) != sizeof(now) ||
		       now == question->ip || (gate->has_return_probes && is_trampoline(pid, now));

	if (is_open && jit)
		is_open = is_in_code(pid, question, jit);
	trigger__answer(gate->trigger, question, is_open);
}

int gate__take_hit(struct gate *gate, struct recording *rec)
{
	struct mt_hit hit;
	const uint8_t *stack;
	size_t size;
	int err, got;

	/* Skips hits of earlier armings, and answers questions. */
	do {
		got = trigger__next(gate->trigger, &hit);
		if (got == 1 && mt_hit__is_question(&hit))
			answer(gate, &hit);
	} while (got == 1 && !trigger__is_latest(gate->trigger, &hit));
	if (got != 1)
		return got;
	stack = trigger__stack(gate->trigger, &size);
	err = VEC_ADD(&rec->hits, hit);
	if (!err && size)
		err = recording__add_stack(rec, stack, size);
	return err ? err : 1;
}

void gate__stop_go_waits(struct gate *gate)
{
	trigger__stop_go_waits(gate->trigger);
	VEC_EACH(&gate->events, event) {
		if (event->fd < 0 || !trigger_event__is_go_wait(event))
			continue;
		close(event->fd);
		event->fd = -1;
	}
	gate->go_waits = false;
}

/* Closes the entries first: otherwise the end of a call that was entered would be missed. */
void gate__detach(struct gate *gate)
{
	if (gate->trigger)
		trigger__detach(gate->trigger);
	for (int ends = 0; ends <= 1; ends++)
		VEC_EACH(&gate->events, event) {
			if (event->fd < 0 || trigger_event__is_end(event) != ends)
				continue;
			close(event->fd);
			event->fd = -1;
		}
	gate->attached = false;
}

void gate__close(struct gate *gate)
{
	gate__detach(gate);
	VEC_FINI(&gate->specs);
	VEC_FINI(&gate->events);
	VEC_FINI(&gate->of_source);
	VEC_FINI(&gate->kernel_probes);
	trigger__free(gate->trigger);
	gate->trigger = NULL;
}
