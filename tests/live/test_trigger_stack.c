// SPDX-License-Identifier: MIT
/* What a trigger takes of the thread that hit: registers, and a copy of its stack. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../unit/unwind_fixture.h"
#include "trigger_fixture.h"

#define KIB 1024

/* One hit; the copy of the stack is copied once more to `stack`. */
static struct mt_hit hit_with_copy(struct fixture *fixture, uint32_t wanted, enum job job, int arg,
				   uint8_t stack[static MT_COPY_MAX], size_t *size)
{
	const uint8_t *copy;
	struct mt_hit hit;

	attach_to(fixture, (struct trigger_config){.stack_copy = wanted}, hit_me);
	arm(fixture);
	assert_int_equal(run(fixture, job, arg), 0);
	hit = expect_hit(fixture);
	copy = trigger__stack(fixture->trigger, size);
	assert_int_equal(hit.copied, *size);
	memcpy(stack, copy, *size);
	return hit;
}

static uint64_t word_at(const uint8_t *stack, size_t offset)
{
	uint64_t word;

	memcpy(&word, stack + offset, sizeof(word));
	return word;
}

/* Where the mapping ends that holds the address. */
static uint64_t mapping_end(const struct fixture *fixture, uint64_t address)
{
	uint64_t end = 0;
	char path[64], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", fixture->child.pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx", &from, &to) == 2 && address >= from && address < to)
			end = to;
	}
	fclose(f);
	return end;
}

static void read_child(const struct fixture *fixture, uint64_t address, uint8_t *out, size_t size)
{
	char path[64];
	FILE *mem;

	snprintf(path, sizeof(path), "/proc/%d/mem", fixture->child.pid);
	mem = fopen(path, "re");
	assert_non_null(mem);
	assert_int_equal(fseek(mem, (long)address, SEEK_SET), 0);
	assert_int_equal(fread(out, 1, size, mem), size);
	fclose(mem);
}

static void test_begins_at_the_stack_pointer(void **state)
{
	static uint8_t stack[MT_COPY_MAX];
	size_t size;
	struct mt_hit hit = hit_with_copy(*state, 512, HIT_IN_CALL, 0, stack, &size);

	assert_int_equal(size, 512);
	assert_true(word_at(stack, 0) == (uintptr_t)inner_return);
	/* call_inner() saved call_outer()'s frame pointer, which lies 16 bytes above. */
	assert_true(word_at(stack, 8) == hit.sp + 24);
	assert_true(hit.bp == hit.sp + 8);
	assert_true(word_at(stack, 16) == (uintptr_t)outer_return);
}

/* Documentation/admin-guide/mm/pagemap.rst: bit 63. */
static bool is_present(const struct fixture *fixture, uint64_t address)
{
	char path[64];
	uint64_t entry = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", fixture->child.pid);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &entry, sizeof(entry), (off_t)(address / 4096 * 8)), 8);
	close(fd);
	return entry >> 63;
}

/*
 * The main thread's stack is there to its end, and no further; or to the pages that the kernel has
 * left free at random below the arguments' strings (arch/x86/kernel/process.c: arch_align_stack).
 */
static void test_ends_with_the_stack(void **state)
{
	static uint8_t stack[MT_COPY_MAX], top[64];
	struct fixture *fixture = *state;
	size_t size;
	struct mt_hit hit = hit_with_copy(fixture, MT_COPY_MAX, HIT, 1, stack, &size);
	uint64_t end = mapping_end(fixture, hit.sp);

	assert_true(end > hit.sp);
	if (size < MT_COPY_MAX && hit.sp + size < end)
		assert_false(is_present(fixture, hit.sp + size));
	else
		assert_int_equal(size, end - hit.sp < MT_COPY_MAX ? end - hit.sp : MT_COPY_MAX);
	/* What is below is in use again. */
	if (hit.sp + size == end) {
		read_child(fixture, end - sizeof(top), top, sizeof(top));
		assert_memory_equal(stack + size - sizeof(top), top, sizeof(top));
	}
}

static void test_ends_at_a_page_that_cannot_be_read(void **state)
{
	static uint8_t stack[MT_COPY_MAX];
	size_t size;
	struct mt_hit hit =
		hit_with_copy(*state, MT_COPY_MAX, HIT_SMALL_STACK, 32 * KIB, stack, &size);

	assert_true(size > 8 && size < 32 * KIB);
	assert_int_equal((hit.sp + size) % 4096, 0);
}

static void test_no_more_than_asked_for(void **state)
{
	static uint8_t stack[MT_COPY_MAX];
	size_t size;

	hit_with_copy(*state, 24, HIT, 1, stack, &size);
	assert_int_equal(size, 24);
}

static void test_nothing_where_not_asked_for(void **state)
{
	static uint8_t stack[MT_COPY_MAX];
	size_t size;

	hit_with_copy(*state, 0, HIT, 1, stack, &size);
	assert_int_equal(size, 0);
}

static void test_registers(void **state)
{
	static uint8_t stack[MT_COPY_MAX];
	size_t size;
	struct mt_hit hit = hit_with_copy(*state, 0, HIT_REGISTERS, 0, stack, &size);

	assert_true(hit.bx == OWN_REGISTER(0));
	assert_true(hit.r12 == OWN_REGISTER(12));
	assert_true(hit.r13 == OWN_REGISTER(13));
	assert_true(hit.r14 == OWN_REGISTER(14));
	assert_true(hit.r15 == OWN_REGISTER(15));
}

/* A return probe's hit is behind the return: where it went, and what is left of the stack. */
static void test_at_a_return(void **state)
{
	struct fixture *fixture = *state;
	const uint8_t *stack;
	struct mt_hit hit;
	size_t size;

	/* The caller's frame is some hundred bytes long with AddressSanitizer. */
	attach_to(fixture, (struct trigger_config){.duration_thresh_ns = 1, .stack_copy = 2 * KIB},
		  timed);
	arm(fixture);
	run(fixture, TIMED, 0);
	hit = expect_hit(fixture);
	stack = trigger__stack(fixture->trigger, &size);
	assert_int_equal(size, 2 * KIB);
	assert_true(hit.ip == hit.stack[0]);
	assert_true(hit.ip != (uintptr_t)timed);
	/* The caller's own frame lies there, and it returns into run_command() or further out. */
	assert_true(hit.bp > hit.sp && hit.bp + 16 <= hit.sp + size);
	assert_true(word_at(stack, hit.bp + 8 - hit.sp) == hit.stack[1]);
}

/* Unwound to the first function of the program. The child has the code that we have. */
static void expect_callers(struct fixture *fixture, enum job job, const void *function)
{
	struct unwind_start start;
	struct program_code code;
	struct unwound callers;
	struct mt_hit hit;

	attach_to(fixture, (struct trigger_config){.stack_copy = MT_COPY_MAX}, function);
	arm(fixture);
	run(fixture, job, 0);
	hit = expect_hit(fixture);
	start = (struct unwind_start){.ip = hit.ip,
				      .sp = hit.sp,
				      .bp = hit.bp,
				      .bx = hit.bx,
				      .r12 = hit.r12,
				      .r13 = hit.r13,
				      .r14 = hit.r14,
				      .r15 = hit.r15};
	start.stack = trigger__stack(fixture->trigger, &start.size);
	program_code__open(&code);
	assert_int_equal(unwind__stack(code.map, &start, &callers), 0);
	program_code__close(&code);
	assert_true(callers.ips.n > 5);
	assert_true(callers.ips.v[0] == (uintptr_t)function);
	assert_true(callers.ips.v[1] == (uintptr_t)inner_return);
	assert_true(callers.ips.v[2] == (uintptr_t)outer_return);
	assert_true(callers.is_whole);
	unwound__fini(&callers);
}

static void test_callers(void **state)
{
	expect_callers(*state, HIT_IN_CALL, hit_me);
}

static void test_callers_without_frame_pointer(void **state)
{
	expect_callers(*state, HIT_NO_FP_IN_CALL, hit_me_no_fp);
}

/* They come one behind the other, each with its own. */
static void test_two_in_the_ring(void **state)
{
	struct fixture *fixture = *state;
	const uint8_t *stack;
	size_t size;

	attach_to(fixture, (struct trigger_config){.stack_copy = MT_COPY_MAX}, hit_me);
	arm(fixture);
	run(fixture, HIT_IN_CALL, 0);
	arm(fixture);
	run(fixture, HIT, 1);
	assert_int_equal(expect_hit(fixture).sequence, 1);
	stack = trigger__stack(fixture->trigger, &size);
	assert_true(size > 8 && word_at(stack, 0) == (uintptr_t)inner_return);
	assert_int_equal(expect_hit(fixture).sequence, 2);
	stack = trigger__stack(fixture->trigger, &size);
	assert_true(size > 8 && word_at(stack, 0) != (uintptr_t)inner_return);
}

static void test_more_than_there_can_be(void **state)
{
	const struct trigger_config config = {.tgid = 1, .stack_copy = MT_COPY_MAX + 1};

	assert_null(trigger__new(&config));
	assert_int_equal(errno, EINVAL);
}

static int run_group(const char *name)
{
	const struct CMUnitTest tests[] = {
		LIVE(test_begins_at_the_stack_pointer),
		LIVE(test_ends_with_the_stack),
		LIVE(test_ends_at_a_page_that_cannot_be_read),
		LIVE(test_no_more_than_asked_for),
		LIVE(test_nothing_where_not_asked_for),
		LIVE(test_registers),
		LIVE(test_at_a_return),
		LIVE(test_callers),
		LIVE(test_callers_without_frame_pointer),
		LIVE(test_two_in_the_ring),
		LIVE(test_more_than_there_can_be),
	};

	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
	return run_with_both(run_group);
}
