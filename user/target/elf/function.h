/* SPDX-License-Identifier: MIT */
/* Functions of ELF files, the places of their definitions, and the calls of them. */
#ifndef MTBPF_TARGET_ELF_FUNCTION_H
#define MTBPF_TARGET_ELF_FUNCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_image;

enum function_kind {
	FUNCTION_SYMBOL,  /* named by a symbol table, Go's table, a perf map, ... */
	FUNCTION_PLT,	  /* a procedure linkage stub: "name@plt", or "[plt]" */
	FUNCTION_UNKNOWN, /* code between symbols, or in an image without any */
	FUNCTION_INLINED, /* put into others; without code of its own: vaddr and size are 0 */
};

/* Interned: the same function is the same pointer for the life of its image. */
struct function {
	struct elf_image *image;
	const char *name;     /* demangled for reading: "foo(int)", "core::fmt::write" */
	const char *raw_name; /* as in the symbol table, version suffix removed */
	const char *module;   /* base name of the file: "libc.so.6", "[vdso]" */
	uint64_t vaddr, size; /* of the hot part; clipped to the next symbol, never to nothing */
	enum function_kind kind;
	bool is_resolver;    /* IFUNC: runs once, to choose the code that is called by this name */
	bool is_old_version; /* "exp@GLIBC_2.2.5": only for programs linked long ago */
};

/* The place of a function's definition. */
struct source_place {
	const char *file; /* path as the compiler recorded it; valid as long as the image */
	unsigned int line;
};

#define ELF_CALLERS_MAX 8

/* Call instructions, as their return addresses (vaddr). */
struct elf_callers {
	uint64_t behind[ELF_CALLERS_MAX];
	size_t n;
	/* NULL: not exported. Otherwise files that contain this name may also call the function. */
	const char *exported_as;
};

#endif
