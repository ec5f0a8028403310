// SPDX-License-Identifier: MIT
/* What raises.ml calls in C. */
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <signal.h>

value raises_through(value closure, value n)
{
	CAMLparam2(closure, n);
	CAMLlocal1(result);

	result = caml_callback(closure, n);
	CAMLreturn(result);
}

/* The exception is a value here: nobody is left. */
value raises_through_exn(value closure, value n)
{
	CAMLparam2(closure, n);
	CAMLlocal1(result);

	result = caml_callback_exn(closure, n);
	CAMLreturn(Is_exception_result(result) ? Val_int(-1) : result);
}

static __attribute__((noinline)) void fail(int n)
{
	if (n % 2)
		caml_failwith("odd");
	caml_invalid_argument("even");
}

value raises_fail(value n)
{
	fail(Int_val(n));
	return n;
}

value raises_not_found(value n)
{
	if (Int_val(n) % 3 == 0)
		caml_raise_not_found();
	return n;
}

value raises_signal(value unit)
{
	raise(SIGUSR1);
	return Val_unit;
}

static __attribute__((noinline)) value down(value closure, value n, int depth)
{
	value result;

	if (!depth)
		return caml_callback(closure, n);
	result = down(closure, n, depth - 1);
	return Val_int(Int_val(result) + 1);
}

value raises_at_bottom(value closure, value n)
{
	return down(closure, n, Int_val(n) % 4);
}
