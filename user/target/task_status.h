/* SPDX-License-Identifier: MIT */
/* What /proc/PID/status says of a task. */
#ifndef MTBPF_TARGET_TASK_STATUS_H
#define MTBPF_TARGET_TASK_STATUS_H

#include <stdbool.h>
#include <sys/types.h>

#define PROCESS_COMM_SIZE 16

struct task_status {
	pid_t tgid;
	char state; /* 'R', 'S', ..., 'Z' zombie, 'X' dead */
	bool has_memory;
	pid_t tracer; /* 0: none */
	unsigned int threads;
	pid_t pid_inside; /* in its own pid namespace; 0: not told */
	char comm[PROCESS_COMM_SIZE];
};

/* 0 or -errno: -ESRCH where there is no such task. */
int task_status__read(struct task_status *status, pid_t pid);
/* The same of the file's text. -ESRCH: it is none. */
int task_status__parse(struct task_status *status, const char *text);

/* A task's name from what /proc says of it: up to a newline, fit to be shown. */
void task_comm__copy(char comm[static PROCESS_COMM_SIZE], const char *text);

#endif
