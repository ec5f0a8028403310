/* SPDX-License-Identifier: MIT */
/* Finds captures in folders, and makes or reads the summary of each. */
#ifndef MTBPF_CAPTURES_H
#define MTBPF_CAPTURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "keep/keep_options.h"
#include "util/vec.h"
#include "view/summary.h"

/* Paths of recordings, and of traces without a recording beside them. */
struct capture_paths {
	VEC(char *) all;
};

/*
 * Adds the captures that each word names: a capture itself, or all in a folder and its subfolders.
 * Links are not followed. 0, or -errno after a line and a hint; call capture_paths__fini() in any
 * case.
 */
int captures__find(struct capture_paths *found, const char *const *words, size_t n);
void capture_paths__fini(struct capture_paths *found);

/* True for a folder that is not a recording itself. */
bool captures__is_folder(const char *path);

struct summaries {
	VEC(struct summary) all;
	size_t n_unread; /* captures that could not be read: reported, and not in `all` */
	size_t n_made;	 /* summaries that were made now */
	size_t n_unkept; /* of these, summaries that could not be stored with the capture */
};

struct summarise_options {
	bool no_inline;
	bool again;	     /* also make summaries of captures that have one */
	uint64_t since_ms;   /* leave out older captures, in ms since 1970; 0: none */
	uint64_t max_memory; /* for all processes together; 0: the machine's memory */
};

/*
 * Reads each capture's summary, or makes it by decoding the capture in a process of its own (one
 * per CPU at a time) and stores it with the recording. 0, or -errno after a message and a hint;
 * call summaries__fini() in any case.
 */
int captures__summarise(struct summaries *out, const struct capture_paths *paths,
			const struct summarise_options *options);
void summaries__fini(struct summaries *summaries);

struct decoded;
struct recording;
/* Stores the summary in a recording that has just been decoded. 0 or -errno. Prints nothing. */
int captures__keep_summary(const struct decoded *decoded, const struct recording *rec,
			   const char *path);

/*
 * `summarise` of keep_options: makes the summary of the recording, and stores its causes, largest
 * first. Prints nothing. Returns the number of causes, or -errno.
 */
int captures__summarise_kept(const char *path, struct metrics_cause causes[static KEEP_CAUSES_MAX]);

#endif
