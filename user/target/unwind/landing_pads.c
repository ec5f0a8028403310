// SPDX-License-Identifier: MIT
#include "target/unwind/landing_pads.h"

#include <stdlib.h>

#include "target/elf/elf_internal.h"
#include "target/unwind/lsda.h"
#include "target/unwind/ocaml_handlers.h"

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
	if (table->pads.n)
		qsort(table->pads.v, table->pads.n, sizeof(*table->pads.v), compare_pads);
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
