// SPDX-License-Identifier: MIT
#include "target/maps.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static void test_reads_every_field(void **state)
{
	static const char text[] =
		"55d0c0a00000-55d0c0a21000 r-xp 00001000 fd:01 4242                       "
		"/usr/bin/a "
		"b\\012c (deleted)\n"
		"7f0000000000-7f0000001000 rw-s 00000000 00:00 0 \n"
		"7fff00000000-7fff00001000 ---p 00000000 00:00 0                          [vdso]\n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  "
		"[vsyscall]\n";
	struct mappings maps;
	const struct mapping *m;

	assert_int_equal(mappings__parse(&maps, text), 0);
	assert_int_equal(maps.n, 4);
	m = &maps.v[0];
	assert_true(m->start == 0x55d0c0a00000 && m->end == 0x55d0c0a21000);
	assert_int_equal(m->prot, PROT_READ | PROT_EXEC);
	assert_int_equal(m->pgoff, 0x1000);
	assert_int_equal(m->maj, 0xfd);
	assert_int_equal(m->min, 1);
	assert_int_equal(m->ino, 4242);
	assert_string_equal(m->path, "/usr/bin/a b\nc (deleted)");
	assert_string_equal(maps.v[1].path, "");
	assert_int_equal(maps.v[1].prot, PROT_READ | PROT_WRITE);
	assert_string_equal(maps.v[2].path, "[vdso]");
	assert_int_equal(maps.v[2].prot, 0);
	assert_true(maps.v[3].start == 0xffffffffff600000);
	mappings__fini(&maps);
	assert_null(maps.v);
}

static void test_refuses_what_is_no_maps_line(void **state)
{
	static const char *const lines[] = {
		"hello\n",
		"\n",
		"1000-2000 r-xp 0 00:00\n",
		"1000-2000 r-xq 0 00:00 0\n",
		"1000-2000 rwx 0 00:00 0\n",
		"2000-1000 r-xp 0 00:00 0\n",
		"1000-1000 r-xp 0 00:00 0\n",
		"1000-2000 r-xp 0 00:00 zz\n",
		"-1-2000 r-xp 0 00:00 0\n",
		"10000000000000000-20000000000000000 r-xp 0 00:00 0\n",
		"1000-\n2000 r-xp 0 00:00 0\n",
		"1000-2000 r-xp 0 00:00 1 /ok\n1000",
	};
	struct mappings maps;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(mappings__parse(&maps, lines[i]), -EINVAL);
		assert_int_equal(maps.n, 0);
	}
}

static void test_empty_text_is_an_empty_map(void **state)
{
	struct mappings maps;

	assert_int_equal(mappings__parse(&maps, ""), 0);
	assert_int_equal(maps.n, 0);
	assert_null(mappings__find(&maps, 0));
	mappings__fini(&maps);
}

static void test_last_line_needs_no_newline(void **state)
{
	struct mappings maps;

	assert_int_equal(mappings__parse(&maps, "1000-2000 r-xp 00000000 00:00 7"), 0);
	assert_int_equal(maps.n, 1);
	assert_int_equal(maps.v[0].ino, 7);
	assert_string_equal(maps.v[0].path, "");
	mappings__fini(&maps);
}

static void test_finds_by_address(void **state)
{
	struct mappings maps;

	assert_int_equal(mappings__parse(&maps, "1000-2000 r-xp 0 00:00 0 \n"
						"2000-3000 r-xp 0 00:00 0 \n"
						"5000-6000 r-xp 0 00:00 0 \n"),
			 0);
	assert_null(mappings__find(&maps, 0xfff));
	assert_ptr_equal(mappings__find(&maps, 0x1000), &maps.v[0]);
	assert_ptr_equal(mappings__find(&maps, 0x1fff), &maps.v[0]);
	assert_ptr_equal(mappings__find(&maps, 0x2000), &maps.v[1]);
	assert_null(mappings__find(&maps, 0x3000));
	assert_null(mappings__find(&maps, 0x4fff));
	assert_ptr_equal(mappings__find(&maps, 0x5fff), &maps.v[2]);
	assert_null(mappings__find(&maps, 0x6000));
	mappings__fini(&maps);
}

static void test_reads_our_own(void **state)
{
	uint64_t here = (uint64_t)(uintptr_t)&test_reads_our_own;
	const struct mapping *code;
	struct mappings maps;

	assert_int_equal(mappings__read(&maps, getpid()), 0);
	code = mappings__find(&maps, here);
	assert_non_null(code);
	assert_true(code->prot & PROT_EXEC);
	assert_non_null(strstr(code->path, "test_maps"));
	assert_true(code->ino != 0);
	assert_true(mappings__find(&maps, (uint64_t)(uintptr_t)&here)->prot & PROT_WRITE);
	mappings__fini(&maps);
}

static void test_memory_is_told_from_files(void **state)
{
	static const char *const memory[] = {"",
					     "[anon:v8]",
					     "[heap]",
					     "/memfd:jit (deleted)",
					     "/dev/zero (deleted)",
					     "/tmp/code (deleted)"};
	static const char *const others[] = {
		"[vdso]",	    "[vsyscall]",     "[uprobes]",	     "/usr/bin/x",
		"/usr/lib/memfd:x", "/x (deleted) y", "[uprobes-trampoline]"};

	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		assert_true(mapping__is_memory(&(struct mapping){.path = (char *)memory[i]}));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(mapping__is_memory(&(struct mapping){.path = (char *)others[i]}));
}

static void test_says_when_there_is_no_process(void **state)
{
	struct mappings maps;

	/* Above the largest pid there can be: PID_MAX_LIMIT is 2^22. */
	assert_int_equal(mappings__read(&maps, 1 << 23), -ESRCH);
	assert_int_equal(maps.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_every_field),
		cmocka_unit_test(test_refuses_what_is_no_maps_line),
		cmocka_unit_test(test_empty_text_is_an_empty_map),
		cmocka_unit_test(test_last_line_needs_no_newline),
		cmocka_unit_test(test_finds_by_address),
		cmocka_unit_test(test_reads_our_own),
		cmocka_unit_test(test_memory_is_told_from_files),
		cmocka_unit_test(test_says_when_there_is_no_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
