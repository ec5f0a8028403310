/* SPDX-License-Identifier: MIT */
/* Many captures: those that lie in folders, and the summary of each. */
#ifndef MTBPF_CAPTURES_H
#define MTBPF_CAPTURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "keep/keep_options.h"
#include "util/vec.h"
#include "view/summary.h"

/* Paths of recordings, and of traces that have no recording beside them; by name. */
struct capture_paths {
	VEC(char *) all;
};

/*
 * Adds what each word names: a capture itself, or those in a folder and in its folders. Links are
 * not followed. 0, or -errno after a line and a hint; capture_paths__fini() in any case.
 */
int captures__find(struct capture_paths *found, const char *const *words, size_t n);
void capture_paths__fini(struct capture_paths *found);

/* Whether the path is a folder, and no recording. */
bool captures__is_folder(const char *path);

struct summaries {
	VEC(struct summary) all;
	size_t n_unread; /* beside these: they could not be read, as lines have said */
	size_t n_made;	 /* of all: they had none yet */
	size_t n_unkept; /* of these: there is no place for it, or it could not be written */
};

struct summarise_options {
	bool no_inline;
	bool again;	     /* also of those that have one */
	uint64_t since_ms;   /* since 1970: older ones are left out; 0: none */
	uint64_t max_memory; /* of all processes together; 0: what the machine has */
};

/*
 * Each capture's summary: the one that is kept with a recording, or one that is made by decoding
 * it, by a process of its own, as many at a time as there are CPUs, and is kept with the recording.
 * 0, or -errno after a line and a hint; summaries__fini() in any case.
 */
int captures__summarise(struct summaries *out, const struct capture_paths *paths,
			const struct summarise_options *options);
void summaries__fini(struct summaries *summaries);

/* keep_options' `summarise`: of one recording, by one thread. */
int captures__summarise_kept(const char *path, struct metrics_cause causes[static KEEP_CAUSES_MAX]);

#endif
