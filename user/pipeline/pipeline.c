// SPDX-License-Identifier: MIT
#include "pipeline/pipeline.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/decode.h"
#include "decode/pt_time.h"
#include "kernel/kernel.h"
#include "pipeline/make_trees.h"
#include "stack/stack.h"
#include "target/usdt.h"
#include "trace/fxt_trees.h"
#include "trace/trace_writer.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/meter.h"
#include "util/units.h"
#include "util/vec.h"

/*
 * True if the hit's trigger may be in the kernel: it hit a system call, or any trigger of the
 * recording is there.
 */
static bool is_in_kernel(const struct recording *rec, const struct mt_hit *hit)
{
	bool is_in = hit->syscall;

	for (int kind = KERNEL_PROBE_FUNCTION; kind < KERNEL_PROBE_KINDS; kind++)
		is_in |= kernel_probe_kind__is_in((enum kernel_probe_kind)kind, rec->trigger);
	return is_in;
}

/*
 * The name of the trigger, if it says more than the user function at the hit's address: a USDT
 * probe or a probe in the kernel, if it was the only trigger, or the hit's system call. NULL
 * otherwise. If one of several triggers is in the kernel, a hit does not say which of them it was:
 * it has the names of all.
 */
static const char *probe_name(const struct recording *rec, const struct mt_hit *hit)
{
	const char *trigger = rec->trigger, *name = NULL;

	if (trigger && !strchr(trigger, ',')) {
		enum kernel_probe_kind kind = kernel_probe_kind__of(trigger);
		bool is_usdt = !strncmp(trigger, USDT_PREFIX, strlen(USDT_PREFIX));

		if (kind == KERNEL_PROBE_NONE ? is_usdt : kind != KERNEL_PROBE_SYSCALL)
			name = trigger;
	}
	if (!name)
		name = syscall__selector(hit->syscall - 1);
	return name || !is_in_kernel(rec, hit) ? name : trigger;
}

/* Names the addresses of the process's hits by the code as it was at the end. */
static int name_hits(struct decoded *decoded, pid_t pid)
{
	struct code_map *map = code_map__new();
	size_t next = 0;
	int err = map ? images__apply(decoded->images, pid, UINT64_MAX, &next, map) : -ENOMEM;

	VEC_EACH_WHILE(&decoded->hits, mark, !err) {
		struct code_place place;

		if (mark->pid == pid && code_map__find(map, mark->ip, &place))
			mark->function = place.function;
	}
	code_map__free(map);
	return err;
}

static void set_hit(struct hit_mark *mark, const struct recording *rec, const struct mt_hit *hit)
{
	bool is_stall = hit->reason == MT_HIT_STALL;
	/*
	 * False for the hit that only ended -max-hits, and if the threshold, a percentile, has
	 * risen above the hit's value since: such hits show no threshold.
	 */
	bool is_slow = hit->reason && hit->reason != MT_HIT_LAST &&
		       (rec->cpu_measure || hit->value_ns >= rec->threshold_ns);

	*mark = (struct hit_mark){
		.time_ns = hit->time_ns,
		.value_ns = hit->value_ns,
		.threshold_ns = is_stall  ? rec->stall_thresh_ns
				: is_slow ? rec->threshold_ns
					  : 0,
		.unix_ms = rec->unix_zero_ns ? (rec->unix_zero_ns + hit->time_ns) / 1000000 : 0,
		.sequence = hit->sequence,
		.counted = (rec->knows_taken ? COUNTED_THROTTLED : 0) |
			   (rec->knows_interrupts ? COUNTED_INTERRUPTS : 0) |
			   (rec->steal == REC_STEAL_TOLD ? COUNTED_STOLEN : 0) |
			   (rec->steal == REC_STEAL_NOT_TOLD ? COUNTED_NOT_STOLEN : 0),
		.reason = hit->reason,
		.cpu_measure = is_stall ? 0 : rec->cpu_measure,
		.off_cpu_ns = hit->off_cpu_ns,
		.stall_from = is_stall ? rec->stall_from : 0,
		.pid = (pid_t)hit->tgid,
		.tid = (pid_t)hit->tid,
		.ip = recording__probe_of(rec, hit),
		.probe = probe_name(rec, hit),
		.in_kernel = is_in_kernel(rec, hit),
		.is_syscall = hit->syscall,
		.n_args = hit->n_args,
		.args_read = hit->args_read,
		.args_signed = hit->args_signed,
		.key = hit->key,
		.since_tid = (pid_t)hit->since_tid};
	memcpy(mark->args, hit->args, sizeof(mark->args));
	for (uint32_t i = 0; i < hit->n_prints && i < MT_PRINTS && i < rec->prints.n; i++) {
		struct hit_printed *print = &mark->prints[mark->n_prints++];

		print->name = rec->prints.v[i];
		print->value = hit->prints[i];
		printed__format(print->text, &print->value);
	}
}

static int add_hits(struct decoded *decoded, const struct recording *rec)
{
	int err = 0;

	VEC_EACH(&rec->hits, hit) {
		struct hit_mark *mark = VEC_PUSH(&decoded->hits);

		if (!mark)
			return -ENOMEM;
		set_hit(mark, rec, hit);
	}
	VEC_EACH_WHILE(&decoded->hits, mark, !err) {
		if (!mark->function)
			err = name_hits(decoded, mark->pid);
	}
	for (size_t i = 0; i < decoded->hits.n; i++) {
		struct hit_mark *mark = &decoded->hits.v[i];
		uint64_t high = rec->hits.v[i].trace_id[0], low = rec->hits.v[i].trace_id[1];

		/*
		 * mtbpf_hit() in mtbpf.h has the trace id as its recorded arguments 2 and 3;
		 * argument 4 says whether there is an argument 1.
		 */
		if (mark->n_args == 4 && !mark->probe && mark->function &&
		    !strcmp(mark->function->name, "mtbpf_hit") && (mark->args_read & 0xf) == 0xf) {
			if (mark->args[1] | mark->args[2]) {
				high = mark->args[1];
				low = mark->args[2];
			}
			mark->n_args = mark->args[3] != 0;
		}
		if (high | low)
			snprintf(mark->trace_id, sizeof(mark->trace_id),
				 "%016" PRIx64 "%016" PRIx64, high, low);
	}
	return err;
}

/*
 * True if calls can be written while decoding. A thread with a hit gets a report, which needs all
 * of its calls; calls of the other threads need not be kept. If rings belong to CPUs, or a thread
 * has several, the branches of threads are first collected in memory.
 */
static bool can_begin(const struct recording *rec, const struct tree_options *options)
{
	bool any = false;

	VEC_EACH(&rec->aux, aux) {
		bool has_hit = false;
		size_t n_rings = 0;

		VEC_EACH(&rec->aux, other)
			n_rings += other->tid == aux->tid;
		VEC_EACH(&rec->hits, hit)
			has_hit |= (pid_t)hit->tid == aux->tid;
		if (!aux->tid || n_rings != 1)
			return false;
		any |= !has_hit;
	}
	return options->trace && any && !recording__is_sampled(rec);
}

static int make_trees(struct decoded *decoded, struct recording *rec,
		      const struct tree_options *options)
{
	struct meter_work work = {"decoding", METER_BYTES, 0};
	struct meter meter;
	int err;

	for (size_t i = 0; i < rec->aux.n; i++)
		work.total += rec->aux.v[i].size;
	if (decoded->is_sampled)
		work = (struct meter_work){"decoding", METER_SAMPLES, rec->samples.n};
	meter__begin(&meter, &work);
	decoded->meter = &meter;
	err = decoded->is_sampled ? decoded__make_sampled_trees(decoded, rec, options->filter)
				  : decoded__make_trees(decoded, rec, options);
	decoded->meter = NULL;
	meter__end(&meter);
	return err;
}

/*
 * `known`: the filter as an earlier try has resolved it. It cannot be resolved again, since that
 * try has removed the rest from the recording.
 */
static int make_once(struct decoded *decoded, struct recording *rec,
		     const struct tree_options *options, const struct filter_part *known)
{
	const struct trace_filter *filter = options->filter;
	bool begins;
	int err = 0;

	*decoded = (struct decoded){.images = images__new(rec),
				    .behind_hit = -1,
				    .is_sampled = recording__is_sampled(rec)};
	if (!decoded->images)
		return -ENOMEM;
	decoded->is_filtered = trace_filter__is_set(filter);
	decoded->part = *known;
	if (decoded->is_filtered && decoded->is_sampled && filter->has_functions) {
		log__error("-filter: a recording of samples does not contain each call of a "
			   "function");
		log__hint("use times: " FILTER_HINT);
		return -EINVAL;
	}
	/* For samples, the part is only known when their trees exist. */
	if (decoded->is_filtered && !known->is_known && !decoded->is_sampled)
		err = trace_filter__apply(filter, rec, decoded->images, &decoded->part);
	begins = !err && can_begin(rec, options);
	/* The time to which all times are relative must be known before anything is written. */
	decoded->base_ns = decoded->part.bounds.first_ns;
	if (begins && !decoded->is_filtered && rec->aux.n > 1) {
		struct decode_bounds bounds;

		err = decode__find_bounds(rec, decoded->images, &bounds);
		decoded->base_ns = bounds.first_ns;
	}
	if (begins && !err) {
		decoded->writer = trace_writer__open(options->trace, &(struct trace_options){0});
		if (!decoded->writer)
			return -errno;
		decoded->queue = early_queue__new(decoded->writer);
		err = decoded->queue ? 0 : -ENOMEM;
	}
	if (!err)
		err = make_trees(decoded, rec, options);
	if (decoded->queue)
		early_queue__finish(decoded->queue);
	if (!err)
		err = recording__check_cut(rec);
	return err ? err : add_hits(decoded, rec);
}

/*
 * If memory does not suffice, the older half is left out: the hit is in the newer one, and the
 * recording on disk stays whole.
 */
int decoded__make(struct decoded *decoded, struct recording *rec,
		  const struct tree_options *options)
{
	struct filter_part part = {0};
	int err = make_once(decoded, rec, options, &part);
	bool again = false;

	while (err == -ENOMEM && memory_limit__was_met() && recording__leave_out_older_half(rec)) {
		part = decoded->part;
		decoded__fini(decoded);
		err = make_once(decoded, rec, options, &part);
		again = true;
	}
	if (again && !err) {
		log__warn("decoding all of the recording takes more than %s of memory: the "
			  "oldest %s of the trace are left out",
			  BYTES(memory_limit__get()), BYTES(rec->drops[DROP_LEFT_OUT]));
		log__hint("decode the recording with 'mtbpf decode -max-memory SIZE' to allow "
			  "more");
	}
	if (err == -ENOMEM) {
		log__error("out of memory while decoding");
		log__hint("use a larger -max-memory, or record with a smaller -snapshot-size");
	}
	return err;
}

void decoded__fini(struct decoded *decoded)
{
	for (size_t i = 0; i < decoded->trees.n; i++)
		call_tree__fini(&decoded->trees.v[i]);
	early_queue__free(decoded->queue);
	trace_writer__abort(decoded->writer);
	VEC_FINI_EACH(&decoded->early, e, early_calls__free(*e));
	VEC_FINI(&decoded->speeds);
	VEC_FINI(&decoded->events);
	VEC_FINI(&decoded->trees);
	VEC_FINI(&decoded->hits);
	images__free(decoded->images);
	perf_threads__free(decoded->perf);
	if (decoded->fxt)
		fxt_trees__fini(decoded->fxt);
	free(decoded->fxt);
}

/*
 * The time to which times in the trace are relative: its beginning, even if a filter removed that.
 */
static uint64_t base_of(const struct decoded *decoded)
{
	return decoded->is_filtered ? decoded->part.bounds.first_ns : decoded->totals.first_ns;
}

/* ---- the trace */

/* A cgroup has several processes. Each gets the name of its main thread. */
static void name_processes(struct trace_writer *writer, const struct decoded *decoded,
			   const struct recording *rec)
{
	pid_t last = 0;

	if (rec->pid)
		trace_writer__process(writer, rec->pid, rec->command ? rec->command : "");
	VEC_EACH(&decoded->trees, tree) {
		if (tree->pid != rec->pid && tree->pid != last)
			trace_writer__process(writer, tree->pid,
					      decoded__thread_name(rec, tree->pid));
		last = tree->pid;
	}
}

/*
 * Bits of the intel_pt event's config. Without CYC and MTC packets the time between two PSBs is not
 * known.
 */
#define CONFIG_CYC (1ull << 1)
#define CONFIG_MTC (1ull << 9)

static bool is_same_ring(const struct rec_aux *a, const struct rec_aux *b)
{
	return a->tid == b->tid && (a->tid || a->cpu == b->cpu);
}

/*
 * With a filter, writes only the rates within its times; the last rate before them is written at
 * their begin.
 */
static void write_rates(struct trace_writer *writer, const struct decoded *decoded,
			const struct recording *rec, const struct rec_aux *aux,
			const struct clock_rates *rates)
{
	const struct decode_filter *filter = &decoded->part.decode;
	struct trace_counter counter = {.name = "CPU MHz",
					.of = aux->tid ? "thread" : "cpu",
					.pid = aux->tid ? aux->pid : rec->pid,
					.tid = aux->tid ? aux->tid : rec->pid,
					.id = (uint64_t)(aux->tid ? aux->tid : aux->cpu)};

	for (size_t i = 0; i < rates->all.n; i++) {
		const struct clock_rate *rate = &rates->all.v[i];

		counter.time_ns = rate->time_ns;
		counter.value = rate->mhz;
		if (decoded->is_filtered) {
			if (rate->time_ns > filter->to_ns ||
			    (i + 1 < rates->all.n && rate[1].time_ns <= filter->from_ns))
				continue;
			if (rate->time_ns < filter->from_ns)
				counter.time_ns = filter->from_ns;
		}
		trace_writer__counter(writer, &counter);
	}
}

/*
 * Writes the instructions per cycle of the stretches that this ring recorded. The counter drops to
 * 0 after a stretch that no other one follows at once.
 */
static void write_speeds(struct trace_writer *writer, const struct decoded *decoded,
			 const struct rec_aux *aux, const struct clock_rates *rates)
{
	for (size_t i = 0; i < decoded->speeds.n; i++) {
		const struct thread_speed *p = &decoded->speeds.v[i];
		const struct speed *speed = &p->speed;
		uint32_t mhz = clock_rates__at(rates, speed->begin_ns);
		struct trace_counter counter = {.name = "IPC",
						.of = "thread",
						.pid = p->pid,
						.tid = p->tid,
						.id = (uint64_t)p->tid,
						.time_ns = speed->begin_ns};

		if (aux->tid ? p->tid != aux->tid : speed->cpu != aux->cpu)
			continue;
		if (!mhz || !speed->traced_ns)
			continue;
		counter.value = (double)speed->insns / ((double)speed->traced_ns * mhz / 1000);
		trace_writer__counter(writer, &counter);
		counter.time_ns = speed->end_ns;
		counter.value = 0;
		if (i + 1 == decoded->speeds.n || p[1].tid != p->tid ||
		    p[1].speed.begin_ns != speed->end_ns)
			trace_writer__counter(writer, &counter);
	}
}

/* Writes the counters of each ring, of all its snapshots at once. 0 or -ENOMEM. */
static int write_counters(struct trace_writer *writer, const struct decoded *decoded,
			  const struct recording *rec)
{
	int err = 0;

	/* The soft source's CBR packets are of a clock that it makes up. */
	if (!rec->pt.nom_freq || (rec->source && !strcmp(rec->source, "soft")))
		return 0;
	for (size_t i = 0; i < rec->aux.n && !err; i++) {
		const struct rec_aux *aux = &rec->aux.v[i];
		struct clock_rates rates = {0};
		size_t first = 0;

		while (!is_same_ring(&rec->aux.v[first], aux))
			first++;
		if (first != i)
			continue;
		VEC_EACH_WHILE(&rec->aux, other, !err) {
			if (is_same_ring(other, aux))
				err = clock_rates__add(&rates, rec, other);
		}
		if (!err)
			write_rates(writer, decoded, rec, aux, &rates);
		if (!err && rec->pt.config & (CONFIG_CYC | CONFIG_MTC))
			write_speeds(writer, decoded, aux, &rates);
		VEC_FINI(&rates.all);
	}
	return err;
}

int decoded__write_trace(struct decoded *decoded, const struct recording *rec, const char *path)
{
	struct meter meter;
	/* Only a report reads the calls again, and without a hit there is no report. */
	struct trace_options options = {
		.base_ns = base_of(decoded), .forget_calls = !decoded->hits.n, .meter = &meter};
	struct trace_writer *writer =
		decoded->writer ? decoded->writer : trace_writer__open(path, &options);
	struct meter_work work = {"writing", METER_CALLS, 0};
	struct trace_totals totals;
	int err;

	decoded->writer = NULL;
	if (!writer)
		return -errno;
	for (size_t i = 0; i < decoded->trees.n; i++)
		work.total += decoded->trees.v[i].calls.n;
	meter__begin(&meter, &work);
	trace_writer__set_base(writer, options.base_ns);
	name_processes(writer, decoded, rec);
	for (size_t i = 0; i < decoded->trees.n; i++)
		trace_writer__thread(writer, &decoded->trees.v[i]);
	for (size_t i = 0; i < decoded->hits.n; i++)
		trace_writer__hit(writer, &decoded->hits.v[i]);
	VEC_EACH(&decoded->events, e) {
		struct pt_note event = *e;

		/* Events whose thread is unknown are shown in the recorded process. */
		if (!event.tid)
			event.pid = rec->pid;
		trace_writer__event(writer, &event);
	}
	/* A trace is useful without counters. */
	if (write_counters(writer, decoded, rec))
		log__warn("out of memory: the counters of clock rates are left out");
	err = trace_writer__close(writer, &totals);
	meter__end(&meter);
	if (err)
		return err;
	if (totals.too_deep)
		log__warn("%" PRIu64
			  " slices are deeper than Perfetto shows (512 levels) and are left out",
			  totals.too_deep);
	log__info("%s: %" PRIu64 " slices, %s", path, totals.slices, BYTES(totals.bytes));
	return 0;
}

int decoded__write_text(const struct decoded *decoded, text_format_fn format, FILE *out)
{
	int err = 0;

	for (size_t i = 0; i < decoded->trees.n && !err; i++)
		err = format(out, &decoded->trees.v[i], base_of(decoded));
	return err;
}

int decoded__write_text_file(const struct decoded *decoded, text_format_fn format, const char *path)
{
	uint64_t bytes;
	int err = trace_text__write(path, format, decoded->trees.v, decoded->trees.n,
				    base_of(decoded), &bytes);

	if (!err)
		log__info("%s: one line per slice, %s", path, BYTES(bytes));
	return err;
}

/* ---- a trace file, converted back to the data that a report needs */

static int read_fxt(struct decoded *decoded, int fd)
{
	struct fxt_trees *fxt = calloc(1, sizeof(*fxt));
	struct meter meter;
	int err;

	decoded->fxt = fxt;
	if (!fxt)
		return -ENOMEM;
	meter__begin_file(&meter, "reading", fd);
	err = fxt_trees__read(fxt, fd, &meter);
	meter__end(&meter);
	if (err)
		return err;
	/* The trees move to decoded; their functions stay in fxt. */
	VEC_EACH(&fxt->trees, tree) {
		if (VEC_ADD(&decoded->trees, *tree))
			return -ENOMEM;
		*tree = (struct call_tree){0};
	}
	if (VEC_ADD_ALL(&decoded->hits, &fxt->hits))
		return -ENOMEM;
	decoded->is_sampled = fxt->is_sampled;
	decoded->totals.first_ns = fxt->first_ns;
	decoded->totals.last_ns = fxt->last_ns;
	return 0;
}

int decoded__make_from_fxt(struct decoded *decoded, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : 0;

	*decoded = (struct decoded){.behind_hit = -1};
	if (!err)
		err = read_fxt(decoded, fd);
	if (!err || (err == -EBADMSG && !(decoded->fxt && decoded->fxt->tracks.n)))
		return err;
	if (err == -EBADMSG) {
		log__error("%s: the trace is damaged or truncated", path);
		log__hint("decode the recording again: mtbpf decode NAME.mtbpf");
		return -EIO;
	}
	log__error("cannot read %s: %s", path, strerror(-err));
	log__hint("a trace made with sudo belongs to root; its name ends in .fxt, .fxt.gz or "
		  ".fxt.zst");
	return err;
}
