// SPDX-License-Identifier: MIT
/*
 * Non-local jumps by every name that glibc has for them: into the midst of a recursion; out of
 * signal handlers, nested ones, on an alternate stack. Each is followed by a call of back(). An
 * argument is the number of rounds.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

enum { DEPTH = 7, ALT_STACK = 65536, WAYS = 6 };

#define APART __attribute__((noipa))

/* The function, which setjmp.h hides behind a macro. */
#undef setjmp
extern int setjmp(jmp_buf env) __attribute__((returns_twice));
extern _Noreturn void __longjmp_chk(jmp_buf env, int value);

static jmp_buf home, in_handler;
static void *built_in[5];
static unsigned target, way;

APART void back(void)
{
	__asm__ volatile("");
}

/* Calls through the PLT, unlike those through a pointer. */
APART void leave(void)
{
	switch (way) {
	case 0:
		longjmp(home, 1);
	case 1:
		_longjmp(home, 1);
	case 2:
		siglongjmp(home, 1);
	case 3:
		__longjmp_chk(home, 1);
	case 4:
		raise(SIGUSR1);
		break;
	case 5:
		raise(SIGUSR2);
		break;
	}
	back();
}

/* All activations but one call no setjmp(). */
#define DESCEND(name, set)                                                                         \
	APART unsigned name(volatile unsigned depth)                                               \
	{                                                                                          \
		if (depth == target && set) {                                                      \
			back();                                                                    \
			return depth;                                                              \
		}                                                                                  \
		back();                                                                            \
		if (depth)                                                                         \
			name(depth - 1);                                                           \
		else                                                                               \
			leave();                                                                   \
		back();                                                                            \
		return depth + 1;                                                                  \
	}

DESCEND(with_setjmp, setjmp(home))
DESCEND(with__setjmp, _setjmp(home))
DESCEND(with_sigsetjmp, sigsetjmp(home, 1))
DESCEND(with_no_mask, sigsetjmp(home, 0))

APART void leave_built_in(unsigned depth)
{
	back();
	if (!depth)
		__builtin_longjmp(built_in, 1);
	leave_built_in(depth - 1);
	back();
}

/* Compiled in place: it is not seen which activation it was, so that there is but one. */
APART void with_built_in(void)
{
	if (!__builtin_setjmp(built_in))
		leave_built_in(target);
	back();
}

/* The same activation many times, at two places. */
APART void again(void)
{
	volatile unsigned left = 3;

	if (!_setjmp(home))
		back();
	while (left) {
		left--;
		if (!sigsetjmp(in_handler, 0))
			siglongjmp(in_handler, 1);
		back();
	}
	if (target-- % 4)
		longjmp(home, 1);
}

/* On the alternate stack. */
static void on_usr1(int signo)
{
	back();
	siglongjmp(home, 1);
}

/* Comes back to the handler that raised it. */
static void on_winch(int signo)
{
	back();
	siglongjmp(in_handler, 1);
}

static void on_usr2(int signo)
{
	if (!sigsetjmp(in_handler, 1))
		raise(SIGWINCH);
	back();
	if (target % 2)
		raise(SIGUSR1);
	siglongjmp(home, 1);
}

static void handle(int signo, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	if (sigaction(signo, &action, NULL))
		abort();
}

int main(int argc, char **argv)
{
	static char memory[ALT_STACK];
	static unsigned (*const descend[])(unsigned) = {with_setjmp, with__setjmp, with_sigsetjmp,
							with_no_mask};
	stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : ~0ul;

	if (sigaltstack(&stack, NULL))
		abort();
	handle(SIGUSR1, on_usr1, SA_ONSTACK | SA_NODEFER);
	handle(SIGUSR2, on_usr2, SA_NODEFER);
	handle(SIGWINCH, on_winch, SA_ONSTACK | SA_NODEFER);
	for (unsigned long i = 0; i < rounds; i++) {
		target = i % (DEPTH + 1);
		way = i % WAYS;
		descend[i / 3 % 4](DEPTH);
		back();
		with_built_in();
		again();
		back();
	}
	return 0;
}
