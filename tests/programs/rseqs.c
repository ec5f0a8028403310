// SPDX-License-Identifier: MIT
/*
 * Restartable sequences (rseq(2)) that are aborted: the kernel sends a thread that was preempted in
 * one to its abort handler, which lies in a section of its own, as librseq has it, or behind the
 * sequence, as in functions that are all assembler (tcmalloc's). A stepped thread is preempted at
 * each instruction, and does the handler's first one, a nop, unseen.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "sample.h"

/* glibc registers one for each thread from 2.35 on. */
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>

static volatile unsigned long aborts;

TRACED void note_abort(void)
{
	aborts++;
}

TRACED void back(void)
{
	__asm__ volatile("");
}

static struct rseq *own_rseq(void)
{
	return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

/* Adds one; false where it was aborted. */
TRACED int add(volatile unsigned long *to)
{
	struct rseq *rseq = own_rseq();

	__asm__ goto(".pushsection __rseq_cs, \"aw\"\n"
		     ".balign 32\n"
		     "3:	.long 0, 0\n"
		     "	.quad 1f, 2f - 1f, 4f\n"
		     ".popsection\n"
		     "	lea 3b(%%rip), %%rax\n"
		     "	mov %%rax, %c[cs](%[rseq])\n"
		     "1:	mov (%[to]), %%rax\n"
		     "	inc %%rax\n"
		     "	mov %%rax, (%[to])\n"
		     "2:\n"
		     ".pushsection __rseq_failure, \"ax\"\n"
		     "	.byte 0x0f, 0xb9, 0x3d\n"
		     "	.long 0x53053053\n"
		     "4:	nop\n"
		     "	jmp %l[aborted]\n"
		     ".popsection\n"
		     :
		     : [rseq] "r"(rseq), [to] "r"(to), [cs] "i"(offsetof(struct rseq, rseq_cs))
		     : "rax", "memory"
		     : aborted);
	return 1;
aborted:
	note_abort();
	return 0;
}

/* The same, all in assembler. */
extern int add_here(volatile unsigned long *to, struct rseq *rseq);
__asm__(".pushsection __rseq_cs, \"aw\"\n"
	".balign 32\n"
	"add_here_cs:	.long 0, 0\n"
	"	.quad add_here_start, add_here_end - add_here_start, add_here_abort\n"
	".popsection\n"
	".text\n"
	".type add_here, @function\n"
	"add_here:\n"
	"	push %rbx\n"
	"	lea add_here_cs(%rip), %rax\n"
	"	mov %rax, 8(%rsi)\n"
	"add_here_start:\n"
	"	mov (%rdi), %rax\n"
	"	inc %rax\n"
	"	mov %rax, (%rdi)\n"
	"add_here_end:\n"
	"	mov $1, %eax\n"
	"	pop %rbx\n"
	"	ret\n"
	"	.byte 0x0f, 0xb9, 0x3d\n"
	"	.long 0x53053053\n"
	"add_here_abort:\n"
	"	nop\n"
	"	call note_abort\n"
	"	xor %eax, %eax\n"
	"	pop %rbx\n"
	"	ret\n"
	".size add_here, . - add_here\n");

static volatile unsigned long sum;

TRACED void add_or_give_up(void)
{
	back();
	if (!add(&sum))
		back();
	if (!add_here(&sum, own_rseq()))
		back();
	back();
}

TRACED void one_iter(void)
{
	for (int i = 0; i < 3; i++)
		add_or_give_up();
	back();
}

int main(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	_Static_assert(offsetof(struct rseq, rseq_cs) == 8, "add_here() has it so");
	for (;;) {
		one_iter();
		nanosleep(&pause, NULL);
	}
}

#else

int main(void)
{
	fprintf(stderr, "rseqs: needs glibc 2.35\n");
	return 1;
}

#endif
