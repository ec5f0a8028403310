// SPDX-License-Identifier: MIT
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/elf_go.h"
#include "target/elf/elf_image.h"
#include "target/elf/elf_internal.h"
#include "util/cleanup.h"
#include "util/vec.h"

/* Bits of function_entry.rank; below them are underscores and binding. */
#define RANK_UNTYPED  128
#define RANK_SIZELESS 64

/* One symbol table, as it is read. */
struct symtab {
	struct elf_image *image;
	const Elf_Data *strings;
	const Elf_Data *versions; /* .gnu.version, a half-word per symbol; NULL: none */
	uint32_t unit;		  /* STT_FILE symbols seen so far */
};

static bool is_function(const struct symtab *tab, const Elf64_Sym *sym, const char *name)
{
	int type = ELF64_ST_TYPE(sym->st_info);

	if (!(sym->st_shndx != SHN_UNDEF &&
	      (sym->st_shndx < SHN_LORESERVE || sym->st_shndx == SHN_XINDEX)) ||
	    !name[0] || !elf_image__segment(tab->image, sym->st_value))
		return false;
	/* Assembler labels lack a type: _start, __restore_rt; but ".L12", "$x" are a compiler's. */
	return type == STT_FUNC || type == STT_GNU_IFUNC ||
	       (type == STT_NOTYPE && name[0] != '.' && name[0] != '$' &&
		elf_image__in_section(tab->image, sym->st_value));
}

/*
 * Low is better: names by the compiler before labels by an assembler, "write" before "__write",
 * exported before local; but "__vdso_time" before "time", which is libc's name.
 */
static uint8_t rank_symbol(const Elf64_Sym *sym, const char *name)
{
	size_t underscores = strncmp(name, "__vdso_", 7) ? strspn(name, "_") : 0;
	uint8_t rank = ELF64_ST_TYPE(sym->st_info) == STT_NOTYPE ? RANK_UNTYPED : 0;

	if (!sym->st_size)
		rank |= RANK_SIZELESS;
	rank |= (uint8_t)((underscores < 7 ? underscores : 7) << 2);
	if (ELF64_ST_BIND(sym->st_info) == STB_LOCAL)
		rank |= 2;
	else if (ELF64_ST_BIND(sym->st_info) == STB_WEAK)
		rank |= 1;
	return rank;
}

/*
 * The linker gives a program the default version of a name. Others are hidden in .gnu.version
 * (Linux Standard Base Core, 10.7.2 "Symbol Version Table"), and have a single "@" in .symtab.
 */
static bool is_old_version(const struct symtab *tab, size_t index, const char *name)
{
	const char *at = strchr(name + 1, '@');

	if (tab->versions && index < tab->versions->d_size / sizeof(Elf64_Half))
		return ((const Elf64_Half *)tab->versions->d_buf)[index] & 0x8000;
	return at && at[1] != '@';
}

static int add_symbol(struct symtab *tab, const Elf64_Sym *sym, size_t index)
{
	const char *name = elf_section__string(tab->strings, sym->st_name), *at;
	struct function_entry *entry;
	bool is_old;

	if (ELF64_ST_TYPE(sym->st_info) == STT_FILE)
		tab->unit++;
	if (!name || !is_function(tab, sym, name))
		return 0;
	is_old = is_old_version(tab, index, name);
	/* "memcpy@@GLIBC_2.14" is memcpy. */
	at = strchr(name + 1, '@');
	if (at)
		name = elf_image__keep(tab->image, name, (size_t)(at - name));
	entry = name ? function_entry__add(&tab->image->symbols, tab->image, sym->st_value,
					   sym->st_size, name)
		     : NULL;
	if (!entry)
		return -ENOMEM;
	entry->function.is_resolver = ELF64_ST_TYPE(sym->st_info) == STT_GNU_IFUNC;
	entry->function.is_old_version = is_old;
	entry->unit = ELF64_ST_BIND(sym->st_info) == STB_LOCAL ? tab->unit : 0;
	entry->rank = rank_symbol(sym, name);
	return 0;
}

static int read_symtabs(struct elf_image *image, Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr, versions;
	int err = 0;

	while (!err && elf && (scn = elf_nextscn(elf, scn))) {
		struct symtab tab = {.image = image};
		const Elf_Data *data;
		const Elf64_Sym *syms;

		if (!gelf_getshdr(scn, &shdr) ||
		    (shdr.sh_type != SHT_SYMTAB && shdr.sh_type != SHT_DYNSYM))
			continue;
		/* libelf aligns and checks what it knows to be symbols; other data are not
		 * believed. */
		data = elf_section__data(scn, sizeof(Elf64_Sym));
		tab.strings = elf_section__data(elf_getscn(elf, shdr.sh_link), 1);
		if (!data || data->d_type != ELF_T_SYM || !tab.strings)
			continue;
		if (shdr.sh_type == SHT_DYNSYM)
			tab.versions = elf_section__data(
				elf_image__section(image, ".gnu.version", &versions),
				sizeof(Elf64_Half));
		if (tab.versions && tab.versions->d_type != ELF_T_HALF)
			tab.versions = NULL;
		syms = data->d_buf;
		for (size_t i = 1; i < data->d_size / sizeof(*syms) && !err; i++)
			err = add_symbol(&tab, &syms[i], i);
	}
	return err;
}

ORDER(compare_entries, struct function_entry,
      COMPARE(x->function.vaddr, y->function.vaddr)
	      ?: COMPARE(x->rank, y->rank)
	      ?: COMPARE(strlen(x->function.raw_name), strlen(y->function.raw_name))
	      ?: strcmp(x->function.raw_name, y->function.raw_name))

struct symbol_key {
	uint64_t vaddr;
	const struct function_entry *entry;
};

ORDER(compare_keys, struct symbol_key,
      COMPARE(x->vaddr, y->vaddr) ?: compare_entries(x->entry, y->entry))

/* Sorts keys instead of entries: entries are large, and most of a million are not in the cache. */
static int sort_by_keys(function_entry_vec *symbols)
{
	_cleanup_free_ struct symbol_key *keys = calloc(symbols->n, sizeof(*keys));
	struct function_entry *sorted = calloc(symbols->n, sizeof(*sorted));

	if (!keys || !sorted) {
		free(sorted);
		return -ENOMEM;
	}
	for (size_t i = 0; i < symbols->n; i++)
		keys[i] = (struct symbol_key){symbols->v[i].function.vaddr, &symbols->v[i]};
	qsort(keys, symbols->n, sizeof(*keys), compare_keys);
	for (size_t i = 0; i < symbols->n; i++)
		sorted[i] = *keys[i].entry;
	free(symbols->v);
	symbols->v = sorted;
	symbols->cap = symbols->n;
	return 0;
}

/* Drops symbols that .dynsym repeats, and labels inside sized functions. */
static void drop_repeated(function_entry_vec *symbols)
{
	uint64_t start = 0, end = 0; /* of the last function, by its symbols */
	size_t out = 0;

	VEC_EACH(symbols, entry) {
		const struct function *f = &entry->function;
		const struct function *last = out ? &symbols->v[out - 1].function : NULL;
		bool is_untyped = entry->rank & RANK_UNTYPED;

		if (last && last->vaddr == f->vaddr && !strcmp(last->raw_name, f->raw_name))
			continue;
		if (is_untyped && f->vaddr > start && f->vaddr < end)
			continue;
		if (!is_untyped) {
			uint64_t its =
				f->size <= UINT64_MAX - f->vaddr ? f->vaddr + f->size : UINT64_MAX;

			end = start != f->vaddr || its > end ? its : end;
			start = f->vaddr;
		}
		symbols->v[out++] = *entry;
	}
	symbols->n = out;
}

void elf_image__settle_symbols(struct elf_image *image)
{
	function_entry_vec *symbols = &image->symbols;
	size_t i = 0, next;

	if (symbols->n && sort_by_keys(symbols))
		VEC_SORT(symbols, compare_entries);
	drop_repeated(symbols);
	/* No function may have a size of 0, or reach into the next one, or out of its section. */
	for (; i < symbols->n; i = next) {
		struct function_entry *first = &symbols->v[i];
		uint64_t vaddr = first->function.vaddr;
		uint64_t limit = elf_image__section_end(image, vaddr);

		for (next = i; next < symbols->n && symbols->v[next].function.vaddr == vaddr;)
			next++;
		if (next < symbols->n && symbols->v[next].function.vaddr < limit)
			limit = symbols->v[next].function.vaddr;
		for (size_t k = i; k < next; k++) {
			struct function *f = &symbols->v[k].function;

			/* A label at the same address as a sized function has that size. */
			if (!f->size)
				f->size = first->function.size;
			if (!f->size || f->size > limit - vaddr)
				f->size = limit - vaddr;
		}
	}
	image->has_symbols = true;
}

static int load_symbols(struct elf_image *image)
{
	int err;

	if (image->has_symbols)
		return 0;
	err = read_symtabs(image, image->elf);
	if (!err)
		err = read_symtabs(image, elf_image__symbols_elf(image));
	if (!err && image->go && !elf_image__has_symtab(image))
		err = go_table__add_functions(image->go, image);
	if (err) {
		VEC_FINI(&image->symbols);
		return err;
	}
	elf_image__settle_symbols(image);
	return 0;
}

static struct function_entry *symbol_at(struct elf_image *image, uint64_t vaddr)
{
	size_t n = VEC_PARTITION_POINT(&image->symbols, e, e->function.vaddr < vaddr);

	if (n == image->symbols.n || image->symbols.v[n].function.vaddr != vaddr)
		return NULL;
	return &image->symbols.v[n];
}

/*
 * Names the stubs of the procedure linkage table. A stub is known by the GOT slot it jumps
 * through, and the slot by its relocation; so that the order of the sections, which differs
 * between ld, lld and mold, does not matter. System V ABI, AMD64 supplement, 5.2 and (for
 * IBT) 13.2.
 */

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

/*
 * The name that a relocation refers to, or NULL. An IFUNC of the same file has a resolver instead
 * of a symbol.
 */
static const char *target_name(struct elf_image *image, const Elf64_Rela *rela,
			       const Elf_Data *symbols, const Elf_Data *strings)
{
	const struct function_entry *resolver;
	size_t index = ELF64_R_SYM(rela->r_info);
	const Elf64_Sym *sym;
	const char *name;

	if (ELF64_R_TYPE(rela->r_info) == R_X86_64_IRELATIVE) {
		resolver = symbol_at(image, (uint64_t)rela->r_addend);
		return resolver ? resolver->function.raw_name : NULL;
	}
	if (!symbols || !strings || !index || index >= symbols->d_size / sizeof(*sym))
		return NULL;
	sym = (const Elf64_Sym *)symbols->d_buf + index;
	name = elf_section__string(strings, sym->st_name);
	return name && name[0] ? name : NULL;
}

/* Adds the GOT slots of one relocation section to out. 0 or -ENOMEM. */
static int read_relocations(struct elf_image *image, const char *name, got_slot_vec *out)
{
	const Elf_Data *symbols = NULL, *strings = NULL, *data;
	GElf_Shdr shdr, symtab;
	Elf_Scn *scn = elf_image__section(image, name, &shdr), *linked;
	const Elf64_Rela *rela, *end;

	data = elf_section__data(scn, sizeof(*rela));
	if (!data || data->d_type != ELF_T_RELA)
		return 0;
	linked = elf_getscn(image->elf, shdr.sh_link);
	if (linked && gelf_getshdr(linked, &symtab)) {
		symbols = elf_section__data(linked, sizeof(Elf64_Sym));
		strings = elf_section__data(elf_getscn(image->elf, symtab.sh_link), 1);
		if (symbols && symbols->d_type != ELF_T_SYM)
			symbols = NULL;
	}
	rela = data->d_buf;
	end = rela + data->d_size / sizeof(*rela);
	for (; rela < end; rela++) {
		struct got_slot slot = {.vaddr = rela->r_offset};

		switch (ELF64_R_TYPE(rela->r_info)) {
		case R_X86_64_JUMP_SLOT:
		case R_X86_64_GLOB_DAT:
		case R_X86_64_IRELATIVE:
			slot.name = target_name(image, rela, symbols, strings);
			if (VEC_ADD(out, slot))
				return -ENOMEM;
		}
	}
	return 0;
}

ORDER(compare_slots, struct got_slot, COMPARE(x->vaddr, y->vaddr))

/* The name of the stub's target, or NULL (slot 0, and forms that known linkers do not make). */
static const char *name_of_stub(const struct plt *plt, const uint8_t *code, size_t size,
				uint64_t vaddr)
{
	struct got_slot key, *found = NULL;
	size_t at = 0;
	uint32_t number;

	/* Skips what may precede a stub's jump: endbr64, "mov $n,%r11d", a bnd prefix. */
	if (size >= 4 && !memcmp(code, "\xf3\x0f\x1e\xfa", 4))
		at = 4;
	if (size >= at + 6 && code[at] == 0x41 && code[at + 1] == 0xbb)
		at += 6;
	if (size > at && code[at] == 0xf2)
		at++;
	/* jmp *disp32(%rip) */
	if (size >= at + 6 && code[at] == 0xff && code[at + 1] == 0x25) {
		memcpy(&number, code + at + 2, sizeof(number));
		key.vaddr = vaddr + at + 6 + (uint64_t)(int64_t)(int32_t)number;
		if (plt->slots.n)
			found = bsearch(&key, plt->slots.v, plt->slots.n, sizeof(key),
					compare_slots);
		return found ? found->name : NULL;
	}
	/* push imm32 is the only mark of the lazy half of an IBT stub */
	if (size >= at + 5 && code[at] == 0x68) {
		memcpy(&number, code + at + 1, sizeof(number));
		return number < plt->in_order.n ? plt->in_order.v[number].name : NULL;
	}
	return NULL;
}

static int read_stubs(struct plt *plt, const char *name)
{
	struct elf_image *image = plt->image;
	GElf_Shdr shdr;
	const Elf_Data *data;
	uint64_t step;

	data = elf_section__data(elf_image__section(image, name, &shdr), 1);
	if (!data || !elf_image__segment(image, shdr.sh_addr) ||
	    !elf_image__segment(image, shdr.sh_addr + data->d_size - 1))
		return 0;
	/* Without IBT, a .plt.got entry is a jump and a two-byte nop. */
	step = shdr.sh_entsize == 8 ? 8 : 16;
	for (uint64_t at = 0; at < data->d_size; at += step) {
		const uint8_t *code = (const uint8_t *)data->d_buf + at;
		uint64_t vaddr = shdr.sh_addr + at;
		uint64_t size = data->d_size - at < step ? data->d_size - at : step;
		const char *target = name_of_stub(plt, code, size, vaddr), *raw_name = "[plt]";
		_cleanup_free_ char *text = NULL;
		struct function_entry *entry;
		int n;

		if (target) {
			n = asprintf(&text, "%s@plt", target);
			if (n < 0)
				text = NULL;
			raw_name = text ? elf_image__keep(image, text, (size_t)n) : NULL;
		}
		entry = raw_name ? function_entry__add(&image->stubs, image, vaddr, size, raw_name)
				 : NULL;
		if (!entry)
			return -ENOMEM;
		entry->function.kind = FUNCTION_PLT;
	}
	return 0;
}

static int load_stubs(struct elf_image *image)
{
	static const char *const sections[] = {".plt", ".plt.sec", ".plt.got", ".plt.bnd", ".iplt"};
	struct plt plt = {.image = image};
	int err = read_relocations(image, ".rela.plt", &plt.in_order);

	if (!err)
		err = VEC_ADD_ALL(&plt.slots, &plt.in_order);
	if (!err)
		err = read_relocations(image, ".rela.dyn", &plt.slots);
	if (!err)
		err = read_relocations(image, ".rela.iplt", &plt.slots);
	VEC_SORT(&plt.slots, compare_slots);
	for (size_t i = 0; !err && i < sizeof(sections) / sizeof(sections[0]); i++)
		err = read_stubs(&plt, sections[i]);
	VEC_FINI(&plt.slots);
	VEC_FINI(&plt.in_order);
	if (err)
		VEC_FINI(&image->stubs);
	return err;
}

/*
 * Compilers move the unlikely half of foo away and call it "foo.cold", or "foo.cold.1". Two units
 * may each have a local foo: the STT_FILE symbol before them tells which cold part is whose.
 */

struct cold_part {
	struct function_range *range;
	const char *name; /* of the hot part, not terminated */
	size_t len;
	struct function_entry *hot; /* NULL until found */
};
typedef VEC(struct cold_part) cold_part_vec;

/* The length of "foo" in "foo.cold" and "foo.cold.1", or 0 in any other name. */
static size_t hot_length(const char *name)
{
	const char *at = strstr(name, ".cold");

	if (!at || at == name)
		return 0;
	if (at[5] == '\0')
		return (size_t)(at - name);
	return at[5] == '.' && at[6] && !at[6 + strspn(at + 6, "0123456789")] ? (size_t)(at - name)
									      : 0;
}

static int compare_names(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order ? order : (a_len > b_len) - (a_len < b_len);
}

ORDER(compare_parts, struct cold_part, compare_names(x->name, x->len, y->name, y->len))

static int resolve_cold(struct elf_image *image, struct function_table *table)
{
	cold_part_vec parts = {0};
	int err = 0;

	for (size_t i = 0; i < table->n && !err; i++) {
		const char *name = table->ranges[i].entry->function.raw_name;
		size_t len = hot_length(name);

		if (len)
			err = VEC_ADD(&parts,
				      (struct cold_part){&table->ranges[i], name, len, NULL});
	}
	VEC_SORT(&parts, compare_parts);
	/* A local function can only have the cold parts of its own unit. */
	for (size_t i = 0; !err && parts.n && i < image->symbols.n; i++) {
		struct function_entry *hot = &image->symbols.v[i];
		const char *name = hot->function.raw_name;
		size_t len = strlen(name);
		size_t k = VEC_PARTITION_POINT(&parts, e,
					       compare_names(e->name, e->len, name, len) < 0);

		for (; k < parts.n; k++) {
			struct cold_part *part = &parts.v[k];

			if (compare_names(part->name, part->len, name, len))
				break;
			if (hot->unit == part->range->entry->unit || (!hot->unit && !part->hot))
				part->hot = hot;
		}
	}
	/* By address, so that cold and hot code get the same one of several aliases. */
	for (size_t i = 0; !err && i < parts.n; i++)
		if (parts.v[i].hot)
			parts.v[i].range->entry = symbol_at(image, parts.v[i].hot->function.vaddr);
	VEC_FINI(&parts);
	return err;
}

/*
 * Maps addresses to functions: by a table of named code and, from the first miss on, by a second
 * one that also has the holes. Stripped code is then as fast to look up as any other.
 */

void function_table__free(struct function_table *table)
{
	if (!table)
		return;
	free(table->starts);
	free(table->ranges);
	free(table);
}

/* Takes the ranges over, which are disjoint and ascending. NULL if memory ran out. */
static struct function_table *new_table(function_range_vec *ranges)
{
	struct function_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->n = ranges->n;
	table->starts = malloc((ranges->n + 1) * sizeof(*table->starts));
	if (!table->starts) {
		free(table);
		return NULL;
	}
	for (size_t i = 0; i < ranges->n; i++)
		table->starts[i] = ranges->v[i].start;
	table->ranges = ranges->v;
	*ranges = (function_range_vec){0};
	return table;
}

struct function_range *function_table__find(const struct function_table *table, uint64_t vaddr)
{
	const uint64_t *base = table->starts;
	size_t n = table->n, i;

	if (!n || vaddr < base[0])
		return NULL;
	/* No branch that depends on the data: about as fast as the caches allow. */
	while (n > 1) {
		size_t half = n / 2;

		base = base[half] <= vaddr ? base + half : base;
		n -= half;
	}
	i = (size_t)(base - table->starts);
	return vaddr < table->ranges[i].end ? &table->ranges[i] : NULL;
}

ORDER(compare_ranges, struct function_range,
      COMPARE(x->start, y->start) ?: (int)x->entry->function.kind - (int)y->entry->function.kind)

/* Sorts, and drops what begins within another; of two at one address the symbol wins. */
static void make_disjoint(function_range_vec *ranges)
{
	size_t out = 0;

	VEC_SORT(ranges, compare_ranges);
	VEC_EACH(ranges, range)
		if (!out || range->start >= ranges->v[out - 1].end)
			ranges->v[out++] = *range;
	ranges->n = out;
}

static int add_ranges(function_range_vec *ranges, function_entry_vec *entries)
{
	uint64_t last = UINT64_MAX;

	for (size_t i = 0; i < entries->n; i++) {
		struct function *f = &entries->v[i].function;

		/* Aliases follow the one that speaks for the address. */
		if (f->vaddr == last)
			continue;
		last = f->vaddr;
		if (VEC_ADD(ranges,
			    (struct function_range){f->vaddr, f->vaddr + f->size, &entries->v[i]}))
			return -ENOMEM;
	}
	return 0;
}

static int build_known(struct elf_image *image)
{
	function_range_vec ranges = {0};
	struct function_table *table;
	int err = load_symbols(image);

	if (!err && !image->stubs.n)
		err = load_stubs(image);
	if (!err)
		err = add_ranges(&ranges, &image->symbols);
	if (!err)
		err = add_ranges(&ranges, &image->stubs);
	make_disjoint(&ranges);
	table = err ? NULL : new_table(&ranges);
	VEC_FINI(&ranges);
	if (!table)
		return -ENOMEM;
	err = resolve_cold(image, table);
	if (err)
		function_table__free(table);
	else
		__atomic_store_n(&image->known, table, __ATOMIC_RELEASE);
	return err;
}

static int add_unknown(struct elf_image *image, uint64_t start, uint64_t end)
{
	struct function_entry *entry;

	if (start >= end)
		return 0;
	entry = function_entry__add(&image->unknown, image, start, end - start, NULL);
	if (!entry)
		return -ENOMEM;
	entry->function.kind = FUNCTION_UNKNOWN;
	/* Linkers call the place where a program begins _start, with or without a symbol there. */
	if (image->entry && start == image->entry)
		function_entry__set_name(entry, "_start");
	if (image->main && start == image->main)
		function_entry__set_name(entry, "main");
	return 0;
}

/*
 * Splits a stretch without symbols into functions: one per FDE, and one for each rest between FDEs
 * and the borders of sections. *next is the first FDE that may matter.
 */
static int split(struct elf_image *image, const elf_frame_vec *frames, size_t *next, uint64_t start,
		 uint64_t end)
{
	int err = 0;

	while (!err && start < end) {
		uint64_t border = elf_image__section_end(image, start);

		if (border > end || border <= start)
			border = end;
		while (*next < frames->n && frames->v[*next].start < start)
			(*next)++;
		for (; !err && *next < frames->n && frames->v[*next].start < border; (*next)++) {
			struct elf_frame frame = frames->v[*next];

			/* Overlapping FDEs are damaged; the first one counts. */
			if (frame.start < start)
				continue;
			if (frame.end > border)
				frame.end = border;
			err = add_unknown(image, start, frame.start);
			if (!err)
				err = add_unknown(image, frame.start, frame.end);
			start = frame.end;
		}
		if (!err)
			err = add_unknown(image, start, border);
		start = border;
	}
	return err;
}

static int find_holes(struct elf_image *image, const elf_frame_vec *frames)
{
	const struct function_table *known = image->known;
	size_t r = 0, next = 0;
	int err = 0;

	for (size_t i = 0; !err && i < image->n_segments; i++) {
		uint64_t at = image->segments[i].vaddr, end = at + image->segments[i].size;

		for (; !err && r < known->n && known->ranges[r].start < end; r++) {
			err = split(image, frames, &next, at, known->ranges[r].start);
			at = known->ranges[r].end;
		}
		if (!err)
			err = split(image, frames, &next, at, end);
	}
	return err;
}

static int build_full(struct elf_image *image)
{
	elf_frame_vec frames = {0};
	function_range_vec ranges = {0};
	struct function_table *table = NULL;
	int err = elf_image__load_frames(image, &frames);

	if (!err)
		err = find_holes(image, &frames);
	VEC_FINI(&frames);
	for (size_t i = 0; !err && i < image->known->n; i++)
		err = VEC_ADD(&ranges, image->known->ranges[i]);
	if (!err)
		err = add_ranges(&ranges, &image->unknown);
	make_disjoint(&ranges);
	table = err ? NULL : new_table(&ranges);
	VEC_FINI(&ranges);
	if (!table) {
		VEC_FINI(&image->unknown);
		return -ENOMEM;
	}
	elf_image__resolve_pads(image, table);
	__atomic_store_n(&image->full, table, __ATOMIC_RELEASE);
	return 0;
}

/* The table of that kind, built at the first call. NULL: out of memory. */
static const struct function_table *
get_table(struct elf_image *image, struct function_table **which, int (*build)(struct elf_image *))
{
	struct function_table *table = __atomic_load_n(which, __ATOMIC_ACQUIRE);

	if (table)
		return table;
	pthread_mutex_lock(&image->lock);
	if (!*which)
		build(image);
	table = *which;
	pthread_mutex_unlock(&image->lock);
	return table;
}

const struct function *elf_image__function_at(struct elf_image *image, uint64_t vaddr)
{
	const struct function_table *table;
	struct function_range *range;

	if (image->named)
		return named_image__function_at(image->named, vaddr);
	table = get_table(image, &image->known, build_known);
	range = table ? function_table__find(table, vaddr) : NULL;

	if (!range) {
		if (!elf_image__segment(image, vaddr))
			return NULL;
		table = table ? get_table(image, &image->full, build_full) : NULL;
		range = table ? function_table__find(table, vaddr) : NULL;
	}
	return function_entry__named(range ? range->entry : &image->fallback);
}

const struct function *elf_image__part_at(struct elf_image *image, uint64_t vaddr, uint64_t *start,
					  uint64_t *end)
{
	const struct function_table *table =
		image->named ? NULL : get_table(image, &image->known, build_known);
	const struct function_range *range = table ? function_table__find(table, vaddr) : NULL;

	if (!range)
		return NULL;
	*start = range->start;
	*end = range->end;
	return function_entry__named(range->entry);
}

size_t elf_image__function_count(struct elf_image *image)
{
	return get_table(image, &image->known, build_known) ? image->symbols.n : 0;
}

const struct function *elf_image__function(struct elf_image *image, size_t index)
{
	return function_entry__named(&image->symbols.v[index]);
}

const char *elf_image__raw_name(const struct elf_image *image, size_t index)
{
	return image->symbols.v[index].function.raw_name;
}
