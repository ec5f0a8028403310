// SPDX-License-Identifier: MIT
/* Probes that several events share: each is removed by itself, and not those of others. */
#include "capture/probe/uprobe_event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define EVENTS "/sys/kernel/tracing/uprobe_events"

/* True if the kernel has the number-th probe of this process. */
static bool is_listed(int number)
{
	char name[64], line[512];
	FILE *f = fopen(EVENTS, "re");
	bool found = false;

	assert_non_null(f);
	snprintf(name, sizeof(name), ":mtbpf/probe_%d_%d ", getpid(), number);
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, name);
	fclose(f);
	return found;
}

static void test_each_is_removed_alone(void **state)
{
	struct tracefs_probe *first, *second;
	struct uprobe_spec spec;
	uint32_t id, other;

	if (access(EVENTS, W_OK)) {
		print_message("# skip: " EVENTS " cannot be written (root, and tracefs mounted)\n");
		skip();
	}
	assert_int_equal(own_probe__spec_of(&spec, (uintptr_t)own_probe__hit), 0);
	assert_int_equal(tracefs_probe__create(&first, &spec, 0, &id), 0);
	assert_int_equal(tracefs_probe__create(&second, &spec, 1, &other), 0);
	assert_int_not_equal(id, other);
	assert_true(is_listed(0) && is_listed(1));
	tracefs_probe__remove(first);
	assert_false(is_listed(0));
	assert_true(is_listed(1));
	tracefs_probe__remove(second);
	assert_false(is_listed(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_is_removed_alone)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
