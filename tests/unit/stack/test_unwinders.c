// SPDX-License-Identifier: MIT
/* What ends calls without a return, by its name. */
#include "stack/unwinding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void expect(const char *name, enum left_by left_by, bool resumes)
{
	const struct unwinder *unwinder = unwinder__find(name);

	assert_non_null(unwinder);
	assert_int_equal(unwinder->left_by, left_by);
	assert_int_equal(unwinder->resumes, resumes);
}

static void test_names(void **state)
{
	expect("__cxa_throw", LEFT_BY_THROW, false);
	expect("__cxa_rethrow", LEFT_BY_THROW, false);
	expect("std::rethrow_exception(std::__exception_ptr::exception_ptr)", LEFT_BY_THROW, false);
	expect("_Unwind_RaiseException", LEFT_BY_THROW, false);
	expect("_Unwind_Resume", LEFT_BY_THROW, true);
	expect("_Unwind_Resume_or_Rethrow", LEFT_BY_THROW, false);
	expect("pthread_exit", LEFT_BY_THROW, false);
	expect("std::panicking::begin_panic_handler", LEFT_BY_PANIC, false);
	expect("std::panic::resume_unwind::h123", LEFT_BY_PANIC, false);
	expect("core::panicking::panic_fmt", LEFT_BY_PANIC, false);
	expect("rust_panic", LEFT_BY_PANIC, false);
	expect("__rustc::rust_begin_unwind", LEFT_BY_PANIC, false);
	expect("caml_raise_exception", LEFT_BY_RAISE, false);
	expect("__longjmp_chk", LEFT_BY_LONGJMP, false);
	expect("__longjmp_cancel", LEFT_BY_LONGJMP, false);
}

/* Who catches has part of such a name, and so may have anybody. */
static void test_others(void **state)
{
	static const char *const names[] = {
		"",
		"main",
		"__cxa_throw_bad",
		"rust_panicky",
		"_Unwind_GetIP",
		"__cxa_begin_catch",
		"std::panicking::try::do_call<void>",
		"std::panicking::catch_unwind::do_call",
		"std::panic::catch_unwind",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_null(unwinder__find(names[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
