// SPDX-License-Identifier: MIT

#include <linux/perf_event.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "mtbpf.h"
#include "selftest/noted.h"

/* Macros for all programs. */

#define PREFIX "mtbpf_selftest_"

/*
 * The compiler neither inlines nor clones these functions, and their symbols stay when the
 * program is stripped (Makefile: --export-dynamic-symbol).
 */
#define TRACED(type, name, ...)                                                                    \
	__attribute__((noipa, used, visibility("default")))                                        \
	type mtbpf_selftest_##name(__VA_ARGS__);                                                   \
	type mtbpf_selftest_##name(__VA_ARGS__)
/* Put this after a call, so that the compiler does not turn the call into a jump. */
#define NOT_LAST() __asm__ volatile("" ::: "memory")
/* A function that only notes its call. */
#define TRACED_LEAF(name)                                                                          \
	TRACED(void, name, unsigned int depth)                                                     \
	{                                                                                          \
		noted__call(FN_##name, depth);                                                     \
		NOT_LAST();                                                                        \
	}

/*
 * Programs whose functions raise one exception each, or write values with PTWRITE, which CPUs with
 * Event Trace and PTWRITE record.
 */

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
	/*
	 * After an int3, rip is at the next instruction. After the others it is at the instruction
	 * itself, which has two bytes.
	 */
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

/* Sets the handlers of PROGRAM_TRAPS. */
static void events__handle_traps(void)
{
	static const int signals[] = {SIGTRAP, SIGILL, SIGFPE, SIGSEGV};
	/*
	 * The stepper's SIGTRAP also arrives inside these handlers. If it were blocked there, the
	 * kernel would remove the handler (force_sig_info_to_task()): SA_NODEFER.
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

static struct program_log *program_log;
static struct iteration *current;

/* ---- calls and returns */

TRACED_LEAF(calls_leaf)

TRACED(void, calls_middle, unsigned int depth)
{
	noted__call(FN_calls_middle, depth);
	mtbpf_selftest_calls_leaf(depth + 1);
	mtbpf_selftest_calls_leaf(depth + 1);
	NOT_LAST();
}

TRACED(void, calls_main, unsigned int depth)
{
	noted__call(FN_calls_main, depth);
	for (int i = 0; i < 3; i++)
		mtbpf_selftest_calls_middle(depth + 1);
	NOT_LAST();
}

/* ---- tail calls: in assembly, since compilers make them only when they optimise */

TRACED_LEAF(tail_third)

/* Called by the assembly below, to note tail_first and tail_second. */
void selftest_note_first(unsigned int depth);
void selftest_note_second(unsigned int depth);

__attribute__((used)) void selftest_note_first(unsigned int depth)
{
	noted__call(FN_tail_first, depth);
}

__attribute__((used)) void selftest_note_second(unsigned int depth)
{
	noted__call(FN_tail_second, depth);
}

#define TAIL_FUNCTION(name, note_it, next)                                                         \
	".globl " name "\n"                                                                        \
	".type " name ", @function\n" name ":\n"                                                   \
	".cfi_startproc\n"                                                                         \
	"	push %rdi\n"                                                                             \
	".cfi_adjust_cfa_offset 8\n"                                                               \
	"	call " note_it "\n"                                                                \
	"	pop %rdi\n"                                                                              \
	".cfi_adjust_cfa_offset -8\n"                                                              \
	"	jmp " next "\n"                                                                    \
	".cfi_endproc\n"                                                                           \
	".size " name ", . - " name "\n"

__asm__(".pushsection .text\n" TAIL_FUNCTION(PREFIX "tail_first", "selftest_note_first",
					     PREFIX "tail_second")
		TAIL_FUNCTION(PREFIX "tail_second", "selftest_note_second",
			      PREFIX "tail_third@PLT") ".popsection\n");

void mtbpf_selftest_tail_first(unsigned int depth);

TRACED(void, tail_main, unsigned int depth)
{
	noted__call(FN_tail_main, depth);
	mtbpf_selftest_tail_first(depth + 1);
	mtbpf_selftest_tail_first(depth + 1);
	NOT_LAST();
}

/* ---- deep recursion */

/* CPUs remember at most 64 callers to compress returns. */
#define RECURSION_DEPTH 80

TRACED(void, recursion_step, unsigned int depth, unsigned int left)
{
	noted__call(FN_recursion_step, depth);
	if (left)
		mtbpf_selftest_recursion_step(depth + 1, left - 1);
	NOT_LAST();
}

TRACED(void, recursion_main, unsigned int depth)
{
	noted__call(FN_recursion_main, depth);
	mtbpf_selftest_recursion_step(depth + 1, RECURSION_DEPTH);
	NOT_LAST();
}

/*
 * ---- an exception: thrown and caught as in C++, by the same unwinder in two phases, over two
 * functions with clean-ups. The function that catches it is in assembly, since C cannot catch; so
 * libstdc++ is not needed.
 */

TRACED(void, throw_cleanup, unsigned int *depth)
{
	noted__call(FN_throw_cleanup, *depth + 1);
	NOT_LAST();
}

TRACED(void, throw_begin, unsigned int depth)
{
	static struct _Unwind_Exception exception;

	noted__call(FN_throw_begin, depth);
	exception = (struct _Unwind_Exception){0};
	_Unwind_RaiseException(&exception);
	abort(); /* nobody catches it */
}

TRACED(void, throw_inner, unsigned int depth)
{
	__attribute__((cleanup(mtbpf_selftest_throw_cleanup), unused)) unsigned int own = depth;

	noted__call(FN_throw_inner, depth);
	mtbpf_selftest_throw_begin(depth + 1);
}

TRACED(void, throw_outer, unsigned int depth)
{
	__attribute__((cleanup(mtbpf_selftest_throw_cleanup), unused)) unsigned int own = depth;

	noted__call(FN_throw_outer, depth);
	mtbpf_selftest_throw_inner(depth + 1);
}

TRACED_LEAF(throw_after)

/* For the assembly. */
extern const char selftest_landing_pad[];
void selftest_note_catcher(unsigned int depth);
_Unwind_Reason_Code selftest_catch(int version, _Unwind_Action actions,
				   _Unwind_Exception_Class class,
				   struct _Unwind_Exception *exception,
				   struct _Unwind_Context *context);

__attribute__((used)) void selftest_note_catcher(unsigned int depth)
{
	noted__call(FN_throw_catcher, depth);
}

/* The personality routine of throw_catcher: it catches everything. */
__attribute__((used)) _Unwind_Reason_Code selftest_catch(int version, _Unwind_Action actions,
							 _Unwind_Exception_Class class,
							 struct _Unwind_Exception *exception,
							 struct _Unwind_Context *context)
{
	if (actions & _UA_SEARCH_PHASE)
		return _URC_HANDLER_FOUND;
	if (!(actions & _UA_HANDLER_FRAME))
		return _URC_CONTINUE_UNWIND;
	_Unwind_SetIP(context, (uintptr_t)selftest_landing_pad);
	return _URC_INSTALL_CONTEXT;
}

/* 0x1b: DW_EH_PE_pcrel | DW_EH_PE_sdata4. The table names the landing pad, as a compiler's does. */
__asm__(".pushsection .text\n"
	".globl " PREFIX "throw_catcher\n"
	".type " PREFIX "throw_catcher, @function\n" PREFIX "throw_catcher:\n"
	".cfi_startproc\n"
	".cfi_personality 0x1b, selftest_catch\n"
	".cfi_lsda 0x1b, .Lselftest_lsda\n"
	"	push %rbx\n"
	".cfi_adjust_cfa_offset 8\n"
	".cfi_offset %rbx, -16\n"
	"	mov %edi, %ebx\n"
	"	call selftest_note_catcher\n"
	"	lea 1(%rbx), %edi\n"
	"1:	call " PREFIX "throw_outer\n"
	"2:	ud2\n"
	"selftest_landing_pad:\n"
	"	lea 1(%rbx), %edi\n"
	"	call " PREFIX "throw_after\n"
	"	pop %rbx\n"
	".cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size " PREFIX "throw_catcher, . - " PREFIX "throw_catcher\n"
	".popsection\n"
	".pushsection .gcc_except_table, \"a\", @progbits\n"
	".Lselftest_lsda:\n"
	"	.byte 0xff, 0xff, 1\n"
	"	.uleb128 5f - 4f\n"
	"4:	.uleb128 1b - " PREFIX "throw_catcher\n"
	"	.uleb128 2b - 1b\n"
	"	.uleb128 selftest_landing_pad - " PREFIX "throw_catcher\n"
	"	.uleb128 0\n"
	"5:\n"
	".popsection\n");

void mtbpf_selftest_throw_catcher(unsigned int depth);

TRACED(void, throw_main, unsigned int depth)
{
	noted__call(FN_throw_main, depth);
	mtbpf_selftest_throw_catcher(depth + 1);
	NOT_LAST();
}

/* ---- forced unwinding, as pthread_cancel() does it: two clean-ups on its way, nobody catches it
 */

static jmp_buf handler;
static unsigned int n_cleaned;

TRACED(void, unwind_cleanup, unsigned int *depth)
{
	n_cleaned++;
	noted__call(FN_unwind_cleanup, *depth + 1);
	NOT_LAST();
}

static _Unwind_Reason_Code stop_at_main(int version, _Unwind_Action actions,
					_Unwind_Exception_Class class,
					struct _Unwind_Exception *exception,
					struct _Unwind_Context *context, void *unused)
{
	if (n_cleaned == 2)
		longjmp(handler, 1);
	return _URC_NO_REASON;
}

TRACED(void, unwind_begin, unsigned int depth)
{
	static struct _Unwind_Exception exception;

	noted__call(FN_unwind_begin, depth);
	_Unwind_ForcedUnwind(&exception, stop_at_main, NULL);
	abort();
}

TRACED(void, unwind_inner, unsigned int depth)
{
	__attribute__((cleanup(mtbpf_selftest_unwind_cleanup), unused)) unsigned int own = depth;

	noted__call(FN_unwind_inner, depth);
	mtbpf_selftest_unwind_begin(depth + 1);
}

TRACED(void, unwind_outer, unsigned int depth)
{
	__attribute__((cleanup(mtbpf_selftest_unwind_cleanup), unused)) unsigned int own = depth;

	noted__call(FN_unwind_outer, depth);
	mtbpf_selftest_unwind_inner(depth + 1);
}

TRACED_LEAF(unwind_after)

TRACED(void, unwind_main, unsigned int depth)
{
	volatile unsigned int kept = depth;

	noted__call(FN_unwind_main, depth);
	n_cleaned = 0;
	if (!setjmp(handler))
		mtbpf_selftest_unwind_outer(depth + 1);
	mtbpf_selftest_unwind_after(kept + 1);
	NOT_LAST();
}

/* ---- longjmp() */

TRACED(void, longjmp_inner, unsigned int depth)
{
	noted__call(FN_longjmp_inner, depth);
	longjmp(handler, 1);
}

TRACED(void, longjmp_outer, unsigned int depth)
{
	noted__call(FN_longjmp_outer, depth);
	mtbpf_selftest_longjmp_inner(depth + 1);
	NOT_LAST();
}

TRACED_LEAF(longjmp_after)

TRACED(void, longjmp_main, unsigned int depth)
{
	volatile unsigned int kept = depth;

	noted__call(FN_longjmp_main, depth);
	if (!setjmp(handler))
		mtbpf_selftest_longjmp_outer(depth + 1);
	mtbpf_selftest_longjmp_after(kept + 1);
	NOT_LAST();
}

/* ---- a signal's handler */

static unsigned int signal_depth;

TRACED_LEAF(signal_leaf)

TRACED(void, signal_handler, int signal)
{
	noted__call(FN_signal_handler, signal_depth);
	mtbpf_selftest_signal_leaf(signal_depth + 1);
	NOT_LAST();
}

TRACED(void, signal_main, unsigned int depth)
{
	noted__call(FN_signal_main, depth);
	signal_depth = depth + 1;
	raise(SIGUSR1);
	mtbpf_selftest_signal_leaf(depth + 1);
	NOT_LAST();
}

/* ---- threads */

TRACED_LEAF(thread_leaf)

/* These threads start before the first iteration, and do their work once per request. */
struct workers {
	void (*work)(void);
	int n;
	sem_t told, done;
};

static void *run_worker(void *ctx)
{
	struct workers *workers = ctx;

	noted__begin_thread();
	for (;;) {
		sem_wait(&workers->told);
		workers->work();
		sem_post(&workers->done);
	}
	return NULL;
}

static void start_workers(struct workers *workers)
{
	pthread_t thread;

	sem_init(&workers->told, 0, 0);
	sem_init(&workers->done, 0, 0);
	for (int i = 0; i < workers->n; i++)
		if (pthread_create(&thread, NULL, run_worker, workers))
			abort();
}

static void let_work(struct workers *workers)
{
	for (int i = 0; i < workers->n; i++)
		sem_post(&workers->told);
	for (int i = 0; i < workers->n; i++)
		sem_wait(&workers->done);
}

TRACED(void, thread_work, unsigned int depth)
{
	noted__call(FN_thread_work, depth);
	mtbpf_selftest_thread_leaf(depth + 1);
	mtbpf_selftest_thread_leaf(depth + 1);
	NOT_LAST();
}

static void work_in_thread(void)
{
	mtbpf_selftest_thread_work(0);
	NOT_LAST();
}

static struct workers threads = {.work = work_in_thread, .n = 2};

TRACED(void, thread_main, unsigned int depth)
{
	noted__call(FN_thread_main, depth);
	let_work(&threads);
	NOT_LAST();
}

/* ---- a thread that triggers: not the one that the process began with */

static uint64_t any_iteration;

TRACED_LEAF(any_leaf)

TRACED(void, any_work, unsigned int depth)
{
	noted__call(FN_any_work, depth);
	mtbpf_selftest_any_leaf(depth + 1);
	mtbpf_selftest_any_leaf(depth + 1);
	NOT_LAST();
}

static void work_and_hit(void)
{
	mtbpf_selftest_any_work(0);
	mtbpf_take_snapshot_with_arg(any_iteration);
	NOT_LAST();
}

static struct workers any_thread = {.work = work_and_hit, .n = 1};

TRACED_LEAF(any_main)

/* ---- fork() */

TRACED_LEAF(fork_after)

TRACED(void, fork_main, unsigned int depth)
{
	pid_t pid;

	noted__call(FN_fork_main, depth);
	pid = fork();
	if (!pid)
		_exit(0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	mtbpf_selftest_fork_after(depth + 1);
	NOT_LAST();
}

/* ---- a library's function, which calls back */

static unsigned int library_depth;

TRACED(int, library_compare, const void *a, const void *b)
{
	noted__call(FN_library_compare, library_depth);
	return *(const int *)a - *(const int *)b;
}

TRACED(void, library_main, unsigned int depth)
{
	int numbers[] = {3, 1, 2};

	noted__call(FN_library_main, depth);
	library_depth = depth + 1;
	qsort(numbers, sizeof(numbers) / sizeof(numbers[0]), sizeof(numbers[0]),
	      mtbpf_selftest_library_compare);
	NOT_LAST();
}

/* ---- code that no file has */

typedef void (*jit_function)(unsigned int depth, void (*callee)(unsigned int depth));

static jit_function jit;

static void make_jit(void)
{
	/* sub $8,%rsp; call *%rsi; add $8,%rsp; ret */
	static const unsigned char code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd6,
					     0x48, 0x83, 0xc4, 0x08, 0xc3};
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return;
	memcpy(page, code, sizeof(code));
	if (!mprotect(page, 4096, PROT_READ | PROT_EXEC))
		jit = (jit_function)page;
}

TRACED_LEAF(jit_callee)

TRACED(void, jit_main, unsigned int depth)
{
	noted__call(FN_jit_main, depth);
	for (int i = 0; jit && i < 3; i++)
		jit(depth + 1, mtbpf_selftest_jit_callee);
	NOT_LAST();
}

/* ---- system calls */

TRACED(void, syscall_once, unsigned int depth)
{
	long result = SYS_getppid;

	noted__call(FN_syscall_once, depth);
	__asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
}

/*
 * Opens the kernel's count of the thread's system calls, by its tracepoint, to compare with.
 * Returns a descriptor to be read, which is a system call, too; -1: the kernel does not permit it.
 */
static int open_syscall_counter(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr)};
	FILE *f = fopen("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id", "re");
	unsigned long long id;

	if (!f)
		return -1;
	if (fscanf(f, "%llu", &id) != 1)
		id = 0;
	fclose(f);
	attr.config = id;
	return id ? (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC) : -1;
}

static int syscall_counter = -1;

static uint64_t count_syscalls(void)
{
	uint64_t n;

	return syscall_counter >= 0 && read(syscall_counter, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

TRACED(void, syscall_main, unsigned int depth)
{
	uint64_t before = count_syscalls(), after;

	noted__call(FN_syscall_main, depth);
	for (int i = 0; i < N_SYSCALLS; i++)
		mtbpf_selftest_syscall_once(depth + 1);
	after = count_syscalls();
	/* `after` includes the read(2) that returned it. */
	current->kernels_syscalls = after > before ? (unsigned int)(after - before - 1) : 0;
}

/* ---- a second stack */

static ucontext_t main_context, other_context;

TRACED_LEAF(stack_leaf)

TRACED(void, stack_other, void)
{
	noted__call(FN_stack_other, 0);
	for (;;) {
		mtbpf_selftest_stack_leaf(1);
		swapcontext(&other_context, &main_context);
	}
}

TRACED(void, stack_main, unsigned int depth)
{
	static char stack[64 * 1024];

	noted__call(FN_stack_main, depth);
	getcontext(&other_context);
	other_context.uc_stack.ss_sp = stack;
	other_context.uc_stack.ss_size = sizeof(stack);
	other_context.uc_link = NULL;
	makecontext(&other_context, mtbpf_selftest_stack_other, 0);
	for (int i = 0; i < 2; i++) {
		swapcontext(&main_context, &other_context);
		mtbpf_selftest_stack_leaf(depth + 1);
	}
}

/* ---- time: in code of this file alone, which has frame pointers (Makefile) */

/* Reads the clock seldom: libc's code and the vDSO's need not have frame pointers. */
#define WORK_FOR(ns)                                                                               \
	do {                                                                                       \
		for (uint64_t end_ = noted__now_ns() + (ns); noted__now_ns() < end_;)              \
			for (int i_ = 0; i_ < 100000; i_++)                                        \
				NOT_LAST();                                                        \
	} while (0)

TRACED(void, time_long, unsigned int depth)
{
	noted__call(FN_time_long, depth);
	WORK_FOR(40 * 1000 * 1000);
	noted__call(FN_time_long, depth);
}

TRACED(void, time_short, unsigned int depth)
{
	noted__call(FN_time_short, depth);
	WORK_FOR(20 * 1000 * 1000);
	noted__call(FN_time_short, depth);
}

TRACED(void, time_sleep, unsigned int depth)
{
	struct timespec t = {.tv_nsec = SLEEP_NS};
	long result = SYS_nanosleep;

	noted__call(FN_time_sleep, depth);
	__asm__ volatile("syscall" : "+a"(result) : "D"(&t), "S"(NULL) : "rcx", "r11", "memory");
	noted__call(FN_time_sleep, depth);
}

TRACED(void, time_main, unsigned int depth)
{
	noted__call(FN_time_main, depth);
	mtbpf_selftest_time_long(depth + 1);
	mtbpf_selftest_time_short(depth + 1);
	mtbpf_selftest_time_sleep(depth + 1);
	noted__call(FN_time_main, depth);
}

/* ---- a loop of calls: what recording costs, and how many bytes it makes */

static __attribute__((noipa)) void call_nothing(void)
{
	NOT_LAST();
}

static unsigned int busy_loops = 1;

TRACED(void, busy_main, unsigned int depth)
{
	uint64_t before;

	noted__call(FN_busy_main, depth);
	before = noted__now_ns();
	for (unsigned int i = 0; i < busy_loops; i++)
		call_nothing();
	current->busy_ns = noted__now_ns() - before;
}

/* Finds a number of loops that takes BUSY_NS, and their shortest time while nothing is recorded. */
static void calibrate_busy(void)
{
	static struct iteration unused;

	current = &unused;
	noted__begin(current);
	while (unused.busy_ns < BUSY_NS && busy_loops < 1u << 20) {
		busy_loops *= 2;
		mtbpf_selftest_busy_main(0);
	}
	program_log->plain_busy_ns = unused.busy_ns;
	for (int i = 0; i < 20; i++) {
		mtbpf_selftest_busy_main(0);
		if (unused.busy_ns < program_log->plain_busy_ns)
			program_log->plain_busy_ns = unused.busy_ns;
	}
}

/* ---- all of them */

static void (*const mains[PROGRAMS])(unsigned int depth) = {
	[PROGRAM_CALLS] = mtbpf_selftest_calls_main,
	[PROGRAM_TAIL_CALLS] = mtbpf_selftest_tail_main,
	[PROGRAM_RECURSION] = mtbpf_selftest_recursion_main,
	[PROGRAM_EXCEPTIONS] = mtbpf_selftest_throw_main,
	[PROGRAM_UNWINDING] = mtbpf_selftest_unwind_main,
	[PROGRAM_LONGJMP] = mtbpf_selftest_longjmp_main,
	[PROGRAM_SIGNALS] = mtbpf_selftest_signal_main,
	[PROGRAM_THREADS] = mtbpf_selftest_thread_main,
	[PROGRAM_FORK] = mtbpf_selftest_fork_main,
	[PROGRAM_LIBRARY] = mtbpf_selftest_library_main,
	[PROGRAM_JIT] = mtbpf_selftest_jit_main,
	[PROGRAM_SYSCALLS] = mtbpf_selftest_syscall_main,
	[PROGRAM_FAULTS] = mtbpf_selftest_fault_main,
	[PROGRAM_TRAPS] = mtbpf_selftest_trap_main,
	[PROGRAM_PTWRITE] = mtbpf_selftest_ptwrite_main,
	[PROGRAM_STACKS] = mtbpf_selftest_stack_main,
	[PROGRAM_ANY_THREAD] = mtbpf_selftest_any_main,
	[PROGRAM_BUSY] = mtbpf_selftest_busy_main,
	[PROGRAM_TIME] = mtbpf_selftest_time_main,
};

static __attribute__((noipa)) void iterate(uint64_t k, unsigned int mask)
{
	current = &program_log->iterations[k % KEPT_ITERATIONS];
	noted__begin(current);
	current->n = 0;
	current->kernels_syscalls = 0;
	current->busy_ns = 0;
	for (int i = 0; i < PROGRAMS; i++)
		if (mask & 1u << i)
			mains[i](0);
	any_iteration = k;
	if (mask & 1u << PROGRAM_ANY_THREAD)
		let_work(&any_thread);
	else
		mtbpf_take_snapshot_with_arg(k);
	program_log->n_iterations = k;
}

_Noreturn void programs__run(struct program_log *log, unsigned int mask)
{
	/*
	 * Iterations must be rare: fewer than KEPT_ITERATIONS may pass while a recording is
	 * written.
	 */
	struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};

	signal(SIGUSR1, mtbpf_selftest_signal_handler);
	program_log = log;
	noted__begin_thread();
	make_jit();
	if (mask & 1u << PROGRAM_TRAPS)
		events__handle_traps();
	if (mask & 1u << PROGRAM_THREADS)
		start_workers(&threads);
	if (mask & 1u << PROGRAM_ANY_THREAD)
		start_workers(&any_thread);
	if (mask & 1u << PROGRAM_SYSCALLS)
		syscall_counter = open_syscall_counter();
	if (mask & 1u << PROGRAM_BUSY)
		calibrate_busy();
	for (uint64_t k = 1;; k++) {
		iterate(k, mask);
		nanosleep(&pause, NULL);
	}
}
