// SPDX-License-Identifier: MIT
/* The reason in a line or two: why the slow iteration was slow. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"
#include "util/units.h"
#include "util/vec.h"
#include "view/meanwhile.h"
#include "view/report_internal.h"
#include "util/names.h"

/*
 * Minor page faults are named if there are this many more than usual, in functions whose kernel
 * time they can explain half of, and if that time is half of the cause's.
 */
#define FAULTS_MANY 64
/* The longest time that a minor fault of 4 KiB is assumed to take. */
#define FAULT_MOST_NS 10000
/* A cause with at least 1/NAMED_SHARE of the excess is named. */
#define NAMED_SHARE 4
#define CAUSES_MAX  8

/* A part of the excess. */
struct cause {
	enum cause_kind kind;
	int64_t ns;
	uint32_t path;
	int64_t kernel_ns;     /* CAUSE_CPU: the kernel's part of the time */
	const struct row *row; /* its largest row; NULL: none */
};

static bool is_in_kernel(const struct cause *cause)
{
	return 2 * cause->kernel_ns > cause->ns;
}

/* True if this part of the cause's time is all of it but a tenth. */
static bool is_nearly_all(const struct cause *cause, int64_t ns)
{
	return ns >= cause->ns / 10 * 9;
}

struct causes {
	const struct report *r;
	int64_t least_ns; /* smallest cause that is named */
	struct cause v[CAUSES_MAX];
	size_t n;
};

/* Adds a cause; without room, it replaces the smallest cause if that is smaller. */
static void add(struct causes *c, const struct cause *cause)
{
	size_t least = 0;

	if (c->n < CAUSES_MAX) {
		c->v[c->n++] = *cause;
		return;
	}
	for (size_t i = 1; i < c->n; i++)
		if (c->v[i].ns < c->v[least].ns)
			least = i;
	if (c->v[least].ns < cause->ns)
		c->v[least] = *cause;
}

static int64_t extra_cpu(const struct report *r, uint32_t path)
{
	const struct path *p = &r->paths.v[path];

	return (int64_t)(p->slow_cpu_ns - report__mean(r, p->ordinary_cpu_ns));
}

static bool is_kernels(const struct call *call)
{
	return call->kind == CALL_IN_KERNEL || call->kind == CALL_SYSCALL;
}

/* The kernel's part of the path's excess. */
static int64_t extra_kernel(const struct report *r, uint32_t path)
{
	int64_t ns = is_kernels(r->paths.v[path].call) ? extra_cpu(r, path) : 0;

	/* A path comes after its caller's path. */
	for (uint32_t i = path + 1; i < r->paths.n; i++) {
		uint32_t caller = r->paths.v[i].parent;

		if (!is_kernels(r->paths.v[i].call) ||
		    (caller && is_kernels(r->paths.v[caller].call)))
			continue;
		while (caller > path)
			caller = r->paths.v[caller].parent;
		if (caller == path)
			ns += extra_cpu(r, i);
	}
	return ns;
}

/* A function whose callees may have the excess, and the excess left over from its callers. */
struct step {
	uint32_t path;
	int64_t left_ns;
};

struct steps {
	VEC(struct step) all;
};

/* Pushes the callees that are named separately; returns the sum of their excess. */
static int64_t push_callees(const struct causes *c, struct steps *steps, const struct step *step)
{
	int64_t left_ns = extra_cpu(c->r, step->path), named_ns = 0;
	size_t first = steps->all.n;

	for (uint32_t i = c->r->paths.v[step->path].first_child; i; i = c->r->paths.v[i].next) {
		int64_t ns = extra_cpu(c->r, i);
		struct step *out = ns > 0 && ns >= c->least_ns ? VEC_PUSH(&steps->all) : NULL;

		if (!out)
			continue;
		*out = (struct step){.path = i};
		named_ns += ns;
	}
	left_ns -= named_ns;
	/* Passes the rest on, unless it is large enough to be named itself. */
	left_ns = left_ns >= c->least_ns ? 0 : left_ns + step->left_ns;
	for (size_t i = first; i < steps->all.n; i++)
		steps->all.v[i].left_ns = left_ns;
	return named_ns;
}

/* The kernel's part of the path's excess, without the callees on top of `steps`. */
static int64_t kernel_without(const struct causes *c, const struct steps *steps, uint32_t path)
{
	int64_t kernel_ns = path ? extra_kernel(c->r, path) : 0;

	for (size_t i = steps->all.n; i-- > 0 && path;) {
		uint32_t callee = steps->all.v[i].path;

		if (c->r->paths.v[callee].parent != path)
			break;
		kernel_ns -= extra_kernel(c->r, callee);
	}
	return kernel_ns;
}

/* Finds the innermost functions with the excess; many small leaves count for their caller. */
static void add_cpu(struct causes *c)
{
	struct steps steps = {0};
	struct step *first = VEC_PUSH(&steps.all);

	if (first)
		*first = (struct step){0};
	while (steps.all.n) {
		struct step step = steps.all.v[--steps.all.n];
		int64_t all_ns = extra_cpu(c->r, step.path), named_ns;

		named_ns = push_callees(c, &steps, &step);
		if (named_ns && all_ns - named_ns < c->least_ns &&
		    all_ns - named_ns + step.left_ns >= c->least_ns) {
			/*
			 * Besides the callees, too much would stay unnamed: names this function,
			 * with its callees, instead.
			 */
			while (steps.all.n &&
			       c->r->paths.v[steps.all.v[steps.all.n - 1].path].parent == step.path)
				steps.all.n--;
			named_ns = 0;
		}
		if (all_ns - named_ns > 0 && all_ns - named_ns >= c->least_ns)
			add(c, &(struct cause){.kind = CAUSE_CPU,
					       .ns = all_ns - named_ns,
					       .kernel_ns = kernel_without(c, &steps, step.path),
					       .path = step.path});
	}
	VEC_FINI(&steps.all);
}

/*
 * Adds one cause for all rows of the kind, with the largest row. Only for CAUSE_BLOCKED, each row
 * that is large enough is a cause of its own instead.
 */
static void add_rows(struct causes *c, enum row_kind row_kind, enum cause_kind kind)
{
	struct cause all = {.kind = kind};
	bool is_named = false;

	VEC_EACH_WHILE(&c->r->rows, row, row->extra_ns > 0) {
		if (row->kind != row_kind)
			continue;
		all.ns += row->extra_ns;
		if (!all.row)
			all.row = row;
		if (kind == CAUSE_BLOCKED && row->extra_ns >= c->least_ns) {
			add(c, &(struct cause){.kind = kind, .ns = row->extra_ns, .row = row});
			is_named = true;
		}
	}
	if (!is_named && all.row)
		add(c, &all);
}

ORDER(by_size, struct cause, COMPARE(y->ns, x->ns))

/* Finds the causes to name; if none is large enough, the largest. */
static void find_causes(struct causes *c, const struct report *r)
{
	int64_t excess = (int64_t)report__slow_ns(r), unknown;
	size_t n = 1;

	for (int i = 0; i < ACCOUNT_PARTS; i++)
		excess -= r->periods.n > 1 ? (int64_t)r->ordinary.ns[i] : 0;
	*c = (struct causes){.r = r, .least_ns = excess / NAMED_SHARE};
	add_cpu(c);
	add_rows(c, ROW_BLOCKED, CAUSE_BLOCKED);
	add_rows(c, ROW_RECLAIM, CAUSE_RECLAIM);
	add_rows(c, ROW_INTERRUPTS, CAUSE_INTERRUPTS);
	add_rows(c, ROW_WAITING, CAUSE_WAITING);
	add_rows(c, ROW_THROTTLED, CAUSE_THROTTLED);
	add_rows(c, ROW_STOLEN, CAUSE_STOLEN);
	unknown = (int64_t)(r->slow.ns[ACCOUNT_UNKNOWN] - r->ordinary.ns[ACCOUNT_UNKNOWN]);
	if (unknown > 0)
		add(c, &(struct cause){.kind = CAUSE_UNKNOWN, .ns = unknown});
	if (c->n)
		qsort(c->v, c->n, sizeof(c->v[0]), by_size);
	while (n < c->n && c->v[n].ns >= c->least_ns)
		n++;
	if (c->n > n)
		c->n = n;
}

/*
 * Returns the row's path with the most time in the slow iteration: of those within
 * row->inside or, with `anywhere`, of all. 0: none.
 */
static uint32_t find_path(const struct report *r, const struct row *row, bool anywhere)
{
	uint32_t found = 0;

	for (uint32_t i = 1; i < r->paths.n; i++) {
		const struct path *path = &r->paths.v[i];
		uint32_t caller = path->parent;

		if (path->key != row->key)
			continue;
		while (caller && (!r->paths.v[caller].call->function ||
				  r->paths.v[caller].call->kind == CALL_IN_KERNEL))
			caller = r->paths.v[caller].parent;
		if (!anywhere && (!caller || r->paths.v[caller].key != row->inside))
			continue;
		if (!found || path->slow_ns > r->paths.v[found].slow_ns)
			found = i;
	}
	return found;
}

/* In a trace of every call: finds functions whose own code or system calls have the excess. */
static void find_traced_causes(struct causes *c, const struct report *r)
{
	int64_t excess = (int64_t)report__slow_ns(r);
	size_t shown = 0;

	if (r->periods.n > 1)
		excess -= (int64_t)r->ordinary_ns;
	*c = (struct causes){.r = r, .least_ns = excess / NAMED_SHARE};
	VEC_EACH_WHILE(&r->rows, row, row->extra_ns > 0) {
		if (shown++ && row->extra_ns < c->least_ns)
			break;
		add(c, &(struct cause){.kind = row->kind == ROW_CPU	 ? CAUSE_TRACED
					       : row->kind == ROW_KERNEL ? CAUSE_SYSCALL
									 : CAUSE_UNKNOWN,
				       .ns = row->extra_ns,
				       .path = find_path(r, row, true)});
	}
}

const struct cause_kind_words cause_kinds[CAUSE_KINDS] = {
	[CAUSE_CPU] = {"on_cpu", "on the CPU", "on the CPU, in "},
	[CAUSE_KERNEL] = {"kernel", "on the CPU in the kernel", "on the CPU, in the kernel, for "},
	[CAUSE_BLOCKED] = {"blocked", "blocked", "blocked in "},
	[CAUSE_RECLAIM] = {"reclaim", "memory reclaim", NULL},
	[CAUSE_INTERRUPTS] = {"interrupts", "interrupts and softirqs", NULL},
	[CAUSE_WAITING] = {"runnable", "ready to run, without a CPU", NULL},
	[CAUSE_THROTTLED] = {"throttled", "throttled", NULL},
	[CAUSE_STOLEN] = {"stolen", "stolen by the hypervisor", NULL},
	[CAUSE_TRACED] = {"user_code", "user code", "in "},
	[CAUSE_SYSCALL] = {"system_call", "system call", "a system call in "},
	[CAUSE_UNKNOWN] = {"not_recorded", "not recorded", NULL},
};

/* The innermost function at this time; NULL: not known. */
static const struct function *function_at(const struct call_tree *tree, uint64_t time_ns)
{
	size_t n = VEC_PARTITION_POINT(&tree->calls, call, call->start_ns <= time_ns);
	const struct call *call = n ? &tree->calls.v[n - 1] : NULL;

	while (call && (call->end_ns <= time_ns || !call->function || call->kind == CALL_IN_KERNEL))
		call = call->parent == CALL_NO_PARENT ? NULL : &tree->calls.v[call->parent];
	return call ? call->function : NULL;
}

uint64_t report__count_marks(const struct report *r, bool slow, enum mark_kind kind,
			     const struct function *function)
{
	uint64_t n = 0;
	size_t p = 0;

	/* Marks and periods ascend. */
	VEC_EACH(&r->tree->faults, mark) {
		while (p < r->periods.n && mark->time_ns >= r->periods.v[p].end_ns)
			p++;
		enum mark_kind of = mark->is_move    ? MARK_MOVE
				    : mark->is_major ? MARK_MAJOR_FAULT
						     : MARK_FAULT;

		if (p < r->periods.n && mark->time_ns >= r->periods.v[p].start_ns &&
		    (p + 1 == r->periods.n) == slow && of == kind &&
		    (!function ||
		     function == (mark->function ?: function_at(r->tree, mark->time_ns))))
			n += mark->n;
	}
	return n;
}

/* Page faults of one kind. */
struct faults {
	uint64_t slow, usual; /* numbers in the slow and in an ordinary iteration */
	int64_t most_ns;      /* minor faults: the kernel's time in the functions with them */
};

static bool are_many(const struct faults *faults, uint64_t many)
{
	return faults->slow >= faults->usual + many;
}

/* Prints "70 page faults (3 in an ordinary iteration)". */
static void print_faults(FILE *out, const struct report *r, const struct faults *faults,
			 const char *kind)
{
	fprintf(out, "%llu %s%s", (unsigned long long)faults->slow, kind,
		faults->slow == 1 ? "" : "s");
	if (r->periods.n > 1)
		fprintf(out, " (%llu in an ordinary iteration)", (unsigned long long)faults->usual);
}

/* The innermost user code of the path. */
static uint32_t user_part(const struct report *r, uint32_t path)
{
	while (path &&
	       (is_kernels(r->paths.v[path].call) || r->paths.v[path].call->kind == CALL_OFF_CPU))
		path = r->paths.v[path].parent;
	return path;
}

static void print_where(FILE *out, const struct report *r, uint32_t path,
			const struct function *function)
{
	path = user_part(r, path);
	if (path)
		report__print_path(out, r, 0, path);
	else
		fprintf(out, "%s",
			function ? SHORT_NAME(function->name) : "code that is not known");
}

/*
 * The outermost assist for Go's garbage collector between path `below` and `path`, its descendant;
 * 0 without an assist between them, or if `path` is not a descendant.
 */
static uint32_t find_assist(const struct report *r, uint32_t path, uint32_t below)
{
	static const char name[] = "runtime.gcAssistAlloc";
	uint32_t found = 0;

	for (; path > below; path = r->paths.v[path].parent) {
		const struct function *function = r->paths.v[path].call->function;

		if (function && !strncmp(function->name, name, strlen(name)))
			found = path;
	}
	return path == below ? found : 0;
}

/* True if `path`, or one between it and the cause's path, is a cause of its own. */
static bool is_anothers(const struct causes *c, const struct cause *cause, uint32_t path)
{
	for (; path > cause->path; path = c->r->paths.v[path].parent)
		for (size_t i = 0; i < c->n; i++)
			if (c->v[i].kind == CAUSE_CPU && c->v[i].path == path)
				return true;
	return false;
}

/* The kernel's part of the cause's time that one function called it for. */
static int64_t kernel_of(const struct causes *c, const struct cause *cause, const void *key)
{
	const struct path *paths = c->r->paths.v;
	int64_t ns = 0;

	for (uint32_t i = cause->path ?: 1; i < c->r->paths.n; i++) {
		uint32_t caller = paths[i].parent;

		/* A kernel path has the time of those below it. */
		if (!is_kernels(paths[i].call) || paths[user_part(c->r, i)].key != key ||
		    (caller && i > cause->path && is_kernels(paths[caller].call)) ||
		    is_anothers(c, cause, i))
			continue;
		caller = i;
		while (caller > cause->path)
			caller = paths[caller].parent;
		if (caller == cause->path)
			ns += extra_cpu(c->r, i);
	}
	return ns;
}

/* True if an earlier row of faults_of() is for the same function: `[syscall]` beside `[kernel]`. */
static bool is_repeated(const struct report *r, const struct row *row)
{
	for (const struct row *other = r->rows.v; other < row; other++)
		if (other->kind == ROW_KERNEL && other->inside == row->inside &&
		    other->key == other->name)
			return true;
	return false;
}

/*
 * The minor faults of the functions whose kernel time is part of the cause. System calls are not
 * told apart from faults within a function, but a function without more faults than usual is left
 * out.
 */
static struct faults faults_of(const struct causes *c, const struct cause *cause)
{
	struct faults all = {0};

	VEC_EACH(&c->r->rows, row) {
		uint64_t n, usual;
		int64_t ns;

		/* Rows of the kernel's own functions have these functions as keys. */
		if (row->kind != ROW_KERNEL || !row->inside || row->key != row->name ||
		    is_repeated(c->r, row))
			continue;
		ns = kernel_of(c, cause, row->inside);
		n = ns > 0 ? report__count_marks(c->r, true, MARK_FAULT, row->inside) : 0;
		if (!n)
			continue;
		usual = report__mean(c->r,
				     report__count_marks(c->r, false, MARK_FAULT, row->inside));
		if (n <= usual || (int64_t)(n - usual) * FAULT_MOST_NS < ns / 2)
			continue;
		all.slow += n;
		all.usual += usual;
		all.most_ns += ns;
	}
	return all;
}

/* A smaller part than 1/ASSIST_SHARE is not named. */
#define ASSIST_SHARE 10

/* Prints the part of the cause's time in which a goroutine worked for Go's garbage collector. */
static void print_assist(FILE *out, const struct causes *c, const struct cause *cause)
{
	const struct report *r = c->r;
	int64_t ns = 0;

	for (uint32_t i = cause->path + 1; i < r->paths.n; i++)
		if (find_assist(r, i, cause->path) == i && !is_anothers(c, cause, i))
			ns += extra_cpu(r, i);
	for (size_t i = 0; i < c->n; i++) {
		uint32_t assist =
			c->v[i].kind == CAUSE_CPU ? find_assist(r, c->v[i].path, cause->path) : 0;

		if (assist && !is_anothers(c, cause, assist))
			ns -= c->v[i].ns;
	}
	if (ns > 0 && ns >= cause->ns / ASSIST_SHARE)
		fprintf(out, " (%s of it in GC assist)", DURATION((uint64_t)ns));
}

/* The part of the cause in one function and in the kernel's code that it called. */
static int64_t extra_of(const struct causes *c, const struct cause *cause, const void *key)
{
	const struct report *r = c->r;
	int64_t ns = 0;

	for (uint32_t i = cause->path + 1; i < r->paths.n; i++) {
		uint32_t user = user_part(r, i), caller = i;

		while (caller > cause->path)
			caller = r->paths.v[caller].parent;
		if (caller != cause->path || user <= caller || r->paths.v[user].key != key ||
		    is_anothers(c, cause, i))
			continue;
		/* The path itself, without its callees. */
		ns += extra_cpu(r, i);
		for (uint32_t callee = r->paths.v[i].first_child; callee;
		     callee = r->paths.v[callee].next)
			ns -= extra_cpu(r, callee);
	}
	return ns;
}

/*
 * Prints which function below the path has most of the cause's time, if it has more than
 * 1/NAMED_SHARE of it.
 */
static void print_largest(FILE *out, const struct causes *c, const struct cause *cause)
{
	const struct report *r = c->r;
	const struct call *largest = NULL;
	int64_t most_ns = cause->ns / NAMED_SHARE;

	for (uint32_t i = cause->path + 1; i < r->paths.n; i++) {
		const struct path *path = &r->paths.v[i];
		int64_t ns = path->call->function && !is_kernels(path->call)
				     ? extra_of(c, cause, path->key)
				     : 0;

		if (ns <= most_ns)
			continue;
		most_ns = ns;
		largest = path->call;
	}
	if (largest)
		fprintf(out, ", %s of it in %s", DURATION((uint64_t)most_ns),
			SHORT_NAME(largest->function->name));
}

static void print_cpu(FILE *out, const struct causes *c, const struct cause *cause)
{
	const struct report *r = c->r;
	uint32_t user = user_part(r, cause->path);
	struct faults faults = is_in_kernel(cause) ? faults_of(c, cause) : (struct faults){0};
	bool by_faults = are_many(&faults, FAULTS_MANY) && faults.most_ns >= cause->ns / 2;

	if (by_faults && is_nearly_all(cause, faults.most_ns)) {
		print_faults(out, r, &faults, "page fault");
		fprintf(out, ", in ");
		print_where(out, r, cause->path, NULL);
		return;
	}
	if (cause->path) {
		fprintf(out, "on the CPU, %sin %s",
			is_in_kernel(cause) && !is_nearly_all(cause, cause->kernel_ns) ? "mostly "
										       : "",
			is_in_kernel(cause) ? "the kernel, for " : "");
		print_where(out, r, cause->path, NULL);
	} else {
		fprintf(out, "on the CPU, spread over many functions");
	}
	if (by_faults) {
		fprintf(out, ", at most %s of it in ", DURATION((uint64_t)faults.most_ns));
		print_faults(out, r, &faults, "page fault");
	}
	if (!user || r->paths.v[user].call->kind == CALL_NO_CALLERS)
		print_largest(out, c, cause);
	print_assist(out, c, cause);
}

/*
 * Only a row of goroutines has a wait here: a goroutine that is ready waits for a thread to run it.
 */
static void print_waiting(FILE *out, const struct row *row)
{
	bool has_names = row->off_cpu.names[0].by, has_wait = row->off_cpu.waits[0].wait;

	if (has_wait && !has_names) {
		fprintf(out, "ready to run, but no thread of Go's runtime ran it");
		return;
	}
	fprintf(out, "ready to run, but its CPU was taken%s",
		has_wait ? ", or no thread of Go's runtime ran it" : "");
	off_cpu__print(out, &row->off_cpu);
}

/*
 * Prints how much of the slow iteration the stacks cover, "stacks cover the last 500 ms of 1.62 s",
 * and the -snapshot-size that would cover all of it, judging by the stacks there are.
 */
static void print_unknown(FILE *out, const struct report *r)
{
	uint64_t all_ns = report__slow_ns(r), seen_ns = all_ns - r->slow.ns[ACCOUNT_UNKNOWN];
	uint64_t last_ns = report__slow(r)->end_ns - r->unseen_until_ns, bytes = r->ring_bytes;
	/* True if stacks are missing only at the begin, which the ring had lost. */
	bool is_last = r->unseen_until_ns && last_ns <= seen_ns &&
		       last_ns * 100 >= r->slow.ns[ACCOUNT_CPU] * 95;
	bool is_large;

	fprintf(out, "not recorded: ");
	if (r->slow.ns[ACCOUNT_UNKNOWN] && !r->slow.ns[ACCOUNT_CPU])
		fprintf(out, "no stack of this iteration was recorded");
	else if (r->slow.ns[ACCOUNT_UNKNOWN])
		fprintf(out, "stacks cover %s%s of %s", is_last ? "the last " : "",
			DURATION(is_last ? last_ns : seen_ns), DURATION(all_ns));
	if (!bytes || !seen_ns || all_ns / seen_ns > 4096 || !is_last)
		return;
	while (bytes / r->ring_bytes <= all_ns / seen_ns)
		bytes *= 2;
	is_large = bytes >= 1 << 20;
	fprintf(out, "; -snapshot-size %llu%c would cover all",
		(unsigned long long)(bytes >> (is_large ? 20 : 10)), is_large ? 'M' : 'K');
}

static void print_cause(FILE *out, const struct causes *c, const struct cause *cause)
{
	const struct report *r = c->r;
	char duration[UNITS_TEXT_SIZE];
	struct faults major = {0};

	switch (cause->kind) {
	case CAUSE_CPU:
		print_cpu(out, c, cause);
		break;
	case CAUSE_BLOCKED:
		major.slow = report__count_marks(r, true, MARK_MAJOR_FAULT, NULL);
		major.usual =
			report__mean(r, report__count_marks(r, false, MARK_MAJOR_FAULT, NULL));
		if (!off_cpu__wait(&cause->row->off_cpu) && are_many(&major, 1)) {
			print_faults(out, r, &major, "major page fault");
			fprintf(out, ", in ");
		} else {
			fprintf(out, "blocked in ");
		}
		print_where(out, r, find_path(r, cause->row, false), cause->row->inside);
		off_cpu__print_wait(out, &cause->row->off_cpu, cause->row->inside);
		off_cpu__print(out, &cause->row->off_cpu);
		break;
	case CAUSE_RECLAIM:
		fprintf(out, "memory reclaim");
		off_cpu__print_wait(out, &cause->row->off_cpu, NULL);
		fprintf(out, ", most of it in ");
		print_where(out, r, find_path(r, cause->row, false), cause->row->inside);
		break;
	case CAUSE_INTERRUPTS:
		fprintf(out, "its CPU ran interrupts and softirqs, most of that time during ");
		print_where(out, r, 0, cause->row->inside);
		break;
	case CAUSE_WAITING:
		print_waiting(out, cause->row);
		break;
	case CAUSE_THROTTLED:
		fprintf(out, "throttled");
		off_cpu__print_wait(out, &cause->row->off_cpu, NULL);
		break;
	case CAUSE_STOLEN:
		fprintf(out, "ready to run, but the hypervisor did not run its CPU");
		break;
	case CAUSE_TRACED:
	case CAUSE_SYSCALL:
		fprintf(out, "%sin ", cause->kind == CAUSE_SYSCALL ? "a system call " : "");
		print_where(out, r, cause->path, NULL);
		break;
	case CAUSE_UNKNOWN:
		print_unknown(out, r);
		break;
	case CAUSE_KERNEL:
	case CAUSE_KINDS:
		break;
	}
	units__format_duration(duration, (uint64_t)cause->ns);
	if (r->periods.n > 1)
		fprintf(out, "; %s more than usual", duration);
	else
		fprintf(out, "; %s of %s", duration, DURATION(report__slow_ns(r)));
}

/* Adds the path's functions to the reason, outermost first. */
static int add_path(struct reason *reason, const struct report *r, uint32_t path)
{
	uint32_t frames[REASON_PATH_MAX];
	size_t n = 0;
	int err = 0;

	for (; path && n < REASON_PATH_MAX; path = r->paths.v[path].parent)
		frames[n++] = path;
	while (n-- > 0 && !err) {
		const struct call *call = r->paths.v[frames[n]].call;

		err = VEC_ADD(&reason->path,
			      (struct reason_frame){call__name(call), call->kind == CALL_INLINED});
	}
	return err;
}

/* Sets reason->of: what it waited for, whose quota it was, or who took its CPU; or NULL. */
static int add_of(struct reason *reason, const struct row *row)
{
	const struct waits_for *wait = off_cpu__wait(&row->off_cpu);
	const struct done_by *by = off_cpu__most(&row->off_cpu);
	char text[WAITS_FOR_SIZE];

	if (wait)
		reason->of = strdup(waits_for__format(wait, text));
	else if (reason->kind == CAUSE_WAITING && by)
		reason->of = strdup(by->comm);
	else
		return 0;
	return reason->of ? 0 : -ENOMEM;
}

static int add_reason(struct reasons *reasons, const struct causes *c, const struct cause *cause)
{
	struct reason *reason = VEC_PUSH(&reasons->all);
	const struct row *row = cause->row;
	uint32_t path = cause->path;
	int err = 0;

	if (!reason)
		return -ENOMEM;
	*reason = (struct reason){.kind = cause->kind, .ns = (uint64_t)cause->ns};
	if (cause->kind == CAUSE_CPU && is_in_kernel(cause))
		reason->kind = CAUSE_KERNEL;
	reason->text = TEXT_OF(out, print_cause(out, c, cause));
	if (!reason->text)
		return -ENOMEM;
	if (cause->kind == CAUSE_BLOCKED)
		reason->meanwhile = meanwhile__format(c->r, row);
	/* A row's path is the one with the most time in the slow iteration. */
	if (row)
		path = cause->kind == CAUSE_WAITING ? 0 : find_path(c->r, row, false);
	else if (cause->kind == CAUSE_UNKNOWN)
		path = 0;
	path = user_part(c->r, path);
	if (path)
		err = add_path(reason, c->r, path);
	else if (row && row->inside && cause->kind != CAUSE_WAITING)
		err = VEC_ADD(&reason->path, (struct reason_frame){row->inside->name, false});
	return !err && row ? add_of(reason, row) : err;
}

int report__reasons(const struct report *r, struct reasons *reasons)
{
	struct causes causes;
	int err = 0;

	*reasons = (struct reasons){0};
	/* With a request's key, it is not known what the thread did for that request. */
	if (r->hit.since_tid || (r->ordinary_ns && report__slow_ns(r) <= r->ordinary_ns))
		return 0;
	if (r->sampled)
		find_causes(&causes, r);
	else
		find_traced_causes(&causes, r);
	for (size_t i = 0; i < causes.n && !err; i++)
		err = add_reason(reasons, &causes, &causes.v[i]);
	return err;
}

void reasons__fini(struct reasons *reasons)
{
	for (size_t i = 0; i < reasons->all.n; i++) {
		free(reasons->all.v[i].text);
		free(reasons->all.v[i].of);
		free(reasons->all.v[i].meanwhile);
		VEC_FINI(&reasons->all.v[i].path);
	}
	VEC_FINI(&reasons->all);
}
