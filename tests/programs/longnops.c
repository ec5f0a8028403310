// SPDX-License-Identifier: MIT
/*
 * Functions that begin with a long nop, as -fpatchable-function-entry and tracing SDKs leave them.
 * A probe there may become a call of the kernel's: from Linux 6.18 on of a nop of five bytes,
 * from 7.2 on of one of ten.
 */
#include "sample.h"

uint64_t begins_with_5(uint64_t n);
uint64_t begins_with_10(uint64_t n);

/* n + 1. */
__asm__(".text\n.balign 64\n"
	".globl begins_with_5\n.type begins_with_5, @function\n"
	"begins_with_5: .cfi_startproc\n"
	".byte 0x0f, 0x1f, 0x44, 0, 0\n"
	"lea 1(%rdi), %rax\n"
	"ret\n"
	".cfi_endproc\n.size begins_with_5, .-begins_with_5\n"
	".balign 64\n"
	".globl begins_with_10\n.type begins_with_10, @function\n"
	"begins_with_10: .cfi_startproc\n"
	".byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\n"
	"lea 1(%rdi), %rax\n"
	"ret\n"
	".cfi_endproc\n.size begins_with_10, .-begins_with_10\n");

TRACED uint64_t one_iter(uint64_t n)
{
	return begins_with_5(n) + begins_with_10(n);
}

int main(void)
{
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	for (uint64_t n = 0; !sample_stop; n++) {
		if (one_iter(n) != 2 * n + 2)
			return 1;
		if (n % 100 == 0)
			usleep(1000);
	}
	return 0;
}
