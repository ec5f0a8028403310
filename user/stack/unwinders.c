// SPDX-License-Identifier: MIT
#include "stack/unwinders.h"

#include <stddef.h>
#include <string.h>

static const struct unwinder none = {LEFT_BY_UNKNOWN, false};
static const struct unwinder throws = {LEFT_BY_THROW, false};
static const struct unwinder resumes = {LEFT_BY_THROW, true};
static const struct unwinder panics = {LEFT_BY_PANIC, false};
static const struct unwinder raises = {LEFT_BY_RAISE, false};
static const struct unwinder jumps = {LEFT_BY_LONGJMP, false};

/* The first row that is the name, or begins it, decides. */
static const struct {
	const char *text;
	bool is_whole;
	const struct unwinder *unwinder;
} rows[] = {
	/* GCC: libstdc++-v3/libsupc++, libgcc/unwind.inc */
	{"__cxa_throw", true, &throws},
	{"__cxa_rethrow", true, &throws},
	{"std::rethrow_exception(", false, &throws},
	{"_Unwind_Resume", true, &resumes},
	{"_Unwind_Resume_or_Rethrow", true, &throws},
	{"_Unwind_RaiseException", true, &throws},
	{"_Unwind_ForcedUnwind", true, &throws},
	/* glibc: nptl/ */
	{"pthread_exit", true, &throws},
	{"__pthread_unwind", true, &throws},
	/* glibc: setjmp/; where it was set says which of the two */
	{"longjmp", true, &jumps},
	{"_longjmp", true, &jumps},
	{"siglongjmp", true, &jumps},
	{"__longjmp_chk", true, &jumps},
	{"__libc_longjmp", true, &jumps},
	{"__libc_siglongjmp", true, &jumps},
	{"__longjmp", true, &jumps}, /* which the others call, and which jumps */
	{"____longjmp_chk", true, &jumps},
	{"__longjmp_cancel", true, &jumps}, /* the same, at the end of a forced unwinding */
	/* Rust: library/std/src/panicking.rs. catch_unwind() calls the first two. */
	{"std::panicking::try", false, &none},
	{"std::panicking::catch_unwind", false, &none},
	{"std::panicking::", false, &panics},
	{"std::panic::resume_unwind", false, &panics},
	{"core::panicking::", false, &panics},
	{"rust_panic", true, &panics},
	{"__rustc::rust_panic", false, &panics},
	{"rust_begin_unwind", true, &panics},
	{"__rustc::rust_begin_unwind", false, &panics},
	{"__rust_start_panic", true, &panics},
	{"__rustc::__rust_start_panic", false, &panics},
	/* OCaml: runtime/fail_nat.c */
	{"caml_raise", false, &raises},
};

const struct unwinder *unwinder__find(const char *name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].is_whole ? strcmp(name, rows[i].text) != 0
				     : strncmp(name, rows[i].text, strlen(rows[i].text)) != 0)
			continue;
		return rows[i].unwinder == &none ? NULL : rows[i].unwinder;
	}
	return NULL;
}
