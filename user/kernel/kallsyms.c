// SPDX-License-Identifier: MIT
#include "kernel/kallsyms.h"

#include <stdlib.h>
#include <string.h>

/* [at, end) is a line. kernel/kallsyms.c: s_show() */
static bool parse_line(const char *at, const char *end, struct kallsym *sym)
{
	char *behind;
	const char *tab;

	*sym = (struct kallsym){.address = strtoull(at, &behind, 16)};
	if (behind == at || end - behind < 4 || behind[0] != ' ' || behind[2] != ' ')
		return false;
	sym->type = behind[1];
	sym->name = behind + 3;
	tab = memchr(sym->name, '\t', (size_t)(end - sym->name));
	sym->name_len = (size_t)((tab ? tab : end) - sym->name);
	if (tab && end - tab > 3 && tab[1] == '[' && end[-1] == ']') {
		sym->module = tab + 2;
		sym->module_len = (size_t)(end - 1 - sym->module);
	}
	return sym->name_len > 0;
}

bool kallsyms__next(const char **text, struct kallsym *sym)
{
	while (**text) {
		const char *at = *text, *end = strchrnul(at, '\n');

		*text = *end ? end + 1 : end;
		if (parse_line(at, end, sym))
			return true;
	}
	return false;
}

bool kallsyms__find(const char *text, const char *name, uint64_t *address)
{
	size_t len = strlen(name);
	struct kallsym sym;

	while (kallsyms__next(&text, &sym)) {
		if (sym.module || sym.name_len != len || memcmp(sym.name, name, len))
			continue;
		*address = sym.address;
		return true;
	}
	return false;
}

bool kallsym__is_code(const struct kallsym *sym)
{
	return sym->type && strchr("tTwW", sym->type);
}
