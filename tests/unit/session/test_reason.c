// SPDX-License-Identifier: MIT
/* The report's line on why the slow iteration was slow, word for word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "mtbpf_shared.h"
#include "stack/stack.h"
#include "view/report.h"

#define MS 1000000ull

static const struct function program = {.name = "main"}, iter = {.name = "iter"},
			     work = {.name = "work"}, deep = {.name = "deep"},
			     sleeps = {.name = "clock_nanosleep"},
			     assist = {.name = "runtime.gcAssistAlloc.func1"},
			     assist_1 = {.name = "runtime.gcAssistAlloc1"};

struct fixture {
	struct call_tree tree, other; /* of the thread that triggered, and of another one */
	struct hit_mark hit;
	size_t ring_bytes;
};

static struct call *add(struct fixture *f, uint32_t depth, uint64_t start_ns, uint64_t end_ns,
			const struct function *function)
{
	struct call *call = VEC_PUSH(&f->tree.calls);

	assert_non_null(call);
	*call = (struct call){.start_ns = start_ns,
			      .end_ns = end_ns,
			      .function = function,
			      .parent = CALL_NO_PARENT,
			      .depth = depth,
			      .flags = CALL_SAMPLED};
	for (uint32_t i = 0; i + 1 < f->tree.calls.n; i++)
		if (f->tree.calls.v[i].depth + 1 == depth)
			call->parent = i;
	return call;
}

/* main, two quick calls of iter, and one from 10 to 50 ms, whose insides the test adds. */
static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->tree.tid = 43;
	f->hit = (struct hit_mark){
		.reason = MT_HIT_DURATION, .tid = 43, .function = &iter, .time_ns = 50 * MS};
	add(f, 0, 0, 50 * MS, &program)->flags |= CALL_INFERRED_START;
	add(f, 1, 1 * MS, 2 * MS, &iter);
	add(f, 1, 3 * MS, 4 * MS, &iter);
	add(f, 1, 10 * MS, 50 * MS, &iter);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	call_tree__fini(&f->tree);
	call_tree__fini(&f->other);
	free(f);
	return 0;
}

/* NULL: there is no such line. */
static void assert_reason_of(struct fixture *f, bool sampled, const char *expected)
{
	char *text = NULL, *line;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	const struct call_tree trees[] = {f->other, f->tree};
	struct report *report = report__new(&(struct report_input){.trees = trees,
								   .n_trees = 2,
								   .hit = &f->hit,
								   .sampled = sampled,
								   .ring_bytes = f->ring_bytes});

	assert_non_null(report);
	report__print(out, report, 10);
	report__free(report);
	fclose(out);
	line = strstr(text, "reason: ");
	if (expected)
		assert_string_equal(line ? line : text, expected);
	else
		assert_null(line);
	free(text);
}

static void assert_reason(struct fixture *f, const char *expected)
{
	assert_reason_of(f, true, expected);
}

static void add_off(struct fixture *f, uint32_t depth, uint64_t start_ns, uint64_t end_ns,
		    enum off_reason reason)
{
	struct call *call = add(f, depth, start_ns, end_ns, NULL);

	call->kind = CALL_OFF_CPU;
	call->reason = reason;
}

static void add_by(struct fixture *f, pid_t tid, const char *comm)
{
	struct done_by *by = VEC_PUSH(&f->tree.done_by);

	*by = (struct done_by){.call = (uint32_t)f->tree.calls.n - 1, .tid = tid, .ns = 20 * MS};
	strcpy(by->comm, comm);
}

static void add_wait(struct fixture *f, struct waits_for wait)
{
	wait.call = (uint32_t)f->tree.calls.n - 1;
	*VEC_PUSH(&f->tree.waits) = wait;
}

static void add_faults(struct fixture *f, uint64_t time_ns, uint32_t n, bool is_major)
{
	*VEC_PUSH(&f->tree.faults) =
		(struct fault_mark){.time_ns = time_ns, .n = n, .is_major = is_major};
}

static void test_a_path_on_the_cpu(void **state)
{
	struct fixture *f = *state;

	add(f, 2, 11 * MS, 41 * MS, &work);
	add(f, 3, 12 * MS, 40 * MS, &deep);
	assert_reason(f, "reason: on the CPU, in iter > work; 30.0 ms more than usual\n");
}

/* In pieces too small to be named, and together a third. */
static void test_a_goroutine_that_works_for_the_collector(void **state)
{
	struct fixture *f = *state;

	for (uint64_t i = 0; i < 6; i++) {
		add(f, 2, (11 + 5 * i) * MS, (15 + 5 * i) * MS, i & 1 ? &work : &deep);
		if (i < 4)
			add(f, 3, (11 + 5 * i) * MS, (13 + 5 * i) * MS, &assist);
		if (i < 4)
			add(f, 4, (11 + 5 * i) * MS, (12 + 5 * i) * MS, &assist_1);
	}
	assert_reason(f, "reason: on the CPU, in iter; 15.0 ms more than usual\n"
			 "   and: on the CPU, in iter > deep (4.00 ms of it in GC assist); 12.0 ms "
			 "more than usual\n"
			 "   and: on the CPU, in iter > work (4.00 ms of it in GC assist); 12.0 ms "
			 "more than usual\n");
}

/* What is named by itself is no part of its caller's. */
static void test_an_assist_that_is_named(void **state)
{
	struct fixture *f = *state;

	add(f, 2, 11 * MS, 48 * MS, &work);
	add(f, 3, 12 * MS, 30 * MS, &assist);
	assert_reason(f,
		      "reason: on the CPU, in iter > work; 19.0 ms more than usual\n"
		      "   and: on the CPU, in iter > work > runtime.gcAssistAlloc.func1; 18.0 ms "
		      "more than usual\n");
}

#define HELD                                                                                       \
	"reason: blocked in iter > work: futex held by holder (7), woken by holder (7); 29.0 ms "  \
	"more than usual\n"
#define AND "   and: on the CPU, in iter; 10.0 ms more than usual\n"

/* Waits from 12 to 40 ms for thread 7, whose calls are added next. */
static void wait_for_other(struct fixture *f)
{
	struct call_tree waiting;

	add(f, 2, 11 * MS, 41 * MS, &work);
	add_off(f, 3, 12 * MS, 40 * MS, OFF_BLOCKED);
	add_wait(f, (struct waits_for){
			    .syscall = SYS_futex, .fd = -1, .owner = 7, .owner_comm = "holder"});
	add_by(f, 7, "holder");
	/* Somebody else ended this one. */
	add_off(f, 3, 40 * MS, 41 * MS, OFF_BLOCKED);
	add_by(f, 8, "other");
	f->tree.done_by.v[f->tree.done_by.n - 1].ns = MS;
	waiting = f->tree;
	f->tree = f->other;
	f->other = waiting;
	f->tree.tid = 7;
	add(f, 0, 0, 60 * MS, &program);
}

static void assert_meanwhile(struct fixture *f, const char *expected)
{
	struct call_tree other = f->tree;

	f->tree = f->other;
	f->other = other;
	assert_reason(f, expected);
}

static void test_who_is_waited_for_has_no_cpu(void **state)
{
	struct fixture *f = *state;

	wait_for_other(f);
	add(f, 1, 5 * MS, 45 * MS, &work);
	/* Only what is in the wait counts. */
	add_off(f, 2, 6 * MS, 16 * MS, OFF_PREEMPTED);
	add_by(f, 9, "hog");
	add_off(f, 2, 18 * MS, 39 * MS, OFF_RUNNABLE);
	add_by(f, 9, "hog");
	add_off(f, 2, 41 * MS, 44 * MS, OFF_BLOCKED);
	assert_meanwhile(f, HELD " while: holder (7) was ready to run, but its CPU was taken, by "
				 "hog (9); 25.0 ms of 28.0 ms\n" AND);
}

static void test_who_is_waited_for_waits(void **state)
{
	struct fixture *f = *state;

	wait_for_other(f);
	add(f, 1, 5 * MS, 45 * MS, &work);
	add(f, 2, 10 * MS, 39 * MS, &deep);
	add_off(f, 3, 11 * MS, 38 * MS, OFF_BLOCKED);
	add_wait(f, (struct waits_for){.syscall = SYS_fsync, .fd = 4, .file = "/db/log"});
	add_by(f, 12, "disk");
	assert_meanwhile(f, HELD " while: holder (7) was blocked in deep: fsync of /db/log (fd 4), "
				 "woken by disk (12); 26.0 ms of 28.0 ms\n" AND);
}

static void test_who_is_waited_for_works(void **state)
{
	struct fixture *f = *state;

	wait_for_other(f);
	add(f, 1, 5 * MS, 45 * MS, &work);
	add(f, 2, 11 * MS, 39 * MS, &deep);
	add(f, 3, 12 * MS, 20 * MS, &sleeps);
	add_off(f, 4, 13 * MS, 15 * MS, OFF_BLOCKED);
	assert_meanwhile(f, HELD
			 " while: holder (7) was on the CPU, in deep; 26.0 ms of 28.0 ms\n" AND);
}

/* The thread of the trace ended the short wait only; one of the same name ended the other. */
static void test_two_of_one_name_are_waited_for(void **state)
{
	struct fixture *f = *state;
	struct call_tree waiting;

	add(f, 2, 11 * MS, 41 * MS, &work);
	add_off(f, 3, 11 * MS, 12 * MS, OFF_BLOCKED);
	add_by(f, 7, "holder");
	f->tree.done_by.v[f->tree.done_by.n - 1].ns = MS;
	add_off(f, 3, 12 * MS, 40 * MS, OFF_BLOCKED);
	add_by(f, 13, "holder");
	waiting = f->tree;
	f->tree = f->other;
	f->other = waiting;
	f->tree.tid = 7;
	add(f, 0, 0, 60 * MS, &program);
	add(f, 1, 5 * MS, 45 * MS, &work);
	assert_meanwhile(f, "reason: blocked in iter > work, woken by holder (13); 29.0 ms more "
			    "than usual\n" AND);
}

static void test_what_is_not_known_of_who_is_waited_for(void **state)
{
	struct fixture *f = *state;

	wait_for_other(f);
	add(f, 1, 5 * MS, 45 * MS, NULL)->kind = CALL_NOT_RECORDED;
	add_off(f, 2, 14 * MS, 27 * MS, OFF_BLOCKED);
	f->tree.calls.v[0].kind = CALL_NOT_RECORDED;
	assert_meanwhile(f, HELD AND);
}

static void test_a_mutex_that_somebody_has(void **state)
{
	struct fixture *f = *state;

	add(f, 2, 11 * MS, 41 * MS, &work);
	add_off(f, 3, 12 * MS, 40 * MS, OFF_BLOCKED);
	add_wait(f, (struct waits_for){
			    .syscall = SYS_futex, .fd = -1, .owner = 7, .owner_comm = "holder"});
	add_by(f, 7, "holder");
	assert_reason(f, "reason: blocked in iter > work: futex held by holder (7), woken by "
			 "holder (7); 28.0 ms more than usual\n"
			 "   and: on the CPU, in iter; 11.0 ms more than usual\n");
}

static void add_goroutine(struct fixture *f, const char *comm, const char *in)
{
	add_by(f, 7, comm);
	f->tree.done_by.v[f->tree.done_by.n - 1].is_goroutine = true;
	f->tree.done_by.v[f->tree.done_by.n - 1].in = in;
}

static void test_a_goroutine_that_waits(void **state)
{
	struct fixture *f = *state;

	add_off(f, 2, 12 * MS, 31 * MS, OFF_BLOCKED);
	add_wait(f, (struct waits_for){.fd = -1, .text = "sync.Mutex.Lock"});
	add_goroutine(f, "goroutine 18", "main.holder");
	add_off(f, 2, 31 * MS, 41 * MS, OFF_RUNNABLE);
	add_wait(f, (struct waits_for){.fd = -1, .text = "a thread of Go's runtime"});
	assert_reason(f, "reason: blocked in iter: sync.Mutex.Lock, made ready by goroutine 18 in "
			 "main.holder; 19.0 ms more than usual\n"
			 "   and: on the CPU, in iter; 10.0 ms more than usual\n"
			 "   and: ready to run, but no thread of Go's runtime ran it; 10.0 ms more "
			 "than usual\n");
	f->tree.done_by.v[0].in = NULL;
	assert_reason(f,
		      "reason: blocked in iter: sync.Mutex.Lock, made ready by goroutine 18; 19.0 "
		      "ms more than usual\n"
		      "   and: on the CPU, in iter; 10.0 ms more than usual\n"
		      "   and: ready to run, but no thread of Go's runtime ran it; 10.0 ms more "
		      "than usual\n");
}

static void test_a_file_that_has_nothing_yet(void **state)
{
	struct fixture *f = *state;

	add(f, 2, 11 * MS, 41 * MS, &work);
	add_off(f, 3, 12 * MS, 40 * MS, OFF_BLOCKED);
	add_wait(f, (struct waits_for){.syscall = SYS_read, .fd = 5, .file = "pipe:[812]"});
	assert_reason(f, "reason: blocked in iter > work: read of pipe:[812] (fd 5); 28.0 ms more "
			 "than usual\n"
			 "   and: on the CPU, in iter; 11.0 ms more than usual\n");
	/* What it is was not found out. */
	f->tree.waits.v[0].file = NULL;
	assert_reason(f, "reason: blocked in iter > work: read of fd 5; 28.0 ms more than usual\n"
			 "   and: on the CPU, in iter; 11.0 ms more than usual\n");
	f->tree.waits.v[0] = (struct waits_for){.call = f->tree.waits.v[0].call, .syscall = 999};
	f->tree.waits.v[0].fd = -1;
	assert_reason(f,
		      "reason: blocked in iter > work: system call 999; 28.0 ms more than usual\n"
		      "   and: on the CPU, in iter; 11.0 ms more than usual\n");
	/* No news. */
	f->tree.calls.v[4].function = &sleeps;
	f->tree.waits.v[0].syscall = SYS_clock_nanosleep;
	assert_reason(f, "reason: blocked in iter > clock_nanosleep; 28.0 ms more than usual\n"
			 "   and: on the CPU, in iter; 11.0 ms more than usual\n");
}

static void test_a_call_without_a_name(void **state)
{
	struct fixture *f = *state;

	add(f, 2, 11 * MS, 41 * MS, &work);
	add_off(f, 3, 12 * MS, 40 * MS, OFF_BLOCKED);
	add_wait(f, (struct waits_for){.syscall = 999, .fd = -1});
	assert_reason(f,
		      "reason: blocked in iter > work: system call 999; 28.0 ms more than usual\n"
		      "   and: on the CPU, in iter; 11.0 ms more than usual\n");
}

/* Of several waits in one place the longest counts. */
static void test_the_longest_wait(void **state)
{
	struct fixture *f = *state;

	add(f, 2, 11 * MS, 41 * MS, &work);
	add_off(f, 3, 12 * MS, 13 * MS, OFF_BLOCKED);
	add_wait(f, (struct waits_for){.syscall = SYS_write, .fd = 1, .file = "a"});
	add_off(f, 3, 14 * MS, 39 * MS, OFF_BLOCKED);
	add_wait(f, (struct waits_for){.syscall = SYS_read, .fd = 5, .file = "b"});
	add_off(f, 3, 39 * MS, 40 * MS, OFF_BLOCKED);
	add_wait(f, (struct waits_for){.syscall = SYS_write, .fd = 1, .file = "a"});
	assert_reason(f,
		      "reason: blocked in iter > work: read of b (fd 5); 27.0 ms more than usual\n"
		      "   and: on the CPU, in iter; 12.0 ms more than usual\n");
}

static void test_a_cpu_that_others_have(void **state)
{
	struct fixture *f = *state;

	add_off(f, 2, 12 * MS, 30 * MS, OFF_PREEMPTED);
	add_by(f, 9, "hog");
	add_off(f, 2, 31 * MS, 38 * MS, OFF_RUNNABLE);
	assert_reason(
		f,
		"reason: ready to run, but its CPU was taken, by hog (9); 25.0 ms more than usual\n"
		"   and: on the CPU, in iter; 14.0 ms more than usual\n");
}

static void add_interrupts(struct fixture *f, uint64_t start_ns, uint64_t end_ns, uint64_t ns)
{
	*VEC_PUSH(&f->tree.interrupts) =
		(struct interrupts_mark){.start_ns = start_ns, .end_ns = end_ns, .ns = ns};
}

/* Their time is no function's, and in no wait; a stretch over two calls is shared out. */
static void test_interrupts(void **state)
{
	struct fixture *f = *state;

	add(f, 2, 12 * MS, 42 * MS, &work);
	add_off(f, 3, 13 * MS, 15 * MS, OFF_BLOCKED);
	/* Half of it lies before the iteration. */
	add_interrupts(f, 9 * MS, 11 * MS, MS);
	add_interrupts(f, 15 * MS, 31 * MS, 14 * MS);
	add_interrupts(f, 31 * MS, 41 * MS, 6 * MS);
	assert_reason(
		f,
		"reason: its CPU ran interrupts and softirqs, most of that time during work; 20.5 "
		"ms more than usual\n"
		"   and: on the CPU, in iter; 16.5 ms more than usual\n");
}

static void test_page_faults(void **state)
{
	struct fixture *f = *state;

	add(f, 2, 11 * MS, 49 * MS, &work);
	add(f, 3, 12 * MS, 48 * MS, NULL)->kind = CALL_IN_KERNEL;
	assert_reason(
		f, "reason: on the CPU, in the kernel, for iter > work; 36.0 ms more than usual\n");
	add_faults(f, 1 * MS + 1, 10, false);
	add_faults(f, 3 * MS + 1, 30, false);
	f->tree.faults.v[0].function = f->tree.faults.v[1].function = &work;
	/* Between two iterations: nobody's. */
	add_faults(f, 6 * MS, 5000, false);
	add_faults(f, 20 * MS, 60, false);
	assert_reason(
		f, "reason: on the CPU, in the kernel, for iter > work; 36.0 ms more than usual\n");
	add_faults(f, 30 * MS, 24, false);
	/* So few take a millisecond. */
	assert_reason(
		f, "reason: on the CPU, in the kernel, for iter > work; 36.0 ms more than usual\n");
	add_faults(f, 31 * MS, 3000, false);
	assert_reason(f, "reason: 3084 page faults (20 in an ordinary iteration), in iter > work; "
			 "36.0 ms more than usual\n");
}

/* As many faults as usual explain nothing, and a system call in the function is no second function.
 */
static void test_page_faults_that_are_usual(void **state)
{
	struct fixture *f = *state;

	add(f, 2, 11 * MS, 49 * MS, &work);
	add(f, 3, 12 * MS, 46 * MS, NULL)->kind = CALL_IN_KERNEL;
	add(f, 3, 46 * MS, 48 * MS, NULL)->kind = CALL_SYSCALL;
	add_faults(f, 1 * MS + 1, 3000, false);
	add_faults(f, 3 * MS + 1, 3000, false);
	f->tree.faults.v[0].function = f->tree.faults.v[1].function = &work;
	add_faults(f, 20 * MS, 3020, false);
	assert_reason(
		f, "reason: on the CPU, in the kernel, for iter > work; 34.0 ms more than usual\n");
	f->tree.faults.v[2].n = 6000;
	assert_reason(f,
		      "reason: 6000 page faults (3000 in an ordinary iteration), in iter > work; "
		      "34.0 ms more than usual\n");
}

/* What a callee did in the kernel, which is named apart, is not its caller's doing as well. */
static void test_page_faults_of_a_callee_that_is_named(void **state)
{
	struct fixture *f = *state;

	add(f, 2, 11 * MS, 49 * MS, &work);
	add(f, 3, 12 * MS, 32 * MS, &deep);
	add(f, 4, 12 * MS, 32 * MS, NULL)->kind = CALL_IN_KERNEL;
	add_faults(f, 20 * MS, 5000, false);
	assert_reason(
		f, "reason: 5000 page faults (0 in an ordinary iteration), in iter > work > deep; "
		   "20.0 ms more than usual\n"
		   "   and: on the CPU, in iter > work; 18.0 ms more than usual\n");
}

/* Faults explain the kernel's time only in the functions that had them. */
static void test_page_faults_beside_a_system_call(void **state)
{
	static const struct function map = {.name = "map"}, unmap = {.name = "unmap"};
	const struct function *const functions[] = {&deep, &map, &sleeps, &unmap};
	struct fixture *f = *state;

	add(f, 2, 11 * MS, 47 * MS, &work);
	for (uint64_t i = 0; i < 4; i++) {
		add(f, 3, (11 + 9 * i) * MS, (20 + 9 * i) * MS, functions[i]);
		add(f, 4, (11 + 9 * i) * MS, (20 + 9 * i) * MS, NULL)->kind = CALL_IN_KERNEL;
	}
	add_faults(f, 13 * MS, 2000, false);
	add_faults(f, 23 * MS, 2000, false);
	f->tree.faults.v[1].function = &map;
	add_faults(f, 32 * MS, 64, false);
	assert_reason(
		f, "reason: on the CPU, in the kernel, for iter > work, at most 18.0 ms of it "
		   "in 4000 page faults (0 in an ordinary iteration); 36.0 ms more than usual\n");
	/* So few do not explain the half of it. */
	f->tree.faults.v[1].n = 64;
	assert_reason(f, "reason: on the CPU, in the kernel, for iter > work; 36.0 ms more than "
			 "usual\n");
	for (size_t i = 6; i <= 12; i += 2)
		f->tree.calls.v[i].end_ns -= 3 * MS;
	assert_reason(f, "reason: on the CPU, mostly in the kernel, for iter > work; 36.0 ms more "
			 "than usual\n");
}

static void test_pages_that_had_to_be_read(void **state)
{
	struct fixture *f = *state;

	add(f, 2, 11 * MS, 49 * MS, &work);
	add_off(f, 3, 12 * MS, 48 * MS, OFF_BLOCKED);
	add_faults(f, 12 * MS, 1, true);
	assert_reason(f, "reason: 1 major page fault (0 in an ordinary iteration), in iter > "
			 "work; 36.0 ms more than usual\n");
}

static void test_nothing_that_is_more_than_usual(void **state)
{
	struct fixture *f = *state;

	f->tree.calls.v[3].end_ns = 10 * MS + MS / 2;
	f->hit.time_ns = 11 * MS;
	assert_reason(f, NULL);
}

/* What a trace of every call shows needs no guess. */
static void test_only_of_samples(void **state)
{
	struct fixture *f = *state;

	add(f, 2, 11 * MS, 41 * MS, &work);
	assert_reason_of(f, false, NULL);
}

static void test_a_begin_that_the_ring_has_lost(void **state)
{
	struct fixture *f = *state;

	f->ring_bytes = 1 << 20;
	add(f, 2, 10 * MS, 40 * MS, NULL)->kind = CALL_NOT_RECORDED;
	assert_reason(f, "reason: not recorded: stacks cover the last 10.0 ms of 40.0 ms; "
			 "-snapshot-size 8M would cover all; 30.0 ms more than usual\n");
}

/* A larger ring would not help. */
static void test_a_middle_without_stacks(void **state)
{
	struct fixture *f = *state;

	f->ring_bytes = 1 << 20;
	add(f, 2, 15 * MS, 45 * MS, NULL)->kind = CALL_NOT_RECORDED;
	assert_reason(f, "reason: not recorded: stacks cover 10.0 ms of 40.0 ms; "
			 "30.0 ms more than usual\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_path_on_the_cpu),
		TEST(test_a_goroutine_that_works_for_the_collector),
		TEST(test_an_assist_that_is_named),
		TEST(test_a_mutex_that_somebody_has),
		TEST(test_who_is_waited_for_has_no_cpu),
		TEST(test_who_is_waited_for_waits),
		TEST(test_who_is_waited_for_works),
		TEST(test_two_of_one_name_are_waited_for),
		TEST(test_who_is_waited_for_works),
		TEST(test_what_is_not_known_of_who_is_waited_for),
		TEST(test_a_goroutine_that_waits),
		TEST(test_a_file_that_has_nothing_yet),
		TEST(test_a_call_without_a_name),
		TEST(test_the_longest_wait),
		TEST(test_a_cpu_that_others_have),
		TEST(test_interrupts),
		TEST(test_page_faults),
		TEST(test_page_faults_that_are_usual),
		TEST(test_page_faults_of_a_callee_that_is_named),
		TEST(test_page_faults_beside_a_system_call),
		TEST(test_pages_that_had_to_be_read),
		TEST(test_nothing_that_is_more_than_usual),
		TEST(test_only_of_samples),
		TEST(test_a_begin_that_the_ring_has_lost),
		TEST(test_a_middle_without_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
