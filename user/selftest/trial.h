/* SPDX-License-Identifier: MIT */
/* One recording of the programs: starts them, runs `mtbpf record` on them, and decodes it. */
#ifndef MTBPF_SELFTEST_TRIAL_H
#define MTBPF_SELFTEST_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/recording/recording.h"
#include "pipeline/pipeline.h"
#include "selftest/noted.h"

/*
 * `perf trace` counts whole iterations while they are recorded (nanosleep() ends them), and the
 * calls of getppid() in them.
 */
struct perf_syscalls {
	unsigned int iterations, calls;
	unsigned int lost; /* number of lost events that it reports */
};

struct trial {
	/* Set by the caller; all of it must stay valid. */
	const char *dir;	    /* the folder that gets the recording */
	const char *name;	    /* the recording's name in it */
	const char *source;	    /* as -source names it */
	const char *const *options; /* more options of `mtbpf record`; NULL-terminated */
	unsigned int programs;	    /* which programs run: 1 << enum program */
	struct program_log *log;    /* mapped MAP_SHARED */
	bool is_portable;	    /* to be decoded on another machine, too */
	bool is_of_cgroup;	    /* record a cgroup that has the programs, not a process */
	bool has_perf_trace;	    /* `perf trace` runs meanwhile, if it is installed */
	int cpu;		    /* 1 + the CPU that they run on; 0: any */
	/* The result of trial__make() and trial__load(). */
	pid_t child; /* the process that runs the programs, stopped; 0 if loaded */
	pid_t first; /* the first process of the programs, also if loaded */
	struct recording rec;
	struct decoded decoded;
	const struct hit_mark *hit;	   /* the last of the trace */
	const struct iteration *iteration; /* the one that the hit ended */
	pid_t remover; /* removes the cgroup once remover_end is closed; 0: none */
	int remover_end;
	struct perf_syscalls perf_syscalls;
	int perf_error; /* why perf trace saw nothing; -ENOENT: no perf here */
};

#define TRIAL_TEXT_SIZE 200

/*
 * Records and decodes. Leaves NAME.mtbpf, and the programs' notes in NAME.truth, in the folder.
 * False if that failed; `why` then tells the reason. Call trial__end() in any case.
 */
bool trial__make(struct trial *trial, char why[static TRIAL_TEXT_SIZE]);
/* Like trial__make(), from the files that it left there, perhaps on another machine. */
bool trial__load(struct trial *trial, char why[static TRIAL_TEXT_SIZE]);
/* True if the folder has a recording of that name. */
bool trial__is_there(const char *dir, const char *name);
/* Ends the programs and frees what was decoded. The recording stays in the folder. */
void trial__end(struct trial *trial);

/*
 * Lets the programs continue, and checks that they do, and that nothing of the recording is left in
 * their process. NULL: all is well; otherwise what is wrong.
 */
const char *trial__find_harm(const struct trial *trial);

#endif
