// SPDX-License-Identifier: MIT
/*
 * How this kernel makes probes cheaper, as "fact: TEXT" lines, and whether the copy that recordings
 * get of the code it calls for that is complete.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/code/live_code.h"
#include "capture/probe/uprobe_event.h"
#include "target/maps.h"

#define ENOTSUPP 524 /* include/linux/errno.h: not for user space, but the kernel lets it out */

/* The kernel may make a call of a nop; which lengths it takes depends on its version. */
__asm__(".text\n.balign 64\n"
	".type probed_nop_5, @function\n"
	"probed_nop_5: .byte 0x0f, 0x1f, 0x44, 0, 0\n"
	"ret\n"
	".balign 64\n"
	".type probed_nop_10, @function\n"
	"probed_nop_10: .byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\n"
	"ret\n");
void probed_nop_5(void);
void probed_nop_10(void);

static bool has_trampoline(void)
{
	struct mappings maps;
	bool found = false;

	assert_int_equal(mappings__read(&maps, getpid()), 0);
	for (size_t i = 0; i < maps.n; i++)
		found |= !strcmp(maps.v[i].path, UPROBES_TRAMPOLINE);
	mappings__fini(&maps);
	return found;
}

/* Hits a probe on the function; true if its code is a call afterwards, and no int3. */
static bool is_optimised(void (*function)(void))
{
	const struct uprobe_group group = {.place = event_place__of_thread(0), .leader = -1};
	const volatile uint8_t *code = (const volatile uint8_t *)(uintptr_t)function;
	struct uprobe_spec spec = {.path = "/proc/self/exe", .pid = getpid()};
	const struct mapping *m;
	struct mappings maps;
	uint8_t probed;
	int fd;

	assert_int_equal(mappings__read(&maps, getpid()), 0);
	m = mappings__find(&maps, (uintptr_t)function);
	assert_non_null(m);
	spec.offset = (uintptr_t)function - m->start + m->pgoff;
	mappings__fini(&maps);
	fd = uprobe_event__open_in_group(&spec, &group);
	/* Before Linux 7.2, no probe can be set on an instruction with the prefix that makes it
	 * long. */
	if (fd == -ENOTSUPP)
		return false;
	assert_true(fd >= 0);
	for (int i = 0; i < 3; i++)
		function();
	probed = code[0];
	close(fd);
	return probed != 0xcc;
}

static void test_entry_probes(void **state)
{
	uint8_t page[UPROBES_PAGE_SIZE];
	/* First, as long as no probe of ours has made the kernel map it. */
	bool has_page = uprobes_trampoline__read(page, sizeof(page)) > 0;
	bool five = is_optimised(probed_nop_5), ten = is_optimised(probed_nop_10);

	assert_int_equal(five || ten, has_trampoline());
	printf("fact: probe %s\n", five	 ? "nop of 5 bytes becomes a call"
				   : ten ? "nop of 10 bytes becomes a call"
					 : "int3 only");
	assert_int_equal(has_page, five || ten);
}

static void test_return_probes(void **state)
{
	uint8_t page[UPROBES_PAGE_SIZE];

	assert_true(uprobes_page__read(page, sizeof(page)) > 0);
	printf("fact: return %s\n", page[0] == 0xcc ? "int3" : "system call");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entry_probes),
		cmocka_unit_test(test_return_probes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
