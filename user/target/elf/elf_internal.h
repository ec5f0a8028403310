/* SPDX-License-Identifier: MIT */
/*
 * An image as the parts of target/elf and target/unwind see it: its data, its lazily built tables,
 * and access to segments, sections and debug files. The caller must hold image->lock, except for
 * elf_image__segment(), the functions of elf_image.h, and what concerns lines.
 */
#ifndef MTBPF_TARGET_ELF_ELF_INTERNAL_H
#define MTBPF_TARGET_ELF_ELF_INTERNAL_H

#include <elfutils/libdw.h>
#include <gelf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/elf/function.h"
#include "util/vec.h"

/* Executable bytes in the file, rounded to whole pages as the kernel maps them. */
struct elf_segment {
	uint64_t vaddr, offset, size;
};

/* [start, end) */
struct elf_extent {
	uint64_t start, end;
};
typedef VEC(struct elf_extent) elf_extent_vec;

/* A function, or a part of one, that .eh_frame describes. */
struct elf_frame {
	uint64_t start, end;
	uint64_t lsda; /* address of its table of call sites; 0: absent */
};
typedef VEC(struct elf_frame) elf_frame_vec;

struct function_entry {
	struct function function;	   /* .name is NULL until it is needed */
	const struct source_place *source; /* NULL: not looked up yet */
	uint32_t unit;			   /* which STT_FILE a local symbol belongs to; 0: global */
	uint8_t rank; /* among aliases: the one with the lowest names the address */
};
typedef VEC(struct function_entry) function_entry_vec;

/* Code that resolves to an entry; a cold part's start is not its function's vaddr. */
struct function_range {
	uint64_t start, end;
	struct function_entry *entry;
};
typedef VEC(struct function_range) function_range_vec;

/* Disjoint, ascending. The starts are apart to keep the binary search in few cache lines. */
struct function_table {
	size_t n;
	uint64_t *starts;
	struct function_range *ranges;
};

/* A function's callers, found by elf_callers.c. */
struct elf_called {
	uint64_t vaddr;
	struct elf_callers callers;
};
typedef VEC(struct elf_called) elf_called_vec;

struct elf_string;
struct go_table;
struct landing_table;
struct elf_separate;

#define ELF_BUILD_ID_SIZE (2 * 64 + 1)

struct elf_image {
	char *name;
	const char *module; /* points into name */
	const uint8_t *data;
	size_t size;
	bool is_mapped;		      /* data is a mapping, else from malloc */
	Elf *elf;		      /* NULL for code without an ELF file around it */
	struct elf_segment *segments; /* ascending and disjoint by vaddr */
	size_t n_segments;
	uint64_t entry;		 /* the ELF header's entry point; 0: none */
	uint64_t main;		 /* main(), which _start at `entry` passes to libc; 0: not known */
	elf_extent_vec sections; /* the executable ones; ascending and disjoint */
	char build_id[ELF_BUILD_ID_SIZE];

	pthread_mutex_t lock;
	struct elf_string *strings;
	bool has_symbols;
	function_entry_vec symbols; /* ascending by vaddr, then rank */
	function_entry_vec stubs;   /* the PLT */
	function_entry_vec unknown;
	/* Published with release order, never taken back: readers need no lock. */
	struct function_table *known; /* symbols and stubs */
	struct function_table *full;  /* and the holes between them */
	struct landing_table *pads;   /* of landing_pads.c */
	Dwarf_CFI *cfi;		      /* of cfi.c */
	bool has_asked_cfi;
	struct function_entry fallback; /* used if memory runs out */

	elf_called_vec called;

	enum { RUST_NOT_ASKED, RUST_NONE, RUST_FOUND } rust; /* of elf_names.c */

	struct go_table *go; /* of elf_go.c; NULL: no Go program */

	struct named_image *named; /* for code known by its names only; otherwise NULL */

	struct elf_separate *separate; /* the debug file; set before the tables are built */
	struct elf_separate *alt;      /* the file that dwz moved shared debug info to */
	struct elf_debug *debug;       /* of elf_lines.c */
	bool has_debug;		       /* debug has been looked for */
	struct elf_debug *located;     /* as `debug`, with locations of variables; NULL: not read */
	pthread_mutex_t source_lock;   /* protects debug, located, places and their contents */
	VEC(struct source_place *) places; /* lines of functions that were looked up */
};

/* Like elf_image__open() for a core file, such as a copy of /proc/kcore. */
struct elf_image *elf_image__open_core(int fd, const char *name);
/*
 * Maps a regular file, private and writable: libdw decompresses sections and changes their headers
 * in place (libelf: elf_compress()). 0; -ENOEXEC: another kind of file, or empty; or -errno.
 */
int elf_file__map(int fd, void **data, size_t *size);
enum elf_use {
	ELF_PROGRAM,
	ELF_CORE,
	ELF_SEPARATE, /* debug info of another file */
};
/* True if a file of `size` bytes has len bytes at offset. */
static inline bool elf_file__has(uint64_t offset, uint64_t len, uint64_t size)
{
	return offset <= size && len <= size - offset;
}

/* Checks the headers. 0, -ENOEXEC or -EIO. */
int elf_image__check_header(const uint8_t *data, size_t size, enum elf_use use);
/*
 * Code in pieces without an ELF file around them: bytes (copied) with the executable segments over
 * them (copied too; ascending and disjoint by vaddr and by offset). Its symbols are to be pushed
 * and settled. NULL with errno.
 */
struct elf_image *elf_image__from_segments(const void *bytes, size_t len,
					   const struct elf_segment *segments, size_t n,
					   const char *name);
/* elf_image__function_at() for an image of symbols/named_image.c. */
const struct function *named_image__function_at(struct named_image *named, uint64_t ip);
/* The GNU build ID in hex; "" without one. */
void elf_build_id__read(Elf *elf, char id[static ELF_BUILD_ID_SIZE]);
/* The segment that holds vaddr, or NULL. */
const struct elf_segment *elf_image__segment(const struct elf_image *image, uint64_t vaddr);
/*
 * The file's bytes at vaddr, code or data, and how many follow. NULL outside the loaded segments.
 */
const uint8_t *elf_image__loaded_bytes(const struct elf_image *image, uint64_t vaddr, size_t *len);
/* True if an executable section contains vaddr. */
bool elf_image__in_section(const struct elf_image *image, uint64_t vaddr);
/*
 * The end of the executable section that holds vaddr; between sections, the start of the next;
 * after the last, the end of the segment.
 */
uint64_t elf_image__section_end(const struct elf_image *image, uint64_t vaddr);
/* The first section of this type, or with this name (NULL: by type), that has contents. */
Elf_Scn *elf_file__section(Elf *elf, uint32_t type, const char *name);
/* Finds a section by name; *shdr is its header. NULL if missing. */
Elf_Scn *elf_image__section(const struct elf_image *image, const char *name, GElf_Shdr *shdr);
/* A section's data, at least `need` bytes; NULL if it is damaged or smaller. */
const Elf_Data *elf_section__data(Elf_Scn *scn, size_t need);
/* The string at offset of a string table; NULL if it does not end inside the table. */
const char *elf_section__string(const Elf_Data *strings, size_t offset);

/*
 * The readable form of a C++, Rust or OCaml name, with or without parameters. NULL if the name is
 * not mangled or the result is too long. Freed by the caller.
 */
char *elf_demangle(const char *raw_name, bool with_parameters);

/* True for the name of a function of OCaml: "camlStdlib__List__iter_507". */
bool ocaml_name__is_mangled(const char *raw_name);

/* Copies len bytes and a NUL into memory that lives as long as the image. NULL: no memory. */
char *elf_image__keep(struct elf_image *image, const char *text, size_t len);
void elf_image__free_strings(struct elf_image *image);
/* Adds code of the image to one of its lists; raw_name may be NULL. NULL: no memory. */
struct function_entry *function_entry__add(function_entry_vec *list, struct elf_image *image,
					   uint64_t vaddr, uint64_t size, const char *raw_name);
/* Sets function.raw_name, and function.name if the name is not mangled. */
void function_entry__set_name(struct function_entry *entry, const char *raw_name);
/* Makes sure that function.name can be read. */
void function_entry__make_readable(struct function_entry *entry);
/* Like function_entry__make_readable(), but takes the lock itself. */
const struct function *function_entry__named(struct function_entry *entry);

/* Sorts the symbols that were pushed, and gives each its size. */
void elf_image__settle_symbols(struct elf_image *image);

/* Reads the ranges of functions from .eh_frame, ascending. 0 or -ENOMEM. */
int elf_image__load_frames(struct elf_image *image, elf_frame_vec *frames);
/* landing_pads.c */
void landing_table__free(struct landing_table *table);
/*
 * Gives the ranges without a symbol that a function's landing pads lead to, usually in its cold
 * part, to that function. Changes *full, the table of all ranges of the image.
 */
void elf_image__resolve_pads(struct elf_image *image, struct function_table *full);

/* The vaddr of main() in a program that is linked with glibc; 0: not known. */
uint64_t elf_image__find_main(const struct elf_image *image);

void function_table__free(struct function_table *table);
/* The range that holds vaddr, or NULL. */
struct function_range *function_table__find(const struct function_table *table, uint64_t vaddr);

void elf_image__free_separate(struct elf_image *image);
/* True if the image or its debug file has a .symtab. */
bool elf_image__has_symtab(const struct elf_image *image);
/* The debug file if the symbols are there, otherwise NULL. */
Elf *elf_image__symbols_elf(const struct elf_image *image);
/* The bytes of the file that has the lines. */
const void *elf_image__debug_bytes(const struct elf_image *image, size_t *size);
/* The file that dwz moved shared debug info to, or NULL. */
Elf *elf_image__alt_elf(const struct elf_image *image);

/*
 * The DWARF of an image, for lines and inlined calls. The caller holds image->source_lock. The
 * lines of a unit are in the image; the rest may be in a .dwo file.
 */
struct unit_range {
	uint64_t start, end;
	Dwarf_Off die;
};

struct inline_tables;

struct elf_debug {
	Elf *elf; /* separate from image->elf, because libdw decompresses sections in place */
	Dwarf *dwarf;
	Dwarf *alt; /* shared debug info that dwz moved, or NULL */
	/*
	 * Copy of the original section headers if sections of locations are hidden; otherwise NULL.
	 */
	void *headers;
	VEC(struct unit_range) units;  /* ascending by start */
	struct inline_tables *inlines; /* of elf_inlined.c; NULL until they are asked for */
};

/* Opens the image's debug info at the first call. NULL if it is missing. */
struct elf_debug *elf_image__debug(struct elf_image *image);
/*
 * Like elf_image__debug(), with the locations of variables, which takes longer if they are
 * compressed.
 */
struct elf_debug *elf_image__debug_with_locations(struct elf_image *image);
/* The unit that covers vaddr. False if none does. */
bool elf_debug__unit_at(const struct elf_debug *debug, uint64_t vaddr, Dwarf_Die *unit);
/* Replaces a skeleton unit by its whole, if that is in another file that is found (-gsplit-dwarf).
 */
void elf_debug__go_to_split(Dwarf_Die *unit);
void inline_tables__free(struct inline_tables *tables);
void elf_image__free_debug(struct elf_image *image);

/* dwarfstd.org, "DWARF language codes" that <dwarf.h> lacks; the last one is of Rust before 1.9. */
enum {
	LANG_CPP17 = 0x2a,
	LANG_CPP20 = 0x2b,
	LANG_C17 = 0x2c,
	LANG_CPP23 = 0x3a,
	LANG_C23 = 0x3e,
	LANG_OLD_RUST = 0x9000,
};

#endif
