/* SPDX-License-Identifier: MIT */
/*
 * Shared by the parts of elf_image: the image and its lazily built tables. The caller must hold
 * image->lock, except for elf_image__segment(), the entry points and elf_source.c.
 */
#ifndef MTBPF_TARGET_ELF_ELF_INTERNAL_H
#define MTBPF_TARGET_ELF_ELF_INTERNAL_H

#include <elfutils/libdw.h>
#include <gelf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/elf/elf_callers.h"
#include "target/elf/elf_image.h"
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
	uint64_t lsda; /* the table of its call sites; 0: absent */
};
typedef VEC(struct elf_frame) elf_frame_vec;

struct function_entry {
	struct function function;	   /* .name is NULL until somebody wants to read it */
	const struct source_place *source; /* NULL: not looked up yet */
	uint32_t unit;			   /* which STT_FILE a local symbol belongs to; 0: global */
	uint8_t rank;			   /* among aliases; the lowest speaks for the address */
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

/* elf_callers.c: what was found of a function. */
struct elf_called {
	uint64_t vaddr;
	struct elf_callers callers;
};
typedef VEC(struct elf_called) elf_called_vec;

struct elf_string;
struct go_table;
struct ocaml_table;
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
	uint64_t entry;		 /* where the kernel, or the dynamic linker, begins; 0: nowhere */
	uint64_t main;		 /* what _start there has called; 0: not known */
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
	struct function_entry fallback; /* where memory ran out */

	elf_called_vec called;

	enum { RUST_NOT_ASKED, RUST_NONE, RUST_FOUND } rust; /* of elf_language.c */

	struct go_table *go; /* of elf_go.c; NULL: no Go program */

	struct named_image *named; /* for code known by its names only; otherwise NULL */

	struct elf_separate *separate;	   /* of elf_separate.c; set before the tables are built */
	struct elf_separate *alt;	   /* likewise: what dwz has put apart */
	struct elf_debug *debug;	   /* of elf_debug.c */
	bool has_debug;			   /* debug has been looked for */
	pthread_mutex_t source_lock;	   /* protects these two and their contents */
	VEC(struct source_place *) places; /* what was found of functions */
	struct ocaml_table *ocaml;	   /* of ocaml_handlers.c; NULL: not asked for yet */
};

/* elf_image.c: like elf_image__open(), of a core file: what a copy of /proc/kcore is. */
struct elf_image *elf_image__open_core(int fd, const char *name);
/*
 * A private mapping that can be written to: where sections are compressed, libdw decompresses them
 * and changes their headers in place (libelf: elf_compress()). MAP_FAILED with errno.
 */
void *elf_file__map(int fd, size_t size);
enum elf_use {
	ELF_PROGRAM,
	ELF_CORE,
	ELF_SEPARATE, /* debug info of another file */
};
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
/* named_image.c: elf_image__function_at() of such an image. */
const struct function *named_image__function_at(struct named_image *named, uint64_t ip);
/* elf_notes.c */
void elf_image__load_build_id(struct elf_image *image);
/* Copies the build id among notes to id. False if it is missing. */
bool elf_notes__build_id(Elf_Data *notes, char id[static ELF_BUILD_ID_SIZE]);
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
/* True if elf_demangle() knows the kind of mangling. */
bool elf_demangle__is_mangled(const char *raw_name);
/* elf_demangle_ocaml.c: "camlStdlib__List__iter_507": "Stdlib.List.iter". NULL: no memory. */
bool ocaml_name__is_mangled(const char *raw_name);
char *ocaml_name__demangle(const char *raw_name);

/* elf_names.c: copies len bytes that live as long as the image, NUL added. NULL: no memory. */
char *elf_image__keep(struct elf_image *image, const char *text, size_t len);
void elf_image__free_strings(struct elf_image *image);
/* Sets function.raw_name, and function.name if the name is not mangled. */
void function_entry__set_name(struct function_entry *entry, const char *raw_name);
/* Makes sure that function.name can be read. */
void function_entry__make_readable(struct function_entry *entry);
/* The same; takes the lock itself. */
const struct function *function_entry__named(struct function_entry *entry);

/* elf_symbols.c: fills image->symbols. 0 or -ENOMEM. */
int elf_image__load_symbols(struct elf_image *image);
/* Sorts the symbols that were pushed, and gives each its size. */
void elf_image__settle_symbols(struct elf_image *image);
/* The first entry at exactly vaddr, or NULL. */
struct function_entry *elf_image__symbol_at(struct elf_image *image, uint64_t vaddr);

/* elf_cold.c: hands the ranges of "foo.cold" to foo. 0 or -ENOMEM. */
int elf_image__resolve_cold(struct elf_image *image, struct function_table *table);

/* elf_plt.c: fills image->stubs; wants the symbols. 0 or -ENOMEM. */
int elf_image__load_stubs(struct elf_image *image);

/* elf_frames.c: what .eh_frame says on where functions lie, ascending. 0 or -ENOMEM. */
int elf_image__load_frames(struct elf_image *image, elf_frame_vec *frames);
/* The last of them that begins at or before vaddr, if it reaches so far; else NULL. */
const struct elf_frame *elf_frames__find(const elf_frame_vec *frames, uint64_t vaddr);
/* landing_pads.c */
void landing_table__free(struct landing_table *table);
/*
 * Code without a symbol that a function's landing pads lead to is a part of that function: hands
 * its ranges over. `full` is the table of all ranges of the image.
 */
void elf_image__resolve_pads(struct elf_image *image, struct function_table *full);

/* elf_main.c: of a program that is linked with glibc; 0: not known. */
uint64_t elf_image__find_main(const struct elf_image *image);

/* elf_ranges.c */
void function_table__free(struct function_table *table);
/* The range that holds vaddr, or NULL. */
struct function_range *function_table__find(const struct function_table *table, uint64_t vaddr);

/* elf_separate.c: where the symbols are if not in the image, else NULL; where the lines are. */
void elf_image__free_separate(struct elf_image *image);
/* True if the image or its debug file has a .symtab. */
bool elf_image__has_symtab(const struct elf_image *image);
Elf *elf_image__symbols_elf(const struct elf_image *image);
const void *elf_image__debug_bytes(const struct elf_image *image, size_t *size);
/* The file that dwz moved shared debug info to, or NULL. */
Elf *elf_image__alt_elf(const struct elf_image *image);

/* ocaml_handlers.c */
void ocaml_table__free(struct ocaml_table *table);

/*
 * elf_lines.c: the DWARF of an image, shared by lines and inlined calls. The caller holds
 * image->source_lock. Units have their lines in the image; the rest may be in a .dwo file.
 */
struct unit_range {
	uint64_t start, end;
	Dwarf_Off die;
};

struct inline_tables;

struct elf_debug {
	Elf *elf; /* separate from image->elf, because libdw decompresses sections in place */
	Dwarf *dwarf;
	Dwarf *alt;		       /* what dwz has put apart, or NULL */
	VEC(struct unit_range) units;  /* ascending by start */
	struct inline_tables *inlines; /* of elf_inlined.c; NULL until they are asked for */
};

/* Opens the image's debug info at the first call. NULL if it is missing. */
struct elf_debug *elf_image__debug(struct elf_image *image);
/* The unit that covers vaddr. False if none does. */
bool elf_debug__unit_at(const struct elf_debug *debug, uint64_t vaddr, Dwarf_Die *unit);
/* To where the rest of the unit is, if that is another file which can be found (-gsplit-dwarf). */
void elf_debug__go_to_split(Dwarf_Die *unit);
void inline_tables__free(struct inline_tables *tables);
void elf_image__free_debug(struct elf_image *image);

#endif
