/* SPDX-License-Identifier: MIT */
/*
 * One ELF file: its code bytes, functions, and source lines. Only target/elf and target/unwind use
 * libelf and libdw. Addresses here are link-time virtual addresses ("vaddr"), offsets are file
 * offsets. The file is untrusted: everything in it is checked. Tables are built when they are first
 * needed. Any number of threads may share an image.
 */
#ifndef MTBPF_TARGET_ELF_ELF_IMAGE_H
#define MTBPF_TARGET_ELF_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/elf/function.h"

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

/*
 * True if exceptions may pass through the file's functions, or be caught there: it has tables of
 * landing pads (.gcc_except_table), as C++, Rust, D and Ada have, and C with -fexceptions.
 */
bool elf_image__has_exception_tables(const struct elf_image *image);
/* 19 if Go 1.19 built it, 17 for 1.17 and older; 0: unknown, or not a Go program. */
unsigned int elf_image__go_minor(const struct elf_image *image);

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

/* True if it contains code compiled from Rust. Does not need symbols. */
bool elf_image__holds_rust(struct elf_image *image);

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
 * Like elf_image__function_at(), with the bounds of that part of the function: a cold part is
 * separate. NULL without a symbol.
 */
const struct function *elf_image__part_at(struct elf_image *image, uint64_t vaddr, uint64_t *start,
					  uint64_t *end);

/*
 * File and line of the function's definition (.debug_line at its entry; looked up once, then
 * cached). False if the image's debug info does not tell.
 */
bool function__source(const struct function *function, struct source_place *place);
/* True if a function of the image has been asked for. */
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

/* elf_tls.c: a thread-local variable of the file. */
enum elf_tls_note {
	ELF_TLS_NONE,
	ELF_TLS_DISTANCE,   /* a word: from the thread pointer to the variable */
	ELF_TLS_MODULE,	    /* two words: the file's number, and the offset in its block */
	ELF_TLS_DESCRIPTOR, /* two words: a function, and its argument */
};

struct elf_tls {
	uint64_t offset;    /* in the file's TLS block */
	int64_t in_program; /* from the thread pointer, if the file is the program itself */
	/*
	 * Set by elf_image__find_tls_note(): where the dynamic linker notes the variable's place.
	 */
	enum elf_tls_note note;
	uint64_t note_vaddr;
	bool is_own; /* the relocation has no symbol: it may be of another variable of the file */
};

/* Sets offset and in_program. False: the file, and its debug file, do not define it. */
bool elf_image__find_tls(struct elf_image *image, const char *name, struct elf_tls *found);
/* Sets the rest, after elf_image__find_tls(). False: the file's own code does not ask for it. */
bool elf_image__find_tls_note(struct elf_image *image, const char *name, struct elf_tls *found);

#endif
