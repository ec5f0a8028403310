// SPDX-License-Identifier: MIT
/* Symbols as compilers write them, and as people read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "target/elf/elf_internal.h"

/* NULL where it is none. */
static void assert_name(const char *raw_name, const char *name, const char *short_name)
{
	char *with = elf_demangle(raw_name, true), *without = elf_demangle(raw_name, false);

	if (name) {
		assert_non_null(with);
		assert_string_equal(with, name);
		assert_string_equal(without, short_name);
	} else {
		assert_null(with);
		assert_null(without);
	}
	free(with);
	free(without);
}

static void test_cxx(void **state)
{
	assert_name("_ZN2ns3Foo3barEi", "ns::Foo::bar(int)", "ns::Foo::bar");
	assert_name("_ZNK3VecIiE4sizeEv", "Vec<int>::size() const", "Vec<int>::size");
	assert_name("_ZN3FooC4Ei", "Foo::Foo(int)", "Foo::Foo");
	assert_name("_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f()",
		    "(anonymous namespace)::f");
	assert_name("_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) const",
		    "main::{lambda(int)#1}::operator()");
	assert_name("_Z", NULL, NULL);
	assert_name("_Zebra", NULL, NULL);
}

/* The hash at the end tells only crates apart. */
static void test_rust_legacy(void **state)
{
	assert_name("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write",
		    "core::fmt::write");
	assert_name("_ZN68_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..deref..Deref$GT$"
		    "5deref17h0123456789abcdefE",
		    "<alloc::vec::Vec<T> as core::ops::deref::Deref>::deref",
		    "<alloc::vec::Vec<T> as core::ops::deref::Deref>::deref");
	assert_name("_ZN3app4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
		    "app::main::{{closure}}", "app::main::{{closure}}");
}

static void test_rust_v0(void **state)
{
	assert_name("_RNvCs1234_7mycrate3foo", "mycrate::foo", "mycrate::foo");
	assert_name("_RNvMs_CskBIhGdKH8Lk_6sampleNtB4_5Meter4read", "<sample::Meter>::read",
		    "<sample::Meter>::read");
	assert_name("_RNCNvCs1234_3app4main0B3_", "app::main::{closure#0}",
		    "app::main::{closure#0}");
	assert_name("_RINvCs1234_3app3genlE", "app::gen::<i32>", "app::gen::<i32>");
}

static void test_ocaml(void **state)
{
	static const struct {
		const char *raw, *name;
	} names[] = {
		{"camlStdlib__List__iter_507", "Stdlib.List.iter"},
		{"camlMain__fun_123", "Main.fun"},
		{"camlMain__entry", "Main.entry"},
		{"camlMain__foo__151", "Main.foo_"},
		{"camlMain___foo_12", "Main._foo"},
		{"camlMain__fn_2_157", "Main.fn_2"},
		{"camlMain__map2_9", "Main.map2"},
		{"camlStdlib__$40_197", "Stdlib.@"},
		{"camlO__$3e$3e$3d_83", "O.>>="},
		{"camlO__a$27_5", "O.a'"},
		/* No hex digits, or none that would stand for a character. */
		{"camlO__$zz_1", "O.$zz"},
		{"camlO__$07_1", "O.$07"},
		{"camlO__$", "O.$"},
		{"camlO__$4", "O.$4"},
		/* OCaml 5.1: "." ends the unit's name. */
		{"camlStdlib__List.iter_507", "Stdlib.List.iter"},
		{"camlLib__Unit.a__b_12", "Lib.Unit.a__b"},
		/* flambda */
		{"camlLib__Unit__f_12_34_code", "Lib.Unit.f"},
		{"camlLib__Unit__f_0_1_code", "Lib.Unit.f"},
		{"camlLib__machine_code", "Lib.machine_code"},
		{"camlO", "O"},
		{"camlO__", "O__"},
		{"camlO_1", "O"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_name(names[i].raw, names[i].name, names[i].name);
	assert_name("caml_alloc_string", NULL, NULL);
	assert_name("caml", NULL, NULL);
	assert_name("camel", NULL, NULL);
}

static void test_others_have_one_name(void **state)
{
	assert_name("main", NULL, NULL);
	assert_name("", NULL, NULL);
	assert_name("_", NULL, NULL);
	assert_name("_init", NULL, NULL);
	assert_name("main.main", NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cxx),
		cmocka_unit_test(test_rust_legacy),
		cmocka_unit_test(test_rust_v0),
		cmocka_unit_test(test_ocaml),
		cmocka_unit_test(test_others_have_one_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
