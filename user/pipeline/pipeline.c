// SPDX-License-Identifier: MIT
#include "pipeline/pipeline.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/decode.h"
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

/* Names the hits' addresses by the code as it was at the end. */
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

/*
 * The name of the USDT probe or of the probe in the kernel, if it was the only trigger: it says
 * more than the name of the user function there. A hit of a system call has its number instead.
 */
static const char *telling_name(const struct recording *rec)
{
	const char *name = rec->trigger;

	if (!name || strchr(name, ','))
		return NULL;
	switch (kernel_probe_kind__of(name)) {
	case KERNEL_PROBE_NONE:
		return strncmp(name, USDT_PREFIX, strlen(USDT_PREFIX)) ? NULL : name;
	case KERNEL_PROBE_SYSCALL:
		return NULL;
	default:
		return name;
	}
}

/* True if the hit's trigger is in the kernel; other triggers of the recording may not be. */
static bool is_in_kernel(const struct recording *rec, const struct mt_hit *hit)
{
	bool is_in = hit->syscall;

	for (int kind = KERNEL_PROBE_FUNCTION; kind < KERNEL_PROBE_KINDS; kind++)
		is_in |= kernel_probe_kind__is_in((enum kernel_probe_kind)kind, rec->trigger);
	return is_in;
}

/*
 * NULL: the function at the hit's address tells it. If one of several triggers is in the kernel, a
 * hit does not say which of them it was: it has the names of all.
 */
static const char *probe_name(const struct recording *rec, const struct mt_hit *hit)
{
	const char *name = telling_name(rec) ?: syscall__selector(hit->syscall - 1);

	return name || !is_in_kernel(rec, hit) ? name : rec->trigger;
}

/* -max-hits ends without one that is slow; a percentile may have risen since it was passed. */
static uint64_t threshold_of(const struct recording *rec, const struct mt_hit *hit)
{
	if (hit->reason == MT_HIT_STALL)
		return rec->stall_thresh_ns;
	if (hit->reason && hit->reason != MT_HIT_LAST && rec->cpu_measure)
		return rec->threshold_ns;
	return hit->reason && hit->reason != MT_HIT_LAST && hit->value_ns >= rec->threshold_ns
		       ? rec->threshold_ns
		       : 0;
}

static uint64_t unix_ms_of(const struct recording *rec, const struct mt_hit *hit)
{
	return rec->unix_zero_ns ? (rec->unix_zero_ns + hit->time_ns) / 1000000 : 0;
}

static uint8_t counted_in(const struct recording *rec)
{
	return (rec->knows_taken ? COUNTED_THROTTLED : 0) |
	       (rec->knows_interrupts ? COUNTED_INTERRUPTS : 0) |
	       (rec->steal == REC_STEAL_TOLD ? COUNTED_STOLEN : 0) |
	       (rec->steal == REC_STEAL_NOT_TOLD ? COUNTED_NOT_STOLEN : 0);
}

static void set_trace_id(struct hit_mark *mark, uint64_t high, uint64_t low)
{
	if (high | low)
		snprintf(mark->trace_id, sizeof(mark->trace_id), "%016" PRIx64 "%016" PRIx64, high,
			 low);
}

/* At mtbpf.h's own call, what mtbpf_set_trace_id() was given comes as arguments as well. */
static void take_trace_id(struct hit_mark *mark)
{
	if (mark->n_args != 4 || mark->probe || !mark->function ||
	    strcmp(mark->function->name, "mtbpf_hit") || (mark->args_read & 0xf) != 0xf)
		return;
	set_trace_id(mark, mark->args[1], mark->args[2]);
	mark->n_args = mark->args[3] != 0;
}

static void take_prints(struct hit_mark *mark, const struct recording *rec,
			const struct mt_hit *hit)
{
	mark->key = hit->key;
	mark->since_tid = (pid_t)hit->since_tid;
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
		*mark = (struct hit_mark){
			.time_ns = hit->time_ns,
			.value_ns = hit->value_ns,
			.threshold_ns = threshold_of(rec, hit),
			.unix_ms = unix_ms_of(rec, hit),
			.sequence = hit->sequence,
			.counted = counted_in(rec),
			.reason = hit->reason,
			.cpu_measure = hit->reason == MT_HIT_STALL ? 0 : rec->cpu_measure,
			.off_cpu_ns = hit->off_cpu_ns,
			.stall_from = hit->reason == MT_HIT_STALL ? rec->stall_from : 0,
			.pid = (pid_t)hit->tgid,
			.tid = (pid_t)hit->tid,
			.ip = recording__probe_of(rec, hit),
			.probe = probe_name(rec, hit),
			.in_kernel = is_in_kernel(rec, hit),
			.is_syscall = hit->syscall,
			.n_args = hit->n_args,
			.args_read = hit->args_read,
			.args_signed = hit->args_signed};
		memcpy(mark->args, hit->args, sizeof(mark->args));
		set_trace_id(mark, hit->trace_id[0], hit->trace_id[1]);
		take_prints(mark, rec, hit);
	}
	for (size_t i = 0; i < decoded->hits.n && !err; i++)
		if (!decoded->hits.v[i].function)
			err = name_hits(decoded, decoded->hits.v[i].pid);
	for (size_t i = 0; i < decoded->hits.n; i++)
		take_trace_id(&decoded->hits.v[i]);
	return err;
}

static bool has_hits(const struct recording *rec, pid_t tid)
{
	for (size_t i = 0; i < rec->hits.n; i++)
		if ((pid_t)rec->hits.v[i].tid == tid)
			return true;
	return false;
}

static bool has_one_ring(const struct recording *rec, pid_t tid)
{
	size_t n = 0;

	for (size_t i = 0; i < rec->aux.n; i++)
		n += rec->aux.v[i].tid == tid;
	return n == 1;
}

/*
 * A thread with a hit gets a report, which needs all of its calls; calls of the other threads need
 * not be kept. If rings belong to CPUs, the branches of threads are first collected in memory.
 */
static bool can_begin(const struct recording *rec, const struct tree_options *options)
{
	bool any = false;

	for (size_t i = 0; i < rec->aux.n; i++) {
		pid_t tid = rec->aux.v[i].tid;

		if (!tid || !has_one_ring(rec, tid))
			return false;
		any |= !has_hits(rec, tid);
	}
	return options->trace && any && !recording__is_sampled(rec);
}

static int begin_trace(struct decoded *decoded, const char *path)
{
	decoded->writer = trace_writer__open(path, &(struct trace_options){0});
	if (!decoded->writer)
		return -errno;
	decoded->queue = early_queue__new(decoded->writer);
	return decoded->queue ? 0 : -ENOMEM;
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

/* Finds the time that all times are relative to, before anything is written. */
static int find_base(struct decoded *decoded, const struct recording *rec)
{
	struct decode_bounds bounds = decoded->part.bounds;
	int err = decoded->is_filtered ? 0 : decode__find_bounds(rec, decoded->images, &bounds);

	decoded->base_ns = bounds.first_ns;
	return err;
}

static int filter_sampled(const struct trace_filter *filter)
{
	if (!filter->has_functions)
		return 0;
	log__error("-filter: a recording of samples does not contain each call of a function");
	log__hint("use times: " FILTER_HINT);
	return -EINVAL;
}

/*
 * Filters once: the recording loses the rest. For samples, the part is only known when their trees
 * exist.
 */
static int filter(struct decoded *decoded, struct recording *rec, const struct trace_filter *filter,
		  const struct filter_part *known)
{
	decoded->is_filtered = trace_filter__is_set(filter);
	decoded->part = *known;
	if (!decoded->is_filtered || known->is_known)
		return 0;
	if (decoded->is_sampled)
		return filter_sampled(filter);
	return trace_filter__apply(filter, rec, decoded->images, &decoded->part);
}

/* `known`: what an earlier try has found of the filter. */
static int make_once(struct decoded *decoded, struct recording *rec,
		     const struct tree_options *options, const struct filter_part *known)
{
	bool begins;
	int err = 0;

	*decoded = (struct decoded){.images = images__new(rec),
				    .behind_hit = -1,
				    .is_sampled = recording__is_sampled(rec)};
	if (!decoded->images)
		err = -ENOMEM;
	if (!err)
		err = filter(decoded, rec, options->filter, known);
	begins = !err && can_begin(rec, options);
	if (begins && (decoded->is_filtered || rec->aux.n > 1))
		err = find_base(decoded, rec);
	if (begins && !err) {
		err = begin_trace(decoded, options->trace);
		if (err && !decoded->writer)
			return err;
	}
	if (!err)
		err = make_trees(decoded, rec, options);
	if (decoded->queue)
		early_queue__finish(decoded->queue);
	if (!err)
		err = recording__check_cut(rec);
	return err ? err : add_hits(decoded, rec);
}

static void say_left_out(const struct recording *rec)
{
	log__warn("decoding all of it takes more than %s of memory: the oldest %s of trace are "
		  "left out",
		  BYTES(memory_limit__get()), BYTES(rec->drops[DROP_LEFT_OUT]));
	log__hint("decode the recording with 'mtbpf decode -max-memory SIZE' to allow more");
}

/*
 * If memory does not suffice, the older half is left out: the hit is at the new end, and the
 * recording itself stays whole.
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
	if (again && !err)
		say_left_out(rec);
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
	counters__fini(&decoded->counters);
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

/* A cgroup has several processes. Each gets the name of its main thread. */
static void name_processes(struct trace_writer *writer, const struct decoded *decoded,
			   const struct recording *rec)
{
	pid_t last = 0;

	if (rec->pid)
		trace_writer__process(writer, rec->pid, rec->command ? rec->command : "");
	for (size_t i = 0; i < decoded->trees.n; i++) {
		pid_t pid = decoded->trees.v[i].pid;

		if (pid != rec->pid && pid != last)
			trace_writer__process(writer, pid, decoded__thread_name(rec, pid));
		last = pid;
	}
}

/* Events whose thread is unknown are shown in the recorded process. */
static void write_event(struct trace_writer *writer, const struct pt_note *event,
			const struct recording *rec)
{
	struct pt_note of_cpu = *event;

	of_cpu.pid = rec->pid;
	trace_writer__event(writer, event->tid ? event : &of_cpu);
}

int decoded__write_trace(struct decoded *decoded, const struct recording *rec, const char *path)
{
	struct meter meter;
	/* Only a report, which a hit has, reads the calls again. */
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
	for (size_t i = 0; i < decoded->events.n; i++)
		write_event(writer, &decoded->events.v[i], rec);
	/* A trace is useful without counters. */
	if (counters__write(&decoded->counters, rec,
			    decoded->is_filtered ? &decoded->part.decode : NULL, writer))
		log__warn("out of memory: the counters of clock rates are left out");
	err = trace_writer__close(writer, &totals);
	meter__end(&meter);
	if (err)
		return err;
	if (totals.too_deep)
		log__warn("%" PRIu64
			  " slices are deeper than Perfetto shows (512) and are left out",
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

/* The threads that a recording has of a stall, with the names of their functions. */

static const char *name_of(struct code_map *map, uint64_t ip)
{
	struct code_place place;

	return code_map__find(map, ip, &place) ? place.function->name : "?";
}

/* A return address follows the call; the byte before it belongs to the call. */
static int add_names(struct thread_places *places, const struct recording *rec,
		     const struct rec_thread_state *state, struct code_map *map)
{
	int err = 0;

	for (uint32_t i = 0; i < state->n_ips && !err; i++) {
		uint64_t ip = rec->state_ips.v[state->first_ip + i];

		err = VEC_ADD(&places->names, name_of(map, i ? ip - 1 : ip));
	}
	return err;
}

static void set_waits_for(struct thread_place *place, const struct recording *rec,
			  const struct rec_thread_state *state)
{
	const char *name = syscall__name((int)state->syscall), *path = NULL;
	char number[32];

	if (state->syscall == MT_NO_SYSCALL)
		return;
	snprintf(number, sizeof(number), "system call %u", state->syscall);
	if (syscall__is_of_file((int)state->syscall))
		path = recording__find_open_file(rec, state->pid, (int)state->arg);
	if (path)
		snprintf(place->waits_for, sizeof(place->waits_for), "%s of %s (fd %d)",
			 name ?: number, path, (int)state->arg);
	else
		snprintf(place->waits_for, sizeof(place->waits_for), "%s", name ?: number);
}

static int add_place(struct thread_places *places, const struct recording *rec,
		     const struct rec_thread_state *state, struct code_map *map)
{
	const struct mt_hit *hit = &rec->hits.v[state->hit];
	struct thread_place *place = VEC_PUSH(&places->all);

	if (!place)
		return -ENOMEM;
	*place = (struct thread_place){.tid = state->tid,
				       .comm = state->comm,
				       .doing = state->is_stopped  ? THREAD_STOPPED
						: state->is_on_cpu ? THREAD_RUNS
						: state->is_ready  ? THREAD_READY
								   : THREAD_WAITS,
				       .is_stalled = state->tid == (pid_t)hit->tid,
				       .owner = state->owner,
				       .first_name = places->names.n,
				       .n_names = state->n_ips,
				       .is_whole = state->is_whole};
	set_waits_for(place, rec, state);
	return add_names(places, rec, state, map);
}

static int add_all(struct thread_places *places, const struct decoded *decoded,
		   const struct recording *rec, size_t hit, struct code_map *map)
{
	const struct mt_hit *of = &rec->hits.v[hit];
	size_t next = 0;
	int err = images__apply(decoded->images, (pid_t)of->tgid, of->time_ns, &next, map);

	for (size_t i = 0; i < rec->thread_states.n && !err; i++)
		if (rec->thread_states.v[i].hit == hit)
			err = add_place(places, rec, &rec->thread_states.v[i], map);
	return err;
}

int decoded__thread_places(const struct decoded *decoded, const struct recording *rec, size_t hit,
			   struct thread_places *places)
{
	struct code_map *map;
	int err;

	*places = (struct thread_places){0};
	if (!rec->thread_states.n || !decoded->images || hit >= rec->hits.n)
		return 0;
	map = code_map__new();
	err = map ? add_all(places, decoded, rec, hit, map) : -ENOMEM;
	code_map__free(map);
	return err;
}

/* Converts a trace file back to the data that a report needs. */

/* The trees move over; their functions stay. */
static int take_over(struct decoded *decoded, struct fxt_trees *fxt)
{
	for (size_t i = 0; i < fxt->trees.n; i++) {
		if (VEC_ADD(&decoded->trees, fxt->trees.v[i]))
			return -ENOMEM;
		fxt->trees.v[i] = (struct call_tree){0};
	}
	if (VEC_ADD_ALL(&decoded->hits, &fxt->hits))
		return -ENOMEM;
	decoded->is_sampled = fxt->is_sampled;
	decoded->totals.first_ns = fxt->first_ns;
	decoded->totals.last_ns = fxt->last_ns;
	return 0;
}

static int refuse(const char *path, int err, bool is_trace)
{
	if (err == -EBADMSG && !is_trace)
		return err;
	if (err == -EBADMSG) {
		log__error("%s: the trace is damaged or truncated", path);
		log__hint("decode the recording again: mtbpf decode NAME.mtbpf");
		return -EIO;
	}
	log__error("cannot read %s: %s", path, strerror(-err));
	log__hint("one made with sudo belongs to root; a trace is named NAME.fxt, .fxt.gz or "
		  ".fxt.zst");
	return err;
}

static int read_trees(struct fxt_trees *trees, int fd)
{
	struct meter meter;
	int err;

	meter__begin_file(&meter, "reading", fd);
	err = fxt_trees__read(trees, fd, &meter);
	meter__end(&meter);
	return err;
}

int decoded__make_from_fxt(struct decoded *decoded, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : 0;

	*decoded = (struct decoded){.behind_hit = -1};
	if (!err) {
		decoded->fxt = calloc(1, sizeof(*decoded->fxt));
		err = decoded->fxt ? read_trees(decoded->fxt, fd) : -ENOMEM;
	}
	if (!err)
		err = take_over(decoded, decoded->fxt);
	return err ? refuse(path, err, decoded->fxt && decoded->fxt->tracks.n) : 0;
}
