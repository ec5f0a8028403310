// SPDX-License-Identifier: MIT
/* The test program's own stack, unwound, against what libgcc's unwinder makes of it. */
#include "unwind_fixture.h"
#include "sanitizers.h"

#include <pthread.h>
#include <signal.h>

#define NOINLINE __attribute__((noipa))

static struct program_code code;
static struct taken taken;
static struct libgcc_callers libgcc;

/* Where it runs, and libgcc's view of the same. */
static NOINLINE void take_here(void)
{
	ucontext_t context;

	assert_int_equal(getcontext(&context), 0);
	take_context(&taken, &context);
	LIBGCC_CALLERS(&libgcc);
}

static void unwind(struct unwound *out)
{
	assert_int_equal(unwind__stack(code.map, &taken.start, out), 0);
}

/* All but the first, which is another place of the same function. */
static void expect_the_same(const struct unwound *out)
{
	assert_true(out->ips.n > 3);
	assert_int_equal(out->ips.n, libgcc.n);
	for (int i = 1; i < libgcc.n; i++)
		assert_true(out->ips.v[i] == (uint64_t)libgcc.v[i]);
	assert_true(out->is_whole);
}

static void check(void)
{
	struct unwound out;

	unwind(&out);
	expect_the_same(&out);
	unwound__fini(&out);
	taken__fini(&taken);
}

static NOINLINE int with_large_frame(int (*next)(int), int value)
{
	volatile char room[5000];

	memset((char *)room, value, sizeof(room));
	value = next(value);
	return value + room[17];
}

static NOINLINE int with_alloca(int (*next)(int), int value)
{
	volatile char *room = __builtin_alloca((size_t)value % 4096 + 16);

	room[0] = (char)value;
	value = next(value);
	return value + room[0];
}

static NOINLINE int with_alignment(int (*next)(int), int value)
{
	_Alignas(128) volatile char room[256];

	memset((char *)room, value, sizeof(room));
	return next(value) + room[3];
}

static NOINLINE int with_registers(int (*next)(int), int value)
{
	int a = value, b = value * 3, c = value * 5, d = value * 7, e = value * 11;

	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
	value = next(value);
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
	return a + b + c + d + e + value;
}

static NOINLINE int last(int value)
{
	take_here();
	check();
	return value;
}

static NOINLINE int third(int value)
{
	return with_registers(last, value) + 1;
}

static NOINLINE int second(int value)
{
	return with_alignment(third, value) + 1;
}

static NOINLINE int first(int value)
{
	return with_alloca(second, value) + 1;
}

static void test_frames_of_all_kinds(void **state)
{
	assert_true(with_large_frame(first, 77) != 0);
}

static int compare(const void *a, const void *b)
{
	if (!taken.stack) {
		take_here();
		check();
		taken.stack = (uint8_t *)1;
	}
	return *(const int *)a - *(const int *)b;
}

/* Through code of the distribution's, which has no frame pointers. */
static void test_through_the_c_library(void **state)
{
	int values[] = {3, 1, 2};

	taken.stack = NULL;
	qsort(values, 3, sizeof(values[0]), compare);
	assert_int_equal(values[0], 1);
}

static NOINLINE void *run_thread(void *arg)
{
	assert_true(first(5) != 0);
	return arg;
}

static void test_a_thread(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run_thread, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static volatile sig_atomic_t handled;
static uint64_t interrupted_ip;

static void on_signal(int signo, siginfo_t *info, void *context)
{
	interrupted_ip = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	take_here();
	handled = 1;
}

/*
 * libgcc lists the restorer as a caller, and behind it where the signal came. Of those the first is
 * none of ours.
 */
static void expect_without_restorer(void)
{
	struct unwound out;
	size_t at = 0;

	unwind(&out);
	assert_int_equal(out.ips.n, libgcc.n - 1);
	for (int i = 1; i < libgcc.n; i++) {
		if ((uint64_t)libgcc.v[i] == interrupted_ip) {
			at = (size_t)i;
			break;
		}
		assert_true(i == 2 || out.ips.v[i] == (uint64_t)libgcc.v[i]);
	}
	assert_int_equal(at, 3);
	for (size_t i = at; i < (size_t)libgcc.n; i++)
		assert_true(out.ips.v[i - 1] == (uint64_t)libgcc.v[i]);
	assert_true(out.is_whole);
	unwound__fini(&out);
	taken__fini(&taken);
}

static void handle_signal(int flags)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags};
	struct sigaction before;

	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	handled = 0;
	raise(SIGUSR1);
	assert_int_equal(handled, 1);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

static void test_a_signal_handler(void **state)
{
	not_with_thread_sanitizer("calls handlers itself, later");
	handle_signal(0);
	expect_without_restorer();
}

/* The interrupted stack is another one, which was not copied. */
static void test_a_handler_on_a_stack_of_its_own(void **state)
{
	static char room[64 * 1024];
	stack_t own = {.ss_sp = room, .ss_size = sizeof(room)}, before;
	struct unwound out;

	not_with_thread_sanitizer("calls handlers itself, later");
	assert_int_equal(sigaltstack(&own, &before), 0);
	handle_signal(SA_ONSTACK);
	assert_int_equal(sigaltstack(&before, NULL), 0);
	unwind(&out);
	assert_int_equal(out.ips.n, 3);
	assert_true(out.ips.v[1] == (uint64_t)libgcc.v[1]);
	assert_true(out.ips.v[2] == interrupted_ip);
	assert_false(out.is_whole);
	unwound__fini(&out);
	taken__fini(&taken);
}

/* A longer and longer part of the stack: the list grows, and never has anything else in it. */
static void test_a_copy_that_ends_early(void **state)
{
	struct unwound whole, out;
	size_t size, longest = 0;

	take_here();
	size = taken.start.size;
	unwind(&whole);
	for (taken.start.size = 0; taken.start.size < size && longest < whole.ips.n;
	     taken.start.size += 8) {
		unwind(&out);
		assert_true(out.ips.n >= 1 && out.ips.n >= longest);
		assert_memory_equal(out.ips.v, whole.ips.v, 8 * out.ips.n);
		assert_true(out.ips.n == whole.ips.n || !out.is_whole);
		longest = out.ips.n;
		unwound__fini(&out);
	}
	assert_int_equal(longest, whole.ips.n);
	unwound__fini(&whole);
	taken__fini(&taken);
}

static int open_code(void **state)
{
	program_code__open(&code);
	return 0;
}

static int close_code(void **state)
{
	program_code__close(&code);
	return 0;
}

/* As the kernel leaves the stack of a call whose return is probed. */
static NOINLINE void take_behind_trampoline(uint64_t trampoline)
{
	uint64_t *words;
	int replaced = 0;

	take_here();
	words = (uint64_t *)(void *)taken.stack;
	for (size_t i = 0; i < taken.start.size / 8 && !replaced; i++) {
		if (words[i] != (uint64_t)libgcc.v[2])
			continue;
		words[i] = trampoline;
		replaced++;
	}
	assert_int_equal(replaced, 1);
	taken.start.trampoline = trampoline;
	taken.start.returns_to = (uint64_t)libgcc.v[2];
	check();
}

static void test_a_call_whose_return_is_probed(void **state)
{
	take_behind_trampoline(0x7ffff000);
}

/* A call that another tool probes is not in the list: it ends the stack. */
static void test_calls_whose_returns_are_probed(void **state)
{
	static const struct function other = {0};
	const struct function *inner, *outer;
	const uint64_t trampoline = 0x7ffff000;
	struct probed_call calls[3];
	struct code_place place;
	struct unwound out;
	uint64_t *words;
	size_t replaced = 0;

	take_here();
	assert_true(code_map__find(code.map, (uint64_t)libgcc.v[1] - 1, &place));
	inner = place.function;
	assert_true(code_map__find(code.map, (uint64_t)libgcc.v[2] - 1, &place));
	outer = place.function;
	words = (uint64_t *)(void *)taken.stack;
	for (size_t i = 0; i < taken.start.size / 8 && replaced < 2; i++)
		if (words[i] == (uint64_t)libgcc.v[2 + replaced]) {
			words[i] = trampoline;
			replaced++;
		}
	assert_int_equal(replaced, 2);
	taken.start.trampoline = trampoline;
	taken.start.calls = calls;
	taken.start.n_calls = 3;
	/* A call that has begun, but whose frame is not there. */
	calls[0] = (struct probed_call){&other, 1};
	calls[1] = (struct probed_call){inner, (uint64_t)libgcc.v[2]};
	calls[2] = (struct probed_call){outer, (uint64_t)libgcc.v[3]};
	unwind(&out);
	expect_the_same(&out);
	unwound__fini(&out);
	taken.start.n_calls = 2;
	calls[0] = calls[1];
	calls[1] = (struct probed_call){&other, (uint64_t)libgcc.v[3]};
	unwind(&out);
	assert_int_equal(out.ips.n, 3);
	assert_true(out.ips.v[2] == (uint64_t)libgcc.v[2]);
	assert_false(out.is_whole);
	unwound__fini(&out);
	taken__fini(&taken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_of_all_kinds),
		cmocka_unit_test(test_through_the_c_library),
		cmocka_unit_test(test_a_thread),
		cmocka_unit_test(test_a_signal_handler),
		cmocka_unit_test(test_a_handler_on_a_stack_of_its_own),
		cmocka_unit_test(test_a_copy_that_ends_early),
		cmocka_unit_test(test_a_call_whose_return_is_probed),
		cmocka_unit_test(test_calls_whose_returns_are_probed),
	};

	return cmocka_run_group_tests(tests, open_code, close_code);
}
