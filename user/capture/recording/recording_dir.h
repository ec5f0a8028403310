/* SPDX-License-Identifier: MIT */
/* Between the files of a recording's directory: its meta.json, its kcore_dir. */
#ifndef MTBPF_CAPTURE_RECORDING_RECORDING_DIR_H
#define MTBPF_CAPTURE_RECORDING_RECORDING_DIR_H

#include <stdbool.h>

#include "capture/recording/recording.h"

struct meter;

/* Writes all of it, and shows how far that is. 0 or -errno. Prints nothing else. */
int recording_dir__save(struct recording *rec, const char *path);

/* Whether it has such an entry. */
bool recording_dir__has(const char *dir, const char *name);

/* meta.json's text, freed by the caller; NULL where memory ran out. */
char *recording_meta__print(const struct recording *rec);

/*
 * Takes meta.json's text into rec. Each image's bytes are read through `read_image(ctx, file,
 * ...)`. 0; -EINVAL not ours, or damaged; -EPROTO of a newer version; -ENOMEM.
 */
int recording_meta__parse(struct recording *rec, const char *text,
			  int (*read_image)(void *ctx, const char *file, char **data, size_t *size),
			  void *ctx);

/*
 * Writes kcore_dir/ where the kernel was traced; reads it where it is there. 0 or -errno. Print
 * nothing.
 */
int recording_kernel__write(const struct rec_kernel *kernel, const char *dir);
int recording_kernel__read(struct rec_kernel *kernel, const char *dir);

/*
 * Puts files into images/ that may not be found again, or all of a portable recording, and names
 * them; opens those that meta.json names. 0 or -errno. Print nothing.
 */
int recording_files__write(struct recording *rec, const char *dir, struct meter *meter);
/* The bytes that it would put there, which the meter, or NULL, counts. */
uint64_t recording_files__size(const struct recording *rec);
int recording_files__open(struct recording *rec, const char *dir);
/* Whether meta.json may name such a file. */
bool recording_files__is_name(const char *name);

/* The name of image i's file in images/. */
void recording_image__file(size_t i, char name[static 32]);
/* The name of a perf map's, there too. */
void recording_perf_map__file(pid_t pid, char name[static 64]);

#endif
