/* SPDX-License-Identifier: MIT */
/* One single-stepped thread: what each step did, as packets in its ring. */
#ifndef MTBPF_CAPTURE_SOFT_STEPPED_H
#define MTBPF_CAPTURE_SOFT_STEPPED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "capture/soft/pt_stream.h"
#include "capture/soft/stepper.h"
#include "capture/soft/truth.h"
#include "util/insn.h"

struct stepped {
	pid_t tid;
	bool attached;
	bool stopped;	      /* in a ptrace stop; what PTRACE_DETACH needs */
	bool unseen;	      /* runs freely still: its first stop has not come */
	bool waiting;	      /* seized, but not to be stepped before its execve, or a start */
	bool has_breakpoints; /* it stops at the starts */
	bool skip_next;	      /* the next step stop executed no instruction (execve) */
	int inject;	      /* the signal to deliver when it goes on */
	struct pt_stream stream;
	struct soft_shared *shared;
	struct soft_thread *out;
	uint8_t *ring;
	struct truth truth;
	/* The instruction that runs next. */
	uint64_t ip, sp;
	uint64_t fetched_ns;
	uint64_t syscall_nr; /* rax */
	struct insn insn;    /* len 0: the code could not be read */
	bool under_probe;    /* an int3 that no file holds may lie there: the live byte is 0xcc */
	bool is_pushf;
	bool is_unreadable; /* not a byte of the code could be read */
};

void stepped__init(struct stepped *t, pid_t tid, struct soft_shared *shared, uint32_t index,
		   const struct pt_stream_config *config, FILE *truth_log);
void stepped__fini(struct stepped *t);

/* Looks at the instruction that runs next: regs and the bytes at its ip. */
void stepped__fetch(struct stepped *t, const struct user_regs_struct *regs);

/* The fetched instruction ran, and regs are what it left. True: it was a system call. */
bool stepped__executed(struct stepped *t, const struct user_regs_struct *regs);
/* A uprobe stood on the fetched instruction: the kernel took int3, did the work, and went on. */
void stepped__probed(struct stepped *t, const struct user_regs_struct *regs);
/* A signal handler was entered before the fetched instruction ran. */
void stepped__signalled(struct stepped *t, const struct user_regs_struct *regs);
/* execve replaced the program. */
void stepped__exec(struct stepped *t);
/* It stays there, but what it does is not recorded any more, until it is fetched again. */
void stepped__leave(struct stepped *t);
/* Recording stops here; in_syscall: inside the fetched syscall instruction. */
void stepped__end(struct stepped *t, bool in_syscall);

#endif
