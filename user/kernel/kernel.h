/* SPDX-License-Identifier: MIT */
/* Interfaces of Linux: addresses, symbols, system calls, namespaces, memory, scheduling. */
#ifndef MTBPF_KERNEL_KERNEL_H
#define MTBPF_KERNEL_KERNEL_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True for the upper half, which is the kernel's (Documentation/arch/x86/x86_64/mm.rst). */
static inline bool address__is_kernel(uint64_t ip)
{
	return ip >> 63;
}

/* The text of /proc/kallsyms: "ffffffff81000000 T _stext", "ffffffffc0000000 t f\t[module]". */

/* A symbol. Its names point into the text, and do not end with a NUL. */
struct kallsym {
	uint64_t address;
	char type; /* as in nm(1) */
	const char *name;
	size_t name_len;
	const char *module; /* without its brackets; NULL: the kernel itself */
	size_t module_len;
};

/* Reads the next symbol at *text and moves *text past it. Other lines are skipped. */
bool kallsyms__next(const char **text, struct kallsym *sym);

/* Finds a symbol of the kernel itself by name. */
bool kallsyms__find(const char *text, const char *name, uint64_t *address);

/* True for a symbol in code. */
bool kallsym__is_code(const struct kallsym *sym);

/* Kinds of probes that are set by the kernel's own means, and not in a file. */
enum kernel_probe_kind {
	KERNEL_PROBE_NONE,
	KERNEL_PROBE_SYSCALL,
	KERNEL_PROBE_FUNCTION,
	KERNEL_PROBE_TRACEPOINT,
	KERNEL_PROBE_SIGNAL,
	KERNEL_PROBE_EXIT,
	KERNEL_PROBE_OOM,
	KERNEL_PROBE_BREAKPOINT, /* on code of a JIT */
	KERNEL_PROBE_KINDS,
};

#define SYSCALL_PREFIX	  "syscall:"
#define FUNCTION_PREFIX	  "kernel:"
#define TRACEPOINT_PREFIX "tracepoint:"
#define SIGNAL_PREFIX	  "signal:"
#define EXIT_PREFIX	  "exit:"
#define OOM_PREFIX	  "oom:"
#define JIT_PREFIX	  "jit:"

/* The kind that a selector of -symbol names, by its prefix; KERNEL_PROBE_NONE: another selector. */
enum kernel_probe_kind kernel_probe_kind__of(const char *selector);
/* True if one of several selectors, with commas between them, is of this kind. */
bool kernel_probe_kind__is_in(enum kernel_probe_kind kind, const char *selectors);

/* System calls of x86-64 by their numbers. */

/* "futex"; NULL for one that the kernel headers of the build machine do not name. */
const char *syscall__name(int number);
/* "syscall:futex", the name of its trigger; NULL if not known. */
const char *syscall__selector(int number);
/* True if a file descriptor is the first argument. */
bool syscall__is_of_file(int number);

/* pid_namespaces(7): whether the pids that we see are the kernel's own. */

/*
 * Sets the device and inode of our pid namespace's file. False if it is the initial namespace, or
 * not known.
 */
bool pid_namespace__is_own(uint64_t *dev, uint64_t *ino);

/*
 * The depth of a cgroup in its hierarchy: its number of ancestors. fd: the cgroup's open directory.
 */
int cgroup__level(int fd);

/*
 * Restartable sequences (rseq(2)): how to recognize the code to which the kernel sends aborted
 * threads.
 */

/*
 * The signature before an abort handler, little-endian, with which a thread has registered its
 * sequences (kernel/rseq.c: rseq_get_rseq_cs()). glibc, librseq and others use this one on x86.
 */
#define RSEQ_SIGNATURE 0x53053053

/* Threads that work for another thread, which must not be delayed by them. */

/*
 * Makes the calling thread yield: when woken it does not preempt the thread that woke it, as others
 * do even if another CPU is idle (sched(7), SCHED_BATCH). Its share of CPU time stays the same.
 */
static inline void batch_thread__begin(void)
{
	const struct sched_param none = {0};

	/* If this is forbidden, the policy does not change. */
	(void)sched_setscheduler(0, SCHED_BATCH, &none);
}

/*
 * Large pages for large memory. Otherwise the kernel takes longer to hand out small pages one by
 * one than mtbpf takes to fill them. If the kernel has no large pages, these functions change
 * nothing.
 */

/* Allocates memory that free() frees. NULL: no memory. */
void *huge_pages__alloc(size_t size);
/* Asks for large pages for memory that malloc() or realloc() has just returned. */
void huge_pages__use(void *memory);

/*
 * Gives the whole large pages between `from` and `to` back to the kernel, before the memory is
 * freed. Their content is undefined afterwards.
 */
void huge_pages__give_back(void *from, const void *to);

/* Tells if the hypervisor reports stolen time to this machine. */

/* From CPUID, /proc/stat and /proc/cmdline. */
struct steal_facts {
	bool is_guest;
	char hypervisor[13];   /* "KVMKVMKVM"; "" if it reports no name */
	uint32_t kvm_features; /* CPUID 0x40000001 EAX, of KVM */
	bool is_refused;       /* by the kernel's command line: no-steal-acc */
	bool any_stolen;       /* since the machine was started */
};

struct steal_facts steal__facts(void);
/*
 * False if stolen time may pass unnoticed: in a guest in which none has been counted so far, if its
 * hypervisor is not known to report it, or if its kernel does not ask for it.
 */
bool steal__is_told(const struct steal_facts *facts);

#endif
