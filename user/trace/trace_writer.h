/* SPDX-License-Identifier: MIT */
/* Writes call trees as a trace file: FXT, plain or compressed. */
#ifndef MTBPF_TRACE_TRACE_WRITER_H
#define MTBPF_TRACE_TRACE_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/pt_note.h"
#include "stack/call_tree.h"

struct meter;
struct trace_writer;

/* Options for writing. Zero-initialised is a valid default. */
struct trace_options {
	/* Times are written relative to this, so that the trace starts near 0. */
	uint64_t base_ns;
	/*
	 * True if a tree's calls are not needed after they are written: their memory is given back
	 * during writing, for the file's pages. Their content is undefined then.
	 */
	bool forget_calls;
	struct meter *meter; /* counts the calls written; or NULL */
};

/*
 * Opens the file (mode 0600; an existing one is renamed to PATH.old first). The format is chosen by
 * suffix: .fxt, .fxt.gz (zlib), .fxt.zst (zstd; Perfetto does not read it).
 * NULL with errno after one line and a hint on stderr (EINVAL: an unknown suffix).
 */
struct trace_writer *trace_writer__open(const char *path, const struct trace_options *options);

/* Writes the process's name, before or after its threads' trees. */
void trace_writer__process(struct trace_writer *writer, pid_t pid, const char *name);

/*
 * Writes one tree of a thread, on its own track: function name, address, file and line, call site
 * and self instructions on each slice. Slices deeper than Perfetto's importer allows (512) are left
 * out and counted.
 */
void trace_writer__thread(struct trace_writer *writer, const struct call_tree *tree);

/*
 * Writes finished calls of one thread before its tree is known: one or more calls with their
 * callees. The first call, and each other one at its depth, is such an outermost call. Other calls
 * of the thread, which are written later, must not begin or end within a call written here, nor may
 * a call written here begin when an earlier one of those begins or ends. sites: one per call, used
 * instead of the tree's; or NULL. They outlive the writer.
 */
void trace_writer__calls(struct trace_writer *writer, const struct call_tree *calls,
			 const struct call_site *const *sites);
/* Sets trace_options.base_ns, which must not change once anything but names has been written. */
void trace_writer__set_base(struct trace_writer *writer, uint64_t base_ns);

/*
 * Writes one hit on the hits' track, and a mark on its thread's track. The thread's tree must be
 * written before.
 */
void trace_writer__hit(struct trace_writer *writer, const struct hit_mark *hit);

/*
 * Writes an instant on its thread's track, after that thread's tree; a CPU's instant goes on a
 * track of the CPU.
 */
void trace_writer__event(struct trace_writer *writer, const struct pt_note *event);

/* A number that changes: from time_ns on it is `value`. */
struct trace_counter {
	const char *name; /* "CPU MHz" */
	const char *of;	  /* what `id` is: "thread", "cpu" */
	pid_t pid, tid;	  /* the process and thread that own the counter */
	uint64_t id, time_ns;
	double value;
};
void trace_writer__counter(struct trace_writer *writer, const struct trace_counter *counter);

/* Counts of what has been written. */
struct trace_totals {
	uint64_t slices;   /* calls; hits are not counted */
	uint64_t too_deep; /* slices left out: deeper than the importer takes */
	uint64_t clamped;  /* times before base_ns, or running backwards, which were moved */
	uint64_t bytes;	   /* on disk; valid from trace_writer__close() on */
};

/*
 * Finishes the file. Errors of all writes come out here, once: 0, or -errno after one line and a
 * hint on stderr, and the partial file is removed. Frees the writer either way.
 */
int trace_writer__close(struct trace_writer *writer, struct trace_totals *totals);
/* Drops the writer and the partial file. NULL is fine. */
void trace_writer__abort(struct trace_writer *writer);

#endif
