// SPDX-License-Identifier: MIT
#include "capture/code/kernel_ranges.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kallsyms.h"

#include "util/page.h"

/* The kernel's image and its modules: Documentation/arch/x86/x86_64/mm.rst. */
#define TEXT_AREA 0xffffffff80000000ull
/* The largest modules are graphics drivers, of some 20 MB. */
#define MODULE_MAX (64ull << 20)
#define TEXT_MAX   (256ull << 20)
/* kallsyms gives no sizes: far more than most BPF programs have; behind their end it is zeroes. */
#define MADE_MAX (64ull << 10)

static int add(kernel_range_vec *ranges, uint64_t start, uint64_t end)
{
	struct kernel_range *range;

	if (start < TEXT_AREA || end <= start)
		return 0;
	range = VEC_PUSH(ranges);
	if (!range)
		return -ENOMEM;
	*range = (struct kernel_range){start & -PAGE, (end + PAGE - 1) & -PAGE};
	/* The last page of all would end at 0. */
	if (range->end <= range->start)
		ranges->n--;
	return 0;
}

static int add_text(const char *kallsyms, kernel_range_vec *ranges)
{
	uint64_t start, end;

	if (!kallsyms__find(kallsyms, "_stext", &start) ||
	    !kallsyms__find(kallsyms, "_etext", &end) || start < TEXT_AREA || end <= start ||
	    end - start > TEXT_MAX)
		return -ENODATA;
	return add(ranges, start, end);
}

/* "name 16384 1 user, Live 0xffffffffc0000000": kernel/module/procfs.c: m_show(). */
static int add_modules(const char *modules, kernel_range_vec *ranges)
{
	int err = 0;

	while (!err && *modules) {
		const char *end = strchrnul(modules, '\n');
		unsigned long long size, address;

		if (sscanf(modules, "%*s %llu %*s %*s %*s %llx", &size, &address) == 2 &&
		    address >= TEXT_AREA)
			err = add(ranges, address,
				  address + (size < MODULE_MAX ? size : MODULE_MAX));
		modules = *end ? end + 1 : end;
	}
	return err;
}

/* "[bpf]": JIT code; "[__builtin__ftrace]", "[__builtin__kprobes]": trampolines and slots. */
static bool is_made(const struct kallsym *sym)
{
	static const char *const makers[] = {"bpf", "__builtin__ftrace", "__builtin__kprobes"};

	for (size_t i = 0; sym->module && i < sizeof(makers) / sizeof(makers[0]); i++)
		if (strlen(makers[i]) == sym->module_len &&
		    !memcmp(makers[i], sym->module, sym->module_len))
			return true;
	return false;
}

static int add_made(const char *kallsyms, kernel_range_vec *ranges)
{
	struct kallsym sym;
	int err = 0;

	while (!err && kallsyms__next(&kallsyms, &sym))
		if (is_made(&sym) && kallsym__is_code(&sym) && sym.address <= UINT64_MAX - MADE_MAX)
			err = add(ranges, sym.address, sym.address + MADE_MAX);
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct kernel_range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static void merge(kernel_range_vec *ranges)
{
	size_t out = 0;

	VEC_SORT(ranges, compare);
	for (size_t i = 0; i < ranges->n; i++) {
		struct kernel_range range = ranges->v[i], *last = out ? &ranges->v[out - 1] : NULL;

		if (!last || range.start > last->end)
			ranges->v[out++] = range;
		else if (range.end > last->end)
			last->end = range.end;
	}
	ranges->n = out;
}

int kernel_ranges__find(const char *kallsyms, const char *modules, kernel_range_vec *ranges)
{
	int err = add_text(kallsyms, ranges);

	if (!err)
		err = add_modules(modules, ranges);
	if (!err)
		err = add_made(kallsyms, ranges);
	merge(ranges);
	return err;
}
