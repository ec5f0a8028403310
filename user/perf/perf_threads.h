/* SPDX-License-Identifier: MIT */
/*
 * Makes call trees, one per thread, from branches that perf has decoded. These come from all
 * threads in turn. For a recording, decode and stack do this.
 */
#ifndef MTBPF_PERF_PERF_THREADS_H
#define MTBPF_PERF_PERF_THREADS_H

#include <stdint.h>
#include <sys/types.h>

#include "decode/decode.h"
#include "stack/call_tree.h"
#include "target/symbols/named_image.h"
#include "util/vec.h"

struct ocaml_traps;
struct perf_threads;
struct perf_thread;

/* A branch as perf prints it, without the names of its places. */
struct perf_branch {
	uint64_t time_ns;
	uint64_t from, to; /* 0: unknown */
	uint32_t flags;	   /* enum perf_flag */
	uint32_t n_insns;  /* 0: not known */
	uint8_t insn_len;  /* of the instruction at `from`; 0: not known */
};

/* Called with each branch of a thread, instead of the stack. A non-zero result ends decoding. */
typedef int (*perf_tap_fn)(void *ctx, pid_t tid, const struct branch *branch);

/* `tap` may be NULL. NULL: out of memory. */
struct perf_threads *perf_threads__new(perf_tap_fn tap, void *ctx);
/* Sets the OCaml handlers for threads added later; must outlive them. NULL: not known. */
void perf_threads__set_traps(struct perf_threads *threads, const struct ocaml_traps *traps);
/* Also frees the functions that the trees point to. */
void perf_threads__free(struct perf_threads *threads);

/*
 * Finds the thread, or adds it. It lives until perf_threads__free(). NULL with errno: ENOMEM;
 * EMFILE: there are too many threads, and this one is left out.
 */
struct perf_thread *perf_threads__find(struct perf_threads *threads, pid_t pid, pid_t tid);
/* The name, not terminated, is copied. */
void perf_thread__set_comm(struct perf_thread *thread, const char *comm, size_t len);
/* The code of its process. Before a branch is taken, its two places are learnt there. */
struct named_image *perf_thread__image(struct perf_thread *thread);

/* Learns from branches between places without names: see named_image__follow(). 0 or -ENOMEM. */
int perf_thread__follow(struct perf_thread *thread, const struct perf_branch *branch);

/* The thread's next branch. 0, -ENOMEM, or what the tap returned. */
int perf_threads__branch(struct perf_threads *threads, struct perf_thread *thread,
			 const struct perf_branch *branch);

/*
 * Notes a loss, which becomes a gap at the thread's next branch at time_ns or later. For a thread
 * not seen yet it is only counted. `code` is an Intel PT error, or 0. 0 or -ENOMEM.
 */
int perf_threads__lose(struct perf_threads *threads, pid_t pid, pid_t tid, uint64_t time_ns,
		       int code);

struct perf_totals {
	struct decode_totals decode;
	uint64_t moved; /* branches earlier than the branch before them */
};

const struct perf_totals *perf_threads__totals(const struct perf_threads *threads);

/*
 * Each call fills a tree (call_tree__fini()), of a thread or of one of its coroutines; the thread
 * takes no more branches. In the order of their first ones. 1; 0: there are no more; -ENOMEM.
 */
int perf_threads__next_tree(struct perf_threads *threads, struct call_tree *tree);

#endif
