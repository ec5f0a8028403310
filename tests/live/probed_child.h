/* SPDX-License-Identifier: MIT */
/* The target of the live tests: a forked child that calls probed functions when told to. */
#ifndef MTBPF_TESTS_PROBED_CHILD_H
#define MTBPF_TESTS_PROBED_CHILD_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probed_code.h"

/* What a slow call takes. */
#define SLOW_MS 300

#define MANY_THREADS 8

enum job {
	HIT,	     /* hit_me(), arg times */
	HIT_NO_FP,   /* hit_me_no_fp() */
	HIT_LATE,    /* hit_me() after arg ms */
	HIT_IN_CALL, /* hit_me() in call_inner() in call_outer() */
	HIT_NO_FP_IN_CALL,
	HIT_REGISTERS,	  /* hit_me() from call_with_registers() */
	HIT_SMALL_STACK,  /* hit_me() in a thread with arg bytes of stack, nothing behind them */
	HIT_THREADS,	  /* hits every 10 ms; a new thread hits twice, arg ms apart; its tid */
	HIT_FROM_MANY,	  /* hit_me() arg times in each of MANY_THREADS at once */
	TIMED_FROM_MANY,  /* timed(), likewise */
	HIT_FORK,	  /* in a child of its own; its exit status */
	TIMED,		  /* timed(): a call of arg ms */
	TIMED_DEEP,	  /* the same, from further down the stack */
	TIMED_NESTED,	  /* arg calls inside each other; the outermost takes SLOW_MS more */
	TIMED_JUMP_OUT,	  /* arg calls inside each other, all left by longjmp; then SLOW_MS */
	TIMED_JUMP_AGAIN, /* a call left by longjmp; SLOW_MS; then a fast one in its place */
	TIMED_JUMP_IN,	  /* calls left by longjmp inside a call, which then takes SLOW_MS */
	LEAVE_IF,	  /* leave_if() number arg, with all flags; how often it jumped */
};

struct command {
	enum job job;
	int arg;
};

struct timed_call {
	int depth;     /* calls inside this one */
	int ms;	       /* of its own, after them */
	jmp_buf *out;  /* the innermost one jumps here */
	int jump_over; /* this many inner calls are made and left first */
};

static void sleep_ms(int ms)
{
	if (ms)
		usleep(ms * 1000);
}

static void jump_out_of(int depth)
{
	jmp_buf env;

	if (!setjmp(env))
		timed(&(struct timed_call){.depth = depth - 1, .out = &env});
}

/* The second call has its frame exactly where the first one's was. */
static void jump_out_and_call_again(void)
{
	jmp_buf env;

	if (!setjmp(env)) {
		timed(&(struct timed_call){.out = &env});
	} else {
		sleep_ms(SLOW_MS);
		timed(&(struct timed_call){0});
	}
}

void timed_body(const struct timed_call *call)
{
	if (call->jump_over)
		jump_out_of(call->jump_over);
	if (call->depth)
		timed(&(struct timed_call){.depth = call->depth - 1, .out = call->out});
	else if (call->out)
		longjmp(*call->out, 1);
	sleep_ms(call->ms);
}

static void *hit_twice(void *ms)
{
	hit_me();
	sleep_ms(*(int *)ms);
	hit_me();
	return (void *)(intptr_t)gettid();
}

static int hit_from_threads(int ms)
{
	pthread_t thread;
	void *tid = NULL;

	if (pthread_create(&thread, NULL, hit_twice, &ms))
		return -1;
	for (int i = 0; i <= ms; i += 10) {
		hit_me();
		sleep_ms(10);
	}
	pthread_join(thread, &tid);
	return (int)(intptr_t)tid;
}

struct many {
	pthread_barrier_t begin;
	int times;
	bool timed;
};

static void *hit_many_times(void *arg)
{
	struct many *many = arg;
	struct timed_call call = {0};

	pthread_barrier_wait(&many->begin);
	for (int i = 0; i < many->times; i++) {
		if (many->timed)
			timed(&call);
		else
			hit_me();
	}
	return NULL;
}

static int hit_from_many(int times, bool is_timed)
{
	struct many many = {.times = times, .timed = is_timed};
	pthread_t threads[MANY_THREADS];

	pthread_barrier_init(&many.begin, NULL, MANY_THREADS);
	for (int i = 0; i < MANY_THREADS; i++)
		if (pthread_create(&threads[i], NULL, hit_many_times, &many))
			abort();
	for (int i = 0; i < MANY_THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&many.begin);
	return 0;
}

static void *hit_once(void *arg)
{
	hit_me();
	return NULL;
}

/* What lies behind a thread's stack may be another one's: here a page that nobody can read. */
static int hit_from_small_stack(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *stack =
		mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	if (stack == MAP_FAILED || mprotect(stack + size, page, PROT_NONE))
		return -errno;
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, stack, size);
	err = pthread_create(&thread, &attr, hit_once, NULL);
	if (!err)
		pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	munmap(stack, size + page);
	return -err;
}

/* CF, PF, ZF, SF, OF, as they are or not. */
#define LEAVE_IF_TIMES 32

static int leave_by(int number)
{
	int (*leave)(uint64_t flags) = (void *)(leave_if + LEAVE_IF_SIZE * number);
	int taken = 0;

	for (uint64_t i = 0; i < LEAVE_IF_TIMES; i++)
		taken += leave(2 | (i & 1) | (i >> 1 & 1) << 2 | (i >> 2 & 3) << 6 |
			       (i >> 4 & 1) << 11);
	return taken;
}

static int hit_from_fork(void)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		hit_me();
		_exit(7);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

static void run_timed_deep(int ms)
{
	volatile char space[4096];

	space[0] = (char)ms;
	timed(&(struct timed_call){.ms = ms});
	(void)space[0];
}

static int run_timed(const struct command *command)
{
	struct timed_call call = {.ms = SLOW_MS};

	switch (command->job) {
	case TIMED:
		call.ms = command->arg;
		break;
	case TIMED_DEEP:
		run_timed_deep(command->arg);
		return 0;
	case TIMED_NESTED:
		call.depth = command->arg - 1;
		break;
	case TIMED_JUMP_AGAIN:
		jump_out_and_call_again();
		return 0;
	case TIMED_JUMP_IN:
		call.jump_over = command->arg;
		break;
	default:
		jump_out_of(command->arg);
		sleep_ms(SLOW_MS);
		return 0;
	}
	timed(&call);
	return 0;
}

static int run_command(const struct command *command)
{
	switch (command->job) {
	case HIT:
		for (int i = 0; i < command->arg; i++)
			hit_me();
		return 0;
	case HIT_NO_FP:
		hit_me_no_fp();
		return 0;
	case LEAVE_IF:
		return leave_by(command->arg);
	case HIT_LATE:
		sleep_ms(command->arg);
		hit_me();
		return 0;
	case HIT_IN_CALL:
		call_outer(hit_me);
		return 0;
	case HIT_NO_FP_IN_CALL:
		call_outer(hit_me_no_fp);
		return 0;
	case HIT_REGISTERS:
		call_with_registers();
		return 0;
	case HIT_SMALL_STACK:
		return hit_from_small_stack((size_t)command->arg);
	case HIT_THREADS:
		return hit_from_threads(command->arg);
	case HIT_FROM_MANY:
		return hit_from_many(command->arg, false);
	case TIMED_FROM_MANY:
		return hit_from_many(command->arg, true);
	case HIT_FORK:
		return hit_from_fork();
	default:
		return run_timed(command);
	}
}

static inline void probed_child__serve(int commands, int answers)
{
	struct command command;
	int answer;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(commands, &command, sizeof(command)) == sizeof(command)) {
		answer = run_command(&command);
		if (write(answers, &answer, sizeof(answer)) != sizeof(answer))
			break;
	}
	_exit(0);
}

struct probed_child {
	pid_t pid;
	int commands;
	int answers;
};

/* 0 or -errno. */
static inline int probed_child__start(struct probed_child *child)
{
	int commands[2], answers[2];

	if (pipe2(commands, O_CLOEXEC) || pipe2(answers, O_CLOEXEC))
		return -errno;
	child->pid = fork();
	if (child->pid < 0)
		return -errno;
	if (!child->pid) {
		close(commands[1]);
		close(answers[0]);
		probed_child__serve(commands[0], answers[1]);
	}
	close(commands[0]);
	close(answers[1]);
	child->commands = commands[1];
	child->answers = answers[0];
	return 0;
}

/* Has the child do it, and waits. Returns its answer, or -EPIPE where the child is gone. */
static inline int probed_child__run(const struct probed_child *child, enum job job, int arg)
{
	struct command command = {.job = job, .arg = arg};
	int answer;

	if (write(child->commands, &command, sizeof(command)) != sizeof(command) ||
	    read(child->answers, &answer, sizeof(answer)) != sizeof(answer))
		return -EPIPE;
	return answer;
}

static inline void probed_child__stop(struct probed_child *child)
{
	close(child->commands);
	close(child->answers);
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
}

#endif
