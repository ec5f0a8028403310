/* SPDX-License-Identifier: MIT */
/* The probe of one function: joins target (where it is) and trigger (which instruction). */
#ifndef MTBPF_SESSION_PROBE_H
#define MTBPF_SESSION_PROBE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/probe/uprobe_event.h"
#include "target/process.h"
#include "target/symbols/symbols.h"
#include "mtbpf_shared.h"
#include "trigger/exit_sites.h"
#include "trigger/probe_site.h"

struct probe {
	char path[PATH_MAX];   /* a name of the file that open(2) takes here */
	uint64_t offset;       /* of the probed instruction */
	uint64_t entry_offset; /* of the function */
	uint64_t ip;	       /* run-time address; 0 where the program does not run yet */
	char name[256];	       /* the function's, for people */
	struct probe_site site;
	/* Where the function is left; or why that is not known, -errno. */
	struct exit_sites exits;
	int exits_err;
	bool is_go;	/* of a program whose runtime walks its stacks, and takes no return probe */
	bool is_inside; /* not the function's entry: "f+0x10", "addr:" */
	bool is_library;     /* mtbpf_hit() of mtbpf.h: it is given the time of the mark */
	struct mt_args args; /* what is read at a hit */
	uint8_t code[16];    /* at the probe; zeroes behind the function's end */
};

/*
 * Finds the function in a process, or, with exec_path, in a file to be run; warns where each hit
 * will cost a single-step. 0, or -errno after a line and a hint.
 */
int probe__find(struct probe *probe, const struct process *process, const char *exec_path,
		const char *symbol);

#endif
