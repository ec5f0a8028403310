/* SPDX-License-Identifier: MIT */
/* The kernel as an image: code from a copy of /proc/kcore, functions from /proc/kallsyms. */
#ifndef MTBPF_TARGET_SYMBOLS_KERNEL_IMAGE_H
#define MTBPF_TARGET_SYMBOLS_KERNEL_IMAGE_H

#include "target/code_map.h"
#include "target/elf/elf_image.h"

#define KERNEL_MODULE "[kernel]"

/*
 * From a descriptor (not kept; the file is mapped) and kallsyms' text (copied). A function of the
 * kernel itself has KERNEL_MODULE as its module; one of a module is called "name [module]". A
 * function ends where the next begins. NULL with errno: ENOEXEC no kcore; EIO damaged; ENOMEM.
 * Prints nothing. elf_image__free() frees it.
 */
struct elf_image *kernel_image__open(int kcore, const char *kallsyms);

/* Adds all of it to the map, where it was when it was copied. 0 or -ENOMEM. */
int kernel_image__map(struct elf_image *kernel, struct code_map *map);

#endif
