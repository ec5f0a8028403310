// SPDX-License-Identifier: MIT
/* The recorder's copies of the stack at context switches end before the first page that is missing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <alloca.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trigger/recorder.h"

#define PAGE	   4096ul
#define N_PAGES	   12
#define STACK_COPY (8 * PAGE)

struct taken {
	const struct recorder *recorder;
	uint64_t sp;
	size_t size; /* of the last copy */
};

static int take(void *ctx, const struct mt_record *record)
{
	struct taken *taken = ctx;
	struct recorder_stack stack;

	if (record->kind != MT_RECORD_BLOCKED || record->tid != (uint32_t)gettid() ||
	    !recorder__find_stack(taken->recorder, record, &stack))
		return 0;
	taken->sp = stack.regs[2];
	taken->size = stack.size;
	return 0;
}

/* Sleeps with so many whole pages of the stack between the frame and a page that is missing. */
__attribute__((noinline)) static void sleep_below(size_t n_pages)
{
	char *area = alloca(N_PAGES * PAGE);
	char *first = (char *)(((uintptr_t)area + PAGE - 1) & -PAGE);

	memset(area, 1, N_PAGES * PAGE);
	if (n_pages < N_PAGES - 1)
		assert_int_equal(madvise(first + n_pages * PAGE, PAGE, MADV_DONTNEED), 0);
	usleep(20000);
	__asm__ volatile("" : : "r"(area) : "memory");
}

static struct taken copied(size_t n_pages)
{
	struct recorder *recorder =
		recorder__new(&(struct recorder_config){.tgid = getpid(),
							.log_size = 64u << 10,
							.stacks_size = 1u << 20,
							.stack_copy = STACK_COPY});
	struct taken taken = {.recorder = recorder};
	uint64_t since_ns;

	assert_non_null(recorder);
	/* On a machine so busy that the time is over at once, the thread does not sleep. */
	for (int try = 0; try < 50 && !taken.sp; try++) {
		recorder__begin(recorder);
		sleep_below(n_pages);
		assert_int_equal(recorder__take(recorder, &since_ns, take, &taken), 0);
	}
	assert_true(taken.sp);
	recorder__free(recorder);
	return taken;
}

static void test_copies_end_before_the_missing_page(void **state)
{
	if (geteuid())
		skip();
	assert_int_equal(copied(N_PAGES).size, STACK_COPY);
	for (size_t n_pages = 0; n_pages < 4; n_pages++) {
		struct taken taken = copied(n_pages);
		uint64_t end = taken.sp + taken.size;

		assert_int_equal(end % PAGE, 0);
		/* The frame of usleep(3) may reach into the page below the area. */
		assert_in_range(taken.size, n_pages * PAGE, (n_pages + 1) * PAGE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies_end_before_the_missing_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
