// SPDX-License-Identifier: MIT
/*
 * Compilers move the unlikely half of foo away and call it "foo.cold", or "foo.cold.1". Two units
 * may each have a local foo: the STT_FILE symbol before them tells which cold part is whose.
 */
#include "target/elf/elf_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static int compare_parts(const void *a, const void *b)
{
	const struct cold_part *x = a, *y = b;

	return compare_names(x->name, x->len, y->name, y->len);
}

static int collect_parts(const struct function_table *table, cold_part_vec *parts)
{
	for (size_t i = 0; i < table->n; i++) {
		const char *name = table->ranges[i].entry->function.raw_name;
		size_t len = hot_length(name);
		struct cold_part *part = len ? VEC_PUSH(parts) : NULL;

		if (len && !part)
			return -ENOMEM;
		if (part)
			*part = (struct cold_part){&table->ranges[i], name, len, NULL};
	}
	VEC_SORT(parts, compare_parts);
	return 0;
}

/* The index of the first part whose hot name is not less than name. */
static size_t lower_bound(const cold_part_vec *parts, const char *name, size_t len)
{
	return VEC_PARTITION_POINT(parts, e, compare_names(e->name, e->len, name, len) < 0);
}

/* Offers a function to the cold parts that bear its name: a local one only in its own unit. */
static void offer(cold_part_vec *parts, struct function_entry *hot)
{
	const char *name = hot->function.raw_name;
	size_t len = strlen(name);

	for (size_t i = lower_bound(parts, name, len); i < parts->n; i++) {
		struct cold_part *part = &parts->v[i];

		if (compare_names(part->name, part->len, name, len))
			return;
		if (hot->unit == part->range->entry->unit || (!hot->unit && !part->hot))
			part->hot = hot;
	}
}

int elf_image__resolve_cold(struct elf_image *image, struct function_table *table)
{
	cold_part_vec parts = {0};
	int err = collect_parts(table, &parts);

	for (size_t i = 0; !err && parts.n && i < image->symbols.n; i++)
		offer(&parts, &image->symbols.v[i]);
	for (size_t i = 0; !err && i < parts.n; i++) {
		/* By address, so that cold and hot code get the same one of several aliases. */
		if (parts.v[i].hot)
			parts.v[i].range->entry =
				elf_image__symbol_at(image, parts.v[i].hot->function.vaddr);
	}
	VEC_FINI(&parts);
	return err;
}
