/* SPDX-License-Identifier: MIT */
/* Whole files and whole writes. */
#ifndef MTBPF_UTIL_FS_H
#define MTBPF_UTIL_FS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The whole file, NUL-terminated; /proc files too. *data is freed by the caller. 0 or -errno. */
int fs__read(const char *path, char **data, size_t *len);

/* The number that a small file begins with; `otherwise` where there is none. */
long fs__read_number(const char *path, long otherwise);

/* Writes all len bytes, through short writes and EINTR. 0 or -errno. */
int fs__write_fd(int fd, const void *data, size_t len);

/* Creates or truncates path with mode 0600 and writes all of data. 0 or -errno. */
int fs__write(const char *path, const void *data, size_t len);

/* Removes a directory and the files in it, subdirectories too. 0 or -errno. */
int fs__remove_dir(const char *path);

#endif
