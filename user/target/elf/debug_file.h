/* SPDX-License-Identifier: MIT */
/*
 * Finds the separate debug file of a stripped ELF file, in the places that distributions use (the
 * GDB manual, "Debugging Information in Separate Files"), and files by build id.
 */
#ifndef MTBPF_TARGET_ELF_DEBUG_FILE_H
#define MTBPF_TARGET_ELF_DEBUG_FILE_H

#include "target/elf/elf_image.h"

/* True if symbols or lines are missing from the file: a separate debug file may have them. */
bool elf_image__is_stripped(const struct elf_image *image);
/* True if static functions are missing from the file and from its debug file. */
bool elf_image__lacks_symbols(const struct elf_image *image);
/* The name and the CRC of its .gnu_debuglink, or NULL. Valid as long as the image. */
const char *elf_image__debug_link(const struct elf_image *image, uint32_t *crc);
/*
 * Gives the image a debug file, which has the symbols and lines that the image lacks. The caller
 * has checked that it is the right one. The descriptor is not kept; the file is mapped. 0; -EBUSY
 * if symbols or lines have been looked for before; -ENOEXEC, -EIO, or -errno of the system.
 */
int elf_image__set_debug_file(struct elf_image *image, int fd);
/*
 * The name and build id of the file that dwz moved shared debug info to (.gnu_debugaltlink of the
 * debug file, or of the image if that has the lines). NULL if not used.
 */
const char *elf_image__alt_link(const struct elf_image *image, char *build_id, size_t size);
/*
 * Gives the image the file that elf_image__alt_link() names, which the caller has checked.
 * Otherwise like elf_image__set_debug_file().
 */
int elf_image__set_alt_file(struct elf_image *image, int fd);
/* True if the file or debug file has this build id. */
bool elf_debug_file__has_build_id(int fd, const char *build_id);

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
 * The `which`-th place (from 0) where the file with a build id may lie: below
 * /usr/lib/debug/.build-id and /usr/lib/.build-id, in perf's cache and debuginfod's. 0; -ENOENT
 * after the last, or if the build id is invalid.
 */
int build_id__path(const char *build_id, unsigned int which, char *path, size_t size);

#endif
