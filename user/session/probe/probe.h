/* SPDX-License-Identifier: MIT */
/* One probe: the place of a function (target) and the instruction to probe there (trigger). */
#ifndef MTBPF_SESSION_PROBE_PROBE_H
#define MTBPF_SESSION_PROBE_PROBE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/probe/uprobe_event.h"
#include "target/process.h"
#include "target/symbols/symbols.h"
#include "mtbpf_shared.h"
#include "trigger/probe_site.h"
#include "trigger/trigger.h"

/*
 * Code that reads return addresses on the stack, and that ends the program if it finds the address
 * that a return probe puts there: that of the kernel's trampoline, which lacks unwind information.
 */
enum return_reader {
	RETURN_READER_NONE,
	RETURN_READER_UNWINDER, /* unwinder of exceptions: calls std::terminate() or abort() */
	RETURN_READER_RUNTIME,	/* a runtime's collector or stack growth: SIGSEGV, or Go's throw */
};

struct probe {
	char path[PATH_MAX]; /* a path by which mtbpf can open the file */
	struct {
		uint64_t ino;
		uint32_t maj, min;
	} file;		       /* as in the processes' mappings */
	uint64_t offset;       /* of the probed instruction */
	uint64_t entry_offset; /* of the function */
	uint64_t ip;	       /* run-time address; 0 if the program does not run yet */
	char name[256];	       /* the function's name, for messages */
	struct probe_site site;
	/* The function's exits; exits_err is -errno if they are not known. */
	struct exit_sites exits;
	int exits_err;
	bool is_go; /* in a Go program, whose runtime does not allow return probes */
	enum return_reader return_reader;
	unsigned int go_minor; /* Go version 1.go_minor; 0: not known */
	bool is_inside;	       /* not the function's entry: "f+0x10", "addr:" */
	bool is_library;       /* mtbpf_hit() of mtbpf.h, which receives the time of the mark */
	bool is_usdt;
	struct mt_args args;   /* arguments that are shown at a hit */
	struct mt_reads reads; /* what -if, -key and -print read at a hit */
	char refused[576];     /* why one of these cannot be read here; "": all can */
	uint64_t semaphore;    /* file offset of the USDT semaphore; 0: none */
	uint8_t code[16];      /* code at the probe; zeros after the function's end */
	uint8_t jit_code_len;  /* for a JIT's function: the bytes of code[] that are its own */
	/*
	 * If kind is set, the probe is in the kernel and not in a file: `path` is its name, and
	 * `offset` is the number of the system call, if it is one.
	 */
	struct kernel_probe kernel;
};

static inline bool probe__in_kernel(const struct probe *probe)
{
	return probe->kernel.kind;
}

struct programs;
struct hit_reads;

/* Probes are looked up in a process, in several, or in the file exec_path that will be run. */
struct probe_source {
	const struct process *process;
	const char *exec_path;
	struct programs *programs;     /* of several processes, or NULL */
	const struct hit_reads *reads; /* values to read at their hits; NULL: none */
	bool is_start;		       /* the probes are those of -start */
};

typedef int (*probe_fn)(void *ctx, const struct probe *probe);

#endif
