// SPDX-License-Identifier: MIT
/*
 * What newer CPUs tell beside branches: page faults at known addresses, an int3, an invalid opcode,
 * a divide error, and values of PTWRITE. It prints what it did; on a CPU without PTWRITE the values
 * are left out (they raise SIGILL), and it says so.
 */
#include "sample.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { PAGES = 8, VALUES = 5, PAGE = 4096 };

static volatile sig_atomic_t n_ill;

TRACED void touch_page(volatile char *page)
{
	*page = 1;
}

TRACED void stop_at_int3(void)
{
	__asm__ volatile("int3");
}

TRACED void run_ud2(void)
{
	__asm__ volatile("ud2");
}

TRACED void divide_by(volatile int *zero)
{
	__asm__ volatile("xorl %%edx, %%edx\n\tmovl $1, %%eax\n\tidivl (%%rdi)" ::"D"(zero)
			 : "eax", "edx", "cc", "memory");
}

/* ptwrite %rdi, and ptwrite (%rdi) of 8 bytes and of 4: not all assemblers know it. */
TRACED void write_register(uint64_t value)
{
	__asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0xae, 0xe7" ::"D"(value));
}

TRACED void write_memory(const uint64_t *value)
{
	__asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0xae, 0x27" ::"D"(value) : "memory");
	__asm__ volatile(".byte 0xf3, 0x0f, 0xae, 0x27" ::"D"(value) : "memory");
}

static void on_trap(int signo)
{
	(void)signo;
}

/* Behind the instruction: ud2 and this idivl have two bytes, PTWRITE four or five. */
static void on_fault(int signo, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uint8_t *code = (const uint8_t *)regs[REG_RIP];

	(void)info;
	if (signo == SIGILL && code[0] == 0xf3) {
		n_ill++;
		regs[REG_RIP] += code[1] == 0x48 ? 5 : 4;
	} else {
		regs[REG_RIP] += 2;
	}
}

int main(void)
{
	struct sigaction trap = {.sa_handler = on_trap};
	struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	volatile int zero = 0;
	uint64_t value = 0x1122334455667788;
	char *pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (pages == MAP_FAILED || madvise(pages, PAGES * PAGE, MADV_NOHUGEPAGE))
		return 1;
	sigaction(SIGTRAP, &trap, NULL);
	sigaction(SIGILL, &fault, NULL);
	sigaction(SIGFPE, &fault, NULL);
	for (int i = 0; i < PAGES; i++) {
		printf("fault %p\n", (void *)(pages + i * PAGE));
		touch_page(pages + i * PAGE);
	}
	stop_at_int3();
	run_ud2();
	divide_by(&zero);
	for (uint64_t i = 1; i < VALUES; i++)
		write_register(i << 32 | i);
	write_memory(&value);
	printf("%s\n", n_ill ? "no PTWRITE" : "PTWRITE");
	return 0;
}
