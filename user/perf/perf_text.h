/* SPDX-License-Identifier: MIT */
/*
 * Reads the text of `perf script`, of any version, as a stream: of branches (--itrace=b) only one
 * piece is in memory at a time; of samples all stacks are.
 */
#ifndef MTBPF_PERF_PERF_TEXT_H
#define MTBPF_PERF_PERF_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/decode.h"
#include "perf/perf_samples.h"
#include "stack/call_tree.h"

struct meter;
struct ocaml_traps;

/*
 * The threads of the text's branches, and their call trees. For a recording, decode and stack make
 * these.
 */
struct perf_threads;

/* Called with each branch of a thread, instead of the stack. A non-zero result ends decoding. */
typedef int (*perf_tap_fn)(void *ctx, pid_t tid, const struct branch *branch);

/* `tap` may be NULL. NULL: out of memory. */
struct perf_threads *perf_threads__new(perf_tap_fn tap, void *ctx);
/* Sets the OCaml handlers of threads added later, which `traps` must outlive. NULL: not known. */
void perf_threads__set_traps(struct perf_threads *threads, const struct ocaml_traps *traps);
/* Also frees the functions that the trees point to. */
void perf_threads__free(struct perf_threads *threads);

struct perf_totals {
	struct decode_totals decode;
	uint64_t moved; /* branches earlier than the branch before them */
};

const struct perf_totals *perf_threads__totals(const struct perf_threads *threads);

/*
 * Each call fills a tree (call_tree__fini()), of a thread or of one of its coroutines; the thread
 * takes no more branches. Threads come in the order in which they were added. Returns 1; 0: there
 * are no more; or -ENOMEM.
 */
int perf_threads__next_tree(struct perf_threads *threads, struct call_tree *tree);

struct perf_text_totals {
	uint64_t lines, bytes;
	uint64_t other;		/* lines that are neither branches nor of samples */
	uint64_t sampled;	/* lines of samples and switches */
	uint64_t too_long;	/* lines left out: longer than the buffer */
	uint64_t unknown_flags; /* branches with words that mean nothing to us, or with none */
	uint64_t not_taken;	/* conditional branches that were not taken */
	uint64_t left_out;	/* branches of threads beyond the maximum */
};

/*
 * True if the file may be such text, judged by its beginning (which can still be read): it is not a
 * recording and contains no NUL. Always true for a pipe.
 */
bool perf_text__may_be(int fd);

/* The receivers of the parsed lines. */
struct perf_text {
	struct perf_threads *threads; /* branches */
	struct perf_samples *samples; /* samples, until the first branch */
	struct perf_text_totals totals;
};

/*
 * Reads the text from fd to its end. The meter, or NULL, counts its bytes. 0; -errno of reading;
 * -ENOMEM; or what the threads' tap returned.
 */
int perf_text__read(struct perf_text *to, int fd, struct meter *meter);

/* Takes a piece: whole lines, or the rest at the end. For tests. */
int perf_text__take(struct perf_text *to, const char *text, size_t len);

#endif
