// SPDX-License-Identifier: MIT
/* Go's own numbers and offsets, as the sources of each version have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "target/go_runtime.h"

static void assert_reason(unsigned int minor, unsigned int number, const char *text)
{
	const char *said = go_runtime__wait_reason(minor, number);

	if (text) {
		assert_non_null(said);
		assert_string_equal(said, text);
	} else {
		assert_null(said);
	}
}

/* In the order of runtime/runtime2.go; NULL: only the runtime's own goroutines wait for that. */
static void assert_order(unsigned int minor, const char *const *texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_reason(minor, (unsigned int)i, texts[i]);
}

#define ASSERT_ORDER(minor, ...)                                                                   \
	do {                                                                                       \
		static const char *const texts[] = {__VA_ARGS__};                                  \
		assert_order(minor, texts, sizeof(texts) / sizeof(texts[0]));                      \
	} while (0)

#define UNTIL_25                                                                                   \
	NULL, "GC assist marking", "IO wait", "chan receive (nil chan)", "chan send (nil chan)",   \
		NULL /* dumping heap */, "garbage collection", "garbage collection scan",          \
		"panicwait", "select", "select (no cases)", "GC assist wait", "GC sweep wait",     \
		NULL /* scavenge */, "chan receive", "chan send", NULL /* finalizer */,            \
		NULL /* force gc */

static void test_wait_reasons_of_each_version(void **state)
{
	(void)state;
	for (unsigned int minor = 17; minor <= 19; minor++)
		ASSERT_ORDER(minor, UNTIL_25, "semacquire", "sleep", "sync.Cond.Wait", NULL, NULL,
			     "wait for GC cycle", NULL, NULL, NULL);
	for (unsigned int minor = 20; minor <= 23; minor++)
		ASSERT_ORDER(minor, UNTIL_25, "semacquire", "sleep", "sync.Cond.Wait",
			     "sync.Mutex.Lock", "sync.RWMutex.RLock", "sync.RWMutex.Lock",
			     NULL /* trace reader */, "wait for GC cycle", NULL, NULL, NULL);
	ASSERT_ORDER(24, UNTIL_25, "semacquire", "sleep", "sync.Cond.Wait", "sync.Mutex.Lock",
		     "sync.RWMutex.RLock", "sync.RWMutex.Lock", "sync.WaitGroup.Wait",
		     NULL /* trace reader */, "wait for GC cycle", NULL, NULL, NULL);
	ASSERT_ORDER(25, UNTIL_25, NULL /* GOMAXPROCS updater */, "semacquire", "sleep",
		     "sync.Cond.Wait", "sync.Mutex.Lock", "sync.RWMutex.RLock", "sync.RWMutex.Lock",
		     "sync.WaitGroup.Wait", NULL /* trace reader */, "wait for GC cycle", NULL,
		     NULL);
	for (unsigned int minor = 26; minor <= 27; minor++)
		ASSERT_ORDER(minor, NULL, "GC assist marking", "IO wait", NULL /* dumping heap */,
			     "garbage collection", "garbage collection scan", "panicwait",
			     "GC assist wait", "GC sweep wait", NULL /* scavenge */,
			     NULL /* finalizer */, NULL /* force gc */, NULL /* GOMAXPROCS */,
			     "semacquire", "sleep", "chan receive (nil chan)",
			     "chan send (nil chan)", "select (no cases)", "select", "chan receive",
			     "chan send", "sync.Cond.Wait", "sync.Mutex.Lock", "sync.RWMutex.RLock",
			     "sync.RWMutex.Lock", "sync.WaitGroup.Wait", NULL /* trace reader */,
			     "wait for GC cycle", NULL, NULL);
	assert_reason(22, 37, NULL);
	assert_reason(23, 37, "GC weak to strong wait");
	assert_reason(24, 38, "GC weak to strong wait");
	assert_reason(27, 39, "GC weak to strong wait");
}

static void assert_offsets(unsigned int minor, uint32_t goid, uint32_t curg)
{
	struct mt_go_offsets offsets;

	assert_true(go_runtime__offsets(minor, &offsets));
	assert_int_equal(offsets.goid, goid);
	assert_int_equal(offsets.m, 48);
	assert_int_equal(offsets.curg, curg);
}

/* As the DWARF of programs that were built by these versions has them. */
static void test_offsets_of_each_version(void **state)
{
	(void)state;
	assert_offsets(17, 152, 192);
	assert_offsets(19, 152, 192);
	assert_offsets(22, 152, 192);
	assert_offsets(23, 160, 192);
	assert_offsets(24, 160, 192);
	assert_offsets(25, 152, 184);
	assert_offsets(26, 152, 184);
	assert_offsets(27, 152, 184);
}

/* Nothing is said of what was not looked at: numbers and places move. */
static void test_a_version_that_is_not_known(void **state)
{
	static const unsigned int unknown[] = {0, 16, 28, 99};
	struct mt_go_offsets offsets = {.goid = 1, .m = 1, .curg = 1};

	(void)state;
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		assert_false(go_runtime__offsets(unknown[i], &offsets));
		assert_int_equal(offsets.goid | offsets.m | offsets.curg, 0);
		for (unsigned int number = 0; number < 256; number++)
			assert_reason(unknown[i], number, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wait_reasons_of_each_version),
		cmocka_unit_test(test_offsets_of_each_version),
		cmocka_unit_test(test_a_version_that_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
