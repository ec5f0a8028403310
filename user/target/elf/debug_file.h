/* SPDX-License-Identifier: MIT */
/*
 * Finds the separate debug file of a stripped ELF file, in the places that distributions use (the
 * GDB manual, "Debugging Information in Separate Files"), and files by build id.
 */
#ifndef MTBPF_TARGET_ELF_DEBUG_FILE_H
#define MTBPF_TARGET_ELF_DEBUG_FILE_H

#include "target/elf/elf_image.h"

/*
 * Opens the debug file of an image that lacks symbols or lines: by its build id, otherwise by its
 * .gnu_debuglink beside `path`, in .debug/ there, and under /usr/lib/debug; first below `root` (a
 * process's root, "/proc/PID/root"), if not NULL, then below ours; then in debuginfod's cache.
 * Checks its build id or CRC. Returns a descriptor that the caller closes, or -errno: -ENOENT not
 * found, or not needed. Prints nothing.
 */
int debug_file__open(const struct elf_image *image, const char *path, const char *root);

/*
 * Like debug_file__open(), and gives the file to the image. False if it was not found. Also gives
 * the image the file that dwz moved shared debug info to, if that is found with the right build id.
 */
bool debug_file__use(struct elf_image *image, const char *path, const char *root);

/*
 * The `which`-th place (from 0) where the file with a build id may lie: /usr/lib/debug/.build-id,
 * perf's cache, debuginfod's. 0; -ENOENT after the last.
 */
int build_id__path(const char *build_id, unsigned int which, char *path, size_t size);

#endif
