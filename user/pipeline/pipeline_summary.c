// SPDX-License-Identifier: MIT
/* Prints the summary of a decoded recording. */
#include "pipeline/pipeline.h"

#include <errno.h>
#include <inttypes.h>

#include "kernel/kernel.h"
#include "pipeline/print_branches.h"
#include "util/log.h"
#include "util/units.h"
#include "view/report.h"
#include "util/names.h"

/* Lookbacks that differ by less than a tenth are shown as one. */
#define SAME_SHARE 10

/* ---- the threads that a recording has of a stall, with the names of their functions */

static int add_place(struct thread_places *places, const struct recording *rec,
		     const struct rec_thread_state *state, struct code_map *map)
{
	const char *call = syscall__name((int)state->syscall), *path = NULL;
	struct thread_place *place = VEC_PUSH(&places->all);
	char number[32];
	int err = 0;

	if (!place)
		return -ENOMEM;
	*place = (struct thread_place){.tid = state->tid,
				       .comm = state->comm,
				       .doing = state->is_stopped  ? THREAD_STOPPED
						: state->is_on_cpu ? THREAD_RUNS
						: state->is_ready  ? THREAD_READY
								   : THREAD_WAITS,
				       .is_stalled =
					       state->tid == (pid_t)rec->hits.v[state->hit].tid,
				       .owner = state->owner,
				       .first_name = places->names.n,
				       .n_names = state->n_ips,
				       .is_whole = state->is_whole};
	snprintf(number, sizeof(number), "system call %u", state->syscall);
	if (syscall__is_of_file((int)state->syscall))
		path = recording__find_open_file(rec, state->pid, (int)state->arg);
	if (state->syscall != MT_NO_SYSCALL && path)
		snprintf(place->waits_for, sizeof(place->waits_for), "%s of %s (fd %d)",
			 call ?: number, path, (int)state->arg);
	else if (state->syscall != MT_NO_SYSCALL)
		snprintf(place->waits_for, sizeof(place->waits_for), "%s", call ?: number);
	for (uint32_t i = 0; i < state->n_ips && !err; i++) {
		/* A return address follows the call; the byte before it belongs to the call. */
		uint64_t ip = rec->state_ips.v[state->first_ip + i] - (i != 0);
		struct code_place code;

		err = VEC_ADD(&places->names,
			      code_map__find(map, ip, &code) ? code.function->name : "?");
	}
	return err;
}

int decoded__thread_places(const struct decoded *decoded, const struct recording *rec, size_t hit,
			   struct thread_places *places)
{
	struct code_map *map;
	size_t next = 0;
	int err;

	*places = (struct thread_places){0};
	if (!rec->thread_states.n || !decoded->images || hit >= rec->hits.n)
		return 0;
	map = code_map__new();
	err = map ? images__apply(decoded->images, (pid_t)rec->hits.v[hit].tgid,
				  rec->hits.v[hit].time_ns, &next, map)
		  : -ENOMEM;
	VEC_EACH_WHILE(&rec->thread_states, state, !err) {
		if (state->hit == hit)
			err = add_place(places, rec, state, map);
	}
	code_map__free(map);
	return err;
}

/* ---- the summary */

static void print_hit(const struct hit_mark *hit, FILE *out)
{
	char value[UNITS_TEXT_SIZE];
	const char *function = hit->function ? SHORT_NAME(hit->function->name) : "the trigger";
	const char *name = hit->probe ? SHORT_NAME(hit->probe) : function;
	bool is_stall = hit->reason == MT_HIT_STALL, is_off = hit->cpu_measure == MT_CPU_OFF;

	units__format_duration(value, hit->value_ns);
	/* A stalled thread has not ended what it does. */
	if (is_stall && hit->stall_from == MT_STALL_CALL)
		fprintf(out, "thread %d has been in call %" PRIu64 " of %s for %s, and still is",
			hit->tid, hit->sequence, name, value);
	else if (is_stall && hit->stall_from == MT_STALL_HIT)
		fprintf(out, "thread %d has not hit %s for %s, since hit %" PRIu64, hit->tid, name,
			value, hit->sequence);
	else if (is_stall && hit->stall_from == MT_STALL_REGION)
		fprintf(out, "thread %d has been between -start (%s) and -stop for %s", hit->tid,
			name, value);
	else if (is_stall)
		fprintf(out, "thread %d has been stalled for %s, at %s", hit->tid, value, name);
	else
		fprintf(out, "%s %" PRIu64 " of %s, thread %d",
			hit->reason == MT_HIT_DURATION ? "call" : "hit", hit->sequence, name,
			hit->tid);
	if (hit->reason == MT_HIT_DELAY)
		fprintf(out, ": %s after the one %s", value,
			hit->since_tid ? "before it with this key" : "before");
	else if (hit->reason == MT_HIT_DURATION)
		fprintf(out, ": took %s", value);
	else if (hit->reason == MT_HIT_MARK)
		fprintf(out, ": %s after mtbpf_mark_start()", value);
	else if (hit->reason == MT_HIT_REGION)
		fprintf(out, ": %s after -start", value);
	else if (hit->reason == MT_HIT_LAST)
		fprintf(out, ": the last of -max-hits");
	if (hit->since_tid)
		fprintf(out, " in thread %d, key %#" PRIx64, hit->since_tid, hit->key);
	if (hit->probe && hit->function)
		fprintf(out, ", in %s", function);
	for (uint32_t i = 0; i < hit->n_args && i < MT_ARGS_MAX; i++) {
		if (!(hit->args_read >> i & 1))
			fprintf(out, ", arg%u unknown", i + 1);
		else if (hit->args_signed >> i & 1)
			fprintf(out, ", arg%u %" PRId64, i + 1, (int64_t)hit->args[i]);
		else
			fprintf(out, ", arg%u %" PRIu64, i + 1, hit->args[i]);
	}
	for (uint32_t i = 0; i < hit->n_prints; i++)
		fprintf(out, ", %s %s", hit->prints[i].name, hit->prints[i].text);
	if (hit->trace_id[0])
		fprintf(out, ", trace id %s", hit->trace_id);
	if (hit->cpu_measure)
		fprintf(out, ", %s of it %s the CPU",
			DURATION(is_off ? hit->off_cpu_ns : hit->value_ns - hit->off_cpu_ns),
			is_off ? "off" : "on");
	if (hit->threshold_ns)
		fprintf(out, ", threshold %s%s", DURATION(hit->threshold_ns),
			is_off		   ? " off the CPU"
			: hit->cpu_measure ? " on the CPU"
					   : "");
	/* The time finds the hit in other logs. */
	if (hit->unix_ms)
		fprintf(out, ", at %s", MOMENT(hit->unix_ms));
	fputc('\n', out);
}

static void print_lost(const struct decode_totals *totals, const struct recording *rec, FILE *out)
{
	char text[DROP_TEXT_SIZE];
	uint64_t drops[DROPS];

	for (int reason = GAP_NONE + 1; reason < GAP_BETWEEN; reason++)
		if (totals->gaps[reason])
			fprintf(out, "gaps: %" PRIu64 " (%s), %s\n", totals->gaps[reason],
				gap_reason__name((enum gap_reason)reason),
				DURATION(totals->gap_ns[reason]));
	if (totals->gaps[GAP_OUTSIDE])
		fprintf(out, "not recorded, outside -start and -stop: %s, %" PRIu64 " times\n",
			DURATION(totals->gap_ns[GAP_OUTSIDE]), totals->gaps[GAP_OUTSIDE]);
	if (totals->gaps[GAP_32_BIT])
		log__hint("32-bit code is not decoded and shows as gaps");
	if (totals->unknown_insns)
		fprintf(out,
			"left out: %" PRIu64
			" instructions of unknown threads, before the first context switches\n",
			totals->unknown_insns);
	recording__drops(rec, drops);
	for (int i = 0; i < DROPS; i++)
		if (drops[i])
			fprintf(out, "lost: %s\n", drop__format(text, (enum drop)i, drops[i]));
}

/* True if the calls were followed without a gap, as far as the totals tell. */
static bool has_no_gaps(const struct decode_totals *totals)
{
	for (int reason = GAP_NONE + 1; reason < GAP_BETWEEN; reason++)
		if (totals->gaps[reason])
			return false;
	return true;
}

bool decoded__is_whole(const struct decoded *decoded, const struct recording *rec)
{
	uint64_t drops[DROPS];

	return has_no_gaps(&decoded->totals) && !recording__drops(rec, drops);
}

/* The reason why there is no report: the hit's iteration is not in the trace. */
static const char *explain_no_report(const struct decoded *decoded, const struct recording *rec,
				     const struct hit_mark *hit)
{
	bool begins_at_hit = hit->reason != MT_HIT_DURATION && hit->reason != MT_HIT_MARK &&
			     hit->reason != MT_HIT_REGION && hit->reason != MT_HIT_STALL;

	if (decoded->is_sampled && hit->sequence <= 1 && begins_at_hit)
		return "no hit came before this one";
	if (decoded->is_sampled && begins_at_hit && !hit->value_ns && !decoded->ring_bytes)
		return "no earlier hit of its thread was recorded";
	if (rec->drops[DROP_LEFT_OUT])
		return "a larger -max-memory decodes more of the recording";
	if (VEC_FIND(&rec->aux, aux, aux->wrapped))
		return "a larger -snapshot-size looks back further";
	if (decoded->is_sampled)
		return "a larger -snapshot-size, or a lower -sample-rate, looks back further";
	if (decoded->is_filtered)
		return "a part of the iteration is outside of -filter, or before the recording "
		       "began";
	if (!has_no_gaps(&decoded->totals))
		return "a part of the iteration is in a gap";
	if (decoded->totals.gaps[GAP_OUTSIDE])
		return "a part of the iteration is outside of -start and -stop";
	return "the iteration began before the recording";
}

/* The hit that the report is about; NULL: none triggered. */
const struct hit_mark *decoded__slowest_hit(const struct decoded *decoded)
{
	const struct hit_mark *slowest = NULL;

	VEC_EACH(&decoded->hits, hit)
		if (hit->reason != MT_HIT_LAST && (!slowest || hit->value_ns >= slowest->value_ns))
			slowest = hit;
	return slowest;
}

/* Makes the report of the slowest hit for this thread; tid 0: the thread that triggered. */
static struct report *report_of(const struct decoded *decoded, pid_t tid)
{
	const struct hit_mark *slowest = decoded__slowest_hit(decoded);
	struct report_input input = {
		.tid = tid,
		.trees = decoded->trees.v,
		.n_trees = decoded->trees.n,
		.hit = slowest,
		.sampled = decoded->is_sampled,
		.ring_bytes = decoded->ring_bytes,
		.is_of_several = decoded->hits.n > 1,
	};

	errno = ENODATA;
	return slowest ? report__new(&input) : NULL;
}

struct report *decoded__report(const struct decoded *decoded)
{
	return report_of(decoded, 0);
}

/* No sample was taken before the hit: prints what was recorded at the hit itself. */
static void print_hit_alone(const struct decoded *decoded, const struct hit_mark *hit, FILE *out)
{
	const struct call_tree *tree = NULL;

	for (size_t i = 0; i < decoded->trees.n; i++)
		if (decoded->trees.v[i].tid == hit->tid && decoded->trees.v[i].calls.n)
			tree = &decoded->trees.v[i];
	fprintf(out, "no sample was taken before the hit: the trace has the hit's stack, and "
		     "exact calls\n");
	if (!tree)
		return;
	fprintf(out, "stack, innermost first: ");
	for (uint32_t i = (uint32_t)tree->calls.n - 1; i != CALL_NO_PARENT;) {
		const struct call *call = &tree->calls.v[i];

		i = call->parent;
		fprintf(out, "%s%s", call__name(call), i == CALL_NO_PARENT ? "\n" : " < ");
	}
}

/*
 * The time covered by stacks, if the trace covers more; otherwise 0. Exact calls and switches may
 * be known from before the first sampled stack.
 */
static uint64_t stacks_ns(const struct decoded *decoded)
{
	const struct decode_totals *t = &decoded->totals;
	uint64_t span_ns = t->last_ns - t->first_ns, first_ns = t->last_ns, ns;

	if (!decoded->is_sampled || decoded->is_filtered)
		return 0;
	VEC_EACH(&decoded->trees, tree) {
		for (size_t k = 0; k < tree->calls.n && tree->calls.v[k].start_ns < first_ns; k++)
			if (tree->calls.v[k].flags & CALL_INFERRED_START)
				first_ns = tree->calls.v[k].start_ns;
	}
	ns = t->last_ns - first_ns;
	return span_ns - ns > span_ns / SAME_SHARE ? ns : 0;
}

/* Prints the span of the trace, and the amount of data it was made from. */
static void print_span(const struct decoded *decoded, FILE *out)
{
	const struct decode_totals *t = &decoded->totals;
	const struct sampled_totals *s = &decoded->sampled;
	const struct decode_bounds *all = &decoded->part.bounds;
	uint64_t stacks = stacks_ns(decoded);
	char span[UNITS_TEXT_SIZE];
	size_t calls = 0, threads = 0;

	VEC_EACH(&decoded->early, early)
		calls += (*early)->n;
	VEC_EACH(&decoded->trees, tree) {
		calls += tree->calls.n;
		threads += !tree->coroutine && tree->calls.n;
	}
	units__format_duration(span, stacks ? stacks : t->last_ns - t->first_ns);
	if (decoded->is_filtered)
		fprintf(out, "-filter leaves %s of the %s that the trace looks back: ", span,
			DURATION(all->last_ns - all->first_ns));
	else
		fprintf(out, "the trace looks back %s: ", span);
	/* A trace file does not tell the amount. */
	if (s->samples)
		fprintf(out, "%" PRIu64 " samples, %" PRIu64 " switches, ", s->samples,
			s->switches);
	else if (t->insns)
		fprintf(out, "%" PRIu64 " instructions, ", t->insns);
	else if (t->branches) /* perf's text does not tell how many instructions ran */
		fprintf(out, "%" PRIu64 " branches, ", t->branches);
	fprintf(out, "%zu slices, %zu thread%s%s", calls, threads, threads == 1 ? "" : "s",
		(t->insns || t->branches) && has_no_gaps(t) ? ", no gaps" : "");
	if (stacks)
		fprintf(out, "; exact calls reach back %s", DURATION(t->last_ns - t->first_ns));
	fputc('\n', out);
}

/* One stack in CUT_SHARE may be deeper than its copy: such stacks are not worth a line. */
#define CUT_SHARE 20

static void print_cut(const struct sampled_totals *totals, FILE *out)
{
	size_t size = totals->copy_size;

	/* Happens below a large array on the stack that has not been used yet. */
	if (totals->torn_copies > totals->copies / CUT_SHARE)
		fprintf(out,
			"outer callers are missing in %" PRIu64 " of %" PRIu64
			" stacks: a page of the stack was not mapped at that moment, and could not "
			"be copied\n",
			totals->torn_copies, totals->copies);
	if (totals->cut_copies <= totals->copies / CUT_SHARE)
		return;
	fprintf(out,
		"outer callers are missing in %" PRIu64 " of %" PRIu64
		" stacks: they are beyond the %s that were copied of each stack",
		totals->cut_copies, totals->copies, BYTES(size));
	if (size < MT_COPY_MAX)
		fprintf(out, "; -stack-copy %zuK copies more",
			4 * size < MT_COPY_MAX ? (4 * size + 1023) / 1024
					       : (size_t)MT_COPY_MAX / 1024);
	fputc('\n', out);
}

static void print_filtered_and_events(const struct decoded *decoded, FILE *out)
{
	const struct decode_totals *t = &decoded->totals;
	size_t n[PT_NOTE_KINDS] = {0};

	if (t->gaps[GAP_FILTERED])
		fprintf(out,
			"left out by -filter, between the selected parts: %s, %" PRIu64 " times\n",
			DURATION(t->gap_ns[GAP_FILTERED]), t->gaps[GAP_FILTERED]);
	if (decoded->part.n_hits)
		fprintf(out, "left out by -filter: %zu hit%s\n", decoded->part.n_hits,
			decoded->part.n_hits == 1 ? "" : "s");
	VEC_EACH(&decoded->events, event)
		n[event->kind]++;
	for (int kind = PT_NOTE_PTWRITE; kind < PT_NOTE_KINDS; kind++)
		if (n[kind])
			fprintf(out, "%s: %zu\n",
				kind == PT_NOTE_CFE ? "interruptions not shown as slices"
						    : pt_note__name((enum pt_note_kind)kind),
				n[kind]);
}

static void print_reports(const struct decoded *decoded, const struct recording *rec, FILE *out,
			  size_t top)
{
	const struct hit_mark *slowest = decoded__slowest_hit(decoded);
	struct report *report = decoded__report(decoded);

	if (report)
		report__print(out, report, top);
	else if (errno == ENODATA)
		fprintf(out, "no report: the trace does not contain the whole iteration: %s\n",
			explain_no_report(decoded, rec, slowest));
	report__free(report);
	if (!slowest->since_tid || slowest->since_tid == slowest->tid)
		return;
	/* If the request began in another thread, prints what that thread did in the time. */
	report = report_of(decoded, slowest->since_tid);
	if (report)
		report__print(out, report, top);
	else
		fprintf(out, "what thread %d did is not in the trace\n", slowest->since_tid);
	report__free(report);
}

void decoded__summarise(const struct decoded *decoded, const struct recording *rec, FILE *out,
			size_t top)
{
	const struct hit_mark *slowest = decoded__slowest_hit(decoded);

	for (size_t i = 0; i < decoded->hits.n; i++) {
		struct thread_places places;

		print_hit(&decoded->hits.v[i], out);
		if (decoded->images && i < rec->hits.n)
			last_branches__print(out, &rec->hits.v[i], decoded->images);
		if (!decoded__thread_places(decoded, rec, i, &places))
			thread_places__print(out, &places);
		thread_places__fini(&places);
	}
	print_span(decoded, out);
	print_cut(&decoded->sampled, out);
	print_lost(&decoded->totals, rec, out);
	print_filtered_and_events(decoded, out);
	if (!slowest)
		return;
	if (decoded->is_sampled && !decoded->sampled.samples && !decoded->fxt)
		print_hit_alone(decoded, slowest, out);
	/* For a duration the hit is at the return, and not at the probe's own instruction. */
	if (decoded->behind_hit >= 0 && rec->reason != MT_HIT_DURATION)
		fprintf(out, "frozen %s: %" PRId64 " branches after the hit, %s\n",
			rec->freeze ? rec->freeze : "at the hit", decoded->behind_hit,
			DURATION(decoded->behind_hit_ns));
	print_reports(decoded, rec, out, top);
}
