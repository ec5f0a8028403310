// SPDX-License-Identifier: MIT
/* Prints the summary of a decoded recording. */
#include "pipeline/pipeline.h"

#include <errno.h>
#include <inttypes.h>

#include "pipeline/print_branches.h"
#include "util/log.h"
#include "util/units.h"
#include "view/report.h"
#include "util/names.h"

/* Lookbacks that differ by less than this part are shown as one. */
#define SAME_SHARE 10

static void print_args(const struct hit_mark *hit, FILE *out)
{
	for (uint32_t i = 0; i < hit->n_args && i < MT_ARGS_MAX; i++) {
		if (!(hit->args_read >> i & 1))
			fprintf(out, ", arg%u unknown", i + 1);
		else if (hit->args_signed >> i & 1)
			fprintf(out, ", arg%u %" PRId64, i + 1, (int64_t)hit->args[i]);
		else
			fprintf(out, ", arg%u %" PRIu64, i + 1, hit->args[i]);
	}
}

/* Prints the threshold and the time of the hit, which finds it in other logs. */
static void print_moment(const struct hit_mark *hit, FILE *out)
{
	bool is_off = hit->cpu_measure == MT_CPU_OFF;

	if (hit->cpu_measure)
		fprintf(out, ", %s of it %s the CPU",
			DURATION(is_off ? hit->off_cpu_ns : hit->value_ns - hit->off_cpu_ns),
			is_off ? "off" : "on");
	if (hit->threshold_ns)
		fprintf(out, ", threshold %s%s", DURATION(hit->threshold_ns),
			is_off		   ? " off it"
			: hit->cpu_measure ? " on it"
					   : "");
	if (hit->unix_ms)
		fprintf(out, ", at %s", MOMENT(hit->unix_ms));
}

/* It goes on. */
static void print_stall(const struct hit_mark *hit, const char *name, FILE *out)
{
	char value[UNITS_TEXT_SIZE];

	units__format_duration(value, hit->value_ns);
	fprintf(out, "thread %d ", hit->tid);
	if (hit->stall_from == MT_STALL_CALL)
		fprintf(out, "has been in call %" PRIu64 " of %s for %s, and still is",
			hit->sequence, name, value);
	else if (hit->stall_from == MT_STALL_HIT)
		fprintf(out, "has not hit %s for %s, since hit %" PRIu64, name, value,
			hit->sequence);
	else if (hit->stall_from == MT_STALL_REGION)
		fprintf(out, "has not come from -start (%s) to -stop for %s", name, value);
	else
		fprintf(out, "has been stalled for %s, at %s", value, name);
}

static void print_hit(const struct hit_mark *hit, FILE *out)
{
	char value[UNITS_TEXT_SIZE];
	const char *function = hit->function ? SHORT_NAME(hit->function->name) : "the trigger";
	const char *name = hit->probe ? SHORT_NAME(hit->probe) : function;

	units__format_duration(value, hit->value_ns);
	if (hit->reason == MT_HIT_DELAY)
		fprintf(out, "hit %" PRIu64 " of %s, thread %d: %s after the one %s", hit->sequence,
			name, hit->tid, value, hit->since_tid ? "with this key before" : "before");
	else if (hit->reason == MT_HIT_DURATION)
		fprintf(out, "call %" PRIu64 " of %s, thread %d: took %s", hit->sequence, name,
			hit->tid, value);
	else if (hit->reason == MT_HIT_MARK)
		fprintf(out, "hit %" PRIu64 " of %s, thread %d: %s after mtbpf_mark_start()",
			hit->sequence, name, hit->tid, value);
	else if (hit->reason == MT_HIT_REGION)
		fprintf(out, "hit %" PRIu64 " of %s, thread %d: %s after -start", hit->sequence,
			name, hit->tid, value);
	else if (hit->reason == MT_HIT_STALL)
		print_stall(hit, name, out);
	else
		fprintf(out, "hit %" PRIu64 " of %s, thread %d%s", hit->sequence, name, hit->tid,
			hit->reason == MT_HIT_LAST ? ": the last of -max-hits" : "");
	if (hit->since_tid)
		fprintf(out, " in thread %d, key %#" PRIx64, hit->since_tid, hit->key);
	if (hit->probe && hit->function)
		fprintf(out, ", in %s", function);
	print_args(hit, out);
	for (uint32_t i = 0; i < hit->n_prints; i++)
		fprintf(out, ", %s %s", hit->prints[i].name, hit->prints[i].text);
	if (hit->trace_id[0])
		fprintf(out, ", trace id %s", hit->trace_id);
	print_moment(hit, out);
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
			" instructions of threads unknown, from before the first switches\n",
			totals->unknown_insns);
	recording__drops(rec, drops);
	for (int i = 0; i < DROPS; i++)
		if (drops[i])
			fprintf(out, "lost: %s\n", drop__format(text, (enum drop)i, drops[i]));
}

bool decoded__is_whole(const struct decoded *decoded, const struct recording *rec)
{
	uint64_t drops[DROPS];

	for (int reason = GAP_NONE + 1; reason < GAP_BETWEEN; reason++)
		if (decoded->totals.gaps[reason])
			return false;
	return !recording__drops(rec, drops);
}

/* Why the report lacks what it is about. */
static const char *explain_no_report(const struct decoded *decoded, const struct recording *rec,
				     const struct hit_mark *hit)
{
	if (decoded->is_sampled && hit->sequence <= 1 && hit->reason != MT_HIT_DURATION)
		return "it was the first hit";
	if (rec->drops[DROP_LEFT_OUT])
		return "a larger -max-memory decodes more of it";
	for (size_t i = 0; i < rec->aux.n; i++)
		if (rec->aux.v[i].wrapped)
			return "a larger -snapshot-size looks back further";
	if (decoded->is_sampled)
		return "a larger -snapshot-size, or a lower -sample-rate, looks back further";
	if (decoded->is_filtered)
		return "some of it lies outside of -filter, or it had begun before the recording "
		       "did";
	for (int reason = GAP_NONE + 1; reason < GAP_BETWEEN; reason++)
		if (decoded->totals.gaps[reason])
			return "some of it is in a gap";
	if (decoded->totals.gaps[GAP_OUTSIDE])
		return "some of it lies outside of -start and -stop";
	return "it had begun before the recording did";
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

static void print_threads(const struct decoded *decoded, const struct recording *rec, size_t hit,
			  FILE *out)
{
	struct thread_places places;

	if (!decoded__thread_places(decoded, rec, hit, &places))
		thread_places__print(out, &places);
	thread_places__fini(&places);
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

/* A request that began in another thread: what that one did in the time. */
static void print_other_thread(const struct decoded *decoded, const struct hit_mark *hit,
			       size_t top, FILE *out)
{
	struct report *report;

	if (!hit->since_tid || hit->since_tid == hit->tid)
		return;
	report = report_of(decoded, hit->since_tid);
	if (report)
		report__print(out, report, top);
	else
		fprintf(out, "what thread %d did is not in the trace\n", hit->since_tid);
	report__free(report);
}

/* Prints the amount of data that the trace was made from; a trace file does not tell. */
static void print_amount(const struct decoded *decoded, FILE *out)
{
	const struct sampled_totals *s = &decoded->sampled;
	const struct decode_totals *t = &decoded->totals;

	if (s->samples)
		fprintf(out, "%" PRIu64 " samples, %" PRIu64 " switches, ", s->samples,
			s->switches);
	else if (t->insns)
		fprintf(out, "%" PRIu64 " instructions, ", t->insns);
	else if (t->branches) /* of perf's text, which nobody counts them in */
		fprintf(out, "%" PRIu64 " branches, ", t->branches);
}

/* No sample was taken before the hit: prints what was recorded at the hit itself. */
static void print_hit_alone(const struct decoded *decoded, const struct hit_mark *hit, FILE *out)
{
	const struct call_tree *tree = NULL;

	for (size_t i = 0; i < decoded->trees.n; i++)
		if (decoded->trees.v[i].tid == hit->tid && decoded->trees.v[i].calls.n)
			tree = &decoded->trees.v[i];
	fprintf(out, "no sample was taken before it: the trace has its stack, and exact calls\n");
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
 * True if the calls were followed without a gap; false for a trace file, where that is not known.
 */
static bool is_whole(const struct decode_totals *totals)
{
	uint64_t gaps = 0;

	for (int reason = GAP_NONE + 1; reason < GAP_BETWEEN; reason++)
		gaps += totals->gaps[reason];
	return (totals->insns || totals->branches) && !gaps;
}

/* The time of the first sampled stack. Exact calls and switches may be known from before. */
static uint64_t first_stack_ns(const struct decoded *decoded)
{
	uint64_t first_ns = decoded->totals.last_ns;

	VEC_EACH(&decoded->trees, tree) {
		for (size_t k = 0; k < tree->calls.n && tree->calls.v[k].start_ns < first_ns; k++)
			if (tree->calls.v[k].flags & CALL_INFERRED_START)
				first_ns = tree->calls.v[k].start_ns;
	}
	return first_ns;
}

/* The time covered by stacks, if the trace covers more; otherwise 0. */
static uint64_t stacks_ns(const struct decoded *decoded)
{
	const struct decode_totals *t = &decoded->totals;
	uint64_t span_ns = t->last_ns - t->first_ns, ns;

	ns = decoded->is_sampled ? t->last_ns - first_stack_ns(decoded) : 0;
	return span_ns - ns > span_ns / SAME_SHARE ? ns : 0;
}

/* Prints the span of the trace; seen_ns, if not 0, is how far stacks look back in it. */
static void print_span(const struct decoded *decoded, uint64_t seen_ns, FILE *out)
{
	const struct decode_totals *t = &decoded->totals;
	const struct decode_bounds *all = &decoded->part.bounds;
	char span[UNITS_TEXT_SIZE];

	units__format_duration(span, seen_ns ? seen_ns : t->last_ns - t->first_ns);
	if (decoded->is_filtered)
		fprintf(out, "-filter leaves %s of the %s that the trace looks back: ", span,
			DURATION(all->last_ns - all->first_ns));
	else
		fprintf(out, "the trace looks back %s: ", span);
}

/* One stack in CUT_SHARE may be deeper than its copy: such stacks are not worth a line. */
#define CUT_SHARE 20

static void print_cut(const struct sampled_totals *totals, FILE *out)
{
	size_t size = totals->copy_size;

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

static void print_events(const struct decoded *decoded, FILE *out)
{
	size_t n[PT_NOTE_KINDS] = {0};

	for (size_t i = 0; i < decoded->events.n; i++)
		n[decoded->events.v[i].kind]++;
	for (int kind = PT_NOTE_PTWRITE; kind < PT_NOTE_KINDS; kind++)
		if (n[kind])
			fprintf(out, "%s: %zu\n",
				kind == PT_NOTE_CFE ? "interruptions not shown as slices"
						    : pt_note__name((enum pt_note_kind)kind),
				n[kind]);
}

static void print_filtered(const struct decoded *decoded, FILE *out)
{
	const struct decode_totals *t = &decoded->totals;

	if (t->gaps[GAP_FILTERED])
		fprintf(out, "left out by -filter, between its regions: %s, %" PRIu64 " times\n",
			DURATION(t->gap_ns[GAP_FILTERED]), t->gaps[GAP_FILTERED]);
	if (decoded->part.n_hits)
		fprintf(out, "left out by -filter: %zu hit%s\n", decoded->part.n_hits,
			decoded->part.n_hits == 1 ? "" : "s");
}

void decoded__summarise(const struct decoded *decoded, const struct recording *rec, FILE *out,
			size_t top)
{
	const struct decode_totals *t = &decoded->totals;
	const struct hit_mark *slowest = decoded__slowest_hit(decoded);
	struct report *report;
	size_t calls = 0, threads = 0;
	uint64_t seen_ns;

	for (size_t i = 0; i < decoded->early.n; i++)
		calls += decoded->early.v[i]->n;
	for (size_t i = 0; i < decoded->trees.n; i++) {
		calls += decoded->trees.v[i].calls.n;
		threads += !decoded->trees.v[i].coroutine && decoded->trees.v[i].calls.n;
	}
	for (size_t i = 0; i < decoded->hits.n; i++) {
		print_hit(&decoded->hits.v[i], out);
		if (decoded->images && i < rec->hits.n)
			last_branches__print(out, &rec->hits.v[i], decoded->images);
		print_threads(decoded, rec, i, out);
	}
	seen_ns = decoded->is_filtered ? 0 : stacks_ns(decoded);
	print_span(decoded, seen_ns, out);
	print_amount(decoded, out);
	fprintf(out, "%zu slices, %zu thread%s%s", calls, threads, threads == 1 ? "" : "s",
		is_whole(t) ? ", no gaps" : "");
	if (seen_ns)
		fprintf(out, "; of exact calls %s", DURATION(t->last_ns - t->first_ns));
	fputc('\n', out);
	print_cut(&decoded->sampled, out);
	print_lost(t, rec, out);
	print_filtered(decoded, out);
	print_events(decoded, out);
	if (!slowest)
		return;
	if (decoded->is_sampled && !decoded->sampled.samples && !decoded->fxt)
		print_hit_alone(decoded, slowest, out);
	/*
	 * If the return decides, the thread was stopped there, and not at the probe's own
	 * instruction.
	 */
	if (decoded->behind_hit >= 0 && rec->reason != MT_HIT_DURATION)
		fprintf(out, "frozen %s: %" PRId64 " branches after the hit, %s\n",
			rec->freeze ? rec->freeze : "at the hit", decoded->behind_hit,
			DURATION(decoded->behind_hit_ns));
	report = decoded__report(decoded);
	if (report)
		report__print(out, report, top);
	else if (errno == ENODATA)
		fprintf(out, "no report: the whole iteration is not in the trace: %s\n",
			explain_no_report(decoded, rec, slowest));
	report__free(report);
	print_other_thread(decoded, slowest, top, out);
}
