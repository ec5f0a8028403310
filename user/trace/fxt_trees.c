// SPDX-License-Identifier: MIT
#include "trace/fxt_trees.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/branch.h"
#include "decode/pt_note.h"
#include "mtbpf_shared.h"
#include "stack/call_tree.h"
#include "stack/stack.h"
#include "trace/fxt_format.h"
#include "trace/fxt_read.h"
#include "trace/slice.h"
#include "util/cleanup.h"
#include "util/meter.h"
#include "util/names.h"
#include "util/units.h"
#include "util/vec.h"

/*
 * Stands for a time that the file does not tell: the whole call. finish_tree() limits it to the
 * call's length.
 */
#define ALL_OF_IT UINT64_MAX

/*
 * Parses "helper (process 11050, thread 11051)"; goroutines have ", in main.handle" before the last
 * bracket. The name may contain brackets. *in points to the function's name, or is NULL.
 */
static bool parse(struct done_by *by, const char *text, const char **in)
{
	const char *at = strstr(text, " (process "), *next;

	while (at && (next = strstr(at + 1, " (process ")))
		at = next;
	if (!at || sscanf(at, " (process %d, thread %d", &by->pid, &by->tid) != 2)
		return false;
	next = strstr(at, SLICE_BY_IN);
	by->is_goroutine = next != NULL;
	*in = next && strncmp(next + strlen(SLICE_BY_IN), SLICE_BY_NOWHERE,
			      strlen(SLICE_BY_NOWHERE))
		      ? next + strlen(SLICE_BY_IN)
		      : NULL;
	snprintf(by->comm, sizeof(by->comm), "%.*s", (int)(at - text), text);
	label__clean_in_place(by->comm);
	return true;
}

/* Copies the first n characters, fit for a terminal. NULL: no memory. */
static const char *keep_name(const char *in, size_t n, fxt_texts *texts)
{
	char **copy = VEC_PUSH(texts);

	if (!copy)
		return NULL;
	*copy = strndup(in, n);
	if (*copy)
		label__clean_in_place(*copy);
	return *copy;
}

/*
 * Adds who caused the tree's last call, which has just begun; `texts` owns the names. 0 or -ENOMEM.
 */
static int fxt_by__take(struct call_tree *tree, const struct fxt_read *read, fxt_texts *texts)
{
	for (size_t i = 0; i < SLICE_BY_MAX; i++) {
		const struct fxt_read_arg *ns = fxt_read__arg(read, slice_by_keys[i].ns);
		struct done_by by = {.call = (uint32_t)tree->calls.n - 1,
				     .ns = ns ? ns->number : ALL_OF_IT},
			       *place;
		const char *in;

		if (!parse(&by, fxt_read__string(read, slice_by_keys[i].who), &in))
			break;
		/* The function's name ends before the text's closing bracket. */
		by.in = in ? keep_name(in, *in ? strlen(in) - 1 : 0, texts) : NULL;
		place = !in || by.in ? VEC_PUSH(&tree->done_by) : NULL;
		if (!place)
			return -ENOMEM;
		*place = by;
	}
	return 0;
}

/*
 * Sets the kind, and the reason of a gap, of time off the CPU or of a system call. Calls that are
 * not functions are recognised by category and by the name that call__name() gave them. A
 * function's call is not changed.
 */
static void fxt_call__set_kind(struct call *call, const struct fxt_read *read)
{
	static const struct {
		const char *category, *name;
		enum call_kind kind;
		uint8_t reason;
	} kinds[] = {
		{"kernel", "[syscall]", CALL_SYSCALL, 0},
		{"kernel", "[memory reclaim]", CALL_SYSCALL, SYSCALL_RECLAIM},
		{"kernel", "[untraced]", CALL_UNTRACED, 0},
		{"kernel", "[kernel]", CALL_IN_KERNEL, 0},
		{"switch", NULL, CALL_SWITCHED, 0},
		{"off-cpu", "[blocked]", CALL_OFF_CPU, OFF_BLOCKED},
		{"off-cpu", "[preempted]", CALL_OFF_CPU, OFF_PREEMPTED},
		{"off-cpu", "[runnable]", CALL_OFF_CPU, OFF_RUNNABLE},
		{"off-cpu", "[throttled]", CALL_OFF_CPU, OFF_THROTTLED},
		{"off-cpu", "[stolen]", CALL_OFF_CPU, OFF_STOLEN},
		{"gap", "[gap]", CALL_GAP, GAP_BETWEEN},
		{"gap", "[gap: overflow]", CALL_GAP, GAP_OVERFLOW},
		{"gap", "[gap: outside -start and -stop]", CALL_GAP, GAP_OUTSIDE},
		{"gap", "[not recorded]", CALL_NOT_RECORDED, 0},
		{"gap", "[callers not recorded]", CALL_NO_CALLERS, 0},
		{"gap", "[gap: outside -filter]", CALL_GAP, GAP_FILTERED},
		{"gap", NULL, CALL_GAP, GAP_LOST},
		{"inlined", NULL, CALL_INLINED, 0},
		{"signal", NULL, CALL_SIGNAL, 0},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].category, read->category) ||
		    (kinds[i].name && strcmp(kinds[i].name, read->name)))
			continue;
		call->kind = kinds[i].kind;
		call->reason = kinds[i].reason;
		return;
	}
	if (strcmp(read->category, "kernel") || !pt_event__parse(read->name))
		return;
	call->kind = CALL_UNTRACED;
	call->reason = pt_event__parse(read->name);
}

/* The largest integer that a double counts exactly. */
#define MAX_COUNT 0x1p53

/* The counter's value; 0 if it is not a count. */
static uint64_t count_of(const struct fxt_read *read)
{
	const struct fxt_read_arg *arg = fxt_read__arg(read, FAULT_COUNTER_OF);
	double value = 0;

	if (arg && arg->type == FXT_ARG_DOUBLE)
		memcpy(&value, &arg->number, sizeof(value));
	return value >= 1 && value <= MAX_COUNT ? (uint64_t)value : 0;
}

/*
 * Each value ends a stretch of time, in which there may have been no interrupts: the counter then
 * has not grown.
 */
static int take_interrupts(struct fxt_counters *counters, struct call_tree *tree,
			   const struct fxt_read *read)
{
	const struct interrupts_mark mark = {.start_ns = counters->interrupts_until_ns,
					     .end_ns = read->time_ns,
					     .ns = count_of(read) - counters->interrupts_ns};
	bool is_known = counters->has_interrupts && count_of(read) > counters->interrupts_ns;

	counters->has_interrupts = true;
	counters->interrupts_until_ns = read->time_ns;
	counters->interrupts_ns = count_of(read);
	return is_known ? call_tree__add_interrupts(tree, &mark) : 0;
}

int fxt_counters__take(struct fxt_counters *counters, struct call_tree *tree,
		       const struct fxt_read *read)
{
	bool is_major = !strcmp(read->name, FAULT_COUNTER_MAJOR);
	bool is_move = !strcmp(read->name, MOVE_COUNTER);
	const struct fault_mark *last = tree->faults.n ? &tree->faults.v[tree->faults.n - 1] : NULL;
	uint64_t *seen = &counters->seen[is_move ? 2 : is_major], n = count_of(read);

	if (!strcmp(read->name, INTERRUPT_COUNTER))
		return take_interrupts(counters, tree, read);
	if ((!is_major && !is_move && strcmp(read->name, FAULT_COUNTER)) || n <= *seen ||
	    n - *seen > UINT32_MAX || (last && read->time_ns < last->time_ns))
		return 0;
	if (VEC_ADD(&tree->faults, (struct fault_mark){.time_ns = read->time_ns,
						       .n = (uint32_t)(n - *seen),
						       .is_major = is_major,
						       .is_move = is_move}))
		return -ENOMEM;
	*seen = n;
	return 0;
}

#define HIT_PREFIX "hit "

/*
 * Reads all but the hit's function and returns that function's name, which lasts as long as the
 * event's strings. NULL if the slice is not named like a hit.
 */
static const char *fxt_hit__read(struct hit_mark *hit, const struct fxt_read *read)
{
	size_t n = strlen(HIT_PREFIX);
	const char *trace_id = fxt_read__string(read, hit_text_keys[HIT_TEXT_TRACE_ID]);
	const char *counted = fxt_read__string(read, hit_text_keys[HIT_TEXT_COUNTED]);
	uint64_t on_ns = fxt_read__number(read, "on_cpu_ns");
	uint64_t off_ns = fxt_read__number(read, "off_cpu_ns");
	const struct slice_value_key *value = slice_value_keys;

	while (value->key && !fxt_read__number(read, value->key))
		value++;
	*hit = (struct hit_mark){
		.time_ns = read->end_ns,
		.value_ns = value->key ? fxt_read__number(read, value->key) : 0,
		.cpu_measure = on_ns	? MT_CPU_ON
			       : off_ns ? MT_CPU_OFF
					: MT_CPU_ALL,
		.threshold_ns = fxt_read__number(read, "threshold_ns"),
		.sequence = fxt_read__number(read, "sequence"),
		.reason = value->reason,
		.stall_from = (uint32_t)fxt_read__number(read, "stall_from"),
		.pid = (pid_t)read->pid,
		.tid = (pid_t)fxt_read__number(read, "tid"),
		.ip = fxt_read__number(read, "address"),
		.key = fxt_read__number(read, "key"),
		.since_tid = (pid_t)fxt_read__number(read, "since_tid"),
	};
	hit->off_cpu_ns = on_ns && on_ns <= hit->value_ns ? hit->value_ns - on_ns : off_ns;
	if (units__parse_moment(fxt_read__string(read, hit_text_keys[HIT_TEXT_TIME]),
				&hit->unix_ms))
		hit->unix_ms = 0;
	for (uint8_t i = 0; i < COUNTED_ALL && !hit->counted; i++)
		if (counted_texts[i] && !strcmp(counted_texts[i], counted))
			hit->counted = i;
	if (strspn(trace_id, "0123456789abcdef") == TRACE_ID_SIZE - 1 &&
	    !trace_id[TRACE_ID_SIZE - 1])
		strcpy(hit->trace_id, trace_id);
	return strncmp(read->name, HIT_PREFIX, n) ? NULL : read->name + n;
}

/* Parses a text of printed__format(). False if the text is not one. */
static bool parse_print(struct hit_printed *print, const char *text)
{
	size_t n = strlen(text), digits = *text == '-';
	const char *end = strrchr(text, '"');

	if (n >= sizeof(print->text))
		return false;
	memcpy(print->text, text, n + 1);
	label__clean_in_place(print->text);
	digits += strspn(text + digits, "0123456789");
	if (!strcmp(text, "unknown"))
		print->value.kind = MT_PRINT_NONE;
	else if (n && n == digits && text[n - 1] != '-' && n < 21)
		print->value.kind = MT_PRINT_NUMBER;
	else if (*text == '"' && end > text)
		print->value.kind = MT_PRINT_STRING;
	else
		return false;
	print->value.is_cut = end && end[1];
	return true;
}

static int take_prints(struct hit_mark *hit, const struct fxt_read *read, fxt_texts *texts)
{
	for (unsigned int i = 0; i < read->n_args && hit->n_prints < MT_PRINTS; i++) {
		const struct fxt_read_arg *arg = &read->args[i];
		struct hit_printed *print = &hit->prints[hit->n_prints];
		size_t k = 0;

		/* Values of -print are the texts that mtbpf itself has not added. */
		while (k < HIT_TEXTS && strcmp(arg->key, hit_text_keys[k]))
			k++;
		if (!arg->string || k < HIT_TEXTS || !parse_print(print, arg->string))
			continue;
		print->name = keep_name(arg->key, strlen(arg->key), texts);
		if (!print->name)
			return -ENOMEM;
		hit->n_prints++;
	}
	return 0;
}

/* A call while the calls are being put in order. */
struct moved {
	struct call call;
	struct fxt_place place;
	uint32_t from; /* its index in the file's order */
};

/* A call's sort key. */
struct key {
	uint64_t start_ns;
	uint32_t from;
};

#define DIGIT_BITS 11
#define DIGITS	   (1u << DIGIT_BITS)

static uint32_t digit(const struct key *key, unsigned int shift)
{
	return (uint32_t)(key->start_ns >> shift) & (DIGITS - 1);
}

/* Sorts stably by one digit. */
static void sort_by_digit(const struct key *from, struct key *to, size_t n, unsigned int shift)
{
	size_t begins[DIGITS] = {0}, at = 0;

	for (size_t i = 0; i < n; i++)
		begins[digit(&from[i], shift)]++;
	for (size_t d = 0; d < DIGITS; d++) {
		size_t count = begins[d];

		begins[d] = at;
		at += count;
	}
	for (size_t i = 0; i < n; i++)
		to[begins[digit(&from[i], shift)]++] = from[i];
}

/*
 * Sorts calls by their begin with a stable radix sort: there may be ten million, and sorting by
 * comparison takes ten times as long. NULL: out of memory.
 */
static struct key *sort_keys(const struct call_tree *tree)
{
	size_t n = tree->calls.n;
	struct key *keys = malloc((n + 1) * sizeof(*keys)),
		   *other = malloc((n + 1) * sizeof(*keys));
	uint64_t bits = 0;

	for (size_t i = 0; keys && other && i < n; i++) {
		keys[i] = (struct key){tree->calls.v[i].start_ns, (uint32_t)i};
		bits |= keys[i].start_ns;
	}
	for (unsigned int shift = 0; keys && other && shift < 64 && bits >> shift;
	     shift += DIGIT_BITS) {
		struct key *sorted = other;

		sort_by_digit(keys, sorted, n, shift);
		other = keys;
		keys = sorted;
	}
	if (!other) {
		free(keys);
		keys = NULL;
	}
	free(other);
	return keys;
}

ORDER(compare_done_by, struct done_by, COMPARE(x->call, y->call) ?: COMPARE(y->ns, x->ns))

ORDER(compare_waits, struct waits_for, COMPARE(x->call, y->call))

/*
 * Corrects the indices of calls in tree->done_by and tree->waits after the calls were put in order.
 * 0 or -ENOMEM.
 */
static int follow_calls(struct call_tree *tree, const struct moved *moved)
{
	size_t n = tree->calls.n;
	bool any = tree->done_by.n || tree->waits.n;
	_cleanup_free_ uint32_t *to = any ? malloc(n * sizeof(*to)) : NULL;

	if (!any)
		return 0;
	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		to[moved[i].from] = (uint32_t)i;
	for (size_t i = 0; i < tree->done_by.n; i++)
		tree->done_by.v[i].call = to[tree->done_by.v[i].call];
	for (size_t i = 0; i < tree->waits.n; i++)
		tree->waits.v[i].call = to[tree->waits.v[i].call];
	VEC_SORT(&tree->done_by, compare_done_by);
	VEC_SORT(&tree->waits, compare_waits);
	return 0;
}

int fxt_order__restore(struct call_tree *tree, const fxt_places *places)
{
	size_t n = tree->calls.n;
	_cleanup_free_ struct key *keys = sort_keys(tree);
	_cleanup_free_ struct moved *moved = keys ? malloc((n + 1) * sizeof(*moved)) : NULL;
	uint32_t open = CALL_NO_PARENT;

	if (!moved)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint32_t from = keys[i].from;

		moved[i] = (struct moved){tree->calls.v[from], places->v[from], from};
	}
	for (size_t i = 0; i < n; i++) {
		struct call *call = &moved[i].call;

		/* Closes the calls that have ended when this one begins. */
		while (open != CALL_NO_PARENT &&
		       (moved[open].call.end_ns == call->start_ns
				? moved[open].place.end < moved[i].place.begin
				: moved[open].call.end_ns < call->start_ns))
			open = moved[open].call.parent;
		call->parent = open;
		call->depth = open == CALL_NO_PARENT ? 0 : moved[open].call.depth + 1;
		/* The file may contain calls that are not nested. */
		if (open != CALL_NO_PARENT && call->end_ns > moved[open].call.end_ns)
			call->end_ns = moved[open].call.end_ns;
		open = (uint32_t)i;
	}
	for (size_t i = 0; i < n; i++)
		tree->calls.v[i] = moved[i].call;
	return follow_calls(tree, moved);
}

/*
 * Finds the track; NULL: no record was on it yet. Searches from the newest track, since most
 * records are of that one.
 */
static struct fxt_track *find_track(struct fxt_trees *trees, uint64_t pid, uint64_t tid)
{
	for (size_t i = trees->tracks.n; i--;) {
		struct fxt_track *track = &trees->tracks.v[i];

		if (track->tid == tid && track->pid == pid)
			return track;
	}
	return NULL;
}

/* Finds or adds the track. NULL: no memory. */
static struct fxt_track *track_of(struct fxt_trees *trees, uint64_t pid, uint64_t tid)
{
	struct fxt_track *track = find_track(trees, pid, tid);
	struct call_tree *tree;

	if (track)
		return track;
	tree = VEC_PUSH(&trees->trees);
	if (!tree)
		return NULL;
	*tree = (struct call_tree){.pid = (pid_t)pid, .tid = (pid_t)tid};
	track = VEC_PUSH(&trees->tracks);
	if (track)
		*track = (struct fxt_track){.pid = pid, .tid = tid, .open = CALL_NO_PARENT};
	return track;
}

static struct call_tree *tree_of(struct fxt_trees *trees, const struct fxt_track *track)
{
	return &trees->trees.v[track - trees->tracks.v];
}

static const struct function *function_of(struct fxt_trees *trees, const char *name,
					  const char *module)
{
	size_t n = strlen(name) + 1, m = strlen(module) + 1;
	uint64_t hash = hash__bytes(hash__bytes(0, name, n), module, m - 1);
	struct function *function, *const *all = trees->functions.v;
	uint32_t number =
		HASH_FIND(&trees->by_name, hash, i,
			  !strcmp(all[i - 1]->name, name) && !strcmp(all[i - 1]->module, module));

	if (number)
		return all[number - 1];
	/* Its strings follow it in the same block. */
	function = calloc(1, sizeof(*function) + n + m);
	if (!function)
		return NULL;
	function->name = memcpy(function + 1, name, n);
	function->module = memcpy((char *)(function + 1) + n, module, m);
	if (VEC_ADD(&trees->functions, function))
		goto fail;
	if (!hash_index__add(&trees->by_name, hash, (uint32_t)trees->functions.n))
		return function;
	trees->functions.n--;
fail:
	free(function);
	return NULL;
}

/* "futex held by helper (123)": the same words as in the recording's report. */
static int add_wait(struct fxt_trees *trees, struct call_tree *tree, const struct fxt_read *read)
{
	const char *text = fxt_read__string(read, "waits_for");
	struct waits_for wait = {.call = (uint32_t)tree->calls.n - 1, .fd = -1}, *place;
	char **copy;

	if (!*text)
		return 0;
	copy = VEC_PUSH(&trees->texts);
	place = copy ? VEC_PUSH(&tree->waits) : NULL;
	if (copy)
		*copy = place ? strdup(text) : NULL;
	if (!place || !*copy)
		return -ENOMEM;
	label__clean_in_place(*copy);
	wait.text = *copy;
	*place = wait;
	return 0;
}

static int begin(struct fxt_trees *trees, struct fxt_track *track, const struct fxt_read *read)
{
	struct call_tree *tree = tree_of(trees, track);
	uint32_t parent = track->open;
	struct call *call = VEC_PUSH(&tree->calls);
	struct fxt_place *place = VEC_PUSH(&track->places);

	if (!call || !place || tree->calls.n == CALL_NO_PARENT)
		return -ENOMEM;
	*call = (struct call){
		.start_ns = read->time_ns,
		.end_ns = read->time_ns,
		.parent = parent,
		.depth = parent == CALL_NO_PARENT ? 0 : tree->calls.v[parent].depth + 1,
		.self_insns = fxt_read__number(read, "insns"),
	};
	for (size_t i = 0; i < SLICE_FLAGS; i++)
		if (fxt_read__arg(read, slice_flags[i].key))
			call->flags |= (uint8_t)slice_flags[i].flag;
	*place = (struct fxt_place){.begin = track->n_edges++, .end = UINT32_MAX};
	fxt_call__set_kind(call, read);
	track->open = (uint32_t)tree->calls.n - 1;
	trees->is_sampled |= call->flags & CALL_SAMPLED;
	if (call->kind != CALL_FUNCTION && call->kind != CALL_SIGNAL && call->kind != CALL_INLINED)
		return 0;
	call->function = function_of(trees, read->name, fxt_read__string(read, "module"));
	if (call->flags & CALL_SAMPLED && !strcmp(read->category, "kernel"))
		call->kind = CALL_IN_KERNEL;
	return call->function ? 0 : -ENOMEM;
}

static void end(struct fxt_trees *trees, struct fxt_track *track, uint64_t time_ns)
{
	struct call *call;

	if (track->open == CALL_NO_PARENT)
		return;
	call = &tree_of(trees, track)->calls.v[track->open];
	if (time_ns > call->end_ns)
		call->end_ns = time_ns;
	track->places.v[track->open].end = track->n_edges++;
	track->open = call->parent;
}

/*
 * A slice is a BEGIN and an END record, or one COMPLETE record. The arguments are in BEGIN and
 * COMPLETE: who ended the wait or took the CPU (by), and what the thread waited for (waits_for).
 */
static int take_slice(struct fxt_trees *trees, const struct fxt_read *read)
{
	struct fxt_track *track = track_of(trees, read->pid, read->tid);
	bool is_whole = read->event == FXT_EVENT_COMPLETE && read->end_ns > read->time_ns;
	uint64_t end_ns = is_whole ? read->end_ns : read->time_ns;
	int err = 0;

	if (!track)
		return -ENOMEM;
	track->is_unsorted |= read->time_ns < track->last_ns;
	if (end_ns > track->last_ns)
		track->last_ns = end_ns;
	if (read->event != FXT_EVENT_END) {
		err = begin(trees, track, read);
		if (!err)
			err = fxt_by__take(tree_of(trees, track), read, &trees->texts);
		if (!err)
			err = add_wait(trees, tree_of(trees, track), read);
	}
	if (!err && read->event != FXT_EVENT_BEGIN)
		end(trees, track, end_ns);
	return err;
}

static int take_hit(struct fxt_trees *trees, const struct fxt_read *read)
{
	struct hit_mark *hit = VEC_PUSH(&trees->hits);
	const char *name;

	if (!hit)
		return -ENOMEM;
	name = fxt_hit__read(hit, read);
	if (!name)
		return 0;
	/* Hits come last in the file, so the functions are known. */
	for (size_t i = 0; i < trees->functions.n && !hit->function; i++)
		if (!strcmp(trees->functions.v[i]->name, name))
			hit->function = trees->functions.v[i];
	/* The name of some hits, such as a region's stop, is not a function with calls. */
	if (!hit->function && strncmp(name, "0x", 2))
		hit->function = function_of(trees, name, "");
	return take_prints(hit, read, &trees->texts);
}

static int take_name(struct fxt_trees *trees, const struct fxt_read *read)
{
	struct fxt_track *track = track_of(trees, read->pid, read->tid);
	uint64_t thread = fxt_read__number(read, "thread");
	const char *name = thread ? strrchr(read->name, ':') : NULL;
	struct call_tree *tree;

	if (!track)
		return -ENOMEM;
	tree = tree_of(trees, track);
	snprintf(tree->comm, sizeof(tree->comm), "%s", read->name);
	/* A coroutine has a track with its own id. */
	if (thread) {
		tree->tid = (pid_t)thread;
		tree->coroutine = ++trees->n_coroutines;
	}
	/* "service: coroutine 1"; the thread's name may contain a colon. */
	if (name && name[1] == ' ') {
		snprintf(tree->comm, sizeof(tree->comm), "%.*s", (int)(name - read->name),
			 read->name);
		snprintf(tree->coroutine_name, sizeof(tree->coroutine_name), "%s", name + 2);
		label__clean_in_place(tree->coroutine_name);
	}
	label__clean_in_place(tree->comm);
	return 0;
}

static int take(struct fxt_trees *trees, const struct fxt_read *read)
{
	struct fxt_track *track;

	if (read->kind == FXT_READ_THREAD)
		return take_name(trees, read);
	if (read->kind != FXT_READ_EVENT)
		return 0;
	switch (read->event) {
	case FXT_EVENT_COMPLETE:
		return strcmp(read->category, "hit") ? take_slice(trees, read)
						     : take_hit(trees, read);
	case FXT_EVENT_BEGIN:
	case FXT_EVENT_END:
		return take_slice(trees, read);
	case FXT_EVENT_COUNTER:
		/* A thread's counters follow its calls. */
		track = find_track(trees, read->pid, read->tid);
		return track ? fxt_counters__take(&track->counters, tree_of(trees, track), read)
			     : 0;
	default:
		return 0;
	}
}

static int finish_tree(struct fxt_trees *trees, size_t i)
{
	struct call_tree *tree = &trees->trees.v[i];
	struct fxt_track *track = &trees->tracks.v[i];

	while (track->open != CALL_NO_PARENT)
		end(trees, track, track->last_ns);
	if (track->is_unsorted && fxt_order__restore(tree, &track->places))
		return -ENOMEM;
	/*
	 * A thread without by_ns was read as ALL_OF_IT, and caused all of the call. Other times are
	 * limited, too, since the file is not trusted: none can be longer than the call.
	 */
	VEC_EACH(&tree->done_by, by) {
		const struct call *call = &tree->calls.v[by->call];

		if (by->ns > call->end_ns - call->start_ns)
			by->ns = call->end_ns - call->start_ns;
	}
	if (!tree->calls.n)
		return 0;
	if (!trees->last_ns || tree->calls.v[0].start_ns < trees->first_ns)
		trees->first_ns = tree->calls.v[0].start_ns;
	if (track->last_ns > trees->last_ns)
		trees->last_ns = track->last_ns;
	return 0;
}

int fxt_trees__read(struct fxt_trees *trees, int fd, struct meter *meter)
{
	struct fxt_reader *reader = fxt_reader__open(fd);
	uint64_t n_unsorted = 0;
	struct fxt_read read;
	int err = 0;

	*trees = (struct fxt_trees){0};
	if (!reader)
		return -errno;
	fxt_reader__count(reader, meter);
	while (!err && (err = fxt_reader__next(reader, &read)) == 1)
		err = take(trees, &read);
	fxt_reader__free(reader);
	/* With millions of calls, putting them in order takes seconds. */
	for (size_t i = 0; i < trees->trees.n; i++)
		if (trees->tracks.v[i].is_unsorted)
			n_unsorted += trees->trees.v[i].calls.n;
	if (n_unsorted)
		meter__next(meter, &(struct meter_work){"putting in order", METER_CALLS, 0});
	meter__add(meter, n_unsorted);
	for (size_t i = 0; i < trees->trees.n; i++)
		if (finish_tree(trees, i))
			err = -ENOMEM;
	return err;
}

void fxt_trees__fini(struct fxt_trees *trees)
{
	VEC_FINI_EACH(&trees->trees, e, call_tree__fini(e));
	VEC_FINI_EACH(&trees->functions, e, free(*e));
	VEC_FINI_EACH(&trees->tracks, e, VEC_FINI(&e->places));
	VEC_FINI_EACH(&trees->texts, e, free(*e));
	VEC_FINI(&trees->hits);
	hash_index__fini(&trees->by_name);
}
