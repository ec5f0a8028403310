// SPDX-License-Identifier: MIT
#include "target/elf/elf_callers.h"

#include <string.h>

#include "target/elf/elf_internal.h"
#include "util/insn.h"

/*
 * A reference to a function is its address, in four bytes or more, or the distance from the end of
 * an instruction to it (Intel SDM vol. 2, 2.2.1.6 "RIP-Relative Addressing", "CALL", "JMP"). Any
 * four bytes that could be a reference count: one function in a few thousand has such a match by
 * chance, and its callers are then unknown.
 */

/* The limit on all loaded bytes: scanning this much takes about a hundred milliseconds. */
#define MAX_LOADED ((size_t)64 << 20)
#define MAX_ASKED  32

#define CALL_REL32 0xe8
#define REL32_SIZE 4

/* The calls of a function, and the number of other references to it. */
struct references {
	struct elf_callers calls;
	size_t n_others;
	const uint8_t *exported; /* the value of the symbol that exports it; or NULL */
};

struct loaded {
	const uint8_t *bytes;
	size_t len;
	uint64_t vaddr;
	bool is_code;
};

static void look_in(struct references *found, const struct loaded *at, uint64_t vaddr)
{
	const uint32_t target = (uint32_t)vaddr, base = (uint32_t)at->vaddr + REL32_SIZE;

	for (size_t i = 0; i + REL32_SIZE <= at->len && !found->n_others; i++) {
		uint32_t value;
		bool is_relative;

		memcpy(&value, at->bytes + i, sizeof(value));
		is_relative = at->is_code && value + base + (uint32_t)i == target;
		if (is_relative && i && at->bytes[i - 1] == CALL_REL32) {
			if (found->calls.n < ELF_CALLERS_MAX)
				found->calls.behind[found->calls.n++] = at->vaddr + i + REL32_SIZE;
			else
				found->n_others++;
		} else if (is_relative || (value == target && at->bytes + i != found->exported))
			found->n_others++;
	}
}

/*
 * Counts the short forms of jmp, jcc, loop and jrcxz that lead to the function. Those within the
 * function itself are loops, and are not counted.
 */
static void look_near(struct references *found, const struct loaded *at, uint64_t vaddr,
		      uint64_t size)
{
	uint64_t begin = vaddr - at->vaddr, from = begin > 130 ? begin - 130 : 0;

	for (uint64_t i = from; i + 2 <= at->len && i < begin + 130; i++) {
		uint8_t opcode = at->bytes[i];
		bool is_short_jump =
			opcode == 0xeb || (opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0;

		if ((i < begin || i >= begin + size) && is_short_jump &&
		    i + 2 + (uint64_t)(int8_t)at->bytes[i + 1] == begin)
			found->n_others++;
	}
}

static bool read_loaded(const struct elf_image *image, size_t index, struct loaded *loaded)
{
	GElf_Phdr phdr;

	if (!gelf_getphdr(image->elf, (int)index, &phdr) || phdr.p_type != PT_LOAD ||
	    phdr.p_offset > image->size || phdr.p_filesz > image->size - phdr.p_offset)
		return false;
	*loaded = (struct loaded){.bytes = image->data + phdr.p_offset,
				  .len = phdr.p_filesz,
				  .vaddr = phdr.p_vaddr,
				  .is_code = phdr.p_flags & PF_X};
	return true;
}

/* The number of segments, loaded or not; 0: none, or too much is loaded. */
static size_t count_segments(const struct elf_image *image)
{
	struct loaded loaded;
	size_t n, size = 0;

	if (!image->elf || elf_getphdrnum(image->elf, &n))
		return 0;
	for (size_t i = 0; i < n; i++)
		size += read_loaded(image, i, &loaded) ? loaded.len : 0;
	return size <= MAX_LOADED ? n : 0;
}

bool elf_image__may_hold_text(const struct elf_image *image, const char *text)
{
	size_t n = count_segments(image);
	struct loaded loaded;

	for (size_t i = 0; i < n; i++)
		if (read_loaded(image, i, &loaded) &&
		    memmem(loaded.bytes, loaded.len, text, strlen(text) + 1))
			return true;
	return image->elf && !n;
}

/* True if a relocation uses the symbol: for calls through the PLT, or pointers to the function. */
static bool is_relocated(Elf *elf, size_t dynsym, size_t symbol)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while ((scn = elf_nextscn(elf, scn))) {
		const Elf_Data *data;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_RELA || shdr.sh_link != dynsym)
			continue;
		data = elf_section__data(scn, sizeof(Elf64_Rela));
		if (data &&
		    FIND_IN((const Elf64_Rela *)data->d_buf, data->d_size / sizeof(Elf64_Rela),
			    rela, ELF64_R_SYM(rela->r_info) == symbol))
			return true;
	}
	return false;
}

/* Notes that symbol i of .dynsym exports the function. */
static void note_export(struct references *found, const struct elf_image *image, Elf_Scn *scn,
			const GElf_Shdr *shdr, size_t i)
{
	const Elf_Data *symbols = elf_section__data(scn, sizeof(Elf64_Sym));
	const Elf64_Sym *symbol = &((const Elf64_Sym *)symbols->d_buf)[i];
	const char *name = elf_strptr(image->elf, shdr->sh_link, symbol->st_name);

	/* With a second name, or a use of the first one, the callers are not known. */
	if (found->exported || !name || shdr->sh_offset > image->size ||
	    is_relocated(image->elf, elf_ndxscn(scn), i))
		found->n_others++;
	found->exported =
		image->data + shdr->sh_offset + i * sizeof(*symbol) + offsetof(Elf64_Sym, st_value);
	found->calls.exported_as = name;
}

static void find_export(struct references *found, const struct elf_image *image, uint64_t vaddr)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while ((scn = elf_nextscn(image->elf, scn))) {
		const Elf_Data *data;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_DYNSYM)
			continue;
		data = elf_section__data(scn, sizeof(Elf64_Sym));
		for (size_t i = 0; data && i < data->d_size / sizeof(Elf64_Sym); i++)
			if (((const Elf64_Sym *)data->d_buf)[i].st_value == vaddr)
				note_export(found, image, scn, &shdr, i);
	}
}

static struct elf_callers look(const struct elf_image *image, const struct function *function)
{
	const uint64_t vaddr = function->vaddr;
	size_t n = count_segments(image);
	struct references found = {0};
	struct loaded loaded;

	if (n)
		find_export(&found, image, vaddr);
	for (size_t i = 0; i < n && !found.n_others; i++) {
		if (!read_loaded(image, i, &loaded))
			continue;
		look_in(&found, &loaded, vaddr);
		if (loaded.is_code && vaddr - loaded.vaddr < loaded.len)
			look_near(&found, &loaded, vaddr, function->size);
	}
	return found.n_others ? (struct elf_callers){0} : found.calls;
}

struct elf_callers elf_callers__of(const struct function *function)
{
	struct elf_image *image = function->image;
	struct elf_callers callers = {0};
	size_t i = 0;

	if (!image || !image->elf || function->kind == FUNCTION_PLT)
		return callers;
	pthread_mutex_lock(&image->lock);
	while (i < image->called.n && image->called.v[i].vaddr != function->vaddr)
		i++;
	if (i == image->called.n && i < MAX_ASKED) {
		struct elf_called *called = VEC_PUSH(&image->called);

		if (called)
			*called = (struct elf_called){function->vaddr, look(image, function)};
	}
	if (i < image->called.n)
		callers = image->called.v[i].callers;
	pthread_mutex_unlock(&image->lock);
	return callers;
}

/*
 * Finds main() of a stripped program: glibc's _start passes its address to __libc_start_main() in
 * %rdi (sysdeps/x86_64/start.S). Also finds the indirect call of main() in libc.
 */

/* The most instructions of _start up to its call. */
#define MAX_INSNS 20

uint64_t elf_image__find_main(const struct elf_image *image)
{
	/* Only glibc's _start keeps what the dynamic linker passed: xor %ebp,%ebp; mov %rdx,%r9 */
	static const uint8_t first[] = {0x31, 0xed, 0x49, 0x89, 0xd1};
	/* lea REL32(%rip),%rdi; mov $IMM32,%rdi */
	static const uint8_t lea[] = {0x48, 0x8d, 0x3d}, mov[] = {0x48, 0xc7, 0xc7};
	size_t len, at = 0;
	const uint8_t *code =
		image->entry ? elf_image__loaded_bytes(image, image->entry, &len) : NULL;
	uint64_t rdi = 0;
	struct insn insn;
	int32_t value;

	if (code && !insn__decode(code, len, image->entry, &insn) && insn.is_endbr)
		at = insn.len;
	if (!code || len - at < sizeof(first) || memcmp(code + at, first, sizeof(first)))
		return 0;
	for (int i = 0; i < MAX_INSNS; i++, at += insn.len) {
		if (insn__decode(code + at, len - at, image->entry + at, &insn))
			return 0;
		if (insn.cls == INSN_CALL || insn.cls == INSN_CALL_INDIRECT)
			return rdi;
		if (insn.cls != INSN_OTHER)
			return 0;
		if (insn.len != sizeof(lea) + sizeof(value))
			continue;
		memcpy(&value, code + at + sizeof(lea), sizeof(value));
		if (!memcmp(code + at, lea, sizeof(lea)))
			rdi = image->entry + at + insn.len + (uint64_t)(int64_t)value;
		else if (!memcmp(code + at, mov, sizeof(mov)))
			rdi = (uint64_t)(int64_t)value;
	}
	return 0;
}

/* The most bytes of code that are searched for the call of main(). */
#define MAX_STRAIGHT 512

/*
 * The address after "call *%rax" in "exit(main(...))" (csu/libc-start.c,
 * sysdeps/nptl/libc_start_call_main.h), which is followed by "mov %eax,%edi; call exit".
 */
static uint64_t find_indirect(const struct elf_image *image, uint64_t vaddr, size_t max)
{
	static const uint8_t then[] = {0x89, 0xc7, 0xe8};
	size_t len, at = 0;
	const uint8_t *code = elf_image__loaded_bytes(image, vaddr, &len);
	struct insn insn;

	if (!code)
		return 0;
	for (; at < max && !insn__decode(code + at, len - at, vaddr + at, &insn); at += insn.len) {
		const uint8_t *next = code + at + insn.len;

		if (insn.cls == INSN_RET || insn.cls == INSN_JUMP_INDIRECT)
			return 0;
		if (insn.cls == INSN_CALL_INDIRECT && len - at - insn.len >= sizeof(then) &&
		    !memcmp(next, then, sizeof(then)))
			return vaddr + at + insn.len;
	}
	return 0;
}

uint64_t elf_main__behind_call(const struct function *start_main)
{
	const struct elf_image *image = start_main->image;
	size_t len = 0, at = 0;
	const uint8_t *code = elf_image__loaded_bytes(image, start_main->vaddr, &len);
	uint64_t behind = find_indirect(image, start_main->vaddr, start_main->size);
	struct insn insn;

	if (len > start_main->size)
		len = start_main->size;
	while (code && !behind && at < len &&
	       !insn__decode(code + at, len - at, start_main->vaddr + at, &insn)) {
		if (insn.cls == INSN_CALL)
			behind = find_indirect(image, insn.target, MAX_STRAIGHT);
		at += insn.len;
	}
	return behind;
}
