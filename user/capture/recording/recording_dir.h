/* SPDX-License-Identifier: MIT */
/* Between a recording's directory and its meta.json. */
#ifndef MTBPF_CAPTURE_RECORDING_RECORDING_DIR_H
#define MTBPF_CAPTURE_RECORDING_RECORDING_DIR_H

#include <stdbool.h>

#include "capture/recording/recording.h"

/* meta.json's text, freed by the caller; NULL where memory ran out. */
char *recording_meta__print(const struct recording *rec);

/*
 * Takes meta.json's text into rec. Each image's bytes are read through `read_image(ctx, file,
 * ...)`. 0; -EINVAL not ours, or damaged; -EPROTO of a newer version; -ENOMEM.
 */
int recording_meta__parse(struct recording *rec, const char *text,
			  int (*read_image)(void *ctx, const char *file, char **data, size_t *size),
			  void *ctx);

/* The bytes of files that are put into images/: those that may not be found again, or all of a
 * portable recording. */
uint64_t recording_files__size(const struct recording *rec);
/* Whether meta.json may name such a file. */
bool recording_files__is_name(const char *name);

/* The name of image i's file in images/. */
void recording_image__file(size_t i, char name[static 32]);
/* The name of a perf map's, there too. */
void recording_perf_map__file(pid_t pid, char name[static 64]);

#endif
