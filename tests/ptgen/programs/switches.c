// SPDX-License-Identifier: MIT
/*
 * Coroutines, each on a stack of its own, entered and left at several depths.
 *
 *   switches HOW WHAT ROUNDS
 *
 * HOW they switch: context (swapcontext), ret or jump: assembler that ends in such an instruction;
 * longjmp: setjmp() and longjmp(), as QEMU's util/coroutine-ucontext.c does; longjmps: the same, in
 * one function that enters and another that comes back.
 * WHAT they do: one (is entered again and again), many (are entered in turn, and come back), depths
 * (the same, at other depths each time), nested (enter one another), ring (each goes on to the
 * next, and none comes back), short (end, and others begin on their stacks), signal (a handler runs
 * on their stacks, and is left by longjmp).
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK = 1 << 20, MAX = 5, DEPTH = 6 };

#define APART __attribute__((noipa))

struct coroutine {
	ucontext_t context;
	sigjmp_buf env;
	void *sp;
	void (*run)(void);
	struct coroutine *caller;
	unsigned depth; /* to go down before it switches */
	int ended;
	void *memory;
};

/* Saves what a call must keep, and the stack pointer; takes the other's. */
extern void switch_ret(void **save, void *to);
extern void switch_jump(void **save, void *to);
__asm__(".text\n"
	".macro switch_to\n"
	"	push %rbp\n	push %rbx\n	push %r12\n	push %r13\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r13\n	pop %r12\n	pop %rbx\n	pop %rbp\n"
	".endm\n"
	".globl switch_ret, switch_jump\n"
	".type switch_ret, @function\n"
	"switch_ret:\n"
	"	switch_to\n"
	"	ret\n"
	".size switch_ret, . - switch_ret\n"
	".type switch_jump, @function\n"
	"switch_jump:\n"
	"	switch_to\n"
	"	pop %rcx\n"
	"	jmp *%rcx\n"
	".size switch_jump, . - switch_jump\n");

static void (*switch_by)(void **save, void *to); /* NULL: swapcontext() */
static int by_longjmp, by_two;
static struct coroutine all[MAX], first, *running = &first;
static unsigned long rounds;

APART void back(void)
{
	__asm__ volatile("");
}

/* Not in go_to(): a function that calls setjmp() ends in no tail call. */
APART void jump_to(struct coroutine *from, struct coroutine *to)
{
	if (!sigsetjmp(from->env, 0))
		siglongjmp(to->env, 1);
}

APART void jump_back(struct coroutine *from, struct coroutine *to)
{
	if (!sigsetjmp(from->env, 0))
		siglongjmp(to->env, 1);
}

APART void go_to(struct coroutine *to)
{
	struct coroutine *from = running;

	running = to;
	if (by_two && to == from->caller)
		jump_back(from, to);
	else if (by_longjmp)
		jump_to(from, to);
	else if (switch_by)
		switch_by(&from->sp, to->sp);
	else
		swapcontext(&from->context, &to->context);
	back();
}

APART void enter(struct coroutine *c)
{
	c->caller = running;
	go_to(c);
	back();
}

APART void yield(void)
{
	go_to(running->caller);
	back();
}

static void begin(void)
{
	running->run();
	running->ended = 1;
	if (!switch_by && !by_longjmp)
		return; /* uc_link */
	go_to(running->caller);
	abort();
}

static void begin_context(void)
{
	begin();
	running = running->caller;
}

static struct coroutine *made;
static sigjmp_buf maker;

/* On the new stack: it waits to be entered. */
static void trampoline(void)
{
	struct coroutine *c = made;

	if (!sigsetjmp(c->env, 0))
		siglongjmp(maker, 1);
	begin();
}

APART void make_env(struct coroutine *c)
{
	ucontext_t here;

	made = c;
	makecontext(&c->context, trampoline, 0);
	if (!sigsetjmp(maker, 0))
		swapcontext(&here, &c->context);
}

static void prepare(struct coroutine *c, void (*run)(void), unsigned depth)
{
	void **top;

	if (!c->memory)
		c->memory = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				 -1, 0);
	if (c->memory == MAP_FAILED)
		abort();
	c->run = run;
	c->depth = depth;
	c->ended = 0;
	top = (void **)((char *)c->memory + STACK - 256);
	top[4] = (void *)begin;
	top[5] = NULL; /* nothing to return to */
	c->sp = top;
	getcontext(&c->context);
	c->context.uc_stack.ss_sp = c->memory;
	c->context.uc_stack.ss_size = STACK;
	c->context.uc_link = &first.context;
	if (by_longjmp)
		make_env(c);
	else
		makecontext(&c->context, begin_context, 0);
}

APART void yield_from(unsigned depth)
{
	back();
	if (depth)
		yield_from(depth - 1);
	else
		yield();
	back();
}

static void generate(void)
{
	for (;;) {
		yield_from(running->depth);
		back();
	}
}

static void one(void)
{
	prepare(&all[0], generate, 3);
	for (unsigned long i = 0; i < rounds; i++) {
		all[0].depth = i % DEPTH;
		enter(&all[0]);
		back();
	}
}

/* Equally deep, so that it cannot be told, and is of no consequence, which is which. */
static void many(void)
{
	for (int i = 0; i < MAX; i++)
		prepare(&all[i], generate, 2);
	for (unsigned long i = 0; i < rounds; i++) {
		enter(&all[i * 7 % MAX]);
		back();
	}
}

static void generate_too(void)
{
	for (;;) {
		back();
		yield_from(running->depth);
	}
}

/* All wait at one address: how many returns later they differ changes each time. */
static void depths(void)
{
	for (int i = 0; i < MAX; i++)
		prepare(&all[i], i % 2 ? generate : generate_too, 0);
	for (unsigned long i = 0; i < rounds; i++) {
		struct coroutine *c = &all[i % MAX];

		c->depth = i % DEPTH;
		enter(c);
		back();
	}
}

static void descend(void)
{
	for (;;) {
		struct coroutine *next = running + 1;

		back();
		if (next < all + MAX)
			enter(next);
		yield_from(1);
	}
}

static void nested(void)
{
	for (int i = 0; i < MAX; i++)
		prepare(&all[i], descend, 0);
	for (unsigned long i = 0; i < rounds; i++) {
		enter(&all[0]);
		back();
	}
}

static void pass_on(void)
{
	while (rounds--) {
		back();
		go_to(running + 1 < all + MAX ? running + 1 : all);
	}
	go_to(&first);
}

static void ring(void)
{
	for (int i = 0; i < MAX; i++)
		prepare(&all[i], pass_on, 0);
	go_to(&all[0]);
}

static void yield_twice(void)
{
	yield_from(2);
	back();
	yield_from(1);
}

static void do_short(void)
{
	for (unsigned long i = 0; i < rounds; i++) {
		struct coroutine *c = &all[i % 2];

		prepare(c, yield_twice, 0);
		while (!c->ended)
			enter(c);
		back();
	}
}

static sigjmp_buf home;

static void on_signal(int signo)
{
	back();
	if (rounds % 2)
		siglongjmp(home, 1);
}

static void raise_in_it(void)
{
	for (;;) {
		if (!sigsetjmp(home, 1))
			raise(SIGUSR1);
		yield_from(1);
	}
}

static void with_signals(void)
{
	signal(SIGUSR1, on_signal);
	prepare(&all[0], raise_in_it, 0);
	for (; rounds; rounds--) {
		enter(&all[0]);
		back();
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} acts[] = {{"one", one},   {"many", many},	 {"depths", depths},	  {"nested", nested},
	    {"ring", ring}, {"short", do_short}, {"signal", with_signals}};

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	if (!strcmp(argv[1], "ret"))
		switch_by = switch_ret;
	else if (!strcmp(argv[1], "jump"))
		switch_by = switch_jump;
	by_two = !strcmp(argv[1], "longjmps");
	by_longjmp = by_two || !strcmp(argv[1], "longjmp");
	rounds = strtoul(argv[3], NULL, 10);
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
		if (!strcmp(argv[2], acts[i].name))
			acts[i].run();
	back();
	return 0;
}
