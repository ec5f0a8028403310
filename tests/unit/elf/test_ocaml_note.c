// SPDX-License-Identifier: MIT
/* .note.ocaml_eh: what the compiler says goes, whatever the instructions look like. */
#include "target/unwind/landing_pads.h"

#include <elf.h>

#include "ocaml_code.h"

enum { HANDLER = 1, CALLEE };
enum { NAMES = 1, TEXT, NOTE, BASE, SECTIONS };

/* Where the linker put _.stapsdt.base; where it was for whoever wrote the note. */
#define BASE_NOW     0x30000
#define BASE_WRITTEN 0x2f000
#define SHIFT	     (BASE_NOW - BASE_WRITTEN)

struct file {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;
	Elf64_Shdr shdrs[SECTIONS];
	char names[64];
	uint8_t note[512];
	uint8_t text[0x1000] __attribute__((aligned(4096)));
};

struct note {
	uint32_t name_size, desc_size, type;
	char name[8];
	uint64_t desc[24];
} __attribute__((packed));

static void set_section(struct file *file, int index, const char *name, uint32_t type,
			const void *at, size_t size)
{
	Elf64_Shdr *shdr = &file->shdrs[index];
	size_t used = 1;

	while (file->names[used])
		used += strlen(&file->names[used]) + 1;
	strcpy(&file->names[used], name);
	*shdr = (Elf64_Shdr){.sh_name = (uint32_t)used,
			     .sh_type = type,
			     .sh_offset = (uint64_t)((const uint8_t *)at - (uint8_t *)file),
			     .sh_size = size,
			     .sh_addralign = 4};
}

/* The code, with that much of the note. */
static struct elf_image *make_file(const struct ocaml_code *c, const struct note *note,
				   size_t note_size)
{
	static struct file file;

	memset(&file, 0, sizeof(file));
	memcpy(file.ehdr.e_ident, ELFMAG "\2\1\1", SELFMAG + 3);
	file.ehdr.e_type = ET_DYN;
	file.ehdr.e_machine = EM_X86_64;
	file.ehdr.e_version = EV_CURRENT;
	file.ehdr.e_phoff = offsetof(struct file, phdr);
	file.ehdr.e_phnum = 1;
	file.ehdr.e_phentsize = sizeof(file.phdr);
	file.ehdr.e_shoff = offsetof(struct file, shdrs);
	file.ehdr.e_shnum = SECTIONS;
	file.ehdr.e_shentsize = sizeof(file.shdrs[0]);
	file.ehdr.e_shstrndx = NAMES;
	file.phdr = (Elf64_Phdr){.p_type = PT_LOAD,
				 .p_flags = PF_R | PF_X,
				 .p_offset = offsetof(struct file, text),
				 .p_vaddr = CODE_BASE,
				 .p_filesz = c->n,
				 .p_memsz = c->n};
	memcpy(file.text, c->bytes, c->n);
	memcpy(file.note, note, sizeof(*note));
	set_section(&file, NAMES, ".shstrtab", SHT_STRTAB, file.names, sizeof(file.names));
	set_section(&file, TEXT, ".text", SHT_PROGBITS, file.text, c->n);
	file.shdrs[TEXT].sh_addr = CODE_BASE;
	file.shdrs[TEXT].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	set_section(&file, NOTE, ".note.ocaml_eh", SHT_NOTE, file.note, note_size);
	set_section(&file, BASE, ".stapsdt.base", SHT_PROGBITS, file.note, 1);
	file.shdrs[BASE].sh_addr = BASE_NOW;
	return elf_image__from_bytes(&file, sizeof(file), "ocaml");
}

/* Trap frames that are put up in a way that nobody has seen yet. */
static uint64_t write_code(struct ocaml_code *c, uint64_t *push, uint64_t *pop)
{
	uint64_t in;

	start_code(c, SLOT_5);
	*push = here(c);
	PUT(c, "\x48\x8d\x05\x18\0\0\0"); /* lea handler,%rax */
	PUT(c, "\x49\x87\x46\x48");	  /* xchg %rax,0x48(%r14) */
	PUT(c, "\xff\xd7");		  /* call *%rdi */
	in = here(c) - 2;
	*pop = here(c);
	PUT(c, "\x49\xff\x46\x48"); /* incq 0x48(%r14) */
	PUT(c, "\xff\xd7");	    /* call *%rdi */
	PUT(c, "\x41\x8f\x46\x30"); /* pop 0x30(%r14): says nothing here */
	PUT(c, "\x90\x90\x90\x90\x90\x90\x90\xc3");
	put_label(c, HANDLER);
	PUT(c, "\xc3");
	return in;
}

static struct note make_note(uint64_t handler, uint64_t push, uint64_t pop)
{
	return (struct note){
		.name_size = 6,
		.desc_size = 7 * 8,
		.type = 1,
		.name = "OCaml",
		.desc = {BASE_WRITTEN, handler - SHIFT, 0, push - SHIFT, 0, pop - SHIFT, 0}};
}

static void test_what_the_note_says(void **state)
{
	struct ocaml_code c;
	uint64_t push, pop, in = write_code(&c, &push, &pop);
	struct note note = make_note(c.labels[HANDLER], push, pop);
	struct elf_image *image = make_file(&c, &note, 20 + note.desc_size);

	assert_non_null(image);
	assert_int_equal(landing_pads__find(image, in), c.labels[HANDLER]);
	assert_int_equal(landing_pads__find(image, pop + 4), 0);
	assert_true(landing_pads__kind(image, c.labels[HANDLER]));
	elf_image__free(image);
}

static void assert_ignored(const struct note *note, size_t size)
{
	struct ocaml_code c;
	uint64_t push, pop, in = write_code(&c, &push, &pop);
	struct elf_image *image = make_file(&c, note, size);

	assert_non_null(image);
	assert_int_equal(landing_pads__find(image, in), 0);
	elf_image__free(image);
}

/* Another's, another type, a handler that is none of the list, cut off, sizes beyond all bounds. */
static void test_notes_that_say_nothing(void **state)
{
	struct ocaml_code c;
	uint64_t push, pop, whole;
	struct note note, good;

	write_code(&c, &push, &pop);
	good = note = make_note(c.labels[HANDLER], push, pop);
	whole = 20 + note.desc_size;
	note.name[0] = 'o';
	assert_ignored(&note, whole);
	note = good;
	note.type = 2;
	assert_ignored(&note, whole);
	note = good;
	note.desc[1]++;
	assert_ignored(&note, whole);
	for (size_t size = 0; size < 20 + 3 * 8; size++)
		assert_ignored(&good, size);
	note = good;
	note.desc_size = UINT32_MAX;
	assert_ignored(&note, whole);
	note = good;
	note.name_size = UINT32_MAX;
	assert_ignored(&note, whole);
}

/* Two units; the last one's lists have no end. */
static void test_notes_of_several_units(void **state)
{
	struct ocaml_code c;
	uint64_t push, pop, in = write_code(&c, &push, &pop);
	struct note second = make_note(c.labels[HANDLER], push, pop), note;
	struct elf_image *image;

	second.desc_size -= 2 * 8;
	memset(&note, 0, sizeof(note));
	note.name_size = 6;
	note.desc_size = 4 * 8 - 3;
	note.type = 1;
	strcpy(note.name, "OCaml");
	note.desc[0] = BASE_WRITTEN;
	memcpy(&note.desc[4], &second, 20 + second.desc_size);
	image = make_file(&c, &note, 20 + 4 * 8 + 20 + second.desc_size);
	assert_non_null(image);
	assert_int_equal(landing_pads__find(image, in), c.labels[HANDLER]);
	elf_image__free(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_the_note_says),
		cmocka_unit_test(test_notes_that_say_nothing),
		cmocka_unit_test(test_notes_of_several_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
