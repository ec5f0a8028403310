/* SPDX-License-Identifier: MIT */
/* Programs for CPUs with Event Trace and PTWRITE, and macros for all programs. */
#ifndef MTBPF_SELFTEST_EVENTS_H
#define MTBPF_SELFTEST_EVENTS_H

#define PREFIX "mtbpf_selftest_"

/*
 * The compiler neither inlines nor clones these functions, and their symbols stay when the
 * program is stripped (Makefile: --export-dynamic-symbol).
 */
#define TRACED(type, name, ...)                                                                    \
	__attribute__((noipa, used, visibility("default")))                                        \
	type mtbpf_selftest_##name(__VA_ARGS__);                                                   \
	type mtbpf_selftest_##name(__VA_ARGS__)
/* Put it after a call, so that the compiler does not make a jump of it. */
#define NOT_LAST() __asm__ volatile("" ::: "memory")

/* The main functions of PROGRAM_FAULTS, PROGRAM_TRAPS and PROGRAM_PTWRITE. */
void mtbpf_selftest_fault_main(unsigned int depth);
void mtbpf_selftest_trap_main(unsigned int depth);
void mtbpf_selftest_ptwrite_main(unsigned int depth);
/* Sets the handlers of PROGRAM_TRAPS. */
void events__handle_traps(void);

#endif
