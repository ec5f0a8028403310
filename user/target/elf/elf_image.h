/* SPDX-License-Identifier: MIT */
/*
 * One ELF file: its code bytes, functions, and source lines. The only user of libelf and libdw.
 * Addresses here are link-time virtual addresses ("vaddr"), offsets are file offsets. The file is
 * untrusted: everything in it is checked. Tables are built when they are first needed. Any number
 * of threads may share an image.
 */
#ifndef MTBPF_TARGET_ELF_ELF_IMAGE_H
#define MTBPF_TARGET_ELF_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_image;

enum function_kind {
	FUNCTION_SYMBOL,  /* from .symtab or .dynsym */
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

/*
 * Opens an ELF image from a descriptor (not kept; the file is mapped) or from bytes (copied).
 * `name` is for messages and for function.module. NULL with errno: ENOEXEC not a 64-bit x86 ELF
 * file with code; EIO damaged. Prints nothing.
 */
struct elf_image *elf_image__open(int fd, const char *name);
struct elf_image *elf_image__from_bytes(const void *bytes, size_t len, const char *name);
/*
 * Code without an ELF file (the [uprobes] page, JIT code): the bytes have vaddr 0 and offset 0 and
 * form one function named `function`.
 */
struct elf_image *elf_image__raw(const void *bytes, size_t len, const char *name,
				 const char *function);
void elf_image__free(struct elf_image *image);

const char *elf_image__name(const struct elf_image *image);
/* The GNU build id as lower-case hex, or "". Valid as long as the image. */
const char *elf_image__build_id(const struct elf_image *image);

/* True if it contains code compiled from Rust. Does not need symbols. */
bool elf_image__holds_rust(struct elf_image *image);
/*
 * True if exceptions may pass through the file's functions, or be caught there: it has tables of
 * landing pads (.gcc_except_table), as C++, Rust, D and Ada have, and C with -fexceptions.
 */
bool elf_image__has_exception_tables(const struct elf_image *image);
/* 19 if go1.19.8 built it, 17 if that or an older one did; 0: no Go program, or not known. */
unsigned int elf_image__go_minor(const struct elf_image *image);
/* True if symbols or lines are missing from the file: a separate debug file may have them. */
bool elf_image__is_stripped(const struct elf_image *image);
/* True if static functions are missing from the file and from its debug file. */
bool elf_image__lacks_symbols(const struct elf_image *image);
/* The name and the CRC of its .gnu_debuglink, or NULL. Valid as long as the image. */
const char *elf_image__debug_link(const struct elf_image *image, uint32_t *crc);
/*
 * Symbols and lines that the image lacks come from this file (not kept; it is mapped). It has been
 * checked to be the right one. 0; -EBUSY when they have been looked for before; -ENOEXEC, -EIO, or
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

/* False for code known by its names only, without bytes. */
bool elf_image__has_code(const struct elf_image *image);
/* The file's bytes at offset and how many follow (*len), or NULL where the file ends before. */
const uint8_t *elf_image__bytes(const struct elf_image *image, uint64_t offset, size_t *len);

/*
 * The function that holds vaddr. Never NULL inside an executable segment: code without a symbol
 * belongs to a FUNCTION_UNKNOWN named "[module+0xoffset]" for the whole hole (or for the .eh_frame
 * FDE, if there are FDEs), or to "_start" at the entry point and "main" that it calls. NULL
 * outside. "foo.cold", "foo.cold.1" resolve to foo (the same pointer) if foo is in the image;
 * without symbols, so does the part that foo's landing pads lead to. A stub in .plt, .plt.sec,
 * .plt.got is FUNCTION_PLT.
 */
const struct function *elf_image__function_at(struct elf_image *image, uint64_t vaddr);

/*
 * The same, with the bounds of that part of the function: a cold part is separate. NULL without a
 * symbol.
 */
const struct function *elf_image__part_at(struct elf_image *image, uint64_t vaddr, uint64_t *start,
					  uint64_t *end);

/*
 * File and line of the function's definition (.debug_line at its entry; looked up once, then
 * cached). False if the image's debug info does not tell.
 */
bool function__source(const struct function *function, struct source_place *place);
/* True if a function of it has been asked for. */
bool elf_image__is_used(const struct elf_image *image);
/* Opens its debug info, as the first function__source() would: libc's takes a tenth of a second. */
void elf_image__prepare_source(struct elf_image *image);

/* File and line of the instruction at vaddr. False if the image's debug info does not tell. */
bool elf_image__source_at(struct elf_image *image, uint64_t vaddr, struct source_place *place);

/*
 * Every function from the symbol tables, ascending by vaddr, aliases (same vaddr) as own entries:
 * elf_image__function_at() answers with the first of them.
 */
size_t elf_image__function_count(struct elf_image *image);
const struct function *elf_image__function(struct elf_image *image, size_t index);
/* elf_image__function(index)->raw_name, without the cost of demangling `name` for it. */
const char *elf_image__raw_name(const struct elf_image *image, size_t index);
/*
 * The name as people write it: demangled, without parameters ("ns::foo"). NULL where raw_name is
 * not a mangled one. Freed by the caller.
 */
char *elf_image__short_name(const char *raw_name);

/* The version of elfutils, which has both libelf and libdw. */
const char *elf_image__library_version(void);

#endif
