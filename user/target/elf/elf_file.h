/* SPDX-License-Identifier: MIT */
/* The file of an image: its bytes and addresses, its build ID, its debug files. */
#ifndef MTBPF_TARGET_ELF_ELF_FILE_H
#define MTBPF_TARGET_ELF_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/elf/function.h"

/*
 * True if exceptions may pass through the file's functions, or be caught there: it has tables of
 * landing pads (.gcc_except_table), as C++, Rust, D and Ada have, and C with -fexceptions.
 */
bool elf_image__has_exception_tables(const struct elf_image *image);
/* 19 if Go 1.19 built it, 17 for 1.17 and older; 0: unknown, or not a Go program. */
unsigned int elf_image__go_minor(const struct elf_image *image);
/* True if symbols or lines are missing from the file: a separate debug file may have them. */
bool elf_image__is_stripped(const struct elf_image *image);
/* True if static functions are missing from the file and from its debug file. */
bool elf_image__lacks_symbols(const struct elf_image *image);
/* The name and the CRC of its .gnu_debuglink, or NULL. Valid as long as the image. */
const char *elf_image__debug_link(const struct elf_image *image, uint32_t *crc);
/*
 * Symbols and lines that the image lacks come from this file (not kept; it is mapped). It has been
 * checked to be the right one. 0; -EBUSY if they have been looked for before; -ENOEXEC, -EIO, or
 * -errno of the system.
 */
int elf_image__set_debug_file(struct elf_image *image, int fd);
/*
 * The name and build id of the file that dwz moved shared debug info to (.gnu_debugaltlink of the
 * debug file, or of the image if that has the lines). NULL if not used.
 */
const char *elf_image__alt_link(const struct elf_image *image, char *build_id, size_t size);
/*
 * Sets that file (not kept; it is mapped), which has been checked. Errors are those of
 * elf_image__set_debug_file().
 */
int elf_image__set_alt_file(struct elf_image *image, int fd);
/* True if the file or debug file has this build id. */
bool elf_debug_file__has_build_id(int fd, const char *build_id);

/*
 * Convert addresses in executable segments; UINT64_MAX outside them. A segment includes the whole
 * pages that the kernel maps.
 */
uint64_t elf_image__vaddr_of_offset(const struct elf_image *image, uint64_t offset);
uint64_t elf_image__offset_of_vaddr(const struct elf_image *image, uint64_t vaddr);

/* False for code that is known by its names only, without bytes. */
bool elf_image__has_code(const struct elf_image *image);
/* The file's bytes at offset and how many follow (*len), or NULL at the end of the file. */
const uint8_t *elf_image__bytes(const struct elf_image *image, uint64_t offset, size_t *len);

#endif
