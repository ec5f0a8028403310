// SPDX-License-Identifier: MIT
#include "target/unwind/landing_pads.h"

#include <stdlib.h>

#include "target/elf/elf_internal.h"
#include "target/unwind/lsda.h"
#include "target/unwind/ocaml_handlers.h"
#include "util/insn.h"

/* Of a landing pad, up to a jump to where it goes on. */
#define PAD_INSNS 8

/* The functions that have landing pads, and the section with their tables. */
struct landing_table {
	elf_frame_vec frames; /* ascending */
	VEC(uint64_t) pads;   /* of all of them; ascending */
	const uint8_t *bytes;
	size_t len;
	uint64_t vaddr;
};

void landing_table__free(struct landing_table *table)
{
	if (!table)
		return;
	VEC_FINI(&table->frames);
	VEC_FINI(&table->pads);
	free(table);
}

/* Leaves those whose table lies in the section. */
static void keep_described(struct landing_table *table)
{
	size_t out = 0;

	for (size_t i = 0; i < table->frames.n; i++) {
		const struct elf_frame *frame = &table->frames.v[i];

		if (frame->lsda && frame->lsda - table->vaddr < table->len)
			table->frames.v[out++] = *frame;
	}
	table->frames.n = out;
}

static bool open_lsda(const struct landing_table *table, const struct elf_frame *frame,
		      struct lsda *lsda)
{
	struct eh_bytes bytes = {table->bytes + (frame->lsda - table->vaddr),
				 table->bytes + table->len, frame->lsda};

	return lsda__open(lsda, bytes, frame->start);
}

/* At most `limit` call sites of a function; how many there were. */
static size_t collect_pads(struct landing_table *table, const struct elf_frame *frame, size_t limit)
{
	struct call_site site;
	struct lsda lsda;
	uint64_t *slot;
	size_t n = 0;

	if (!open_lsda(table, frame, &lsda))
		return 0;
	for (; n < limit && lsda__next(&lsda, &site); n++) {
		slot = site.pad ? VEC_PUSH(&table->pads) : NULL;
		if (slot)
			*slot = site.pad;
	}
	return n;
}

static int compare_pads(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * A call site takes 4 bytes or more. Only in a damaged file do functions share their tables, so
 * that there would be more call sites than that.
 */
static void collect_all_pads(struct landing_table *table)
{
	size_t left = table->len / 4;

	for (size_t i = 0; i < table->frames.n && left; i++)
		left -= collect_pads(table, &table->frames.v[i], left);
	VEC_SORT(&table->pads, compare_pads);
}

/* NULL where memory ran out; empty where the image has none. */
static struct landing_table *build(struct elf_image *image)
{
	struct landing_table *table = calloc(1, sizeof(*table));
	GElf_Shdr shdr;
	const Elf_Data *data;

	if (!table)
		return NULL;
	data = elf_section__data(elf_image__section(image, ".gcc_except_table", &shdr), 1);
	if (!data)
		return table;
	table->bytes = data->d_buf;
	table->len = data->d_size;
	table->vaddr = shdr.sh_addr;
	if (elf_image__load_frames(image, &table->frames)) {
		landing_table__free(table);
		return NULL;
	}
	keep_described(table);
	collect_all_pads(table);
	return table;
}

static const struct landing_table *get_table(struct elf_image *image)
{
	struct landing_table *table = __atomic_load_n(&image->pads, __ATOMIC_ACQUIRE);

	if (table)
		return table;
	pthread_mutex_lock(&image->lock);
	if (!image->pads)
		__atomic_store_n(&image->pads, build(image), __ATOMIC_RELEASE);
	table = image->pads;
	pthread_mutex_unlock(&image->lock);
	return table;
}

/* A name that the program's beginning tells is its own, and so is a symbol. */
static bool is_nameless(const struct function_range *range)
{
	return range->entry->function.kind == FUNCTION_UNKNOWN && !range->entry->function.raw_name;
}

static bool is_within(const struct elf_frame *frame, uint64_t vaddr)
{
	return vaddr - frame->start < frame->end - frame->start;
}

/*
 * Where the code of a pad goes on in another part, at once or by a jump: it does nothing before
 * that but move what the unwinder has left in registers. 0: it does not.
 */
static uint64_t follow_pad(const struct elf_image *image, const struct elf_frame *frame,
			   uint64_t pad)
{
	struct insn insn = {.target = pad};
	size_t len, at = 0;
	const uint8_t *code;

	if (!is_within(frame, pad))
		return pad;
	code = elf_image__loaded_bytes(image, pad, &len);
	for (int i = 0; code && i < PAD_INSNS; i++, at += insn.len) {
		if (insn__decode(code + at, len - at, pad + at, &insn) ||
		    (insn.cls != INSN_OTHER && insn.cls != INSN_JUMP))
			return 0;
		if (insn.cls == INSN_JUMP)
			return is_within(frame, insn.target) ? 0 : insn.target;
	}
	return 0;
}

/* As many call sites of a function as it has, but for `limit`: their pads' code is its own. */
static size_t hand_over(const struct elf_image *image, const struct elf_frame *frame,
			struct function_table *full, size_t limit)
{
	const struct function_range *own = function_table__find(full, frame->start);
	struct call_site site;
	struct lsda lsda;
	size_t n = 0;

	if (!own || !open_lsda(image->pads, frame, &lsda))
		return 0;
	for (; n < limit && lsda__next(&lsda, &site); n++) {
		uint64_t at = site.pad ? follow_pad(image, frame, site.pad) : 0;
		struct function_range *apart = at ? function_table__find(full, at) : NULL;

		/* A jump to where a function begins may call it. */
		if (apart && (at == site.pad || at != apart->start) && is_nameless(apart))
			apart->entry = own->entry;
	}
	return n;
}

/*
 * Compilers put what an exception leads to into a function's cold part: the landing pad, or what it
 * jumps to, where its table can tell of one part only (gcc/except.cc:
 * fix_up_crossing_landing_pad()).
 */
void elf_image__resolve_pads(struct elf_image *image, struct function_table *full)
{
	struct landing_table *table = image->pads;
	size_t left;

	if (!table) {
		table = build(image);
		__atomic_store_n(&image->pads, table, __ATOMIC_RELEASE);
	}
	left = table ? table->len / 4 : 0;
	for (size_t i = 0; i < (table ? table->frames.n : 0) && left; i++)
		left -= hand_over(image, &table->frames.v[i], full, left);
}

static uint64_t find_in_lsda(struct elf_image *image, uint64_t vaddr)
{
	const struct landing_table *table = get_table(image);
	const struct elf_frame *frame = table ? elf_frames__find(&table->frames, vaddr) : NULL;
	struct call_site site;
	struct lsda lsda;

	if (!frame || !open_lsda(table, frame, &lsda))
		return 0;
	while (lsda__next(&lsda, &site))
		if (vaddr - site.start < site.end - site.start)
			return site.pad;
	return 0;
}

uint64_t landing_pads__find(struct elf_image *image, uint64_t vaddr)
{
	uint64_t pad = find_in_lsda(image, vaddr);

	return pad ? pad : ocaml_handlers__find(image, vaddr);
}

bool landing_pads__is_one(struct elf_image *image, uint64_t vaddr)
{
	const struct landing_table *table = get_table(image);

	if (table && table->pads.n &&
	    bsearch(&vaddr, table->pads.v, table->pads.n, sizeof(vaddr), compare_pads))
		return true;
	return ocaml_handlers__is_one(image, vaddr);
}
