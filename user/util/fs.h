/* SPDX-License-Identifier: MIT */
/* Reads, writes, copies, renames, removes and measures whole files and folders. */
#ifndef MTBPF_UTIL_FS_H
#define MTBPF_UTIL_FS_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The whole file, NUL-terminated; /proc files too. *data is freed by the caller. 0 or -errno. */
int fs__read(const char *path, char **data, size_t *len);

/* Like fs__read(), for /proc/PID/NAME. -ESRCH: it is missing. */
int fs__read_proc(pid_t pid, const char *name, char **data, size_t *len);
/*
 * Reads where the link /proc/PID/NAME leads. 0; or -errno, and target is "": -ESRCH: it is missing.
 */
int fs__read_proc_link(pid_t pid, const char *name, char target[static PATH_MAX]);

/* Like fs__read(), for an open file, from its begin; -EFBIG if it holds more than `most` bytes. */
int fs__read_fd(int fd, size_t most, char **data, size_t *len);

/* Returns fd if it is a regular file's; otherwise closes it: -EINVAL. fd -1: -errno of open(2). */
int fs__only_regular(int fd);

/* The number at the start of a small file, or `otherwise`. */
long fs__read_number(const char *path, long otherwise);

/* Writes all len bytes, through short writes and EINTR. 0 or -errno. */
int fs__write_fd(int fd, const void *data, size_t len);

/* Creates or truncates path with mode 0600 and writes all of data. 0 or -errno. */
int fs__write(const char *path, const void *data, size_t len);

/*
 * Copies fd's file, keeping its holes, to a new file of mode 0600. 0 or -errno: -EEXIST if path
 * exists. The new file is removed after an error.
 */
int fs__copy(int fd, const char *path);
/* Creates path's parent folders, mode 0700, from byte `from` of path on. 0 or -errno. */
int fs__make_parents(const char *path, size_t from);
/* Raises the limit of open files to n and 512 more, as far as allowed. */
void fs__allow_open_files(size_t n);
/* Closes all descriptors from `first` on except a and b; one of the two may be -1. */
void fs__close_all_but(int first, int a, int b);

/*
 * Renames `partial` to `path`, and an existing `path` to `old`; in one step, so that a reader sees
 * either the old file or the new one, if the file system can exchange names. 0 or -errno.
 */
int fs__put_in_place(const char *partial, const char *path, const char *old);

/*
 * Removes a directory and the files in it, subdirectories too. 0 or -errno. A signal's handler may
 * call it.
 */
int fs__remove_dir(const char *path);

/* Sums the sizes of all files in a directory and below it. 0 or -errno. */
int fs__tree_size(const char *path, uint64_t *bytes);
/*
 * Writes the directory and all files below it to the disk (fsync). 0 or -errno, also if data
 * written earlier could not be stored.
 */
int fs__tree_sync(const char *path);

#endif
