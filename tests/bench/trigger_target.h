/* SPDX-License-Identifier: MIT */
/* What bench_trigger probes: functions by their first instruction, in a process that calls them. */
#ifndef MTBPF_BENCH_TRIGGER_TARGET_H
#define MTBPF_BENCH_TRIGGER_TARGET_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mtbpf.h"
#include "mtbpf_shared.h"
#include "util/clock.h"

uint64_t victim_push(uint64_t x);
uint64_t victim_nop(uint64_t x);
uint64_t victim_nop5(uint64_t x);
uint64_t victim_endbr64(uint64_t x);

#define VICTIM(name, first, last)                                                                  \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"    \
		"" first "lea 7(%rdi,%rdi,4), %rax\n" last "ret\n.size " #name ", .-" #name "\n")

VICTIM(victim_push, "push %rbx\n", "pop %rbx\n");
VICTIM(victim_nop, "nop\n", "");
VICTIM(victim_nop5, ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n", "");
VICTIM(victim_endbr64, "endbr64\n push %rbx\n", "pop %rbx\n");

#undef VICTIM

/* As a program calls include/mtbpf.h: at each call, and where a call was slow. */
static inline uint64_t victim_library(uint64_t x)
{
	mtbpf_take_snapshot();
	return x;
}

static inline uint64_t victim_library_if_slow(uint64_t x)
{
	mtbpf_mark_start();
	if (mtbpf_min_duration(3600000000000))
		mtbpf_take_snapshot();
	return x;
}

static inline uint64_t victim_signal(uint64_t x)
{
	raise(SIGUSR1);
	return x;
}

static inline void target__on_signal(int number)
{
	(void)number;
}

typedef uint64_t (*victim_fn)(uint64_t x);

/* A command for the target. */
struct command {
	victim_fn call; /* NULL: the system call getppid */
	uint64_t count;
	bool deep; /* once, with a deep stack */
};

struct target {
	pid_t pid;
	int commands;
	int answers;
};

static inline void die(const char *what)
{
	fprintf(stderr, "bench_trigger: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* With more stack above it than is ever copied, all of it in memory. */
static inline uint64_t target__call_deep(victim_fn call)
{
	volatile char space[2 * MT_COPY_MAX];
	uint64_t start, x;

	memset((char *)space, 1, sizeof(space));
	start = clock__now_ns();
	x = call(1);
	__asm__ volatile("" : : "r"(x), "r"(space) : "memory");
	return clock__now_ns() - start;
}

static inline uint64_t target__do(const struct command *command)
{
	uint64_t start = clock__now_ns(), x = 1;

	if (command->deep)
		return target__call_deep(command->call);
	for (uint64_t i = 0; i < command->count; i++) {
		if (command->call)
			x = command->call(x);
		else
			syscall(SYS_getppid);
	}
	__asm__ volatile("" : : "r"(x));
	return clock__now_ns() - start;
}

static inline void target__serve(int commands, int answers)
{
	struct command command;
	uint64_t ns;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGUSR1, target__on_signal);
	while (read(commands, &command, sizeof(command)) == sizeof(command)) {
		ns = target__do(&command);
		if (write(answers, &ns, sizeof(ns)) != sizeof(ns))
			break;
	}
	_exit(0);
}

static inline void target__start(struct target *target)
{
	int commands[2], answers[2];

	if (pipe2(commands, O_CLOEXEC) || pipe2(answers, O_CLOEXEC))
		die("pipe");
	target->pid = fork();
	if (target->pid < 0)
		die("fork");
	if (!target->pid) {
		close(commands[1]);
		close(answers[0]);
		target__serve(commands[0], answers[1]);
	}
	close(commands[0]);
	close(answers[1]);
	target->commands = commands[1];
	target->answers = answers[0];
}

static inline void target__stop(struct target *target)
{
	close(target->commands);
	close(target->answers);
	waitpid(target->pid, NULL, 0);
}

/* Nanoseconds for all of it. */
static inline uint64_t target__run(const struct target *target, const struct command *command)
{
	uint64_t ns;

	if (write(target->commands, command, sizeof(*command)) != sizeof(*command) ||
	    read(target->answers, &ns, sizeof(ns)) != sizeof(ns))
		die("the target is gone");
	return ns;
}

/* Nanoseconds per call. */
static inline double target__call(const struct target *target, victim_fn call, uint64_t count)
{
	return (double)target__run(target, &(struct command){.call = call, .count = count}) /
	       (double)count;
}

#endif
