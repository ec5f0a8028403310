// SPDX-License-Identifier: MIT
/*
 * selftest's check of kernel traces, for which no PMU is at hand: a made stream in which
 * PROGRAM_SYSCALLS calls getppid() five times and the kernel is traced too.
 */
#include "../kernel_stream.h"

#include "selftest/judge.h"
#include "../../stack_state.h"

/* Functions of the program: main calls the other once for each system call. */
#define MAIN 0x00
#define ONCE 0x40

struct fixture {
	struct traced traced;
	struct iteration iteration;
	struct decoded decoded;
	struct images *images;
	struct code_map *map;
	struct call_tree tree;
	struct judged_calls judged;
};

static uint16_t number_of(const char *name)
{
	for (unsigned int i = 0; i < n_program_functions; i++)
		if (!strcmp(program_functions[i].name, name))
			return (uint16_t)i;
	fail_msg("no function %s", name);
	return 0;
}

static void note(struct fixture *f, const char *function, uint16_t depth)
{
	f->iteration.calls[f->iteration.n++] =
		(struct noted_call){.tid = TID, .function = number_of(function), .depth = depth};
}

/* Five times "call ONCE"; ONCE is "syscall; ret". Named as code without a file is. */
static void map_program(struct fixture *f)
{
	static const char names[] = "401000 40 mtbpf_selftest_syscall_main\n"
				    "401040 20 mtbpf_selftest_syscall_once\n";
	struct rec_perf_map map = {.pid = PID, .text = strdup(names)};
	uint8_t code[CODE_SIZE];

	memset(code, 0x90, sizeof(code));
	for (int i = 0; i < N_SYSCALLS; i++) {
		code[5 * i] = 0xe8;
		code[5 * i + 1] = (uint8_t)(ONCE - 5 * (i + 1));
		memset(code + 5 * i + 2, 0, 3);
	}
	memcpy(code + ONCE, (uint8_t[]){0x0f, 0x05, 0xc3}, 3);
	assert_int_equal(recording__add_map(&f->traced.rec, &(struct rec_map){.start = BASE,
									      .len = CODE_SIZE,
									      .pid = PID,
									      .tid = PID,
									      .path = "//anon"}),
			 0);
	assert_int_equal(
		recording__add_image(&f->traced.rec, &(struct rec_image){.path = "",
									 .start = BASE,
									 .data = code,
									 .size = sizeof(code),
									 .pid = PID}),
		0);
	assert_int_equal(VEC_ADD(&f->traced.rec.perf_maps, map), 0);
}

/* The fixture's kernel, whose module has the system call's function. */
static void add_kernel(struct fixture *f)
{
	static const char old[] = "t mod_read\t[mod]\n", new[] = "t __x64_sys_getppid\n";
	char proc[40], text[sizeof(kernel_kallsyms) + sizeof(new)];
	const char *at = strstr(kernel_kallsyms, old);

	make_proc(proc);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - kernel_kallsyms), kernel_kallsyms, new,
		 at + strlen(old));
	write_in(proc, "kallsyms", text, strlen(text));
	assert_int_equal(kernel_copy__make(proc, true, &f->traced.rec.kernel), 0);
	assert_int_equal(fs__remove_dir(proc), 0);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	traced__init(&f->traced, NO_PSB, NO_TSC, true);
	map_program(f);
	note(f, "mtbpf_selftest_syscall_main", 0);
	for (int i = 0; i < N_SYSCALLS; i++)
		note(f, "mtbpf_selftest_syscall_once", 1);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	call_tree__fini(&f->tree);
	code_map__free(f->map);
	images__free(f->images);
	traced__fini(&f->traced);
	free(f);
	return 0;
}

/* do_syscall_64() calls __schedule(), which switches to nobody, and then the system call. */
static void run_in_kernel(struct traced *t)
{
	traced__enter(t, 1, ONCE, K(ENTRY_SYSCALL), 2);
	traced__call(t, 2, K(CALL_DO_SYSCALL), K(DO_SYSCALL));
	traced__call(t, 2, K(DO_SYSCALL) + 1, K(SCHEDULE));
	traced__call(t, 1, K(SCHEDULE), K(SCHED_OUT));
	traced__call(t, 1, K(SCHED_OUT), K(PT_STOP));
	traced__ret(t, 3, K(PT_STOP) + 3, K(SCHED_OUT) + 5);
	traced__ret(t, 1, K(SCHED_OUT) + 5, K(SCHEDULE) + 5);
	traced__call(t, 2, K(SCHEDULE) + 6, K(FINISH_SWITCH));
	traced__call(t, 1, K(FINISH_SWITCH), K(PT_START));
	traced__ret(t, 3, K(PT_START) + 3, K(FINISH_SWITCH) + 5);
	traced__ret(t, 2, K(FINISH_SWITCH) + 6, K(SCHEDULE) + 11);
	traced__ret(t, 1, K(SCHEDULE) + 11, K(DO_SYSCALL) + 6);
	traced__call_indirect(t, 2, K(CALL_MODULE), MOD(0));
	traced__ret(t, 2, MOD(1), K(CALL_MODULE) + 2);
	traced__ret(t, 1, K(CALL_MODULE) + 2, K(SYSRET));
	traced__leave(t, 1, K(SYSRET), ONCE + 2, 3);
}

/* The first n_traced system calls are traced in the kernel; the others end the trace there. */
static void run(struct fixture *f, int n_traced)
{
	struct traced *t = &f->traced;

	traced__enable(t, MAIN);
	for (int i = 0; i < N_SYSCALLS; i++) {
		traced__call(t, 1, (uint64_t)(5 * i), ONCE);
		if (i < n_traced) {
			run_in_kernel(t);
		} else {
			traced__syscall(t, 1, ONCE);
			traced__enable(t, ONCE + 2);
		}
		traced__ret(t, 1, ONCE + 2, (uint64_t)(5 * i + 5));
	}
	traced__async(t, 0, 5 * N_SYSCALLS);
}

TAKE_EACH(take_to_stack, take_one)

static void judge(struct fixture *f)
{
	struct traced *t = &f->traced;
	struct rec_aux aux = {
		.pid = PID, .tid = TID, .data = t->out.bytes.v, .size = t->out.bytes.n};
	struct decode_totals totals = {0};
	struct stack *stack;

	f->images = images__new(&t->rec);
	f->map = code_map__new();
	stack = stack__new(PID, TID, "worker", f->map);
	assert_int_equal(decode__run(&(struct decode_request){.rec = &t->rec,
							      .aux = &aux,
							      .images = f->images,
							      .map = f->map,
							      .take = take_to_stack,
							      .ctx = stack,
							      .totals = &totals}),
			 0);
	assert_int_equal(stack__finish(stack, &f->tree), 0);
	stack__free(stack);
	f->decoded.trees.v = &f->tree;
	f->decoded.trees.n = 1;
	assert_int_equal(
		judge__calls(&f->decoded, &f->iteration, PROGRAM_SYSCALLS, UINT64_MAX, &f->judged),
		0);
	assert_int_equal(f->judged.noted, 1 + N_SYSCALLS);
}

static void test_all_system_calls(void **state)
{
	struct fixture *f = *state;

	add_kernel(f);
	run(f, N_SYSCALLS);
	judge(f);
	assert_int_equal(f->judged.right, 1 + N_SYSCALLS);
	assert_int_equal(f->judged.in_kernel, N_SYSCALLS);
}

static void test_one_is_missing(void **state)
{
	struct fixture *f = *state;

	add_kernel(f);
	run(f, N_SYSCALLS - 1);
	judge(f);
	assert_int_equal(f->judged.right, 1 + N_SYSCALLS);
	assert_int_equal(f->judged.in_kernel, N_SYSCALLS - 1);
}

/* Gaps, at which the stack breaks. */
static void test_the_kernels_code_is_unknown(void **state)
{
	struct fixture *f = *state;

	run(f, N_SYSCALLS);
	judge(f);
	assert_true(f->judged.right < 1 + N_SYSCALLS);
	assert_int_equal(f->judged.in_kernel, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_system_calls),
		TEST(test_one_is_missing),
		TEST(test_the_kernels_code_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
