/* SPDX-License-Identifier: MIT */
/* A program that mtbpf starts and that waits until mtbpf is ready: `run`, and `attach -- CMD`. */
#ifndef MTBPF_CHILD_H
#define MTBPF_CHILD_H

#include <limits.h>
#include <sys/types.h>

struct child {
	pid_t pid;
	int go_fd;     /* a byte lets it execute; it ends if this is closed before */
	int status_fd; /* end of file when it has executed the program */
};

/* Finds a program as execvp(3) does. 0, or -ENOENT after a message and a hint. */
int child__find_program(const char *name, char path[static PATH_MAX]);
/*
 * Forks a child that will execute the file; it survives mtbpf's end. 0: call child__wait() in any
 * case; or -errno after a message and a hint.
 */
int child__fork(struct child *child, const char *path, char **argv);
/*
 * Waits until the program ends, prints how it ended, and passes on signals that kill(1) sends to
 * mtbpf. 0, or -ENOEXEC if it was not executed: it was never let go, or the child has printed why.
 */
int child__wait(struct child *child);

#endif
