// SPDX-License-Identifier: MIT
#include "perf/perf_samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernel.h"
#include "util/cleanup.h"
#include "util/vec.h"
#include "util/names.h"

/* The most threads; others are left out, since the recording looks for threads one by one. */
#define MAX_THREADS 16384

/*
 * Each function gets a range of made-up addresses, because perf prints file offsets for a program's
 * own code, which collide with those of other files.
 */
#define FUNCTION_BITS 24
#define KERNEL_HALF   (1ull << 63)

/* A function as perf names it: "symbol", '\0', "module". */
struct perf_function {
	char *text;
	size_t len;
};

struct perf_samples {
	struct recording rec;
	struct named_image *image;
	bool without_inlined;
	struct perf_samples_totals totals;
	/* The sample whose frames follow its line, if it is open. */
	struct rec_sample sample;
	bool is_open;
	bool is_in_container; /* the last frame was inlined into the next one */
	VEC(uint64_t) ips;
	VEC(uint64_t) kernel;
	VEC(struct perf_function) functions;
	struct hash_index by_text;
	struct hash_index by_tid; /* numbers of threads: 1 + index in rec.threads */
};

struct perf_samples *perf_samples__new(bool without_inlined)
{
	struct perf_samples *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	recording__init(&s->rec);
	s->without_inlined = without_inlined;
	s->image = named_image__new();
	if (s->image)
		return s;
	perf_samples__free(s);
	return NULL;
}

void perf_samples__free(struct perf_samples *s)
{
	if (!s)
		return;
	VEC_FINI_EACH(&s->functions, e, free(e->text));
	VEC_FINI(&s->ips);
	VEC_FINI(&s->kernel);
	hash_index__fini(&s->by_text);
	hash_index__fini(&s->by_tid);
	named_image__free(s->image);
	recording__fini(&s->rec);
	free(s);
}

const struct perf_samples_totals *perf_samples__totals(const struct perf_samples *s)
{
	return &s->totals;
}

/* The thread that has this number, whatever its process. NULL: none is known. */
static struct rec_thread *find_thread(const struct perf_samples *s, pid_t tid)
{
	uint32_t number = HASH_FIND(&s->by_tid, hash__mix(0, (uint64_t)tid), i,
				    s->rec.threads.v[i - 1].tid == tid);

	return number ? &s->rec.threads.v[number - 1] : NULL;
}

/* Returns 1; 0: there are too many threads; or -ENOMEM. */
static int note_thread(struct perf_samples *s, const struct perf_line *line)
{
	struct rec_thread *thread = find_thread(s, line->tid);
	size_t len = line->comm.len;

	if (!thread && s->rec.threads.n >= MAX_THREADS) {
		s->totals.left_out++;
		return 0;
	}
	if (!thread) {
		thread = VEC_PUSH(&s->rec.threads);
		if (!thread)
			return -ENOMEM;
		*thread = (struct rec_thread){.pid = line->pid, .tid = line->tid};
		if (hash_index__add(&s->by_tid, hash__mix(0, (uint64_t)line->tid),
				    (uint32_t)s->rec.threads.n)) {
			s->rec.threads.n--;
			return -ENOMEM;
		}
	}
	if (len > sizeof(thread->comm) - 1)
		len = sizeof(thread->comm) - 1;
	memset(thread->comm, 0, sizeof(thread->comm));
	memcpy(thread->comm, line->comm.text, len);
	label__clean_in_place(thread->comm);
	s->totals.has_pids |= line->has_pid;
	return 1;
}

/* Returns the function's number, from 1 on, and adds the function if it is new. 0: out of memory.
 */
static uint32_t number_of(struct perf_samples *s, const struct named_place *place)
{
	size_t len = place->symbol_len + 1 + place->module_len;
	_cleanup_free_ char *text = malloc(len);
	uint64_t hash;
	uint32_t number;

	if (!text)
		return 0;
	memcpy(text, place->symbol ?: "", place->symbol_len);
	text[place->symbol_len] = '\0';
	memcpy(text + place->symbol_len + 1, place->module ?: "", place->module_len);
	hash = hash__bytes(0, text, len);
	number = HASH_FIND(&s->by_text, hash, i,
			   s->functions.v[i - 1].len == len &&
				   !memcmp(s->functions.v[i - 1].text, text, len));
	if (number)
		return number;
	if (VEC_ADD(&s->functions, (struct perf_function){text, len}))
		return 0;
	if (hash_index__add(&s->by_text, hash, (uint32_t)s->functions.n)) {
		s->functions.n--;
		return 0;
	}
	text = NULL;
	return (uint32_t)s->functions.n;
}

static bool is(const char *text, size_t len, const char *what)
{
	return len == strlen(what) && !memcmp(text, what, len);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

static bool ends_in(struct perf_span text, const char *what)
{
	size_t n = strlen(what);

	while (text.len && is_space(text.text[text.len - 1]))
		text.len--;
	return text.len >= n && !memcmp(text.text + text.len - n, what, n);
}

/* Sets place->ip to its made-up address, and adds the place to the image there. 0 or -ENOMEM. */
static int learn(struct perf_samples *s, struct named_place *place)
{
	static const char unknown[] = "[unknown]";
	uint64_t offset = place->has_offset ? place->offset : place->ip;
	uint64_t half = place->ip & KERNEL_HALF;
	uint32_t number;

	if (is(place->module ?: "", place->module_len, unknown))
		place->module_len = 0;
	number = number_of(s, place);
	if (!number)
		return -ENOMEM;
	/* The offset in the function into which the last frame was inlined is not known. */
	if (s->is_in_container)
		offset = 0;
	offset &= (1ull << FUNCTION_BITS) - 1;
	place->ip = half | (uint64_t)number << FUNCTION_BITS | offset;
	place->offset = offset;
	place->has_offset = true;
	if ((!place->symbol_len && !place->module_len) || named_image__spot(s->image, place->ip))
		return 0;
	return named_image__learn(s->image, place, "", 0);
}

/* Adds a frame. A caller is kept as a return address: 1 more, since lookups subtract 1. */
static int add_frame(struct perf_samples *s, uint64_t ip, struct perf_span text)
{
	bool is_inlined = ends_in(text, "(inlined)"), is_kernel = address__is_kernel(ip);
	struct named_place place = {.ip = ip};
	uint64_t *slot;
	int err;

	if (is_inlined && s->without_inlined)
		return 0;
	perf_place__parse(&place, text.text, text.len);
	if (is(place.module ?: "", place.module_len, "[uprobes]"))
		return 0;
	err = learn(s, &place);
	if (err)
		return err;
	s->is_in_container = is_inlined;
	if (is_kernel && !s->kernel.n && !s->ips.n)
		s->sample.in_kernel = true;
	slot = is_kernel ? VEC_PUSH(&s->kernel) : VEC_PUSH(&s->ips);
	if (!slot)
		return -ENOMEM;
	*slot = place.ip + ((is_kernel ? s->kernel.n : s->ips.n) > 1);
	return 0;
}

/*
 * Adds the open sample, if any, to the recording: all of its frames have been read. 0 or -ENOMEM.
 */
static int close_sample(struct perf_samples *s)
{
	bool is_empty = !s->ips.n && !s->kernel.n;
	int err = 0;

	s->totals.without += s->is_open && is_empty && !s->sample.at_switch;
	if (s->is_open && !is_empty) {
		s->sample.n_ips = (uint32_t)s->ips.n;
		err = recording__add_sample(&s->rec, &s->sample, s->ips.v);
		if (!err && s->kernel.n)
			err = recording__add_sample_kernel(&s->rec, s->kernel.v,
							   (uint32_t)s->kernel.n);
		s->totals.samples++;
	}
	s->is_open = s->is_in_container = false;
	s->ips.n = s->kernel.n = 0;
	return err;
}

static bool is_event(const struct perf_line *line, const char *name)
{
	size_t n = strlen(name);

	return line->event.len >= n && !memcmp(line->event.text, name, n) &&
	       (line->event.len == n || line->event.text[n] == ':');
}

/*
 * Sets the kind of the sample by the name of its event, as capture/recording/perf_data_samples.c
 * does by its number.
 */
static void open_sample(struct perf_samples *s, const struct perf_line *line)
{
	bool is_major = is_event(line, "major-faults");

	s->sample = (struct rec_sample){
		.time_ns = line->time_ns, .pid = line->pid, .tid = line->tid, .is_major = is_major};
	s->is_open = true;
	if (is_major || is_event(line, "minor-faults") || is_event(line, "page-faults") ||
	    is_event(line, "faults"))
		s->sample.faults = line->period < UINT32_MAX ? (uint32_t)line->period : 0;
	if (is_event(line, "context-switches") || is_event(line, "cs") ||
	    is_event(line, "sched:sched_switch"))
		s->sample.at_switch = true;
	if ((is_event(line, "cpu-clock") || is_event(line, "task-clock")) && line->period)
		s->rec.sample_period_ns = line->period;
}

/* The next thread may be one whose lines are not in the text: see perf_samples__finish(). */
static int add_switch(struct perf_samples *s, const struct perf_line *line,
		      const struct perf_switch *what)
{
	struct rec_sched sched = {.time_ns = line->time_ns, .pid = line->pid, .tid = line->tid};
	int err = 0;

	if (what->is_in)
		sched.what = REC_SCHED_IN;
	else
		sched.what = what->is_preempted ? REC_SCHED_PREEMPTED : REC_SCHED_BLOCKED;
	s->totals.ins += what->is_in;
	s->totals.outs += !what->is_in;
	if (line->tid)
		err = VEC_ADD(&s->rec.scheds, sched);
	sched = (struct rec_sched){
		.time_ns = line->time_ns, .tid = what->next, .what = REC_SCHED_IN};
	return err || !what->next ? err : VEC_ADD(&s->rec.scheds, sched);
}

static int take_event(struct perf_samples *s, const struct perf_line *line)
{
	struct perf_switch what;
	struct perf_span place;
	uint64_t ip;
	int err = note_thread(s, line);

	if (err <= 0)
		return err;
	err = 0;
	if (perf_line__parse_switch(line, &what)) {
		err = add_switch(s, line, &what);
		if (!line->event.len)
			return err ? err : 1;
	}
	open_sample(s, line);
	if (!err && perf_line__parse_frame(line->body, &ip, &place)) {
		err = add_frame(s, ip, place);
		if (!err)
			err = close_sample(s);
	}
	return err ? err : 1;
}

int perf_samples__take(struct perf_samples *s, enum perf_line_kind kind,
		       const struct perf_line *line, struct perf_span text)
{
	struct perf_span place;
	uint64_t ip;
	int err;

	if (kind == PERF_LINE_OTHER && text.len && s->is_open) {
		if (!is_space(*text.text) || !perf_line__parse_frame(text, &ip, &place))
			return 0;
		err = add_frame(s, ip, place);
		return err ? err : 1;
	}
	err = close_sample(s);
	return err || kind != PERF_LINE_EVENT ? err : take_event(s, line);
}

int perf_samples__finish(struct perf_samples *s, struct recording *rec, struct named_image **image)
{
	int err = close_sample(s);

	if (err)
		return err;
	/*
	 * A switch names only the tid of the next thread: takes the pid from the thread's own
	 * lines. Drops switches to threads without lines.
	 */
	VEC_DROP(&s->rec.scheds, sched, !sched->pid && !find_thread(s, sched->tid));
	VEC_EACH(&s->rec.scheds, sched) {
		if (sched->pid)
			continue;
		sched->pid = find_thread(s, sched->tid)->pid;
		s->totals.ins++;
	}
	recording__fini(rec);
	*rec = s->rec;
	recording__init(&s->rec);
	*image = s->image;
	s->image = NULL;
	return 0;
}
