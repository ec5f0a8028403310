// SPDX-License-Identifier: MIT
#include "target/symbols/symbols_internal.h"

#include <errno.h>
#include <inttypes.h>

#include "util/log.h"

static bool find_in(const struct module *module, uint64_t vaddr, struct symbol_match *match)
{
	const struct function *function = elf_image__function_at(module->image, vaddr);

	if (!function || vaddr < function->vaddr)
		return false;
	*match = (struct symbol_match){
		.module = module, .function = function, .offset = vaddr - function->vaddr};
	return true;
}

int symbols__find_address(const struct symbols *symbols, const struct query *query,
			  struct symbol_match *match)
{
	uint64_t address = query->address;

	for (size_t i = 0; i < symbols->n; i++)
		if (symbols->modules[i].is_executable &&
		    find_in(&symbols->modules[i], address, match))
			return 0;
	for (size_t i = 0; i < symbols->n; i++)
		if (find_in(&symbols->modules[i], address - symbols->modules[i].bias, match))
			return 0;
	log__error("no code of %s at %#" PRIx64, symbols->label, address);
	log__hint("addr: takes an address in the program's file, or in the running process");
	return -ENOENT;
}
