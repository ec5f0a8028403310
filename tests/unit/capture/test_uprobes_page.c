// SPDX-License-Identifier: MIT
#include "capture/code/live_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/recording/recording.h"

static const uint8_t own[] = {0x50, 0x51, 0x0f, 0x05};
static const uint8_t probed[UPROBES_INSN_SIZE] = {0x48, 0x83, 0xec, 0x08};

/* Its trace goes through the page all the same: where the kernel puts it. */
static void test_of_a_process_that_has_exited(void **state)
{
	struct recording rec;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	recording__init(&rec);
	assert_int_equal(uprobes_page__add(&rec, pid, 77, own, sizeof(own), probed), 0);
	assert_int_equal(rec.maps.n, 1);
	assert_int_equal(rec.maps.v[0].pid, pid);
	assert_int_equal(rec.maps.v[0].time_ns, 77);
	assert_int_equal(rec.maps.v[0].start, 0x7fffffffe000);
	assert_int_equal(rec.maps.v[0].len, 4096);
	assert_string_equal(rec.maps.v[0].path, "[uprobes]");
	assert_int_equal(rec.images.n, 1);
	assert_memory_equal(rec.images.v[0].data, own, sizeof(own));
	assert_memory_equal(rec.images.v[0].data + 128, probed, sizeof(probed));
	assert_memory_equal(rec.images.v[0].data + 4096 - 128, probed, sizeof(probed));
	/* Once. */
	assert_int_equal(uprobes_page__add(&rec, pid, 78, own, sizeof(own), probed), 0);
	assert_int_equal(rec.maps.n, 1);
	recording__fini(&rec);
}

static void test_of_a_process_without_a_probe(void **state)
{
	struct recording rec;

	recording__init(&rec);
	assert_int_equal(uprobes_page__add(&rec, getpid(), 77, own, sizeof(own), probed), 0);
	assert_int_equal(rec.maps.n, 0);
	assert_int_equal(rec.images.n, 0);
	recording__fini(&rec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_a_process_that_has_exited),
		cmocka_unit_test(test_of_a_process_without_a_probe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
