// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/units.h"
#include "view/report_internal.h"
#include "util/names.h"

/* Paths with less than 1/SHOWN_SHARE of the slow iteration are not shown. */
#define SHOWN_SHARE 10
/* A function with nearly all of its caller's time is printed on its caller's line. */
#define CHAIN_PERCENT 95
#define LINES_MAX     12
/* Most names per line; the innermost are kept. */
#define NAMES_MAX 6

static const void *key_of(const struct call *call)
{
	return call->function ? (const void *)call->function : call__name(call);
}

/* Finds or adds the path of a call below its caller's; 0: out of memory. */
static uint32_t add_path(struct report *r, uint32_t parent, const struct call *call)
{
	const void *key = key_of(call);
	uint32_t *link = &r->paths.v[parent].first_child, index;
	struct path *path;

	while (*link && r->paths.v[*link].key != key)
		link = &r->paths.v[*link].next;
	index = *link;
	/*
	 * Moves the path to the front of its list, since the calls of a loop look up the same few
	 * paths again and again.
	 */
	if (index) {
		*link = r->paths.v[index].next;
		r->paths.v[index].next = r->paths.v[parent].first_child;
		r->paths.v[parent].first_child = index;
		return index;
	}
	index = (uint32_t)r->paths.n;
	path = VEC_PUSH(&r->paths);
	if (!path) {
		r->failed = true;
		return 0;
	}
	*path = (struct path){
		.key = key, .call = call, .parent = parent, .next = r->paths.v[parent].first_child};
	r->paths.v[parent].first_child = index;
	return index;
}

void report__print_path(FILE *out, const struct report *r, uint32_t first, uint32_t last)
{
	uint32_t chain[NAMES_MAX];
	size_t n = 0;

	for (uint32_t i = last; i && n < NAMES_MAX; i = i == first ? 0 : r->paths.v[i].parent)
		chain[n++] = i;
	if (first && chain[n - 1] != first)
		fprintf(out, "... > ");
	while (n-- > 0)
		fprintf(out, "%s%s", SHORT_NAME(call__name(r->paths.v[chain[n]].call)),
			n ? " > " : "");
}

/* The next child by size after `last`; of the same size, by index; 0: none. */
static uint32_t next_child(const struct report *r, uint32_t parent, uint32_t last)
{
	const struct path *paths = r->paths.v;
	uint32_t found = 0;

	for (uint32_t i = paths[parent].first_child; i; i = paths[i].next) {
		bool is_behind = !last || paths[i].slow_ns < paths[last].slow_ns ||
				 (paths[i].slow_ns == paths[last].slow_ns && i > last);

		if (is_behind && (!found || paths[i].slow_ns > paths[found].slow_ns ||
				  (paths[i].slow_ns == paths[found].slow_ns && i < found)))
			found = i;
	}
	return found;
}

static bool is_shown(const struct report *r, uint32_t path)
{
	return path && r->paths.v[path].slow_ns >= report__slow_ns(r) / SHOWN_SHARE;
}

void report__print_paths(FILE *out, const struct report *r)
{
	/*
	 * The lines whose callees are still to be printed: the last path of each, and the callee of
	 * it that was printed last.
	 */
	struct {
		uint32_t end, shown;
	} open[LINES_MAX + 1] = {{0, 0}};
	uint32_t n = 1;

	if (!is_shown(r, next_child(r, 0, 0)))
		return;
	fprintf(out, "  %10s ", "inclusive");
	if (r->periods.n > 1)
		fprintf(out, "%10s ", "ordinary");
	fprintf(out, " path\n");
	for (int lines = 0; n && lines < LINES_MAX;) {
		uint32_t child = next_child(r, open[n - 1].end, open[n - 1].shown), end;

		if (!is_shown(r, child)) {
			n--;
			continue;
		}
		open[n - 1].shown = child;
		/* Follow the largest child while it has nearly all of the path's time. */
		end = child;
		for (uint32_t next = child; next && r->paths.v[next].slow_ns * 100 >=
							    r->paths.v[end].slow_ns * CHAIN_PERCENT;
		     next = next_child(r, end, 0))
			end = next;
		fprintf(out, "  %10s ", DURATION(r->paths.v[child].slow_ns));
		if (r->periods.n > 1)
			fprintf(out, "%10s ",
				DURATION(report__mean(r, r->paths.v[child].ordinary_ns)));
		fprintf(out, " %*s", (int)(2 * (n - 1)), "");
		report__print_path(out, r, child, end);
		fputc('\n', out);
		lines++;
		open[n].end = end;
		open[n++].shown = 0;
	}
}

static bool is_slow(const struct report *r, size_t period)
{
	return period + 1 == r->periods.n;
}

/*
 * The function in which the thread was off the CPU or in the kernel. NULL for time in functions.
 * System calls count only with samples: a full trace has rows for them.
 */
static const struct function *inside_of(const struct report *r, const struct call *call)
{
	bool is_outside = call->kind == CALL_OFF_CPU || call->kind == CALL_IN_KERNEL ||
			  call->kind == CALL_NOT_RECORDED || call->kind == CALL_NO_CALLERS ||
			  (call->kind == CALL_SYSCALL && call->flags & CALL_SAMPLED);
	uint32_t parent = call->parent;

	while (parent != CALL_NO_PARENT && (!r->tree->calls.v[parent].function ||
					    r->tree->calls.v[parent].kind == CALL_IN_KERNEL))
		parent = r->tree->calls.v[parent].parent;
	return !is_outside || parent == CALL_NO_PARENT ? NULL : r->tree->calls.v[parent].function;
}

enum account_part report__part_of(const struct report *r, const struct call *call)
{
	static const enum account_part off_parts[] = {
		[OFF_BLOCKED] = ACCOUNT_BLOCKED,   [OFF_PREEMPTED] = ACCOUNT_PREEMPTED,
		[OFF_RUNNABLE] = ACCOUNT_RUNNABLE, [OFF_THROTTLED] = ACCOUNT_THROTTLED,
		[OFF_STOLEN] = ACCOUNT_STOLEN,
	};

	if (call->kind == CALL_OFF_CPU)
		return call->reason < sizeof(off_parts) / sizeof(off_parts[0])
			       ? off_parts[call->reason]
			       : ACCOUNT_UNKNOWN;
	if (call->kind == CALL_GAP || call->kind == CALL_NOT_RECORDED ||
	    call->kind == CALL_NO_CALLERS)
		return ACCOUNT_UNKNOWN;
	if (!r->sampled && (call->kind == CALL_SYSCALL || call->kind == CALL_UNTRACED))
		return ACCOUNT_SYSCALL;
	return ACCOUNT_CPU;
}

static const struct call *reclaim_of(const struct report *r, const struct call *call)
{
	enum account_part part = report__part_of(r, call);

	return r->sampled && (part == ACCOUNT_CPU || part == ACCOUNT_BLOCKED)
		       ? call_tree__reclaim(r->tree, call)
		       : NULL;
}

static enum row_kind kind_of(const struct call *call)
{
	if (call->kind == CALL_SYSCALL && call->reason == SYSCALL_RECLAIM)
		return ROW_RECLAIM;
	if (call->kind == CALL_OFF_CPU)
		return call->reason == OFF_BLOCKED     ? ROW_BLOCKED
		       : call->reason == OFF_THROTTLED ? ROW_THROTTLED
		       : call->reason == OFF_STOLEN    ? ROW_STOLEN
						       : ROW_WAITING;
	if (call->kind == CALL_IN_KERNEL || call->kind == CALL_SYSCALL)
		return ROW_KERNEL;
	return call->function ? ROW_CPU : ROW_OTHER;
}

/* Finds the row with the same key and `inside`, or adds a copy of `like`. */
static struct row *find(struct report *r, const struct row *like)
{
	uint64_t hash = hash__mix(hash__mix(0, (uintptr_t)like->key), (uintptr_t)like->inside);
	uint32_t number = HASH_FIND(&r->by_key, hash, i,
				    r->rows.v[i - 1].key == like->key &&
					    r->rows.v[i - 1].inside == like->inside);
	struct row *row;

	if (number)
		return &r->rows.v[number - 1];
	row = VEC_PUSH(&r->rows);
	if (!row || hash_index__add(&r->by_key, hash, (uint32_t)r->rows.n)) {
		r->failed = true;
		return NULL;
	}
	*row = *like;
	return row;
}

static struct row *find_row(struct report *r, const struct call *call)
{
	call = reclaim_of(r, call) ?: call;
	return find(r, &(struct row){.key = key_of(call),
				     .name = call__name(call),
				     .kind = kind_of(call),
				     .suffix = call->kind == CALL_INLINED ? " [inlined]" : "",
				     .inside = inside_of(r, call)});
}

/*
 * Adds time to the call's path in the iteration; a call from before the iteration is at the root.
 * Interrupts (`taken`) do not count as its time on the CPU.
 */
static void spend_path(struct report *r, const struct call *call, const struct period *p,
		       uint64_t ns, uint64_t taken, bool slow)
{
	/* add_path() may move the paths. */
	uint32_t at =
		call->start_ns < p->start_ns ? add_path(r, 0, call) : r->path_at.v[call->depth];
	struct path *path = &r->paths.v[at];

	*(slow ? &path->slow_ns : &path->ordinary_ns) += ns;
	if (report__part_of(r, call) == ACCOUNT_CPU && !reclaim_of(r, call))
		*(slow ? &path->slow_cpu_ns : &path->ordinary_cpu_ns) += ns - taken;
}

/* Total time of interrupts up to time_ns. Sweeps go forward in time, so the sum is exact. */
static uint64_t interrupts_until(struct report *r, uint64_t time_ns)
{
	const struct interrupts_mark *marks = r->tree->interrupts.v;

	for (; r->interrupts < r->tree->interrupts.n && marks[r->interrupts].end_ns <= time_ns;
	     r->interrupts++)
		r->interrupts_ns += marks[r->interrupts].ns;
	return r->interrupts < r->tree->interrupts.n
		       ? r->interrupts_ns + interrupts_mark__until(&marks[r->interrupts], time_ns)
		       : r->interrupts_ns;
}

static void spend_row(struct report *r, struct row *row, enum account_part part, uint64_t ns,
		      bool slow)
{
	*(slow ? &row->slow_ns : &row->ordinary_ns) += ns;
	(slow ? &r->slow : &r->ordinary)->ns[part] += ns;
}

/*
 * Adds and returns the time that interrupts took from the call in [start, end) on a CPU. It counts
 * in a row of interrupts in this function or, if the call is kernel code, in the function that
 * called the kernel.
 */
static uint64_t spend_interrupts(struct report *r, const struct call *call, uint64_t start,
				 uint64_t end, bool slow)
{
	static const char name[] = "[interrupts]";
	bool is_its = call->function && call->kind != CALL_IN_KERNEL;
	uint64_t before = interrupts_until(r, start), ns = interrupts_until(r, end) - before;
	struct row *row;

	if (!ns)
		return 0;
	row = find(r, &(struct row){.key = name,
				    .name = name,
				    .kind = ROW_INTERRUPTS,
				    .suffix = "",
				    .inside = is_its ? call->function : inside_of(r, call)});
	if (!row)
		return 0;
	spend_row(r, row, ACCOUNT_INTERRUPTS, ns, slow);
	if (slow)
		row->inclusive_ns += ns;
	return ns;
}

/* Adds [from, to) as the call's self time. Sweeps go forward in time. */
static void spend(struct report *r, const struct call *call, uint64_t from, uint64_t to)
{
	const struct call *reclaim = reclaim_of(r, call);
	enum account_part part = report__part_of(r, call);
	enum account_part of = !reclaim		     ? part
			       : part == ACCOUNT_CPU ? ACCOUNT_RECLAIM_CPU
						     : ACCOUNT_RECLAIM_BLOCKED;

	while (from < to && r->period < r->periods.n) {
		const struct period *p = &r->periods.v[r->period];
		uint64_t start = from > p->start_ns ? from : p->start_ns;
		uint64_t end = to < p->end_ns ? to : p->end_ns;
		bool slow = is_slow(r, r->period);
		uint64_t taken = start < end && part == ACCOUNT_CPU
					 ? spend_interrupts(r, call, start, end, slow)
					 : 0;
		struct row *row;

		if (start < end && (row = find_row(r, call))) {
			spend_path(r, call, p, end - start, taken, slow);
			spend_row(r, row, of, end - start - taken, slow);
			if (slow)
				off_cpu__add(&row->off_cpu, r->tree, reclaim ? reclaim : call,
					     end - start);
			if (slow && part == ACCOUNT_UNKNOWN)
				r->unseen_until_ns = end;
		}
		if (to < p->end_ns)
			return;
		from = p->end_ns > from ? p->end_ns : from;
		r->period++;
	}
}

/* Counts the call in the iteration in which it begins, and sets its path there. */
static void open_call(struct report *r, const struct call *call)
{
	const struct call *parent =
		call->parent == CALL_NO_PARENT ? NULL : &r->tree->calls.v[call->parent];
	size_t i = r->period;
	struct row *row;
	uint32_t *place;

	r->path_at.n = call->depth;
	place = VEC_PUSH(&r->path_at);
	if (!place) {
		r->failed = true;
		return;
	}
	*place = 0;
	while (i < r->periods.n && r->periods.v[i].end_ns <= call->start_ns)
		i++;
	if (i < r->periods.n && call->start_ns >= r->periods.v[i].start_ns) {
		bool is_under_parent = parent && parent->start_ns >= r->periods.v[i].start_ns;

		row = call->flags & CALL_INFERRED_START ? NULL : find_row(r, call);
		if (row && is_slow(r, i))
			row->slow_calls++;
		else if (row)
			row->ordinary_calls++;
		*place = add_path(r, is_under_parent ? r->path_at.v[parent->depth] : 0, call);
	}
	/* Inclusive time counts for the outermost activation of a function. */
	row = call->end_ns > report__slow(r)->start_ns ? find_row(r, call) : NULL;
	if (row)
		row->n_open++;
}

static void close_call(struct report *r, const struct call *call)
{
	const struct period *slow = report__slow(r);
	struct row *row = call->end_ns > slow->start_ns ? find_row(r, call) : NULL;
	uint64_t from = call->start_ns > slow->start_ns ? call->start_ns : slow->start_ns;
	uint64_t to = call->end_ns < slow->end_ns ? call->end_ns : slow->end_ns;

	if (row && !--row->n_open && from < to)
		row->inclusive_ns += to - from;
}

/* One pass over the calls, which are in pre-order; open calls are found through their parents. */
static void sweep(struct report *r)
{
	const struct call *calls = r->tree->calls.v;
	uint32_t open = CALL_NO_PARENT;
	uint64_t now = 0;

	for (size_t i = 0; i <= r->tree->calls.n; i++) {
		uint32_t parent = i < r->tree->calls.n ? calls[i].parent : CALL_NO_PARENT;

		for (; open != CALL_NO_PARENT && open != parent; open = calls[open].parent) {
			spend(r, &calls[open], now, calls[open].end_ns);
			now = calls[open].end_ns;
			close_call(r, &calls[open]);
		}
		if (i == r->tree->calls.n || r->failed)
			return;
		if (open != CALL_NO_PARENT)
			spend(r, &calls[open], now, calls[i].start_ns);
		now = calls[i].start_ns;
		open_call(r, &calls[i]);
		open = (uint32_t)i;
	}
}

ORDER(by_excess, struct row,
      COMPARE(y->extra_ns, x->extra_ns)
	      ?: strcmp(x->name, y->name)
	      ?: strcmp(x->suffix, y->suffix))

uint64_t report__mean(const struct report *r, uint64_t sum)
{
	return r->periods.n > 1 ? sum / (r->periods.n - 1) : 0;
}

/* Time outside of all calls is ACCOUNT_UNKNOWN, so that the account adds up. */
static void settle(struct account *account, uint64_t ns)
{
	for (int i = 0; i < ACCOUNT_PARTS; i++)
		ns -= account->ns[i];
	account->ns[ACCOUNT_UNKNOWN] += ns;
}

static void settle_accounts(struct report *r)
{
	struct account *account = &r->ordinary;
	uint64_t sum = 0, rest;
	int largest = 0;

	settle(&r->slow, report__slow_ns(r));
	for (size_t i = 0; i + 1 < r->periods.n; i++)
		sum += r->periods.v[i].end_ns - r->periods.v[i].start_ns;
	settle(account, sum);
	/* The means add up to the mean length: the largest part gets the rounding error. */
	rest = report__mean(r, sum);
	for (int i = 0; i < ACCOUNT_PARTS; i++) {
		account->ns[i] = report__mean(r, account->ns[i]);
		rest -= account->ns[i];
		if (account->ns[i] > account->ns[largest])
			largest = i;
	}
	account->ns[largest] += rest;
}

int report__fill_rows(struct report *r)
{
	if (VEC_ADD(&r->paths, (struct path){0}))
		return -ENOMEM;
	sweep(r);
	if (r->failed)
		return -ENOMEM;
	VEC_EACH(&r->rows, row)
		row->extra_ns = (int64_t)(row->slow_ns - report__mean(r, row->ordinary_ns));
	VEC_SORT(&r->rows, by_excess);
	/* Self times become inclusive times. A path comes after its caller's. */
	for (size_t i = r->paths.n; i-- > 1;) {
		const struct path *path = &r->paths.v[i];
		struct path *parent = &r->paths.v[path->parent];

		parent->slow_ns += path->slow_ns;
		parent->ordinary_ns += path->ordinary_ns;
		parent->slow_cpu_ns += path->slow_cpu_ns;
		parent->ordinary_cpu_ns += path->ordinary_cpu_ns;
	}
	settle_accounts(r);
	return 0;
}

bool report__counts(const struct report *r, enum account_part part)
{
	switch (part) {
	case ACCOUNT_INTERRUPTS:
		return r->hit.counted & COUNTED_INTERRUPTS;
	case ACCOUNT_THROTTLED:
		return r->hit.counted & COUNTED_THROTTLED;
	case ACCOUNT_STOLEN:
		return r->hit.counted & COUNTED_STOLEN;
	case ACCOUNT_SYSCALL:
		return !r->sampled;
	/* Not every kernel reports all reclaim. */
	case ACCOUNT_RECLAIM_CPU:
	case ACCOUNT_RECLAIM_BLOCKED:
		return false;
	case ACCOUNT_BLOCKED:
	case ACCOUNT_RUNNABLE:
	case ACCOUNT_PREEMPTED:
		return r->sampled;
	default:
		return true;
	}
}

const struct account_part_words account_parts[ACCOUNT_PARTS] = {
	[ACCOUNT_CPU] = {"on CPU", "on_cpu_ns", 'C'},
	[ACCOUNT_INTERRUPTS] = {"interrupts", "interrupts_ns", 'I'},
	[ACCOUNT_RECLAIM_CPU] = {"reclaim on CPU", "reclaim_on_cpu_ns", 'r'},
	[ACCOUNT_RECLAIM_BLOCKED] = {"reclaim blocked", "reclaim_blocked_ns", 'R'},
	[ACCOUNT_BLOCKED] = {"blocked", "blocked_ns", 'B'},
	[ACCOUNT_RUNNABLE] = {"runnable", "runnable_ns", 'w'},
	[ACCOUNT_PREEMPTED] = {"preempted", "preempted_ns", 'P'},
	[ACCOUNT_THROTTLED] = {"throttled", "throttled_ns", 'T'},
	[ACCOUNT_STOLEN] = {"stolen", "stolen_ns", 'S'},
	[ACCOUNT_SYSCALL] = {"system calls", "syscalls_ns", 'Y'},
	[ACCOUNT_UNKNOWN] = {"not recorded", "not_recorded_ns", '.'},
};
