/* SPDX-License-Identifier: MIT */
/* The text of /proc/kallsyms: "ffffffff81000000 T _stext", "ffffffffc0000000 t f\t[module]". */
#ifndef MTBPF_KERNEL_KALLSYMS_H
#define MTBPF_KERNEL_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names point into the text. */
struct kallsym {
	uint64_t address;
	char type; /* as in nm(1) */
	const char *name;
	size_t name_len;
	const char *module; /* without its brackets; NULL: the kernel itself */
	size_t module_len;
};

/* Reads the next symbol at *text, and moves *text behind it; other lines are skipped. */
bool kallsyms__next(const char **text, struct kallsym *sym);

/* The kernel's own symbol of that name. */
bool kallsyms__find(const char *text, const char *name, uint64_t *address);

/* A symbol in code. */
bool kallsym__is_code(const struct kallsym *sym);

#endif
