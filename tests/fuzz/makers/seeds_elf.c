// SPDX-License-Identifier: MIT
/* A small library in C++, whole and in sections. */
#include "compiled_fixture.h"

#include <libelf.h>

#include "elf/go_image.h"
#include "elf_pieces.h"
#include "seeds.h"

#define SECTIONS_MAX 65536

static const char sample[] =
	"struct Error { int code; ~Error(); };\n"
	"void may_throw(int);\n"
	"namespace ns {\n"
	"struct Meter {\n"
	"	int unit;\n"
	"	inline __attribute__((always_inline)) int read(int a) const\n"
	"	{\n"
	"		may_throw(a);\n" /* line 8 */
	"		return a * unit;\n"
	"	}\n"
	"};\n"
	"template <typename T> T twice(T a) { Error e{a}; may_throw(a); return a + a; }\n"
	"}\n"
	"static int quiet(int a) { ns::Meter m{a}; return m.read(a) + 1; }\n"
	"extern \"C\" int work(int a)\n"
	"{\n"
	"	try { return ns::twice(a) + quiet(a); }\n"
	"	catch (int e) { return quiet(e); }\n"
	"}\n"
	"asm(\".pushsection .note.stapsdt, \\\"\\\", \\\"note\\\"\\n.balign 4\\n\"\n"
	"    \".4byte 8, 994f-993f, 3\\n.asciz \\\"stapsdt\\\"\\n\"\n"
	"    \"993: .8byte work, 0, 0\\n.asciz \\\"app\\\", \\\"work\\\", \\\"-4@%edi "
	"8@8(%rsp)\\\"\\n\"\n"
	"    \"994: .balign 4\\n.popsection\\n\"\n"
	"    \".pushsection .note.ocaml_eh, \\\"\\\", \\\"note\\\"\\n\"\n"
	"    \".4byte 8, 48, 1\\n.asciz \\\"OCaml\\\"\\n.balign 4\\n\"\n"
	"    \".8byte 0, work, 0, work + 4, 0, work + 8\\n.popsection\\n\"\n"
	"    \".pushsection .stapsdt.base, \\\"a\\\"\\n.space 1\\n.popsection\\n\");\n";

/* The sections that the fuzzer takes, as it takes them. How many bytes. */
static size_t cut(Elf *elf, uint8_t *out)
{
	size_t strings, n = 0;
	Elf_Scn *scn = NULL;

	assert_int_equal(elf_getshdrstrndx(elf, &strings), 0);
	while ((scn = elf_nextscn(elf, scn))) {
		const Elf64_Shdr *shdr = elf64_getshdr(scn);
		const Elf_Data *data = elf_rawdata(scn, NULL);
		const char *name = elf_strptr(elf, strings, shdr->sh_name);

		for (size_t kind = 0; kind < PIECE_KINDS; kind++) {
			size_t size =
				data->d_size < piece__max(kind) ? data->d_size : piece__max(kind);

			if (strcmp(name, piece_kinds[kind].name) || !data->d_buf)
				continue;
			memcpy(out + n, (uint8_t[]){(uint8_t)kind, size & 0xff, size >> 8}, 3);
			memcpy(out + n + 3, data->d_buf, size);
			n += 3 + size;
		}
	}
	return n;
}

static void write_pieces(const char *name, char *file, size_t size)
{
	static uint8_t seed[8 * 8 + 2 + 256 + SECTIONS_MAX];
	Elf *elf = elf_memory(file, size);
	const size_t before = 8 * 8 + 2 + 256;
	size_t n;

	assert_non_null(elf);
	n = cut(elf, seed + before);
	elf_end(elf);
	assert_true(n <= SECTIONS_MAX);
	seed__write("sections", name, seed + before, n);
	/* To be unwound: somewhere in it, with a stack that is full of places in it. */
	for (size_t i = 0; i < 8 + 32; i++) {
		uint64_t word = 0x400000 + PIECES_TEXT + 5 * i;

		memcpy(seed + 8 * i + (i < 8 ? 0 : 2), &word, sizeof(word));
	}
	memcpy(seed + 64, (uint8_t[]){0, 1}, 2);
	seed__write("unwind", name, seed, before + n);
}

static void compile(const struct compiled *f, const char *flags)
{
	char command[400];

	snprintf(command, sizeof(command),
		 "g++ %s -fPIC -shared -nostdlib -Wl,-z,noseparate-code"
		 " -Wl,--section-start=.text=%#x,--section-start=.eh_frame=%#zx"
		 ",--section-start=.gcc_except_table=%#zx sample.cc -o sample.so",
		 flags, PIECES_TEXT, piece__at(PIECE_EH_FRAME), piece__at(PIECE_EXCEPT_TABLE));
	run_in_folder(f, command);
}

/* Go's table in each of its formats. */
static void write_go(void)
{
	static const struct {
		const char *name;
		uint32_t magic;
	} kinds[] = {{"go1.2", 0xfffffffb},
		     {"go1.16", 0xfffffffa},
		     {"go1.18", 0xfffffff0},
		     {"go1.20", 0xfffffff1}};

	_Static_assert(GO_TEXT == PIECES_TEXT, "the table is of the code");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct go_style style = {.magic = kinds[i].magic};
		uint8_t seed[3 + GO_TABLE_SIZE] = {PIECE_GO, GO_TABLE_SIZE & 0xff,
						   GO_TABLE_SIZE >> 8};

		go_image__table(seed + 3, &style);
		seed__write("sections", kinds[i].name, seed, sizeof(seed));
	}
}

void seeds__elf(void)
{
	static const struct {
		const char *name, *flags;
	} kinds[] = {
		{"plain", "-O2"},
		{"dwarf4", "-O2 -gdwarf-4"},
		{"dwarf5", "-O1 -gdwarf-5"},
	};
	struct compiled *f = NULL;
	char path[100], *file;
	size_t size;

	assert_int_equal(make_folder((void **)&f), 0);
	elf_version(EV_CURRENT);
	write_source(f, "sample.cc", sample);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		compile(f, kinds[i].flags);
		snprintf(path, sizeof(path), "%s/sample.so", f->dir);
		assert_int_equal(fs__read(path, &file, &size), 0);
		seed__write("elf", kinds[i].name, file, size);
		write_pieces(kinds[i].name, file, size);
		free(file);
	}
	remove_folder((void **)&f);
	write_go();
}
