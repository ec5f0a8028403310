// SPDX-License-Identifier: MIT
/* A report as JSON, against another, back from a trace file; folded stacks. */
#include "report_fixture.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "stack/stack.h"
#include "target/symbols/named_image.h"
#include "decode/pt_note.h"
#include "trace/fxt_trees.h"
#include "trace/trace_writer.h"
#include "util/meter.h"
#include "view/folded.h"

static struct report *make_report(struct fixture *f)
{
	return report__new(&(struct report_input){.trees = f->trees, .n_trees = 2, .hit = &f->hit});
}

static double number_of(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItem(object, key);

	assert_true(cJSON_IsNumber(item));
	return item->valuedouble;
}

static void test_json(void **state)
{
	struct fixture *f = *state;
	struct report *r;
	cJSON *root, *first;
	FILE *out;

	add_iterations(f);
	f->hit.value_ns = 4 * MS;
	r = make_report(f);
	out = open_memstream(&f->text, &f->size);
	assert_int_equal(report__print_json(out, r, NULL), 0);
	fclose(out);
	report__free(r);
	root = cJSON_Parse(f->text);
	assert_non_null(root);
	assert_int_equal(number_of(root, "slow_ns"), 4 * MS);
	assert_int_equal(number_of(root, "ordinary_ns"), MS);
	assert_int_equal(number_of(root, "ordinary_iterations"), 2);
	assert_int_equal(number_of(cJSON_GetObjectItem(root, "hit"), "tid"), TID);
	first = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "functions"), 0);
	assert_string_equal(cJSON_GetObjectItem(first, "name")->valuestring, "stall");
	assert_int_equal(number_of(first, "slow_ns"), 2 * MS);
	assert_int_equal(number_of(first, "slow_calls"), 1);
	cJSON_Delete(root);
}

static void write_json(struct fixture *f, const struct report_input *input)
{
	struct report *r = report__new(input);
	FILE *out;

	assert_non_null(r);
	free(f->text);
	out = open_memstream(&f->text, &f->size);
	assert_int_equal(report__print_json(out, r, NULL), 0);
	report__print(out, r, 0);
	fclose(out);
	report__free(r);
}

/* Nobody has looked for them; then somebody has. */
static void test_a_zero_is_a_count(void **state)
{
	struct fixture *f = *state;
	struct report_input input = {.trees = f->trees, .n_trees = 2, .hit = &f->hit};

	add_iterations(f);
	write_json(f, &input);
	assert_null(strstr(f->text, "throttled_ns"));
	assert_null(strstr(f->text, "stolen"));
	assert_null(strstr(f->text, "throttled"));
	assert_null(strstr(f->text, "blocked_ns"));
	assert_non_null(strstr(f->text, "\"syscalls_ns\":0"));
	input.sampled = true;
	f->hit.counted = COUNTED_THROTTLED;
	write_json(f, &input);
	assert_non_null(strstr(f->text, "\"blocked_ns\":0"));
	assert_null(strstr(f->text, "syscalls_ns"));
	assert_non_null(strstr(f->text, "\"throttled_ns\":0"));
	assert_null(strstr(f->text, "stolen"));
	assert_non_null(strstr(f->text, " · preempted 0 ns · throttled 0 ns · not recorded "));
	f->hit.counted |= COUNTED_STOLEN;
	write_json(f, &input);
	assert_non_null(strstr(f->text, "\"stolen_ns\":0"));
	assert_non_null(strstr(f->text, " · throttled 0 ns · stolen 0 ns · not recorded "));
}

static void test_a_machine_that_cannot_know_says_so(void **state)
{
	struct fixture *f = *state;

	add_iterations(f);
	f->hit.counted = COUNTED_THROTTLED | COUNTED_NOT_STOLEN;
	write_json(f, &(struct report_input){.trees = f->trees, .n_trees = 2, .hit = &f->hit});
	assert_non_null(strstr(f->text, "\"throttled_ns\":0"));
	assert_null(strstr(f->text, "stolen_ns"));
	assert_non_null(strstr(f->text, "stolen time is not known: "));
}

/* It is time on the CPU and time blocked, whatever lies in it; it is not time without a CPU. */
static void test_memory_reclaim(void **state)
{
	struct fixture *f = *state;
	struct report_input input = {
		.trees = f->trees, .n_trees = 2, .hit = &f->hit, .sampled = true};
	const uint64_t start = 3 * MS;
	struct call *reclaim, *blocked, *waits;

	add(f, 0, 0, 10 * MS, &program);
	add(f, 1, MS, 2 * MS, &iter);
	add(f, 1, start, 7 * MS, &iter);
	reclaim = add(f, 2, start + MS, start + 4 * MS, NULL);
	reclaim->kind = CALL_SYSCALL;
	reclaim->reason = SYSCALL_RECLAIM;
	reclaim->flags = CALL_SAMPLED;
	*VEC_PUSH(&f->trees[1].waits) =
		(struct waits_for){.call = (uint32_t)(f->trees[1].calls.n - 1),
				   .fd = -1,
				   .text = "the limit of a cgroup"};
	add(f, 3, start + MS, start + 2 * MS, NULL)->kind = CALL_IN_KERNEL;
	blocked = add(f, 3, start + 2 * MS, start + 3 * MS, NULL);
	blocked->kind = CALL_OFF_CPU;
	blocked->reason = OFF_BLOCKED;
	waits = add(f, 3, start + 3 * MS, start + 3 * MS + MS / 2, NULL);
	waits->kind = CALL_OFF_CPU;
	waits->reason = OFF_RUNNABLE;
	f->hit.reason = MT_HIT_DURATION;
	f->hit.value_ns = 4 * MS;
	f->hit.time_ns = 7 * MS;
	write_json(f, &input);
	assert_non_null(strstr(f->text, "\"reclaim_on_cpu_ns\":1500000"));
	assert_non_null(strstr(f->text, "\"reclaim_blocked_ns\":1000000"));
	assert_non_null(strstr(f->text, "\"blocked_ns\":0"));
	assert_non_null(strstr(f->text, "\"runnable_ns\":500000"));
	assert_non_null(strstr(f->text, "\"on_cpu_ns\":1000000"));
	assert_non_null(strstr(
		f->text, "\"reason\":\"memory reclaim: the limit of a cgroup, most of it in "));
	/* Each piece of the reclaim counts with its own time. */
	assert_non_null(strstr(f->text, "\"for\":\"the limit of a cgroup\",\"ns\":2500000}"));
}

/* Those with stacks are the longer ones: their mean is not the mean of all. */
static void test_iterations_without_stacks(void **state)
{
	struct fixture *f = *state;
	struct report_input input = {
		.trees = f->trees, .n_trees = 2, .hit = &f->hit, .sampled = true};

	add(f, 0, 0, 10 * MS, &program);
	for (uint64_t i = 0; i < 3; i++) {
		add(f, 1, i * MS, i * MS + MS / 10, &iter);
		add(f, 2, i * MS, i * MS + MS / 10, NULL)->kind = CALL_NOT_RECORDED;
	}
	add(f, 1, 3 * MS, 3 * MS + 7 * MS / 10, &iter);
	add(f, 1, 4 * MS, 7 * MS, &iter);
	f->hit.reason = MT_HIT_DURATION;
	f->hit.value_ns = 3 * MS;
	f->hit.time_ns = 7 * MS;
	write_json(f, &input);
	assert_non_null(strstr(f->text, "took 3.00 ms, an ordinary one 250 us (mean of 4 in the "
					"same lookback; the table below averages the 1 of them "
					"that have stacks, mean 700 us);"));
	assert_non_null(strstr(f->text, "\"ordinary_ns\":700000,"));
	assert_non_null(strstr(f->text, "\"all_ordinary_ns\":250000,"));
}

/* A fact below the account, if it ran for longer: no part of it, and no reason. */
static void test_moves_between_cpus(void **state)
{
	struct fixture *f = *state;
	struct report_input input = {
		.trees = f->trees, .n_trees = 2, .hit = &f->hit, .sampled = true};

	add_iterations(f);
	for (uint64_t i = 0; i < 5; i++) {
		write_json(f, &input);
		assert_null(strstr(f->text, "the thread moved between CPUs"));
		*VEC_PUSH(&f->trees[1].faults) = (struct fault_mark){
			.time_ns = 3 * MS + MS / 10 * i, .n = 1, .is_move = i != 0};
	}
	write_json(f, &input);
	assert_non_null(strstr(
		f->text, "  the thread moved between CPUs 4 times (0 in an ordinary iteration)\n"));
	assert_non_null(strstr(f->text, "\"moves_between_cpus\":{\"slow\":4,\"ordinary\":0}"));
	assert_null(strstr(f->text, "page fault"));
}

/* They are taken from what ran: from nothing else, and all of it, in whatever pieces. */
static void test_what_interrupts_took(void **state)
{
	struct fixture *f = *state;
	struct report_input input = {
		.trees = f->trees, .n_trees = 2, .hit = &f->hit, .sampled = true};
	struct call_tree *tree = &f->trees[1];

	add_iterations(f);
	write_json(f, &input);
	assert_null(strstr(f->text, "interrupts"));
	f->hit.counted = COUNTED_INTERRUPTS;
	write_json(f, &input);
	assert_non_null(strstr(f->text, "\"interrupts_ns\":0"));
	assert_non_null(strstr(f->text, " · interrupts 0 ns · blocked 0 ns · "));
	/* Over an edge between two iterations of 1 ms, a prime number; and in the slow one. */
	*VEC_PUSH(&tree->interrupts) =
		(struct interrupts_mark){MS + MS / 2, 2 * MS + MS / 2, 300007};
	*VEC_PUSH(&tree->interrupts) = (struct interrupts_mark){4 * MS, 6 * MS, MS};
	write_json(f, &input);
	assert_non_null(strstr(f->text, "  slow     on CPU 3.00 ms · interrupts 1.00 ms · "));
	assert_non_null(strstr(f->text, "  ordinary on CPU 850 us · interrupts 150 us · "));
	assert_non_null(strstr(f->text, "\"slow\":{\"on_cpu_ns\":3000000,"
					"\"interrupts_ns\":1000000,"));
	assert_non_null(strstr(f->text, "\"ordinary\":{\"on_cpu_ns\":849997,"
					"\"interrupts_ns\":150003,"));
	assert_non_null(strstr(f->text, "{\"name\":\"[interrupts]\",\"in\":\"stall\","));
}

/* The same iteration, but stall is not in it, and work takes longer. */
static void add_others(struct fixture *f)
{
	add(f, 0, 0, 8 * MS, &program)->flags = CALL_INFERRED_START | CALL_INFERRED_END;
	add(f, 1, 3 * MS, 3 * MS + 200000, &iter);
	add(f, 1, 4 * MS, 5 * MS, &work);
	add(f, 1, 7 * MS, 8 * MS, &iter)->flags = CALL_INFERRED_END;
}

static void test_difference(void **state)
{
	struct fixture *f = *state;
	struct fixture g = {.hit = f->hit, .trees = {{.tid = TID + 1}, {.tid = TID}}};
	struct report *a, *b;
	FILE *out;

	add_iterations(f);
	add_others(&g);
	a = make_report(f);
	b = make_report(&g);
	out = open_memstream(&f->text, &f->size);
	assert_int_equal(report__print_difference(out, a, b, 3), 0);
	fclose(out);
	assert_string_equal(
		f->text,
		"A: the slow iteration of iter took 4.00 ms, an ordinary one 1.00 ms\n"
		"B: the slow iteration of iter took 4.00 ms\n"
		"        B - A          A          B  function (self time in its slow iteration)\n"
		"     +2.00 ms     800 us    2.80 ms  main\n"
		"     -2.00 ms    2.00 ms       0 ns  stall\n"
		"     -1.00 ms    1.00 ms       0 ns  [syscall]\n");
	report__free(a);
	report__free(b);
	VEC_FINI(&g.trees[1].calls);
}

static void test_no_difference(void **state)
{
	struct fixture *f = *state;
	struct report *r;
	FILE *out;

	add_iterations(f);
	r = make_report(f);
	out = open_memstream(&f->text, &f->size);
	assert_int_equal(report__print_difference(out, r, r, 3), 0);
	fclose(out);
	assert_string_equal(
		f->text,
		"A: the slow iteration of iter took 4.00 ms, an ordinary one 1.00 ms\n"
		"B: the slow iteration of iter took 4.00 ms, an ordinary one 1.00 ms\n"
		"        B - A          A          B  function (self time in its slow iteration)\n"
		"  no function differs in self time between A and B\n");
	report__free(r);
}

/* Which of them it is of: the hits stand above it. */
static void test_one_of_several_hits(void **state)
{
	struct fixture *f = *state;
	struct report *r;
	FILE *out;

	add_iterations(f);
	f->hit.sequence = 9;
	r = report__new(&(struct report_input){
		.trees = f->trees, .n_trees = 2, .hit = &f->hit, .is_of_several = true});
	out = open_memstream(&f->text, &f->size);
	report__print(out, r, 1);
	assert_int_equal(report__print_difference(out, r, r, 1), 0);
	fclose(out);
	assert_ptr_equal(strstr(f->text, "the slow iteration of iter, hit 9, took 4.00 ms,"),
			 f->text);
	assert_non_null(strstr(f->text, "\nA: the slow iteration of iter, hit 9, took 4.00 ms,"));
	report__free(r);
}

/* In a report's lines; not in what programs read. */
static void test_a_long_name(void **state)
{
	static const struct function function = {.name = "very::long_class<std::vector<int, "
							 "std::allocator<int> >, std::less<int> >::"
							 "work(int)"};
	struct fixture *f = *state;
	struct call_tree *tree = &f->trees[1];
	struct report *r;
	FILE *out;

	add_iterations(f);
	for (size_t i = 0; i < tree->calls.n; i++) {
		if (tree->calls.v[i].function == &stall)
			tree->calls.v[i].function = &function;
	}
	f->hit.value_ns = 4 * MS;
	r = make_report(f);
	out = open_memstream(&f->text, &f->size);
	report__print(out, r, 3);
	assert_int_equal(report__print_difference(out, r, r, 3), 0);
	fflush(out);
	assert_non_null(strstr(f->text,
			       "very::long_class<std::vector<...>, std::less<...> >::work(int)\n"));
	assert_null(strstr(f->text, function.name));
	assert_int_equal(report__print_json(out, r, NULL), 0);
	fclose(out);
	assert_non_null(strstr(f->text, function.name));
	report__free(r);
}

static void test_folded(void **state)
{
	struct fixture *f = *state;
	FILE *out;

	add_iterations(f);
	strcpy(f->trees[1].comm, "a;b");
	out = open_memstream(&f->text, &f->size);
	assert_int_equal(folded__print(out, f->trees, 2), 0);
	fclose(out);
	assert_non_null(strstr(f->text, "a:b;main;iter 1450000\n"));
	assert_non_null(strstr(f->text, "a:b;main;iter;work 150000\n"));
	assert_non_null(strstr(f->text, "a:b;main;stall 2000000\n"));
	assert_non_null(strstr(f->text, "a:b;main;stall;[syscall] 1000000\n"));
	assert_non_null(strstr(f->text, "a:b;main 3400000\n"));
	assert_null(strstr(f->text, "thread")); /* without calls */
}

static void write_trace(struct fixture *f, const char *path)
{
	const struct trace_options options = {0};
	struct trace_writer *writer = trace_writer__open(path, &options);

	assert_non_null(writer);
	trace_writer__thread(writer, &f->trees[1]);
	trace_writer__hit(writer, &f->hit);
	assert_int_equal(trace_writer__close(writer, NULL), 0);
}

static void read_trace(struct fxt_trees *trees, const char *path)
{
	int fd = open(path, O_RDONLY);
	struct meter meter = {0};

	assert_int_equal(fxt_trees__read(trees, fd, &meter), 0);
	assert_int_equal(meter.done, lseek(fd, 0, SEEK_END));
	close(fd);
	unlink(path);
}

static void expect_same_calls(const struct call_tree *a, const struct call_tree *b)
{
	assert_int_equal(a->calls.n, b->calls.n);
	for (size_t i = 0; i < a->calls.n; i++) {
		assert_int_equal(a->calls.v[i].start_ns, b->calls.v[i].start_ns);
		assert_int_equal(a->calls.v[i].end_ns, b->calls.v[i].end_ns);
		assert_int_equal(a->calls.v[i].parent, b->calls.v[i].parent);
		assert_int_equal(a->calls.v[i].depth, b->calls.v[i].depth);
		assert_int_equal(a->calls.v[i].kind, b->calls.v[i].kind);
		assert_int_equal(a->calls.v[i].reason, b->calls.v[i].reason);
		assert_int_equal(a->calls.v[i].flags, b->calls.v[i].flags);
		assert_string_equal(call__name(&a->calls.v[i]), call__name(&b->calls.v[i]));
	}
}

/* Writers ask a function's image for its source. */
static const struct function *named(struct named_image *image, const struct function *function,
				    uint64_t ip)
{
	struct named_place place = {.ip = ip,
				    .symbol = function->name,
				    .symbol_len = strlen(function->name),
				    .module = "service",
				    .module_len = strlen("service"),
				    .has_offset = true};
	struct code_place found;

	assert_int_equal(named_image__learn(image, &place, "", 0), 0);
	assert_true(code_map__find(named_image__map(image), ip, &found));
	return found.function;
}

static void use_named_functions(struct fixture *f, struct named_image *image)
{
	const struct function *const by_hand[] = {&program, &iter, &work, &stall};

	for (size_t i = 0; i < sizeof(by_hand) / sizeof(by_hand[0]); i++) {
		const struct function *function = named(image, by_hand[i], 0x1000 * (i + 1));

		for (size_t k = 0; k < f->trees[1].calls.n; k++) {
			if (f->trees[1].calls.v[k].function == by_hand[i])
				f->trees[1].calls.v[k].function = function;
		}
	}
}

static void add_done_by(struct fixture *f, const char *comm, pid_t tid, uint64_t ns)
{
	struct done_by by = {
		.call = (uint32_t)f->trees[1].calls.n - 1, .pid = tid, .tid = tid, .ns = ns};

	snprintf(by.comm, sizeof(by.comm), "%s", comm);
	*VEC_PUSH(&f->trees[1].done_by) = by;
}

static void add_faults(struct fixture *f)
{
	const struct fault_mark marks[] = {{.time_ns = 5 * MS, .n = 32},
					   {.time_ns = 6 * MS, .n = 1, .is_major = true},
					   {.time_ns = 6 * MS, .n = 32},
					   {.time_ns = 6 * MS + 1, .n = 1, .is_move = true},
					   {.time_ns = 7 * MS, .n = 2, .is_major = true}};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		*VEC_PUSH(&f->trees[1].faults) = marks[i];
}

static void expect_same_faults(const struct call_tree *a, const struct call_tree *b)
{
	assert_int_equal(a->faults.n, b->faults.n);
	for (size_t i = 0; i < a->faults.n; i++) {
		assert_int_equal(a->faults.v[i].time_ns, b->faults.v[i].time_ns);
		assert_int_equal(a->faults.v[i].n, b->faults.v[i].n);
		assert_int_equal(a->faults.v[i].is_major, b->faults.v[i].is_major);
		assert_int_equal(a->faults.v[i].is_move, b->faults.v[i].is_move);
	}
}

/* What the report reads is what was written. */
static void test_back_from_a_trace_file(void **state)
{
	struct fixture *f = *state;
	struct named_image *image = named_image__new();
	struct fxt_trees trees;
	struct report *r;

	add_iterations(f);
	use_named_functions(f, image);
	add(f, 2, 7 * MS + 100, 7 * MS + 200, NULL)->kind = CALL_OFF_CPU;
	f->trees[1].calls.v[f->trees[1].calls.n - 1].reason = OFF_PREEMPTED;
	add_done_by(f, "a (process b", 8, 100);
	add(f, 2, 7 * MS + 500, 7 * MS + 600, NULL)->kind = CALL_OFF_CPU;
	f->trees[1].calls.v[f->trees[1].calls.n - 1].reason = OFF_PREEMPTED;
	add_done_by(f, "hog", 12, 60);
	add_done_by(f, "cc1", 13, 40);
	add(f, 2, 7 * MS + 610, 7 * MS + 690, NULL)->kind = CALL_OFF_CPU;
	f->trees[1].calls.v[f->trees[1].calls.n - 1].reason = OFF_BLOCKED;
	add_done_by(f, "goroutine 18", 14, 80);
	f->trees[1].done_by.v[3].is_goroutine = true;
	f->trees[1].done_by.v[3].in = "main.(*T).f";
	add_faults(f);
	*VEC_PUSH(&f->trees[1].interrupts) = (struct interrupts_mark){MS, 2 * MS, 400001};
	*VEC_PUSH(&f->trees[1].interrupts) = (struct interrupts_mark){2 * MS, 3 * MS, 500000};
	*VEC_PUSH(&f->trees[1].interrupts) = (struct interrupts_mark){5 * MS, 6 * MS, MS};
	add(f, 2, 7 * MS + 700, 7 * MS + 800, NULL)->kind = CALL_GAP;
	f->trees[1].calls.v[f->trees[1].calls.n - 1].reason = GAP_OVERFLOW;
	add(f, 2, 7 * MS + 810, 7 * MS + 820, NULL)->kind = CALL_UNTRACED;
	f->trees[1].calls.v[f->trees[1].calls.n - 1].reason = PT_EVENT_PAGE_FAULT;
	f->trees[1].calls.v[f->trees[1].calls.n - 1].entry_ip = 0x7f0012345678;
	add(f, 2, 7 * MS + 830, 7 * MS + 840, NULL)->kind = CALL_UNTRACED;
	f->trees[1].calls.v[f->trees[1].calls.n - 1].reason = CFE_SMI;
	strcpy(f->trees[1].comm, "service");
	*VEC_PUSH(&f->trees[1].waits) =
		(struct waits_for){.call = (uint32_t)f->trees[1].calls.n - 6, .text = "a lock"};
	f->hit.value_ns = 4 * MS;
	f->hit.threshold_ns = 3 * MS;
	f->hit.unix_ms = 1763700000123;
	f->hit.sequence = 9;
	f->hit.counted = COUNTED_THROTTLED | COUNTED_INTERRUPTS | COUNTED_NOT_STOLEN;
	write_trace(f, "/tmp/test_report_output.fxt.gz");
	read_trace(&trees, "/tmp/test_report_output.fxt.gz");
	assert_int_equal(trees.trees.v[0].tid, TID);
	assert_string_equal(trees.trees.v[0].comm, "service");
	expect_same_calls(&f->trees[1], &trees.trees.v[0]);
	assert_int_equal(trees.trees.v[0].done_by.n, 4);
	assert_string_equal(trees.trees.v[0].done_by.v[0].comm, "a (process b");
	assert_int_equal(trees.trees.v[0].done_by.v[0].tid, 8);
	assert_int_equal(trees.trees.v[0].done_by.v[0].ns, 100);
	assert_string_equal(trees.trees.v[0].done_by.v[1].comm, "hog");
	assert_int_equal(trees.trees.v[0].done_by.v[1].ns, 60);
	assert_string_equal(trees.trees.v[0].done_by.v[2].comm, "cc1");
	assert_int_equal(trees.trees.v[0].done_by.v[2].ns, 40);
	assert_false(trees.trees.v[0].done_by.v[2].is_goroutine);
	assert_true(trees.trees.v[0].done_by.v[3].is_goroutine);
	assert_string_equal(trees.trees.v[0].done_by.v[3].comm, "goroutine 18");
	assert_string_equal(trees.trees.v[0].done_by.v[3].in, "main.(*T).f");
	assert_int_equal(trees.trees.v[0].done_by.v[3].tid, 14);
	expect_same_faults(&f->trees[1], &trees.trees.v[0]);
	assert_int_equal(trees.trees.v[0].waits.n, 1);
	assert_int_equal(trees.trees.v[0].waits.v[0].call, trees.trees.v[0].done_by.v[0].call);
	assert_string_equal(trees.trees.v[0].waits.v[0].text, "a lock");
	assert_int_equal(trees.trees.v[0].interrupts.n, 3);
	for (size_t i = 0; i < 3; i++)
		assert_memory_equal(&trees.trees.v[0].interrupts.v[i], &f->trees[1].interrupts.v[i],
				    sizeof(struct interrupts_mark));
	assert_int_equal(trees.hits.n, 1);
	assert_int_equal(trees.hits.v[0].threshold_ns, 3 * MS);
	assert_int_equal(trees.hits.v[0].unix_ms, 1763700000123);
	assert_int_equal(trees.hits.v[0].counted, f->hit.counted);
	assert_int_equal(trees.hits.v[0].reason, MT_HIT_DELAY);
	assert_int_equal(trees.hits.v[0].value_ns, 4 * MS);
	assert_int_equal(trees.hits.v[0].sequence, 9);
	assert_int_equal(trees.hits.v[0].tid, TID);
	r = report__new(&(struct report_input){
		.trees = trees.trees.v, .n_trees = trees.trees.n, .hit = &trees.hits.v[0]});
	assert_non_null(r);
	report__free(r);
	fxt_trees__fini(&trees);
	named_image__free(image);
}

/* The hit has the thread's id; the function was called on a stack of its own. */
static void test_a_trigger_on_a_coroutines_stack(void **state)
{
	const struct trace_options options = {0};
	const char *path = "/tmp/test_report_output.fxt";
	struct fixture *f = *state;
	struct named_image *image = named_image__new();
	struct call_tree thread = {.pid = f->trees[1].pid, .tid = TID, .comm = "a: b"};
	struct trace_writer *writer;
	struct fxt_trees trees;
	struct report *r;

	add_iterations(f);
	use_named_functions(f, image);
	strcpy(f->trees[1].comm, "a: b");
	f->trees[1].coroutine = 7;
	strcpy(f->trees[1].coroutine_name, "coroutine 7");
	f->hit.value_ns = 4 * MS;
	*VEC_PUSH(&thread.calls) = (struct call){.end_ns = 1, .parent = CALL_NO_PARENT};
	writer = trace_writer__open(path, &options);
	assert_non_null(writer);
	trace_writer__thread(writer, &thread);
	trace_writer__thread(writer, &f->trees[1]);
	trace_writer__hit(writer, &f->hit);
	assert_int_equal(trace_writer__close(writer, NULL), 0);
	read_trace(&trees, path);
	assert_int_equal(trees.trees.v[0].coroutine, 0);
	assert_int_equal(trees.trees.v[1].tid, TID);
	assert_int_equal(trees.trees.v[1].coroutine, 1);
	assert_string_equal(trees.trees.v[1].comm, "a: b");
	assert_string_equal(trees.trees.v[1].coroutine_name, "coroutine 7");
	expect_same_calls(&f->trees[1], &trees.trees.v[1]);
	r = report__new(&(struct report_input){
		.trees = trees.trees.v, .n_trees = trees.trees.n, .hit = &trees.hits.v[0]});
	assert_non_null(r);
	report__free(r);
	fxt_trees__fini(&trees);
	call_tree__fini(&thread);
	named_image__free(image);
}

/* The goroutine that called the function is on the track of a thread that had run it before. */
static void test_a_trigger_on_another_threads_coroutine(void **state)
{
	struct fixture *f = *state;
	struct report_input input = {.trees = f->trees, .n_trees = 2, .hit = &f->hit};
	struct report *r;

	add_iterations(f);
	f->hit.pid = f->trees[1].pid = 41;
	f->hit.tid = TID + 7;
	assert_null(report__new(&input));
	f->trees[1].coroutine = 3;
	r = report__new(&input);
	assert_non_null(r);
	report__free(r);
	f->hit.pid = 40;
	assert_null(report__new(&input));
}

/* With samples the times of hits are exact: the hit before the slow one was in another function. */
static void test_hits_in_the_kernel_are_in_any_function(void **state)
{
	struct fixture *f = *state;

	f->hit.in_kernel = true;
	f->hit.time_ns = 1000 * MS;
	f->hit.value_ns = 900 * MS;
	add(f, 0, 0, 1000 * MS, &program);
	add(f, 1, 90 * MS, 94 * MS, &iter);
	add(f, 1, 94 * MS, 100 * MS, &iter);
	add(f, 1, 100 * MS, 1000 * MS, &work);
	add(f, 1, 1000 * MS, 1000 * MS, &iter);
	assert_int_equal(print_input(f, true, 1), 0);
	assert_non_null(strstr(f->text, "the slow iteration of iter took 900 ms"));
	assert_null(strstr(f->text, "an ordinary one"));
	/* This one was in the same. */
	f->hit.value_ns = 906 * MS;
	assert_int_equal(print_input(f, true, 1), 0);
	assert_non_null(strstr(f->text, "took 906 ms, an ordinary one 4.00 ms"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_json),
		TEST(test_a_zero_is_a_count),
		TEST(test_a_machine_that_cannot_know_says_so),
		TEST(test_memory_reclaim),
		TEST(test_iterations_without_stacks),
		TEST(test_moves_between_cpus),
		TEST(test_what_interrupts_took),
		TEST(test_difference),
		TEST(test_no_difference),
		TEST(test_one_of_several_hits),
		TEST(test_a_long_name),
		TEST(test_folded),
		TEST(test_back_from_a_trace_file),
		TEST(test_a_trigger_on_a_coroutines_stack),
		TEST(test_a_trigger_on_another_threads_coroutine),
		TEST(test_hits_in_the_kernel_are_in_any_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
