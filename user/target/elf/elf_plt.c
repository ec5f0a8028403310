// SPDX-License-Identifier: MIT
/*
 * Names the stubs of the procedure linkage table. A stub is known by the GOT slot it jumps through,
 * and the slot by its relocation; so that the order of the sections, which differs between ld, lld
 * and mold, does not matter. System V ABI, AMD64 supplement, 5.2 and (for IBT) 13.2.
 */
#include "target/elf/elf_internal.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

struct got_slot {
	uint64_t vaddr;
	const char *name;
};
typedef VEC(struct got_slot) got_slot_vec;

struct plt {
	struct elf_image *image;
	got_slot_vec slots;    /* ascending by vaddr */
	got_slot_vec in_order; /* .rela.plt as it stands: what a lazy stub's push counts */
};

/* Whom a relocation is for, or NULL. An IFUNC of one's own has no symbol but a resolver. */
static const char *target_name(struct elf_image *image, const Elf64_Rela *rela,
			       const Elf_Data *symbols, const Elf_Data *strings)
{
	const struct function_entry *resolver;
	size_t index = ELF64_R_SYM(rela->r_info);
	const Elf64_Sym *sym;
	const char *name;

	if (ELF64_R_TYPE(rela->r_info) == R_X86_64_IRELATIVE) {
		resolver = elf_image__symbol_at(image, (uint64_t)rela->r_addend);
		return resolver ? resolver->function.raw_name : NULL;
	}
	if (!symbols || !strings || !index || index >= symbols->d_size / sizeof(*sym))
		return NULL;
	sym = (const Elf64_Sym *)symbols->d_buf + index;
	name = elf_section__string(strings, sym->st_name);
	return name && name[0] ? name : NULL;
}

static bool fills_got(const Elf64_Rela *rela)
{
	switch (ELF64_R_TYPE(rela->r_info)) {
	case R_X86_64_JUMP_SLOT:
	case R_X86_64_GLOB_DAT:
	case R_X86_64_IRELATIVE:
		return true;
	default:
		return false;
	}
}

/* Adds the GOT slots of one relocation section to out. 0 or -ENOMEM. */
static int read_relocations(struct elf_image *image, const char *name, got_slot_vec *out)
{
	const Elf_Data *symbols = NULL, *strings = NULL, *data;
	GElf_Shdr shdr, symtab;
	Elf_Scn *scn = elf_image__section(image, name, &shdr), *linked;
	const Elf64_Rela *relas;

	data = elf_section__data(scn, sizeof(*relas));
	if (!data || data->d_type != ELF_T_RELA)
		return 0;
	linked = elf_getscn(image->elf, shdr.sh_link);
	if (linked && gelf_getshdr(linked, &symtab)) {
		symbols = elf_section__data(linked, sizeof(Elf64_Sym));
		strings = elf_section__data(elf_getscn(image->elf, symtab.sh_link), 1);
		if (symbols && symbols->d_type != ELF_T_SYM)
			symbols = NULL;
	}
	relas = data->d_buf;
	for (size_t i = 0; i < data->d_size / sizeof(*relas); i++) {
		struct got_slot *slot;

		if (!fills_got(&relas[i]))
			continue;
		slot = VEC_PUSH(out);
		if (!slot)
			return -ENOMEM;
		slot->vaddr = relas[i].r_offset;
		slot->name = target_name(image, &relas[i], symbols, strings);
	}
	return 0;
}

static int compare_slots(const void *a, const void *b)
{
	const struct got_slot *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static int load_slots(struct plt *plt)
{
	static const char *const others[] = {".rela.dyn", ".rela.iplt"};
	int err = read_relocations(plt->image, ".rela.plt", &plt->in_order);

	for (size_t i = 0; !err && i < plt->in_order.n; i++) {
		struct got_slot *slot = VEC_PUSH(&plt->slots);

		if (!slot)
			return -ENOMEM;
		*slot = plt->in_order.v[i];
	}
	for (size_t i = 0; !err && i < sizeof(others) / sizeof(others[0]); i++)
		err = read_relocations(plt->image, others[i], &plt->slots);
	VEC_SORT(&plt->slots, compare_slots);
	return err;
}

static const char *name_of_slot(const struct plt *plt, uint64_t vaddr)
{
	struct got_slot key = {.vaddr = vaddr}, *found = NULL;

	if (plt->slots.n)
		found = bsearch(&key, plt->slots.v, plt->slots.n, sizeof(key), compare_slots);
	return found ? found->name : NULL;
}

/* Steps over what may stand before a stub's jump: endbr64, "mov $n,%r11d", a bnd prefix. */
static size_t skip_prologue(const uint8_t *code, size_t size)
{
	size_t at = 0;

	if (size >= 4 && !memcmp(code, "\xf3\x0f\x1e\xfa", 4))
		at = 4;
	if (size >= at + 6 && code[at] == 0x41 && code[at + 1] == 0xbb)
		at += 6;
	if (size > at && code[at] == 0xf2)
		at++;
	return at;
}

/* Whom the stub goes to, or NULL (slot 0, and what no linker we know makes). */
static const char *name_of_stub(const struct plt *plt, const uint8_t *code, size_t size,
				uint64_t vaddr)
{
	size_t at = skip_prologue(code, size);
	uint32_t number;

	/* jmp *disp32(%rip) */
	if (size >= at + 6 && code[at] == 0xff && code[at + 1] == 0x25) {
		memcpy(&number, code + at + 2, sizeof(number));
		return name_of_slot(plt, vaddr + at + 6 + (uint64_t)(int64_t)(int32_t)number);
	}
	/* push imm32: the lazy half of an IBT stub has no other mark */
	if (size >= at + 5 && code[at] == 0x68) {
		memcpy(&number, code + at + 1, sizeof(number));
		return number < plt->in_order.n ? plt->in_order.v[number].name : NULL;
	}
	return NULL;
}

static int add_stub(struct plt *plt, uint64_t vaddr, uint64_t size, const char *target)
{
	_cleanup_free_ char *text = NULL;
	const char *raw_name = "[plt]";
	struct function_entry *entry;
	int n;

	if (target) {
		n = asprintf(&text, "%s@plt", target);
		if (n < 0) {
			text = NULL;
			return -ENOMEM;
		}
		raw_name = elf_image__keep(plt->image, text, (size_t)n);
	}
	entry = raw_name ? VEC_PUSH(&plt->image->stubs) : NULL;
	if (!entry)
		return -ENOMEM;
	*entry = (struct function_entry){.function = {.image = plt->image,
						      .module = plt->image->module,
						      .vaddr = vaddr,
						      .size = size,
						      .kind = FUNCTION_PLT}};
	function_entry__set_name(entry, raw_name);
	return 0;
}

static int read_stubs(struct plt *plt, const char *name)
{
	GElf_Shdr shdr;
	const Elf_Data *data;
	uint64_t step;

	data = elf_section__data(elf_image__section(plt->image, name, &shdr), 1);
	if (!data || !elf_image__segment(plt->image, shdr.sh_addr) ||
	    !elf_image__segment(plt->image, shdr.sh_addr + data->d_size - 1))
		return 0;
	/* Without IBT, a .plt.got entry is a jump and a two-byte nop. */
	step = shdr.sh_entsize == 8 ? 8 : 16;
	for (uint64_t at = 0; at < data->d_size; at += step) {
		const uint8_t *code = (const uint8_t *)data->d_buf + at;
		uint64_t size = data->d_size - at < step ? data->d_size - at : step;
		int err = add_stub(plt, shdr.sh_addr + at, size,
				   name_of_stub(plt, code, size, shdr.sh_addr + at));

		if (err)
			return err;
	}
	return 0;
}

int elf_image__load_stubs(struct elf_image *image)
{
	static const char *const sections[] = {".plt", ".plt.sec", ".plt.got", ".plt.bnd", ".iplt"};
	struct plt plt = {.image = image};
	int err = load_slots(&plt);

	for (size_t i = 0; !err && i < sizeof(sections) / sizeof(sections[0]); i++)
		err = read_stubs(&plt, sections[i]);
	VEC_FINI(&plt.slots);
	VEC_FINI(&plt.in_order);
	if (err)
		VEC_FINI(&image->stubs);
	return err;
}
