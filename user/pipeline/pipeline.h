/* SPDX-License-Identifier: MIT */
/* All steps after the capture: combines decode, stack, trace and view. */
#ifndef MTBPF_PIPELINE_PIPELINE_H
#define MTBPF_PIPELINE_PIPELINE_H

#include <stdbool.h>
#include <stdio.h>

#include "capture/recording/recording.h"
#include "pipeline/decoded.h"
#include "trace/text.h"
#include "view/report.h"
#include "view/thread_places.h"

/*
 * Decodes the recording. 0, or -errno after a line and a hint; call decoded__fini() in any case. If
 * the limit of memory_limit__set() is exceeded, drops the older half of rec's rings, as often as
 * needed. With a filter, first drops everything outside of it.
 */
int decoded__make(struct decoded *decoded, struct recording *rec,
		  const struct tree_options *options);
/*
 * Like decoded__make(), from a trace file that mtbpf wrote; rec is then empty. -EBADMSG, without a
 * message, if path is not an FXT file.
 */
int decoded__make_from_fxt(struct decoded *decoded, const char *path);
void decoded__fini(struct decoded *decoded);

/*
 * Writes the trace file. Without a hit the trees' calls are undefined afterwards, since nothing
 * reads them again. 0, or -errno after a line and a hint.
 */
int decoded__write_trace(struct decoded *decoded, const struct recording *rec, const char *path);
/* Prints the trees with `format`, one line per slice: tid depth start end name. */
int decoded__write_text(const struct decoded *decoded, text_format_fn format, FILE *out);
/* Like decoded__write_text(), to a file. 0, or -errno after a line and a hint. */
int decoded__write_text_file(const struct decoded *decoded, text_format_fn format,
			     const char *path);

/* Number of functions in a report by default. */
#define REPORT_ROWS 10
/*
 * Prints the summary: the trigger, the report (`top` functions of it), the losses, and how far the
 * trace looks back.
 */
void decoded__summarise(const struct decoded *decoded, const struct recording *rec, FILE *out,
			size_t top);

/* True if nothing was lost, judged as in the summary. */
bool decoded__is_whole(const struct decoded *decoded, const struct recording *rec);

/* The hit that triggered; if several did, the slowest. NULL: none did. */
const struct hit_mark *decoded__slowest_hit(const struct decoded *decoded);
/*
 * Finds where the threads were at the stall of that hit; without a stall, *places is empty. The
 * names refer to decoded and rec. 0 or -ENOMEM; thread_places__fini() in any case.
 */
int decoded__thread_places(const struct decoded *decoded, const struct recording *rec, size_t hit,
			   struct thread_places *places);

/*
 * Makes the report of the slowest hit. It refers to decoded. NULL with errno: ENODATA: the lookback
 * lacks hits, or the hit's iteration; ENOMEM.
 */
struct report *decoded__report(const struct decoded *decoded);

#endif
