// SPDX-License-Identifier: MIT
#include "capture/probe/uprobe_event.h"

#include "said.h"

#include <errno.h>
#include <unistd.h>

#include "stderr_capture.h"

/* attr.config has 32 bits for the semaphore's offset in the file. */
static void test_a_semaphore_beyond_4_gib(void **state)
{
	const struct uprobe_spec spec = {
		.path = "/proc/self/exe", .offset = 0x1000, .semaphore = 1ull << 32, .pid = -1};
	struct stderr_capture capture;
	const char *said;
	int fd;

	if (access("/sys/bus/event_source/devices/uprobe/type", R_OK))
		skip();
	stderr_capture__begin(&capture);
	fd = uprobe_event__open(&spec);
	said = stderr_capture__end(&capture);
	assert_int_equal(fd, -EOPNOTSUPP);
	ASSERT_COMPLAINT(said);
	ASSERT_ERROR(said, TEXT_semaphore_too_far, 1ull << 32, "/proc/self/exe");
	ASSERT_HINT(said, TEXT_name_containing_function);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_semaphore_beyond_4_gib)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
