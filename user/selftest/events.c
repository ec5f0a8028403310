// SPDX-License-Identifier: MIT
/*
 * Programs whose functions raise one exception each, or write values with PTWRITE: CPUs with Event
 * Trace and PTWRITE tell of them.
 */
#include "selftest/events.h"

#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "selftest/noted.h"

/* Intel SDM vol. 3, table 6-1. */
enum { DIVIDE_ERROR = 0, BREAKPOINT = 3, INVALID_OPCODE = 6, PAGE_FAULT = 14 };

/* ---- page faults that the kernel handles */

TRACED(void, fault_touch, unsigned int depth, volatile char *page)
{
	noted__exception(FN_fault_touch, depth, PAGE_FAULT, (uintptr_t)page);
	*page = 1;
}

TRACED(void, fault_main, unsigned int depth)
{
	size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, N_FAULTS * page_size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	noted__call(FN_fault_main, depth);
	if (pages == MAP_FAILED)
		return;
	madvise(pages, N_FAULTS * page_size, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < N_FAULTS; i++)
		mtbpf_selftest_fault_touch(depth + 1, pages + i * page_size);
	munmap(pages, N_FAULTS * page_size);
}

/* ---- exceptions that end in a signal's handler, which goes on after the instruction */

static unsigned int handler_depth;

TRACED(void, trap_handler, int signal, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	noted__call(FN_trap_handler, handler_depth);
	/* An int3 has ended; the other instructions have two bytes. */
	if (signal != SIGTRAP)
		regs[REG_RIP] += 2;
}

TRACED(void, trap_int3, unsigned int depth)
{
	noted__exception(FN_trap_int3, depth, BREAKPOINT, 0);
	__asm__ volatile("int3");
}

TRACED(void, trap_invalid, unsigned int depth)
{
	noted__exception(FN_trap_invalid, depth, INVALID_OPCODE, 0);
	__asm__ volatile("ud2");
}

TRACED(void, trap_divide, unsigned int depth)
{
	noted__exception(FN_trap_divide, depth, DIVIDE_ERROR, 0);
	__asm__ volatile("xorl %%ecx, %%ecx\n\tdivl %%ecx" ::: "eax", "ecx", "edx", "cc");
}

TRACED(void, trap_segv, unsigned int depth, const char *nowhere)
{
	noted__exception(FN_trap_segv, depth, PAGE_FAULT, (uintptr_t)nowhere);
	__asm__ volatile("movb %%al, (%%rdi)" ::"D"(nowhere) : "memory");
}

TRACED(void, trap_main, unsigned int depth)
{
	static const char *nowhere;

	/* A page that nobody may touch. */
	if (!nowhere)
		nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	handler_depth = depth + 2;
	noted__call(FN_trap_main, depth);
	if (nowhere == MAP_FAILED)
		return;
	mtbpf_selftest_trap_int3(depth + 1);
	mtbpf_selftest_trap_invalid(depth + 1);
	mtbpf_selftest_trap_divide(depth + 1);
	mtbpf_selftest_trap_segv(depth + 1, nowhere);
	NOT_LAST();
}

void events__handle_traps(void)
{
	static const int signals[] = {SIGTRAP, SIGILL, SIGFPE, SIGSEGV};
	/*
	 * A single-stepper's SIGTRAP comes in handlers as well: where it is blocked, the kernel
	 * would take the handler away (force_sig_info_to_task()).
	 */
	const struct sigaction action = {.sa_sigaction = mtbpf_selftest_trap_handler,
					 .sa_flags = SA_SIGINFO | SA_NODEFER};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

/* ---- values of PTWRITE */

/* ptwrite %rdi (Intel SDM vol. 2): not all assemblers know it. */
TRACED(void, ptwrite_value, unsigned int depth, uint64_t value)
{
	noted__value(FN_ptwrite_value, depth, value);
	__asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0xae, 0xe7" ::"D"(value));
}

TRACED(void, ptwrite_main, unsigned int depth)
{
	/* No value occurs twice. */
	static uint64_t n_written;

	noted__call(FN_ptwrite_main, depth);
	for (unsigned int i = 0; i < N_VALUES; i++) {
		n_written++;
		mtbpf_selftest_ptwrite_value(depth + 1, n_written << 40 | n_written);
	}
}
