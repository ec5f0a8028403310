// SPDX-License-Identifier: MIT
#include "target/landing_pads.h"

#include <stdlib.h>
#include <string.h>

#include "target/elf_internal.h"
#include "target/lsda.h"

/* The functions that have landing pads, and the section with their tables. */
struct landing_table {
	elf_frame_vec frames; /* ascending */
	const uint8_t *bytes;
	size_t len;
	uint64_t vaddr;
};

void landing_table__free(struct landing_table *table)
{
	if (!table)
		return;
	VEC_FINI(&table->frames);
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

/* The last that begins at or before vaddr, if it reaches so far. */
static const struct elf_frame *find_frame(const struct landing_table *table, uint64_t vaddr)
{
	size_t lo = 0, hi = table->frames.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (table->frames.v[mid].start <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && vaddr < table->frames.v[lo - 1].end ? &table->frames.v[lo - 1] : NULL;
}

uint64_t landing_pads__find(struct elf_image *image, uint64_t vaddr)
{
	const struct landing_table *table = get_table(image);
	const struct elf_frame *frame = table ? find_frame(table, vaddr) : NULL;
	struct eh_bytes bytes;

	if (!frame)
		return 0;
	bytes.at = table->bytes + (frame->lsda - table->vaddr);
	bytes.end = table->bytes + table->len;
	bytes.vaddr = frame->lsda;
	return lsda__find(bytes, frame->start, vaddr);
}
