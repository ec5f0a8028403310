// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/units.h"
#include "view/report_internal.h"
#include "view/short_name.h"

/* A function in two reports, matched by its name. */
struct pair {
	const struct row *a, *b; /* NULL: not in that report */
	int64_t more_ns;	 /* b minus a */
};

struct pairs {
	VEC(struct pair) pairs;
};

static int compare_rows(const struct row *x, const struct row *y)
{
	int order = strcmp(x->name, y->name);

	if (!order)
		order = strcmp(x->suffix, y->suffix);
	if (order || (!x->inside && !y->inside))
		return order;
	if (!x->inside || !y->inside)
		return x->inside ? 1 : -1;
	return strcmp(x->inside->name, y->inside->name);
}

static int by_name(const void *a, const void *b)
{
	return compare_rows(*(const struct row *const *)a, *(const struct row *const *)b);
}

/* Rows sorted by name; the caller frees them. NULL: out of memory. */
static const struct row **sorted(const struct report *r)
{
	const struct row **rows = calloc(r->rows.n + 1, sizeof(const struct row *));

	for (size_t i = 0; rows && i < r->rows.n; i++)
		rows[i] = &r->rows.v[i];
	if (rows)
		qsort(rows, r->rows.n, sizeof(*rows), by_name);
	return rows;
}

static int add_pair(struct pairs *pairs, const struct row *a, const struct row *b)
{
	struct pair *pair = VEC_PUSH(&pairs->pairs);

	if (!pair)
		return -ENOMEM;
	*pair = (struct pair){a, b, (int64_t)((b ? b->slow_ns : 0) - (a ? a->slow_ns : 0))};
	return 0;
}

/* Matches two sorted arrays that end in NULL. */
static int match(struct pairs *pairs, const struct row **a, const struct row **b)
{
	int err = 0;

	while ((*a || *b) && !err) {
		int order = !*a ? 1 : !*b ? -1 : compare_rows(*a, *b);

		err = add_pair(pairs, order <= 0 ? *a : NULL, order >= 0 ? *b : NULL);
		a += order <= 0;
		b += order >= 0;
	}
	return err;
}

static const struct row *row_of(const struct pair *pair)
{
	return pair->b ? pair->b : pair->a;
}

static int by_size(const void *a, const void *b)
{
	int64_t x = llabs(((const struct pair *)a)->more_ns);
	int64_t y = llabs(((const struct pair *)b)->more_ns);

	return x < y ? 1 : x > y ? -1 : compare_rows(row_of(a), row_of(b));
}

static void print_pair(FILE *out, const struct pair *pair)
{
	char more[UNITS_TEXT_SIZE], a[UNITS_TEXT_SIZE], b[UNITS_TEXT_SIZE],
		sign[UNITS_TEXT_SIZE + 1];

	snprintf(sign, sizeof(sign), "%c%s", pair->more_ns < 0 ? '-' : '+',
		 units__format_duration(more, (uint64_t)llabs(pair->more_ns)));
	fprintf(out, "  %11s %10s %10s  ", sign,
		units__format_duration(a, pair->a ? pair->a->slow_ns : 0),
		units__format_duration(b, pair->b ? pair->b->slow_ns : 0));
	report__print_name(out, row_of(pair));
	fputc('\n', out);
}

static void print_head(FILE *out, const char *which, const struct report *r)
{
	char slow[UNITS_TEXT_SIZE], ordinary[UNITS_TEXT_SIZE], name[SHORT_NAME_SIZE];

	fprintf(out, "%s: the slow iteration of %s", which,
		short_name(name, hit_mark__name(&r->hit)));
	report__print_which(out, r);
	fprintf(out, " took %s",
		units__format_duration(slow, report__slow(r)->end_ns - report__slow(r)->start_ns));
	if (r->periods.n > 1)
		fprintf(out, ", an ordinary one %s",
			units__format_duration(ordinary, r->ordinary_ns));
	fputc('\n', out);
}

static void print_pairs(FILE *out, const struct pairs *pairs, size_t top)
{
	fprintf(out, "  %11s %10s %10s  self time in the slow iteration of\n", "B - A", "A", "B");
	for (size_t i = 0; i < pairs->pairs.n && i < top && pairs->pairs.v[i].more_ns; i++)
		print_pair(out, &pairs->pairs.v[i]);
	if (!pairs->pairs.n || !pairs->pairs.v[0].more_ns)
		fprintf(out, "  no function took longer in the one than in the other\n");
}

int report__print_difference(FILE *out, const struct report *a, const struct report *b, size_t top)
{
	const struct row **of_a = sorted(a), **of_b = sorted(b);
	struct pairs pairs = {0};
	int err = of_a && of_b ? match(&pairs, of_a, of_b) : -ENOMEM;

	if (!err) {
		VEC_SORT(&pairs.pairs, by_size);
		print_head(out, "A", a);
		print_head(out, "B", b);
		print_pairs(out, &pairs, top);
	}
	VEC_FINI(&pairs.pairs);
	free(of_a);
	free(of_b);
	return err;
}
