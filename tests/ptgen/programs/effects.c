// SPDX-License-Identifier: MIT
/*
 * What OCaml 5 programs do with effects, without its compiler: the functions of its runtime that
 * switch stacks, by their names and with their branches (runtime/amd64.S), and C in the place of
 * what the compiler makes. They differ in what is in no branch: C wants registers kept, the state
 * is not in %r14, and caml_free_stack() is called on the parent's stack instead of the system's, so
 * that the stack pointer tells whose frames are on which stack.
 *
 *   effects ROUNDS
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { STACK = 1 << 20, FIBERS = 4, DEPTH = 5 };

#define APART __attribute__((noipa))

struct fiber;
struct kept {
	struct fiber *fiber; /* the one that performed */
};
typedef long effect_fn(long effect, struct kept *kept, struct fiber *last);

struct handler {
	long (*value)(long);
	long (*exception)(long);
	effect_fn *effect;
	struct fiber *parent;
};

struct fiber {
	void *sp, *exception;
	struct handler *handler;
	struct handler own;
	void *memory;
};

static struct handler no_handler;
static struct fiber main_stack = {.handler = &no_handler};
struct fiber *caml_current = &main_stack;
void *caml_exn_handler;

extern long caml_runstack(struct fiber *fiber, long (*run)(long), long arg);
extern long caml_perform(long effect, struct kept *kept);
extern long caml_reperform(long effect, struct kept *kept, struct fiber *last);
extern long caml_resume(struct fiber *fiber, long (*run)(long), long arg);
extern long caml_raise_exn(long exception);
__asm__(".text\n"
	".macro function name\n"
	"	.globl \\name\n	.type \\name, @function\n"
	"\\name:\n"
	".endm\n"
	".macro keep\n"
	"	push %rbx\n	push %rbp\n	push %r12\n"
	"	push %r13\n	push %r14\n	push %r15\n"
	".endm\n"
	".macro take\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n"
	"	pop %r12\n	pop %rbp\n	pop %rbx\n"
	".endm\n"
	/* From %rcx to %r10. */
	".macro switch_stacks\n"
	"	mov %rsp, 0(%rcx)\n"
	"	mov caml_exn_handler(%rip), %rax\n"
	"	mov %rax, 8(%rcx)\n"
	"	mov %r10, caml_current(%rip)\n"
	"	mov 0(%r10), %rsp\n"
	"	mov 8(%r10), %rax\n"
	"	mov %rax, caml_exn_handler(%rip)\n"
	".endm\n"
	"function caml_runstack\n"
	"	keep\n"
	"	mov caml_current(%rip), %rcx\n"
	"	mov caml_exn_handler(%rip), %r10\n"
	"	mov %rsp, 0(%rcx)\n"
	"	mov %r10, 8(%rcx)\n"
	"	mov 16(%rdi), %r11\n"
	"	mov %rcx, 24(%r11)\n"
	"	mov %rdi, caml_current(%rip)\n"
	"	mov 0(%rdi), %r11\n"
	"	sub $16, %r11\n"
	"	lea .Lfiber_exn_handler(%rip), %r10\n"
	"	mov %r10, 8(%r11)\n"
	"	movq $0, 0(%r11)\n"
	"	mov %r11, caml_exn_handler(%rip)\n"
	"	mov %r11, %rsp\n"
	"	mov %rdx, %rdi\n"
	"	call *%rsi\n"
	"	mov caml_current(%rip), %rbx\n"
	"	mov 16(%rbx), %r11\n"
	"	mov 0(%r11), %r13\n"
	".Lend:\n"
	"	mov %rax, %r12\n"
	"	mov 24(%r11), %r10\n"
	"	mov %r10, caml_current(%rip)\n"
	"	mov 8(%r10), %rax\n"
	"	mov %rax, caml_exn_handler(%rip)\n"
	"	mov 0(%r10), %rsp\n"
	"	mov %rbx, %rdi\n"
	"	sub $8, %rsp\n"
	"	call caml_free_stack\n"
	"	add $8, %rsp\n"
	"	mov %r12, %rdi\n"
	"	mov %r13, %rax\n"
	"	take\n"
	"	jmp *%rax\n"
	".Lfiber_exn_handler:\n"
	"	mov caml_current(%rip), %rbx\n"
	"	mov 16(%rbx), %r11\n"
	"	mov 8(%r11), %r13\n"
	"	jmp .Lend\n"
	".size caml_runstack, . - caml_runstack\n"
	"function caml_perform\n"
	"	keep\n"
	"	mov caml_current(%rip), %rcx\n"
	"	mov %rcx, 0(%rsi)\n"
	"	mov %rcx, %rdx\n"
	".Ldo_perform:\n"
	"	mov 16(%rcx), %r11\n"
	"	mov 24(%r11), %r10\n"
	"	cmp $0, %r10\n"
	"	je .Lunhandled\n"
	"	switch_stacks\n"
	"	movq $0, 24(%r11)\n"
	"	mov 16(%r11), %rcx\n"
	"	take\n"
	"	jmp caml_apply3\n"
	".Lunhandled:\n"
	"	mov 0(%rsi), %r10\n"
	"	switch_stacks\n"
	"	lea raise_unhandled(%rip), %rax\n"
	"	take\n"
	"	jmp caml_c_call\n"
	".size caml_perform, . - caml_perform\n"
	"function caml_reperform\n"
	"	keep\n"
	"	mov caml_current(%rip), %rcx\n"
	"	mov 16(%rdx), %r10\n"
	"	mov %rcx, 24(%r10)\n"
	"	mov %rcx, %rdx\n"
	"	jmp .Ldo_perform\n"
	".size caml_reperform, . - caml_reperform\n"
	"function caml_resume\n"
	"	keep\n"
	"	mov %rdi, %r10\n"
	"	mov %rdx, %r9\n"
	"1:	mov 16(%rdi), %r11\n"
	"	mov 24(%r11), %rdi\n"
	"	test %rdi, %rdi\n"
	"	jnz 1b\n"
	"	mov caml_current(%rip), %rcx\n"
	"	mov %rcx, 24(%r11)\n"
	"	switch_stacks\n"
	"	mov %r9, %rdi\n"
	"	take\n"
	"	jmp *%rsi\n"
	".size caml_resume, . - caml_resume\n"
	"function caml_apply3\n"
	"	jmp *%rcx\n"
	".size caml_apply3, . - caml_apply3\n"
	"function caml_c_call\n"
	"	sub $8, %rsp\n"
	"	call *%rax\n"
	"	add $8, %rsp\n"
	"	ret\n"
	".size caml_c_call, . - caml_c_call\n"
	"function caml_raise_exn\n"
	"	mov %rdi, %rax\n"
	"	lea caml_exn_handler - 48(%rip), %r14\n"
	"	mov 48(%r14), %rsp\n"
	"	pop 48(%r14)\n"
	"	ret\n"
	".size caml_raise_exn, . - caml_raise_exn\n");

APART void work(void)
{
	__asm__ volatile("");
}

static struct fiber *unused[2 * FIBERS];
static size_t n_unused;

__attribute__((used)) APART void caml_free_stack(struct fiber *fiber)
{
	unused[n_unused++] = fiber;
}

__attribute__((used)) APART long raise_unhandled(void)
{
	work();
	caml_raise_exn(-1);
	return 0;
}

APART struct fiber *caml_alloc_stack(long (*value)(long), long (*exception)(long),
				     effect_fn *effect)
{
	struct fiber *fiber = n_unused ? unused[--n_unused] : calloc(1, sizeof(*fiber));

	if (!fiber->memory)
		fiber->memory = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fiber->memory == MAP_FAILED)
		abort();
	fiber->own = (struct handler){value, exception, effect, NULL};
	fiber->handler = &fiber->own;
	fiber->sp = (char *)fiber->memory + STACK - 64;
	return fiber;
}

APART long identity(long x)
{
	return x;
}

APART long raise_it(long x)
{
	work();
	caml_raise_exn(x);
	return 0;
}

APART long recover(long x)
{
	work();
	return x;
}

enum { YIELD = 1, ASK, STOP, NOBODY };

APART long perform(long effect)
{
	struct kept kept;
	long answer = caml_perform(effect, &kept);

	work();
	return answer;
}

APART long perform_deep(long effect, long depth)
{
	long answer = depth ? perform_deep(effect, depth - 1) : perform(effect);

	work();
	return answer;
}

/* Generators: the handler goes on at once. */
APART long on_yield(long effect, struct kept *kept, struct fiber *last)
{
	work();
	if (effect == YIELD)
		return caml_resume(kept->fiber, identity, 1);
	if (effect == STOP)
		return caml_resume(kept->fiber, raise_it, 2);
	return caml_reperform(effect, kept, last);
}

APART long generate(long rounds)
{
	for (long i = 0; i < rounds; i++) {
		perform_deep(YIELD, i % DEPTH);
		work();
	}
	return rounds;
}

APART long stop(long depth)
{
	work();
	perform_deep(STOP, depth);
	return 0;
}

APART long raise_deep(long depth)
{
	work();
	if (depth)
		return raise_deep(depth - 1) + 1;
	return raise_it(depth);
}

/* Handlers in handlers: what the inner one does not handle comes to the outer one. */
APART long on_ask(long effect, struct kept *kept, struct fiber *last)
{
	long answer;

	work();
	if (effect != ASK)
		return caml_reperform(effect, kept, last);
	answer = caml_resume(kept->fiber, identity, 7);
	work();
	return answer;
}

APART long ask(long depth)
{
	work();
	perform_deep(YIELD, depth);
	perform_deep(ASK, depth);
	work();
	if (depth == 2)
		perform_deep(NOBODY, depth);
	return depth;
}

APART long ask_within(long depth)
{
	long answer = caml_runstack(caml_alloc_stack(identity, recover, on_yield), ask, depth);

	work();
	return answer;
}

/* A scheduler: first in, first out, each at another depth. */
static struct fiber *ready[FIBERS];
static size_t n_ready, first_ready;

static void put(struct fiber *fiber)
{
	ready[(first_ready + n_ready++) % FIBERS] = fiber;
}

APART long run_next(long unused_result)
{
	struct fiber *next;

	work();
	if (!n_ready)
		return unused_result;
	next = ready[first_ready];
	first_ready = (first_ready + 1) % FIBERS;
	n_ready--;
	return caml_resume(next, identity, 0);
}

APART long on_schedule(long effect, struct kept *kept, struct fiber *last)
{
	if (effect != YIELD)
		return caml_reperform(effect, kept, last);
	put(kept->fiber);
	return run_next(0);
}

/* Each waits behind a call of its own. */
APART long task_1(long n)
{
	while (n--) {
		perform(YIELD);
		work();
	}
	return 1;
}

APART long task_2(long n)
{
	while (n--) {
		perform_deep(YIELD, 1);
		work();
	}
	return 2;
}

APART long task_3(long n)
{
	while (n--) {
		perform_deep(YIELD, 3);
		work();
	}
	return 3;
}

static long (*const tasks[])(long) = {task_1, task_2, task_3};

APART long spawn(long which)
{
	return caml_runstack(caml_alloc_stack(run_next, recover, on_schedule), tasks[which], 20);
}

APART void schedule(void)
{
	for (long i = 0; i < 3; i++)
		spawn(i);
	while (n_ready)
		run_next(0);
	work();
}

APART void round_of(long i)
{
	caml_runstack(caml_alloc_stack(identity, recover, on_yield), generate, 20);
	caml_runstack(caml_alloc_stack(identity, recover, on_yield), raise_deep, i % DEPTH);
	caml_runstack(caml_alloc_stack(identity, recover, on_yield), stop, i % DEPTH);
	caml_runstack(caml_alloc_stack(identity, recover, on_ask), ask_within, i % DEPTH);
	work();
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 100;

	for (long i = 0; i < rounds; i++) {
		round_of(i);
		schedule();
	}
	printf("%zu stacks\n", n_unused);
	return 0;
}
