// SPDX-License-Identifier: MIT
/*
 * Frames that are left by a RET, without glibc's longjmp(): the code that goes on in an outer frame
 * is made like libunwind's unw_resume() (src/x86_64/setcontext.S), which LLVM's has, too. It goes
 * to where a call has returned before, or as if an outer frame's call returned. An argument is the
 * number of rounds.
 */
#include <stdint.h>
#include <stdlib.h>

enum { DEPTH = 7 };

#define APART __attribute__((noipa))

struct place {
	uint64_t rbx, rbp, r12, r13, r14, r15, sp, ip;
};

/* The place after this call, to which resume() returns again. 0, then 1. */
extern int save_place(struct place *place) __attribute__((returns_twice));
/* Runs f(n), and returns when that does, or at resume(). */
extern void attempt(struct place *place, void (*f)(unsigned), unsigned n);
extern void resume(const struct place *place);
__asm__(".text\n"
	".macro save\n"
	"	mov %rbx, (%rdi)\n	mov %rbp, 8(%rdi)\n"
	"	mov %r12, 16(%rdi)\n	mov %r13, 24(%rdi)\n"
	"	mov %r14, 32(%rdi)\n	mov %r15, 40(%rdi)\n"
	"	lea 8(%rsp), %rax\n	mov %rax, 48(%rdi)\n"
	"	mov (%rsp), %rax\n	mov %rax, 56(%rdi)\n"
	".endm\n"
	".globl save_place, attempt, resume\n"
	".type save_place, @function\n"
	"save_place:\n"
	"	save\n"
	"	xor %eax, %eax\n"
	"	ret\n"
	".size save_place, . - save_place\n"
	".type attempt, @function\n"
	"attempt:\n"
	"	save\n"
	"	mov %edx, %edi\n"
	"	jmp *%rsi\n"
	".size attempt, . - attempt\n"
	".type resume, @function\n"
	"resume:\n"
	"	mov (%rdi), %rbx\n	mov 8(%rdi), %rbp\n"
	"	mov 16(%rdi), %r12\n	mov 24(%rdi), %r13\n"
	"	mov 32(%rdi), %r14\n	mov 40(%rdi), %r15\n"
	"	mov 48(%rdi), %rsp\n"
	"	mov 56(%rdi), %rcx\n"
	"	push %rcx\n"
	"	mov $1, %eax\n"
	"	ret\n"
	".size resume, . - resume\n");

static struct place place;
static unsigned target;

APART void back(void)
{
	__asm__ volatile("");
}

/* One activation attempts the rest; the call of any other one has another return address. */
APART void descend(volatile unsigned depth)
{
	back();
	if (!depth)
		resume(&place);
	else if (depth == target)
		attempt(&place, descend, depth - 1);
	else
		descend(depth - 1);
	back();
}

APART void leave(volatile unsigned depth)
{
	back();
	if (!depth)
		resume(&place);
	else
		leave(depth - 1);
	back();
}

APART void with_place(void)
{
	if (!save_place(&place))
		leave(target);
	back();
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : ~0ul;

	for (unsigned long i = 0; i < rounds; i++) {
		target = i % DEPTH + 1;
		descend(DEPTH + 1);
		back();
		with_place();
		back();
	}
	return 0;
}
