// SPDX-License-Identifier: MIT
/* Calls made by this test's own code: what is known of where they were made. */
#include "stack/call_tree.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "inlined_tree.h"
#include "target/code_map.h"

/* Where the images lie in the map. */
#define HERE  0x10000000
#define OTHER 0x20000000

static int callee(int a)
{
	return a * 3;
}

static inline __attribute__((always_inline)) int inlined(int a)
{
	__asm__ volatile(".globl call_sites_inlined\ncall_sites_inlined: nop");
	return callee(a);
}
enum { SAMPLE_LINE = __LINE__ - 3 };

static __attribute__((noipa)) int caller(int a)
{
	return inlined(a) + 1;
}

struct fixture {
	struct elf_image *image, *other;
	struct code_map *map;
	uint64_t ip; /* of the nop */
	const struct function *function;
	struct call_tree tree;
};

extern char call_sites_inlined[];

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fd = open("/proc/self/exe", O_RDONLY);
	uint64_t vaddr = (uintptr_t)call_sites_inlined - (uintptr_t)&caller;
	const struct function *function = NULL;
	struct code_place place;

	f->image = elf_image__open(fd, "self");
	close(fd);
	f->other = elf_image__raw("\x90\xc3", 2, "[other]", "other");
	f->map = code_map__new();
	assert_int_equal(code_map__add(f->map, HERE, 1 << 30, 0, f->image), 0);
	for (size_t i = 0; i < elf_image__function_count(f->image); i++)
		if (!strcmp(elf_image__raw_name(f->image, i), "caller"))
			function = elf_image__function(f->image, i);
	assert_non_null(function);
	f->ip = HERE + elf_image__offset_of_vaddr(f->image, function->vaddr + vaddr);
	assert_true(code_map__find(f->map, f->ip, &place));
	f->function = place.function;
	*state = f;
	return caller(1) == 4 ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	free_tree(&f->tree);
	code_map__free(f->map);
	elf_image__free(f->image);
	elf_image__free(f->other);
	free(f);
	return 0;
}

/* Two calls by the nop, one by nobody, one from where there is no code. */
static void add_calls(struct fixture *f)
{
	add_call(&f->tree, 0, 0, 100, 0)->function = f->function;
	add_call(&f->tree, 1, 10, 20, f->ip);
	add_call(&f->tree, 1, 30, 40, f->ip);
	add_call(&f->tree, 1, 50, 60, 0);
	add_call(&f->tree, 1, 70, 80, OTHER - 1);
}

static bool has_lines(struct fixture *f)
{
	struct source_place place;

	if (function__source(f->function, &place))
		return true;
	print_message("# skip: built without debug info\n");
	return false;
}

static void test_what_is_known(void **state)
{
	struct fixture *f = *state;
	const struct call_site *site;

	add_calls(f);
	assert_int_equal(call_sites__find_all(&f->tree.sites, &f->tree, f->map), 0);
	assert_int_equal(f->tree.sites.n, 2);
	assert_null(call_sites__find(&f->tree.sites, 0));
	assert_null(call_sites__find(&f->tree.sites, OTHER - 1));
	assert_null(call_sites__find(&f->tree.sites, OTHER));
	if (!has_lines(f))
		skip();
	site = call_sites__find(&f->tree.sites, f->ip);
	assert_int_equal(f->tree.sites.n_known, 1);
	assert_int_equal(f->tree.sites.n_inlined, 1);
	assert_ptr_equal(site->function, f->function);
	assert_int_equal(site->source.line, SAMPLE_LINE);
	assert_non_null(strstr(site->source.file, "test_call_sites.c"));
	assert_string_equal(site->inlined->function->name, "inlined");
	assert_ptr_equal(call__site(&f->tree.calls.v[1], &f->tree.sites), site);
	assert_null(call__site(&f->tree.calls.v[0], &f->tree.sites));
}

/* The first of the calls was made by other code, which lay there before. */
static void test_code_that_was_replaced(void **state)
{
	struct fixture *f = *state;

	add_calls(f);
	f->tree.calls.v[0].function = &physical;
	/* Something else has come, elsewhere: no code is sure to have been there always. */
	assert_int_equal(code_map__add(f->map, OTHER, 4096, 0, f->other), 0);
	assert_int_equal(call_sites__find_all(&f->tree.sites, &f->tree, f->map), 0);
	assert_null(call_sites__find(&f->tree.sites, f->ip));
	assert_int_equal(f->tree.sites.n_known, 0);
}

/* A tail call's jump is not in its parent. */
static void test_tail_calls_of_replaced_code(void **state)
{
	struct fixture *f = *state;

	if (!has_lines(f))
		skip();
	add_calls(f);
	f->tree.calls.v[0].function = &physical;
	f->tree.calls.v[1].flags = f->tree.calls.v[2].flags = CALL_BY_JUMP;
	assert_int_equal(code_map__add(f->map, OTHER, 4096, 0, f->other), 0);
	assert_int_equal(call_sites__find_all(&f->tree.sites, &f->tree, f->map), 0);
	assert_non_null(call_sites__find(&f->tree.sites, f->ip));
}

static void test_many(void **state)
{
	struct fixture *f = *state;

	add_call(&f->tree, 0, 0, 100000, 0)->function = f->function;
	for (unsigned int i = 0; i < 20000; i++)
		add_call(&f->tree, 1, i, i, i % 2 ? f->ip : OTHER + i);
	assert_int_equal(call_sites__find_all(&f->tree.sites, &f->tree, f->map), 0);
	assert_int_equal(f->tree.sites.n, 10001);
	if (!has_lines(f))
		skip();
	assert_non_null(call_sites__find(&f->tree.sites, f->ip));
	assert_int_equal(f->tree.sites.n_known, 1);
}

/* Those of another tree; what is known already stays. */
static void test_sites_of_another_tree(void **state)
{
	struct fixture *f = *state;
	struct call_sites own = {0};

	add_calls(f);
	assert_int_equal(call_sites__find_all(&f->tree.sites, &f->tree, f->map), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(call_sites__add_all(&own, &f->tree.sites), 0);
	assert_int_equal(own.n, 2);
	assert_null(call_sites__find(&own, OTHER - 1));
	if (has_lines(f)) {
		const struct call_site *site = call_sites__find(&own, f->ip);

		assert_int_equal(own.n_known, 1);
		assert_int_equal(own.n_inlined, 1);
		assert_ptr_equal(site->function, f->function);
		assert_ptr_not_equal(site, call_sites__find(&f->tree.sites, f->ip));
	}
	call_sites__fini(&own);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_is_known),
		TEST(test_code_that_was_replaced),
		TEST(test_tail_calls_of_replaced_code),
		TEST(test_many),
		TEST(test_sites_of_another_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
