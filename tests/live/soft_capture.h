/* SPDX-License-Identifier: MIT */
/* Runs a sample program under `mtbpf record -source soft`, for tests that look at what it leaves.
 */
#ifndef MTBPF_TESTS_SOFT_CAPTURE_H
#define MTBPF_TESTS_SOFT_CAPTURE_H

#include <stdbool.h>
#include <sys/types.h>

struct soft_capture {
	char dir[64];	     /* a temporary folder; holds all below */
	char recording[128]; /* DIR/r.mtbpf */
	char truth[128];     /* DIR/truth */
	pid_t pid;	     /* the program, as long as it runs */
};

/*
 * Starts build/programs/PROGRAM with args (NULL-terminated), records it with mtbpf's options
 * (NULL-terminated), and waits for mtbpf. Fails the test where mtbpf's exit code is not `expected`.
 */
void soft_capture__make(struct soft_capture *capture, const char *program, const char *const *args,
			const char *const *options, int expected);
/* True where the program still runs, untraced. */
bool soft_capture__target_is_free(const struct soft_capture *capture);
/* Ends the program and removes the folder. */
void soft_capture__end(struct soft_capture *capture);

#endif
