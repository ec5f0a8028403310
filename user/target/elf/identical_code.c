// SPDX-License-Identifier: MIT
#include "target/elf/identical_code.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

#include "target/elf/elf_image.h"

/* Namespaces in each other: more is damage. */
#define DEPTH_MAX 32

struct search {
	struct elf_image *image;
	uint64_t vaddr;
	size_t first, end; /* the functions at vaddr, in the image's order */
	size_t found;	   /* the one of them that a definition has been found of; SIZE_MAX: none */
	bool is_folded;
};

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attr));

	return name ? name : dwarf_diename(die);
}

static void take(struct search *search, Dwarf_Die *subprogram)
{
	const char *name;
	Dwarf_Addr entry;

	/* Linkers that drop the code of a definition leave 0 as its address. */
	if (dwarf_entrypc(subprogram, &entry) || (entry && entry != search->vaddr))
		return;
	name = linkage_name(subprogram);
	for (size_t i = search->first; name && i < search->end; i++) {
		if (strcmp(search->image->symbols.v[i].function.raw_name, name))
			continue;
		search->is_folded |= search->found != SIZE_MAX && search->found != i;
		search->found = i;
		return;
	}
}

static void look(struct search *search, Dwarf_Die *parent, int depth)
{
	Dwarf_Die die;

	if (depth == DEPTH_MAX || dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_subprogram)
			take(search, &die);
		else if (tag == DW_TAG_namespace || tag == DW_TAG_module)
			look(search, &die, depth + 1);
	} while (!search->is_folded && !dwarf_siblingof(&die, &die));
}

/* Most functions have one name, and need no search. */
static bool find_names(struct search *search)
{
	const struct elf_image *image = search->image;

	search->first = VEC_PARTITION_POINT(&image->symbols, e, e->function.vaddr < search->vaddr);
	search->end = search->first;
	while (search->end < image->symbols.n &&
	       image->symbols.v[search->end].function.vaddr == search->vaddr)
		search->end++;
	return search->end - search->first > 1;
}

bool function__is_folded(const struct function *function, struct elf_debug *debug)
{
	struct search search = {
		.image = function->image, .vaddr = function->vaddr, .found = SIZE_MAX};
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	if (!elf_image__function_count(function->image) || !find_names(&search))
		return false;
	while (!search.is_folded &&
	       !dwarf_get_units(debug->dwarf, cu, &cu, NULL, NULL, &unit, NULL)) {
		elf_debug__go_to_split(&unit);
		look(&search, &unit, 0);
	}
	return search.is_folded;
}
