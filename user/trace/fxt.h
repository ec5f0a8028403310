/* SPDX-License-Identifier: MIT */
/*
 * Encodes Fuchsia trace format (FXT) records into a sink. Layouts: Fuchsia's
 * docs/reference/tracing/trace-format.md. Errors stick to the sink.
 */
#ifndef MTBPF_TRACE_FXT_H
#define MTBPF_TRACE_FXT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace/fxt_format.h"
#include "trace/sink.h"

/* Enough for the arguments of a call's slice. */
#define FXT_TEMPLATE_NUMBERS 3
#define FXT_TEMPLATE_WORDS   16

struct fxt;

enum fxt_arg_kind {
	FXT_UINT, /* u32 if it fits, otherwise u64 */
	FXT_INT,
	FXT_POINTER,
	FXT_DOUBLE,
	FXT_STRING,
};

struct fxt_arg {
	const char *key;
	enum fxt_arg_kind kind;
	uint64_t number;    /* FXT_UINT, FXT_INT, FXT_POINTER */
	double fraction;    /* FXT_DOUBLE */
	const char *string; /* FXT_STRING */
	bool varies;	    /* in a template: the number is given with each event */
};

/* Strings may hold anything: they are cleaned as names.h says. */
struct fxt_event {
	uint64_t time_ns;
	pid_t pid, tid;
	const char *category, *name;
	const struct fxt_arg *args;
	unsigned int n_args; /* those after FXT_MAX_ARGS are left out */
};

/* Writes the head of the file; time is in nanoseconds. The sink is the caller's. NULL with errno.
 */
struct fxt *fxt__new(struct sink *sink);
void fxt__free(struct fxt *fxt);

void fxt__name_process(struct fxt *fxt, pid_t pid, const char *name);
/*
 * Names the track of the thread, if `thread` is `tid`. Otherwise names a track beside those of
 * threads, with a made-up tid, for what `thread` did on a coroutine's stack.
 */
void fxt__name_track(struct fxt *fxt, pid_t pid, pid_t tid, pid_t thread, const char *name);

/*
 * Writes an event of these types:
 * FXT_EVENT_INSTANT, FXT_EVENT_BEGIN: `last` is ignored.
 * FXT_EVENT_COMPLETE: a whole slice, which ends at `last`. Importers drop it if it overlaps another
 * one of the thread without nesting; if both start at once, write the outer one first.
 * FXT_EVENT_COUNTER: from then on each of the event's numbers has this value. Importers have a
 * track for each number, in the process, called "name:key:id"; `last` is the id.
 */
void fxt__event(struct fxt *fxt, enum fxt_event_type type, uint64_t last,
		const struct fxt_event *event);

/* A begin, encoded once, that is written many times with other times, threads and numbers. */
struct fxt_template {
	uint32_t generation; /* string_table.generation at which it was made */
	uint8_t n_words;     /* 0: none has been made */
	uint8_t n_numbers;
	uint8_t at[FXT_TEMPLATE_NUMBERS];    /* the word of each number */
	uint8_t shift[FXT_TEMPLATE_NUMBERS]; /* the first bit of each number */
	uint64_t words[FXT_TEMPLATE_WORDS];
};

/*
 * Makes a template from an event, without its time and thread. False if the event has too many
 * arguments: use fxt__event().
 */
bool fxt__make_template(struct fxt *fxt, struct fxt_template *template,
			const struct fxt_event *event);
/*
 * False if no template was made, or if the string table was emptied since: the template must be
 * made again.
 */
bool fxt__is_current(const struct fxt *fxt, const struct fxt_template *template);
/*
 * Writes the event of a current template. `numbers` replace those of its arguments that vary, in
 * the arguments' order; an FXT_UINT has 32 bits at most. With end_ns 0 the event is a begin,
 * otherwise a whole slice.
 */
void fxt__slice_from(struct fxt *fxt, const struct fxt_template *template, pid_t pid, pid_t tid,
		     uint64_t time_ns, uint64_t end_ns, const uint64_t *numbers);

/* Closes the thread's innermost open slice. */
void fxt__end(struct fxt *fxt, pid_t pid, pid_t tid, uint64_t time_ns);
/* One end of an arrow, which is drawn to or from the slice that the thread was in last. */
struct fxt_flow {
	uint64_t time_ns;
	pid_t pid, tid;
	uint64_t id; /* the same at both ends, and of no other arrow */
};

/*
 * FXT_EVENT_FLOW_BEGIN or FXT_EVENT_FLOW_END. The end that is written first must be the earlier
 * one: importers let arrows run forwards.
 */
void fxt__flow(struct fxt *fxt, enum fxt_event_type type, const struct fxt_flow *flow);

#endif
