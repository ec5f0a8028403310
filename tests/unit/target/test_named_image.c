// SPDX-License-Identifier: MIT
#include "target/symbols/named_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define LIB "/usr/lib/libx.so.1"

static int set_up(void **state)
{
	*state = named_image__new();
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	named_image__free(*state);
	return 0;
}

static void learn_in(struct named_image *image, const char *module, uint64_t ip, const char *symbol,
		     int64_t offset)
{
	struct named_place place = {.ip = ip,
				    .symbol = symbol,
				    .symbol_len = symbol ? strlen(symbol) : 0,
				    .module = module,
				    .module_len = strlen(module),
				    .offset = (uint64_t)offset,
				    .has_offset = offset >= 0};

	assert_int_equal(named_image__learn(image, &place, "", 0), 0);
}

static void learn(struct named_image *image, uint64_t ip, const char *symbol, int64_t offset)
{
	learn_in(image, LIB, ip, symbol, offset);
}

static void follow(struct named_image *image, enum named_branch how, uint64_t from, uint64_t to)
{
	assert_int_equal(named_image__follow(image, how, from, to), 0);
}

static const struct function *at(struct named_image *image, uint64_t ip)
{
	struct code_place place;

	if (!code_map__find(named_image__map(image), ip, &place))
		return NULL;
	return place.function;
}

static void assert_name(struct named_image *image, uint64_t ip, const char *name)
{
	const struct function *function = at(image, ip);

	assert_string_equal(function ? function->name : "-", name);
}

static uint64_t entry(struct named_image *image, uint64_t ip)
{
	struct code_place place;

	assert_true(code_map__find(named_image__map(image), ip, &place));
	return place.entry;
}

static void test_names(void **state)
{
	struct named_image *image = *state;

	learn(image, 0x1010, "f", 0x10);
	learn(image, 0x1020, "f", 0x20);
	learn(image, 0x2000, "f", 0);
	learn(image, 0x3000, "_ZN1a1bEi", 0);
	learn(image, 0x4000, "puts@plt", 0);
	assert_ptr_equal(at(image, 0x1010), at(image, 0x1020));
	/* Two static functions of one name. */
	assert_ptr_not_equal(at(image, 0x1010), at(image, 0x2000));
	assert_int_equal(entry(image, 0x1020), 0x1000);
	assert_name(image, 0x1010, "f");
	assert_name(image, 0x3000, "a::b(int)");
	assert_string_equal(at(image, 0x1010)->module, "libx.so.1");
	assert_int_equal(at(image, 0x4000)->kind, FUNCTION_PLT);
	/* What nobody has named is not known. */
	assert_null(at(image, 0x1011));
	assert_null(at(image, UINT64_MAX));
}

static void test_modules(void **state)
{
	struct named_image *image = *state;

	learn_in(image, "/a/x.so", 0x1000, "f", 0);
	learn_in(image, "/b/y.so", 0x2000, "f", 0x1000);
	learn_in(image, "[vdso]", 0x3000, NULL, 0);
	learn_in(image, "/tmp/gone (deleted)", 0x4000, "f", 0);
	learn_in(image, "", 0x5000, NULL, 0);
	learn_in(image, "[kernel.kallsyms]", 0xffffffff81000000, "do_idle", 0);
	assert_string_equal(at(image, 0xffffffff81000000)->module, "[kernel]");
	assert_ptr_not_equal(at(image, 0x1000), at(image, 0x2000));
	assert_string_equal(at(image, 0x2000)->module, "y.so");
	assert_string_equal(at(image, 0x4000)->module, "gone");
	/* Two that differ in nothing that is shown are one. */
	learn_in(image, "/tmp/\033[31mz\n.so", 0x15000, "evil", 0);
	learn_in(image, "/tmp/\a[31mz\r.so", 0x16000, "worse", 0);
	assert_string_equal(at(image, 0x15000)->module, "?[31mz?.so");
	assert_ptr_equal(at(image, 0x16000)->module, at(image, 0x15000)->module);
	assert_name(image, 0x3000, "[vdso]");
	assert_name(image, 0x5000, "[unknown]");
}

/* Without offsets: the lowest address. */
static void test_no_offsets(void **state)
{
	struct named_image *image = *state;

	learn(image, 0x1010, "f", -1);
	assert_int_equal(entry(image, 0x1010), 0x1010);
	learn(image, 0x1000, "f", -1);
	learn(image, 0x1030, "f", -1);
	assert_ptr_equal(at(image, 0x1010), at(image, 0x1030));
	assert_int_equal(entry(image, 0x1030), 0x1000);
}

static void test_cold_parts(void **state)
{
	struct named_image *image = *state;

	learn(image, 0x1010, "f", 0x10);
	learn(image, 0x9000, "f.cold", 0);
	learn(image, 0x9100, "f.cold.12", 0x10);
	assert_ptr_equal(at(image, 0x9000), at(image, 0x1010));
	assert_ptr_equal(at(image, 0x9100), at(image, 0x1010));
	/* The cold part may come first. */
	learn(image, 0xa000, "g() [clone .cold]", 0x8);
	learn(image, 0x2000, "g()", 0);
	assert_ptr_equal(at(image, 0xa000), at(image, 0x2000));
	assert_int_equal(entry(image, 0xa000), 0x2000);
	learn(image, 0xb000, "h.colder", 0);
	learn(image, 0xb100, ".cold", 0);
	assert_name(image, 0xb000, "h.colder");
	assert_name(image, 0xb100, ".cold");
}

/* Their names alike: what nobody calls, and is jumped to on a condition, is the unlikely half. */
static void test_halves(void **state)
{
	struct named_image *image = *state;

	learn(image, 0x1000, "main", 0);
	learn(image, 0x2000, "a::f", 0);
	learn(image, 0x2010, "a::f", 0x10);
	learn(image, 0x9000, "a::f", 0);
	learn(image, 0x9010, "a::f", 0x10);
	follow(image, NAMED_CALL, 0x1000, 0x2000);
	follow(image, NAMED_COND, 0x2010, 0x9000);
	assert_ptr_equal(at(image, 0x9010), at(image, 0x2000));
	assert_int_equal(entry(image, 0x9010), 0x2000);
	/* An overload is called, or jumped to at its begin. */
	learn(image, 0x3000, "a::f", 0);
	learn(image, 0x4000, "a::f", 0);
	follow(image, NAMED_JUMP, 0x2010, 0x3000);
	follow(image, NAMED_CALL, 0x1000, 0x4000);
	follow(image, NAMED_COND, 0x2010, 0x4000);
	assert_ptr_not_equal(at(image, 0x3000), at(image, 0x2000));
	assert_ptr_not_equal(at(image, 0x4000), at(image, 0x2000));
	/* Back, where the half was come to in another way. */
	learn(image, 0x5000, "b", 0);
	learn(image, 0x5010, "b", 0x10);
	learn(image, 0xa000, "b", 0);
	follow(image, NAMED_CALL, 0x1000, 0x5000);
	follow(image, NAMED_JUMP, 0xa000, 0x5010);
	assert_ptr_equal(at(image, 0xa000), at(image, 0x5000));
}

/* The map tells who remembers that something else is there now. */
static void test_replaced(void **state)
{
	struct named_image *image = *state;
	unsigned int before = code_map__replaced(named_image__map(image));

	learn(image, 0x1000, "f", 0);
	learn(image, 0x2000, "g", 0);
	assert_int_equal(code_map__replaced(named_image__map(image)), before);
	learn(image, 0x1000, "other", 0);
	assert_true(code_map__replaced(named_image__map(image)) > before);
	assert_name(image, 0x1000, "other");
}

static void test_labels(void **state)
{
	struct named_image *image = *state;
	struct named_place place = {.ip = 0x1000, .symbol = "f", .symbol_len = 1};
	const struct named_spot *spot;

	assert_null(named_image__spot(image, 0x1000));
	assert_int_equal(named_image__learn(image, &place, "a\0b", 3), 0);
	spot = named_image__spot(image, 0x1000);
	assert_non_null(spot);
	assert_int_equal(spot->label_len, 3);
	assert_memory_equal(spot->label, "a\0b", 3);
}

/* What is called begins there; what lies behind it belongs to it. */
static void test_nameless(void **state)
{
	struct named_image *image = *state;

	learn(image, 0x1000, "f", 0);
	learn(image, 0x2030, NULL, 0);
	assert_name(image, 0x2030, "[libx.so.1]");
	assert_int_not_equal(entry(image, 0x2030), 0x2030);
	learn(image, 0x2010, NULL, 0);
	follow(image, NAMED_CALL, 0x1000, 0x2010);
	assert_name(image, 0x2010, "[libx.so.1 at 0x2010]");
	assert_ptr_equal(at(image, 0x2030), at(image, 0x2010));
	assert_int_equal(entry(image, 0x2030), 0x2010);
	/* Another module begins in between; and what is too far away may be anybody's. */
	learn_in(image, "[vdso]", 0x2040, NULL, 0);
	assert_name(image, 0x2040, "[vdso]");
	learn(image, 0x22010, NULL, 0);
	assert_name(image, 0x22010, "[libx.so.1]");
	/* A function with a name ends it. */
	learn(image, 0x2050, "g", 0);
	learn(image, 0x2060, NULL, 0);
	assert_name(image, 0x2060, "[libx.so.1]");
}

/* Out of another function by a jump: a tail call, but where one has been before. */
static void test_nameless_jumps(void **state)
{
	struct named_image *image = *state;

	learn(image, 0x1000, "f", 0);
	learn(image, 0x2000, NULL, 0);
	follow(image, NAMED_JUMP, 0x1000, 0x2000);
	assert_int_equal(entry(image, 0x2000), 0x2000);
	learn(image, 0x2020, NULL, 0);
	follow(image, NAMED_JUMP, 0x2000, 0x2020);
	assert_int_equal(entry(image, 0x2020), 0x2000);
	learn(image, 0x3000, NULL, 0);
	follow(image, NAMED_OTHER, 0x1000, 0x3000);
	follow(image, NAMED_JUMP, 0x1000, 0x3000);
	assert_int_not_equal(entry(image, 0x3000), 0x3000);
}

static void test_stubs(void **state)
{
	struct named_image *image = *state;

	learn(image, 0x1000, "f", 0);
	learn(image, 0x5000, "g", 0);
	learn(image, 0x2000, NULL, 0);
	learn(image, 0x2004, NULL, 0);
	follow(image, NAMED_CALL, 0x1000, 0x2000);
	follow(image, NAMED_JUMP, 0x2004, 0x5000);
	assert_int_equal(at(image, 0x2000)->kind, FUNCTION_PLT);
	/* One that does more before it jumps is none, nor one that calls. */
	learn(image, 0x3000, NULL, 0);
	learn(image, 0x3010, NULL, 0);
	follow(image, NAMED_CALL, 0x1000, 0x3000);
	follow(image, NAMED_JUMP, 0x3010, 0x5000);
	assert_int_equal(at(image, 0x3000)->kind, FUNCTION_UNKNOWN);
	learn(image, 0x4000, NULL, 0);
	learn(image, 0x4004, NULL, 0);
	follow(image, NAMED_CALL, 0x1000, 0x4000);
	follow(image, NAMED_CALL, 0x4004, 0x5000);
	follow(image, NAMED_JUMP, 0x4004, 0x5000);
	assert_int_equal(at(image, 0x4000)->kind, FUNCTION_UNKNOWN);
}

/* A jump out of a stub to an address that perf never names. */
static void test_a_stub_to_nowhere(void **state)
{
	struct named_image *image = *state;

	learn(image, 0x1000, "f", 0);
	learn(image, 0x2000, NULL, 0);
	learn(image, 0x2004, NULL, 0);
	follow(image, NAMED_CALL, 0x1000, 0x2000);
	follow(image, NAMED_JUMP, 0x2004, 0x9000);
	assert_int_equal(at(image, 0x2000)->kind, FUNCTION_UNKNOWN);
}

/* The first use of a lazy one: it jumps to itself, and then to the head of all stubs. */
static void test_lazy_stubs(void **state)
{
	struct named_image *image = *state;

	learn(image, 0x1000, "f", 0);
	learn(image, 0x5000, "resolve", 0);
	learn(image, 0x2030, NULL, 0);
	learn(image, 0x2036, NULL, 0);
	learn(image, 0x203b, NULL, 0);
	learn(image, 0x2020, "_init", 0x20);
	learn(image, 0x2026, "_init", 0x26);
	follow(image, NAMED_CALL, 0x1000, 0x2030);
	follow(image, NAMED_JUMP, 0x2030, 0x2036);
	assert_int_equal(at(image, 0x2030)->kind, FUNCTION_UNKNOWN);
	follow(image, NAMED_JUMP, 0x203b, 0x2020);
	assert_int_equal(at(image, 0x2030)->kind, FUNCTION_PLT);
	/* It was taken for the end of what stands before it. */
	assert_int_equal(entry(image, 0x2026), 0x2020);
	follow(image, NAMED_JUMP, 0x2026, 0x5000);
	assert_int_equal(at(image, 0x2020)->kind, FUNCTION_PLT);
	learn(image, 0x2008, "_init", 0x8);
	assert_name(image, 0x2008, "_init");
}

/* That of glibc 2.17 has 256 bytes. What goes on within it is no stub, and what is called is one.
 */
static void test_a_long_init(void **state)
{
	struct named_image *image = *state;

	learn(image, 0x1000, "f", 0);
	learn(image, 0x5000, "strlen", 0);
	learn(image, 0x2000, "_init", 0);
	learn(image, 0x2058, "_init", 0x58);
	learn(image, 0x20a0, "_init", 0xa0);
	learn(image, 0x20f0, "_init", 0xf0);
	follow(image, NAMED_CALL, 0x1000, 0x2000);
	follow(image, NAMED_COND, 0x2058, 0x20a0);
	follow(image, NAMED_CALL, 0x20a0, 0x5000);
	follow(image, NAMED_OTHER, 0x20f0, 0x1000);
	assert_name(image, 0x20a0, "_init");
	assert_name(image, 0x20f0, "_init");
	learn(image, 0x2120, "_init", 0x120);
	follow(image, NAMED_CALL, 0x1000, 0x2120);
	follow(image, NAMED_JUMP, 0x2120, 0x5000);
	assert_int_equal(at(image, 0x2120)->kind, FUNCTION_PLT);
	assert_name(image, 0x20f0, "_init");
	learn(image, 0x2136, "_init", 0x136);
	assert_int_equal(entry(image, 0x2120), 0x2120);
	assert_true(strcmp(at(image, 0x2136)->raw_name, "_init") != 0);
}

/* Many functions, in no order. */
static void test_many(void **state)
{
	struct named_image *image = *state;

	for (uint64_t i = 1; i <= 20000; i++) {
		uint64_t start = 0x100000 + i * 7919 % 20011 * 32;
		char name[32];

		snprintf(name, sizeof(name), "f%d", (int)(i % 100));
		learn(image, start + 4, name, 4);
	}
	for (uint64_t i = 1; i <= 20000; i++) {
		uint64_t start = 0x100000 + i * 7919 % 20011 * 32;
		char name[32];

		snprintf(name, sizeof(name), "f%d", (int)(i % 100));
		assert_name(image, start + 4, name);
		assert_int_equal(entry(image, start + 4), start);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_modules, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_offsets, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cold_parts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_halves, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_labels, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nameless, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nameless_jumps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stubs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_stub_to_nowhere, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lazy_stubs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_long_init, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
