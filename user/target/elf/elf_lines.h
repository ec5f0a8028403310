/* SPDX-License-Identifier: MIT */
/* Finds the code of a source line in the line tables. */
#ifndef MTBPF_TARGET_ELF_ELF_LINES_H
#define MTBPF_TARGET_ELF_ELF_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "target/elf/elf_image.h"
#include "util/vec.h"

struct line_found {
	VEC(uint64_t) vaddrs;  /* where statements of the line begin; ascending, each once */
	bool has_file;	       /* some code comes from that file */
	unsigned int next;     /* the next line that has code; 0: none */
	unsigned int previous; /* the last line before it that has code; 0: none */
};

/*
 * Adds what is known of a line of a file: "svc.c" and "src/svc.c" are both "/build/src/svc.c".
 * Reads all line tables of the image, which takes a second for a large program. 0 or -ENOMEM. The
 * caller frees found->vaddrs.
 */
int elf_image__find_line(struct elf_image *image, const char *file, unsigned int line,
			 struct line_found *found);

#endif
