// SPDX-License-Identifier: MIT
#include "target/symbols/kernel_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/elf_internal.h"
#include "kernel/kallsyms.h"

/* kallsyms' text, and where it is kept: names are made of it in place. */
struct symbol_reader {
	struct elf_image *image;
	const char *module;    /* the last one's name, kept */
	const char *module_at; /* in the text: its symbols stand together */
	size_t module_len;
	uint32_t unit;
};

/* The kept name of the symbol's module; NULL where memory ran out. */
static const char *keep_module(struct symbol_reader *r, const struct kallsym *sym)
{
	if (!sym->module)
		return KERNEL_MODULE;
	if (r->module && r->module_len == sym->module_len &&
	    !memcmp(r->module_at, sym->module, sym->module_len))
		return r->module;
	r->module = elf_image__keep(r->image, sym->module, sym->module_len);
	r->module_at = sym->module;
	r->module_len = sym->module_len;
	r->unit++;
	return r->module;
}

/* "name\t[module]" becomes the function's name; its raw name is without the module. */
static int name_function(struct symbol_reader *r, struct function_entry *entry,
			 const struct kallsym *sym)
{
	struct function *f = &entry->function;
	char *name = (char *)sym->name; /* in our copy of the text */

	f->module = keep_module(r, sym);
	if (!f->module)
		return -ENOMEM;
	if (!sym->module) {
		name[sym->name_len] = '\0';
		function_entry__set_name(entry, name);
		return 0;
	}
	f->raw_name = elf_image__keep(r->image, name, sym->name_len);
	name[sym->name_len] = ' ';
	name[sym->module + sym->module_len + 1 - name] = '\0';
	f->name = name;
	entry->unit = r->unit;
	return f->raw_name ? 0 : -ENOMEM;
}

/* Aliases: as of an ELF file, the one with the fewest underscores speaks for the address. */
static uint8_t rank(const struct kallsym *sym)
{
	size_t underscores = strspn(sym->name, "_");

	return (uint8_t)((underscores < 7 ? underscores : 7) << 1 |
			 (sym->type == 't' || sym->type == 'w'));
}

static int read_symbols(struct symbol_reader *r, const char *text)
{
	struct kallsym sym;
	int err = 0;

	/* The parser is one line ahead of where the text is changed. */
	while (!err && kallsyms__next(&text, &sym)) {
		struct function_entry *entry;

		if (!kallsym__is_code(&sym) || !elf_image__segment(r->image, sym.address))
			continue;
		entry = VEC_PUSH(&r->image->symbols);
		if (!entry)
			return -ENOMEM;
		*entry = (struct function_entry){
			.function = {.image = r->image, .vaddr = sym.address}, .rank = rank(&sym)};
		err = name_function(r, entry, &sym);
	}
	return err;
}

static int load_symbols(struct elf_image *image, const char *kallsyms)
{
	struct symbol_reader reader = {.image = image};
	char *text = elf_image__keep(image, kallsyms, strlen(kallsyms));
	int err = text ? read_symbols(&reader, text) : -ENOMEM;

	if (!err)
		elf_image__settle_symbols(image);
	return err;
}

struct elf_image *kernel_image__open(int kcore, const char *kallsyms)
{
	struct elf_image *image = elf_image__open_core(kcore, KERNEL_MODULE);
	int err;

	if (!image)
		return NULL;
	err = load_symbols(image, kallsyms);
	if (!err)
		return image;
	elf_image__free(image);
	errno = -err;
	return NULL;
}

int kernel_image__map(struct elf_image *kernel, struct code_map *map)
{
	int err = 0;

	for (size_t i = 0; i < kernel->n_segments && err != -ENOMEM; i++) {
		const struct elf_segment *segment = &kernel->segments[i];

		err = code_map__add(map, segment->vaddr, segment->size, segment->offset, kernel);
	}
	return err == -ENOMEM ? err : 0;
}
