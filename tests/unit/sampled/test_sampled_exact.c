// SPDX-License-Identifier: MIT
/* Calls that were probed from begin to end, among what samples show, and without any. */
#include "sampled_fixture.h"

#include "pipeline/print_branches.h"
#include "pipeline/pipeline.h"

static void call(struct fixture *f, uint64_t ip, uint64_t start_ns, uint64_t end_ns,
		 uint64_t returns_to)
{
	struct mt_entry entry = entry_of(ip, start_ns, end_ns);

	entry.kind = MT_ENTRY_CALL;
	entry.returns_to = returns_to;
	assert_int_equal(VEC_ADD(&f->rec.entries, entry), 0);
}

static void test_calls_lie_in_each_other_without_a_sample(void **state)
{
	struct fixture *f = *state;

	call(f, ITER, 1000, 2000, 0);
	call(f, FIND, 1100, 1200, 0);
	call(f, FIND, 1200, 1300, 0);
	call(f, ITER, 2000, 2100, 0);
	f->rec.frozen_ns = 2100;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[iter] 1000-2000\n"
				  "  [not recorded] 1000-1100\n"
				  "  [find] 1100-1200\n"
				  "    [not recorded] 1100-1200\n"
				  "  [find] 1200-1300\n"
				  "    [not recorded] 1200-1300\n"
				  "  [not recorded] 1300-2000\n"
				  "[iter] 2000-2100\n"
				  "  [not recorded] 2000-2100\n");
}

/* The probes are set, and wake-ups are told of, before the mappings are noted. */
static void test_calls_from_before_the_maps(void **state)
{
	struct mt_sched woken = {.time_ns = 900, .tid = TID, .tgid = PID, .kind = MT_SCHED_WOKEN};
	struct fixture *f = *state;

	assert_int_equal(recording__add_sched_by(&f->rec, &woken), 0);

	for (size_t i = 0; i < f->rec.maps.n; i++)
		f->rec.maps.v[i].time_ns = 1500;
	call(f, ITER, 1000, 1100, 0);
	SAMPLE(f, TID, 1600, MAIN + 8);
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[iter] 1000-1100\n"
				  "  [not recorded] 1000-1100\n"
				  "[not recorded] 1100-1550\n"
				  "[main] 1550-1600 inferred-start inferred-end\n");
}

/* What comes of the clock is inside, between the exact edges. */
static void test_samples_nest_in_them(void **state)
{
	struct fixture *f = *state;

	SAMPLE(f, TID, 1000, MAIN + 8);
	call(f, ITER, 1010, 1290, MAIN + 8);
	SAMPLE(f, TID, 1100, FIND + 4, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1200, PLUGIN, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1300, MAIN + 8);
	f->rec.frozen_ns = 1300;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-1300 inferred-start inferred-end\n"
				  "  [iter] 1010-1290\n"
				  "    [find] 1055-1150 inferred-start inferred-end\n"
				  "    [unknown] 1150-1245 inferred-start inferred-end\n");
}

/* By frame pointers the caller of what has no frame yet is missing. */
static void test_a_stack_without_it_does_not_divide_it(void **state)
{
	struct fixture *f = *state;

	call(f, ITER, 1000, 1500, MAIN + 8);
	SAMPLE(f, TID, 1100, ITER + 4, MAIN + 8);
	SAMPLE(f, TID, 1200, FIND, MAIN + 8);
	SAMPLE(f, TID, 1300, FIND + 4, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1400, FIND + 4);
	f->rec.frozen_ns = 1600;
	make_trees(f, 1);
	assert_tree(&f->trees[0],
		    "[main] 1000-1600 inferred-start inferred-end\n"
		    "  [iter] 1000-1500\n"
		    "    [find] 1150-1250 inferred-start inferred-end\n"
		    "    [find] 1250-1350 inferred-start inferred-end\n"
		    "    [callers not recorded] 1350-1450 inferred-start inferred-end\n"
		    "      [find] 1350-1450 inferred-start inferred-end\n");
}

/* What the stack begins with was called by something that was called by it: which is not known. */
static void test_a_stack_that_lacks_its_callers(void **state)
{
	struct fixture *f = *state;

	SAMPLE(f, TID, 1000, MAIN + 8);
	call(f, ITER, 1010, 1900, MAIN + 8);
	/* As frame pointers lead from a function that has put something else into %rbp. */
	SAMPLE(f, TID, 1100, FIND + 4)->at_switch = true;
	sched(f, 1100, REC_SCHED_BLOCKED);
	sched(f, 1800, REC_SCHED_IN);
	SAMPLE(f, TID, 1850, FIND + 4, PLUGIN + 3);
	SAMPLE(f, TID, 2000, MAIN + 8);
	f->rec.frozen_ns = 2000;
	make_trees(f, 1);
	assert_tree(&f->trees[0],
		    "[main] 1000-2000 inferred-start inferred-end\n"
		    "  [iter] 1010-1900\n"
		    "    [callers not recorded] 1055-1875 inferred-start inferred-end\n"
		    "      [find] 1055-1825 inferred-start inferred-end\n"
		    "        [blocked] 1100-1800\n"
		    "      [unknown] 1825-1875 inferred-start inferred-end\n"
		    "        [find] 1825-1875 inferred-start inferred-end\n");
}

/* No other stack has shown who calls it, and a single function may be called by anything. */
static void test_a_first_stack_of_one_function(void **state)
{
	struct fixture *f = *state;

	call(f, ITER, 1000, 1200, 0);
	SAMPLE(f, TID, 1100, FIND + 4);
	f->rec.frozen_ns = 1300;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[iter] 1000-1200\n"
				  "  [callers not recorded] 1050-1150 inferred-start inferred-end\n"
				  "    [find] 1050-1150 inferred-start inferred-end\n");
}

/* A copy of a stack that unwinding does not get to the end of. */
static void copied_stack(struct fixture *f, uint64_t time_ns, uint64_t ip)
{
	uint8_t stack[64] = {0};
	struct rec_user user = {
		.ip = ip, .sp = 0x7000, .bp = 1, .stack = stack, .size = sizeof(stack)};

	SAMPLE(f, TID, time_ns, ip);
	assert_int_equal(recording__add_sample_user(&f->rec, &user), 0);
}

/* That the call is not in it does not mean that it is over, nor who had called the rest. */
static void test_a_copy_that_is_cut_says_nothing_of_callers(void **state)
{
	struct fixture *f = *state;

	copied_stack(f, 1000, MAIN + 8);
	call(f, ITER, 1050, 0, MAIN + 8);
	copied_stack(f, 1100, FIND + 4);
	copied_stack(f, 1200, FIND + 4);
	f->rec.frozen_ns = 1300;
	make_trees(f, 1);
	assert_tree(&f->trees[0],
		    "[callers not recorded] 1000-1300 inferred-start inferred-end\n"
		    "  [main] 1000-1300 inferred-start inferred-end\n"
		    "    [iter] 1050-1300 inferred-end\n"
		    "      [callers not recorded] 1075-1300 inferred-start inferred-end\n"
		    "        [find] 1075-1300 inferred-start inferred-end\n");
}

/* In this process frame pointers do not suffice; but no rules tell how this code is unwound. */
static void test_a_copy_that_could_not_be_made(void **state)
{
	struct fixture *f = *state;

	f->rec.source = strdup("sample");
	copied_stack(f, 900, MAIN + 8);
	SAMPLE(f, TID, 1000, FIND + 4, MAIN + 8)->at_switch = true;
	f->rec.frozen_ns = 1100;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[callers not recorded] 900-950 inferred-start inferred-end\n"
				  "  [main] 900-950 inferred-start inferred-end\n"
				  "[main] 950-1100 inferred-start inferred-end\n"
				  "  [find] 950-1100 inferred-start inferred-end\n");
}

static void test_one_that_has_not_returned_runs_to_the_end(void **state)
{
	struct fixture *f = *state;

	SAMPLE(f, TID, 900, MAIN + 8);
	call(f, ITER, 1000, 0, MAIN + 8);
	SAMPLE(f, TID, 1100, ITER + 4, MAIN + 8);
	SAMPLE(f, TID, 1200, FIND, MAIN + 8);
	SAMPLE(f, TID, 1300, ITER + 4, MAIN + 8);
	f->rec.frozen_ns = 1400;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 900-1400 inferred-start inferred-end\n"
				  "  [iter] 1000-1400 inferred-end\n"
				  "    [find] 1150-1250 inferred-start inferred-end\n");
}

/* No return, and it is in no stack any more: longjmp. */
static void test_one_that_was_jumped_out_of(void **state)
{
	struct fixture *f = *state;

	SAMPLE(f, TID, 900, MAIN + 8);
	call(f, ITER, 1000, 0, MAIN + 8);
	SAMPLE(f, TID, 1100, ITER + 4, MAIN + 8);
	SAMPLE(f, TID, 1200, MAIN + 9);
	/* Before any stack. */
	call(f, ITER, 1250, 0, MAIN + 8);
	SAMPLE(f, TID, 1300, MAIN + 9);
	f->rec.frozen_ns = 1300;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 900-1300 inferred-start inferred-end\n"
				  "  [iter] 1000-1150 inferred-end\n"
				  "  [iter] 1250-1275 inferred-end\n");
}

/* The next call in its place told that it was over. */
static void test_one_that_was_left_ends_no_later(void **state)
{
	struct fixture *f = *state;

	SAMPLE(f, TID, 900, MAIN + 8);
	call(f, ITER, 1000, 1150, MAIN + 8);
	f->rec.entries.v[0].kind = MT_ENTRY_LEFT;
	SAMPLE(f, TID, 1100, ITER + 4, MAIN + 8);
	call(f, FIND, 1150, 1160, MAIN + 8);
	f->rec.frozen_ns = 1200;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 900-1200 inferred-start inferred-end\n"
				  "  [iter] 1000-1150 inferred-end\n"
				  "  [find] 1150-1160\n");
}

/* The trigger's hit, and the same call as -also has it. */
static void test_a_call_is_not_told_twice(void **state)
{
	struct fixture *f = *state;
	struct mt_entry hit = entry_of(ITER, 1001, 0), other = entry_of(FIND, 1020, 0);

	call(f, ITER, 1000, 1100, 0);
	assert_int_equal(VEC_ADD(&f->rec.entries, hit), 0);
	assert_int_equal(VEC_ADD(&f->rec.entries, other), 0);
	f->rec.frozen_ns = 1100;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[iter] 1000-1100\n"
				  "  [not recorded] 1000-1020\n"
				  "  [find] 1020-1020 inferred-end\n"
				  "  [not recorded] 1020-1100\n");
}

/* The probe is handled then: it has not begun, or is over. */
static void test_a_sample_at_a_probe_is_no_call(void **state)
{
	struct fixture *f = *state;

	SAMPLE(f, TID, 1000, ITER, MAIN + 8)->in_kernel = true;
	call(f, ITER, 1100, 1200, MAIN + 8);
	SAMPLE(f, TID, 1150, ITER + 4, MAIN + 8);
	SAMPLE(f, TID, 1250, ITER + 9, MAIN + 8);
	f->rec.frozen_ns = 1300;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-1300 inferred-start inferred-end\n"
				  "  [kernel] 1000-1050 inferred-start inferred-end\n"
				  "  [iter] 1100-1200\n");
}

/* The function has two probes, and one of them has recorded the call already. */
static void test_a_sample_at_the_second_probe_of_a_call(void **state)
{
	struct fixture *f = *state;

	SAMPLE(f, TID, 1000, MAIN + 8);
	call(f, ITER, 1050, 0, MAIN + 8);
	SAMPLE(f, TID, 1100, ITER, MAIN + 8)->in_kernel = true;
	SAMPLE(f, TID, 1200, ITER, MAIN + 8);
	f->rec.frozen_ns = 1200;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-1200 inferred-start inferred-end\n"
				  "  [iter] 1050-1200 inferred-end\n"
				  "    [kernel] 1075-1150 inferred-start inferred-end\n");
}

/* There the innermost function is missing, and what follows may be a call that is over. */
static void test_a_sample_in_a_return_probe(void **state)
{
	struct fixture *f = *state;

	SAMPLE(f, TID, 1000, MAIN + 8);
	call(f, ITER, 1050, 0, MAIN + 8);
	SAMPLE(f, TID, 1100, FIND, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1200, PAGE + 13, FIND + 8)->in_kernel = true;
	SAMPLE(f, TID, 1250, ITER + 8, ITER + 8)->in_kernel = true;
	SAMPLE(f, TID, 1300, FIND, ITER + 8, MAIN + 8);
	f->rec.frozen_ns = 1300;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-1300 inferred-start inferred-end\n"
				  "  [iter] 1050-1300 inferred-end\n"
				  "    [find] 1075-1300 inferred-start inferred-end\n");
}

/* There the thread is at the return address already, in a caller that no stack has shown before. */
static void test_a_sample_while_a_return_probe_is_handled(void **state)
{
	struct fixture *f = *state;

	SAMPLE(f, TID, 1000, FIND + 8);
	call(f, ITER, 1050, 1250, MAIN + 8);
	SAMPLE(f, TID, 1100, ITER + 4, FIND + 8);
	SAMPLE(f, TID, 1200, MAIN + 8, FIND + 8)->in_kernel = true;
	f->rec.frozen_ns = 1300;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[find] 1000-1300 inferred-start inferred-end\n"
				  "  [iter] 1050-1250\n"
				  "    [kernel] 1150-1225 inferred-start inferred-end\n");
}

/* The same stack before and after the call: what its caller had called was over meanwhile. */
static void test_a_call_has_the_caller_that_it_returns_to(void **state)
{
	struct fixture *f = *state;

	SAMPLE(f, TID, 1000, FIND + 4, MAIN + 8);
	call(f, ITER, 1050, 1060, MAIN + 4);
	SAMPLE(f, TID, 1100, FIND + 4, MAIN + 8);
	/* From another function: it is not the caller, but may have been called by it. */
	call(f, ITER, 1150, 1160, PLUGIN + 4);
	SAMPLE(f, TID, 1200, FIND + 4, MAIN + 8);
	f->rec.frozen_ns = 1200;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-1200 inferred-start inferred-end\n"
				  "  [find] 1000-1025 inferred-start inferred-end\n"
				  "  [iter] 1050-1060\n"
				  "  [find] 1080-1200 inferred-start inferred-end\n"
				  "    [iter] 1150-1160\n");
}

/* The hit's own return address is known, and that of earlier calls supposed to be the same. */
static void test_the_caller_after_a_wait(void **state)
{
	struct mt_hit hit = {.time_ns = 1600,
			     .tid = TID,
			     .tgid = PID,
			     .reason = MT_HIT_DURATION,
			     .ip = MAIN + 4,
			     .probe_ip = ITER};
	struct fixture *f = *state;
	struct mt_entry early = entry_of(ITER, 1050, 1060), late = entry_of(ITER, 1450, 1460);

	assert_int_equal(VEC_ADD(&f->rec.hits, hit), 0);
	SAMPLE(f, TID, 1000, FIND + 4, MAIN + 8);
	assert_int_equal(VEC_ADD(&f->rec.entries, early), 0);
	SAMPLE(f, TID, 1100, FIND + 4, MAIN + 8)->at_switch = true;
	sched(f, 1100, REC_SCHED_BLOCKED);
	sched(f, 1400, REC_SCHED_IN);
	assert_int_equal(VEC_ADD(&f->rec.entries, late), 0);
	SAMPLE(f, TID, 1500, FIND + 4, MAIN + 8);
	f->rec.frozen_ns = 1600;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-1600 inferred-start inferred-end\n"
				  "  [find] 1000-1425 inferred-start inferred-end\n"
				  "    [iter] 1050-1060\n"
				  "    [blocked] 1100-1400\n"
				  "  [iter] 1450-1460\n"
				  "  [find] 1480-1600 inferred-start inferred-end\n");
}

/* The call that is seen later began before any was recorded. */
static void test_a_call_from_before_is_no_probe(void **state)
{
	struct fixture *f = *state;

	call(f, ITER, 1000, 1100, MAIN + 8);
	SAMPLE(f, TID, 3000000, ITER + 9, MAIN + 8);
	SAMPLE(f, TID, 3000100, ITER + 9, MAIN + 8);
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[iter] 1000-1100\n"
				  "  [not recorded] 1000-1100\n"
				  "[not recorded] 1100-2999950\n"
				  "[main] 2999950-3000100 inferred-start inferred-end\n"
				  "  [iter] 2999950-3000100 inferred-start inferred-end\n");
}

static void add_hit(struct fixture *f, uint64_t time_ns, uint32_t reason)
{
	struct mt_hit hit = {.time_ns = time_ns,
			     .tid = TID,
			     .tgid = PID,
			     .reason = reason,
			     .ip = ITER,
			     .probe_ip = ITER,
			     .stack_depth = 2,
			     .stack = {ITER, MAIN + 8}};

	assert_int_equal(VEC_ADD(&f->rec.hits, hit), 0);
	f->rec.frozen_ns = time_ns;
}

/* It came before the first sample. */
static void test_a_hit_alone_shows_its_stack(void **state)
{
	struct fixture *f = *state;

	f->rec.source = strdup("sample");
	add_hit(f, 1000, MT_HIT_EVERY);
	assert_true(recording__is_sampled(&f->rec));
	assert_true(recording__traced_bytes(&f->rec) > 0);
	map_code(&f->rec, 0, MAIN, "[main]");
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[iter] 1000-1000 inferred-start inferred-end\n");
}

static void expect_a_hit_alone(struct fixture *f, const char *expected)
{
	struct decoded decoded;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(decoded__make(&decoded, &f->rec, &(struct tree_options){0}), 0);
	decoded__summarise(&decoded, &f->rec, out, 10);
	fclose(out);
	assert_non_null(strstr(text, "of [iter], thread 43\n"));
	assert_non_null(strstr(text, "no sample was taken before the hit"));
	assert_non_null(strstr(text, "innermost first: [iter]"));
	assert_non_null(strstr(text, expected));
	decoded__fini(&decoded);
	free(text);
}

static void test_a_hit_alone_is_told_of(void **state)
{
	struct fixture *f = *state;

	f->rec.source = strdup("sample");
	add_hit(f, 1000, MT_HIT_EVERY);
	f->rec.hits.v[0].sequence = 1;
	expect_a_hit_alone(f, "no hit came before this one");
	/* A child that was forked just now; larger rings would not help. */
	f->rec.hits.v[0].sequence = 2;
	expect_a_hit_alone(f, "no earlier hit of its thread was recorded");
}

/* These are measured from a begin of their own, and not from the hit before. */
static void test_no_earlier_hit_is_not_why_a_region_or_a_stall_has_no_report(void **state)
{
	static const uint32_t reasons[] = {MT_HIT_DURATION, MT_HIT_MARK, MT_HIT_REGION,
					   MT_HIT_STALL};
	struct fixture *f = *state;
	struct decoded decoded;

	f->rec.source = strdup("sample");
	add_hit(f, 1000, MT_HIT_EVERY);
	f->rec.hits.v[0].sequence = 1;
	assert_int_equal(decoded__make(&decoded, &f->rec, &(struct tree_options){0}), 0);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		decoded.hits.v[0].reason = reasons[i];
		decoded.hits.v[0].tid = 99; /* of whom nothing was recorded */
		decoded__summarise(&decoded, &f->rec, out, 10);
		fclose(out);
		assert_non_null(strstr(text, "no report: "));
		assert_null(strstr(text, "no hit came before this one"));
		free(text);
	}
	decoded__fini(&decoded);
}

/* Made by hand: no machine of ours has them. */
static void test_last_branches_are_told_of(void **state)
{
	struct fixture *f = *state;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct mt_hit *hit;

	assert_non_null(out);
	add_hit(f, 1000, MT_HIT_EVERY);
	f->images = images__new(&f->rec);
	hit = &f->rec.hits.v[0];
	assert_int_equal(last_branches__print(out, hit, f->images), 0);
	assert_int_equal(ftell(out), 0);
	hit->n_branches = 2;
	hit->branches[0] = (struct mt_branch){.from = MAIN + 3, .to = ITER};
	hit->branches[1] = (struct mt_branch){.from = FIND + 0x20, .to = 0x999};
	assert_int_equal(last_branches__print(out, hit, f->images), 0);
	fclose(out);
	assert_string_equal(text, "the last branches before the hit (LBR), the newest first:\n"
				  "  [main]+0x3 -> [iter]+0x0\n"
				  "  [find]+0x20 -> 0x999\n");
	free(text);
}

/* The instruction that returns is still in the function; the call is over. */
static void test_a_hit_at_its_return_is_no_other_call(void **state)
{
	struct fixture *f = *state;
	struct mt_entry entry = entry_of(ITER, 900, 1000);

	assert_int_equal(VEC_ADD(&f->rec.entries, entry), 0);
	add_hit(f, 1000, MT_HIT_DURATION);
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[iter] 900-1000\n"
				  "  [not recorded] 900-1000\n");
}

static void test_a_long_system_call_without_any_stack(void **state)
{
	struct fixture *f = *state;
	struct mt_sched sched = {
		.time_ns = 1000, .tid = TID, .tgid = PID, .kind = MT_SCHED_LONG, .syscall = 1};

	sched.took.end_ns = 1500;
	assert_int_equal(recording__add_sched_by(&f->rec, &sched), 0);
	f->rec.frozen_ns = 2000;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[syscall] 1000-1500 inferred\n"
				  "[not recorded] 1500-2000\n");
	assert_int_equal(f->trees[0].waits.n, 1);
}

/* What is in a system call calls nothing: it is innermost, also where a stack lacks its frame. */
static void test_who_makes_a_system_call_is_innermost(void **state)
{
	struct fixture *f = *state;
	struct mt_entry entry = entry_of(FIND, 1000, 1500);

	entry.kind = MT_ENTRY_KERNEL;
	/* As frame pointers lead from a function that has no frame. */
	entry.returns_to = MAIN + 8;
	assert_int_equal(VEC_ADD(&f->rec.entries, entry), 0);
	SAMPLE(f, TID, 900, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1100, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1600, ITER + 8, MAIN + 8);
	f->rec.frozen_ns = 1700;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 900-1700 inferred-start inferred-end\n"
				  "  [iter] 900-1700 inferred-start inferred-end\n"
				  "    [find] 1000-1500\n");
}

/* The program of the hit runs after the one that has noted the switch: the thread still waits. */
static void test_a_hit_in_a_switch_does_not_end_the_wait(void **state)
{
	struct fixture *f = *state;
	struct mt_entry entry = entry_of(ITER, 1004, 0);

	entry.kind = MT_ENTRY_KERNEL;
	assert_int_equal(VEC_ADD(&f->rec.entries, entry), 0);
	SAMPLE(f, TID, 900, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1000, ITER + 8, MAIN + 8);
	sched(f, 1000, REC_SCHED_BLOCKED);
	sched(f, 900000, REC_SCHED_IN);
	SAMPLE(f, TID, 900010, ITER + 8, MAIN + 8);
	f->rec.frozen_ns = 900100;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 900-900100 inferred-start inferred-end\n"
				  "  [iter] 900-950 inferred-start inferred-end\n"
				  "  [iter] 1000-900100 inferred-end\n"
				  "    [blocked] 1000-900000\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_calls_lie_in_each_other_without_a_sample),
		TEST(test_calls_from_before_the_maps),
		TEST(test_samples_nest_in_them),
		TEST(test_a_stack_without_it_does_not_divide_it),
		TEST(test_a_stack_that_lacks_its_callers),
		TEST(test_a_first_stack_of_one_function),
		TEST(test_a_copy_that_is_cut_says_nothing_of_callers),
		TEST(test_a_copy_that_could_not_be_made),
		TEST(test_one_that_has_not_returned_runs_to_the_end),
		TEST(test_one_that_was_jumped_out_of),
		TEST(test_one_that_was_left_ends_no_later),
		TEST(test_a_call_is_not_told_twice),
		TEST(test_a_sample_at_a_probe_is_no_call),
		TEST(test_a_sample_at_the_second_probe_of_a_call),
		TEST(test_a_sample_in_a_return_probe),
		TEST(test_a_sample_while_a_return_probe_is_handled),
		TEST(test_a_call_has_the_caller_that_it_returns_to),
		TEST(test_the_caller_after_a_wait),
		TEST(test_a_call_from_before_is_no_probe),
		TEST(test_a_hit_alone_shows_its_stack),
		TEST(test_a_hit_alone_is_told_of),
		TEST(test_no_earlier_hit_is_not_why_a_region_or_a_stall_has_no_report),
		TEST(test_last_branches_are_told_of),
		TEST(test_a_hit_at_its_return_is_no_other_call),
		TEST(test_a_long_system_call_without_any_stack),
		TEST(test_who_makes_a_system_call_is_innermost),
		TEST(test_a_hit_in_a_switch_does_not_end_the_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
