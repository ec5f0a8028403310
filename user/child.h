/* SPDX-License-Identifier: MIT */
/* A program that mtbpf starts, which waits until mtbpf is ready: `run`, and `attach -- CMD`. */
#ifndef MTBPF_CHILD_H
#define MTBPF_CHILD_H

#include <limits.h>
#include <sys/types.h>

struct child {
	pid_t pid;
	int go_fd;     /* a byte through it lets it execute; once closed without one it ends */
	int status_fd; /* tells whether it has */
};

/* As execvp(3) would find it. 0, or -ENOENT after a line and a hint. */
int child__find_program(const char *name, char path[static PATH_MAX]);
/*
 * Forks a child that is to execute the file; nothing ties its life to ours. 0, and child__wait()
 * in any case; or -errno after a line.
 */
int child__fork(struct child *child, const char *path, char **argv);
/*
 * Waits for its end and says how it ended. What kill(1) sends to us meanwhile it is sent as well.
 * 0; or -ENOEXEC: the
 * file was not executed, which the child has said, or it was never let go.
 */
int child__wait(struct child *child);

#endif
