/* SPDX-License-Identifier: MIT */
/*
 * Where distributions keep the symbols and lines that were stripped from a file (the GDB manual,
 * "Debugging Information in Separate Files"), and files of a known build id.
 */
#ifndef MTBPF_TARGET_ELF_DEBUG_FILE_H
#define MTBPF_TARGET_ELF_DEBUG_FILE_H

#include "target/elf/elf_image.h"

/*
 * Opens the debug file of an image that lacks symbols or lines: by its build id, else by its
 * .gnu_debuglink beside `path`, in .debug/ there, and under /usr/lib/debug; below `root` (the root
 * of a process: "/proc/PID/root"), where that is not NULL, then below ours; then in debuginfod's
 * cache. Its build id or its CRC has been checked. A descriptor that the caller closes, or -errno:
 * -ENOENT none is there, or none is needed. Prints nothing.
 */
int debug_file__open(const struct elf_image *image, const char *path, const char *root);

/*
 * The same, and gives it to the image. False where there is none. What dwz has put apart of the
 * debug info is given to it as well, if it is found: it has been checked by its build id.
 */
bool debug_file__use(struct elf_image *image, const char *path, const char *root);

/*
 * A place where the file of a build id may lie, by number from 0 on: /usr/lib/debug/.build-id,
 * perf's cache, debuginfod's. 0; -ENOENT behind the last.
 */
int build_id__path(const char *build_id, unsigned int which, char *path, size_t size);

#endif
