// SPDX-License-Identifier: MIT
/* The time of the slow iteration as a tree of functions by inclusive time. */
#include "util/units.h"
#include "view/report_internal.h"
#include "view/short_name.h"

/* Paths with less than 1/SHOWN_SHARE of the slow iteration are not shown. */
#define SHOWN_SHARE 10
/* A function with nearly all of its caller's time shares its line. */
#define CHAIN_PERCENT 95
#define LINES_MAX     12
/* Most names per line; the innermost are kept. */
#define NAMES_MAX 6

static const void *key_of(const struct call *call)
{
	return call->function ? (const void *)call->function : call__name(call);
}

uint32_t report__add_path(struct report *r, uint32_t parent, const struct call *call)
{
	const void *key = key_of(call);
	uint32_t *link = &r->paths.v[parent].first_child, index;
	struct path *path;

	while (*link && r->paths.v[*link].key != key)
		link = &r->paths.v[*link].next;
	index = *link;
	/* Moved to the front, so that loops find it at once. */
	if (index) {
		*link = r->paths.v[index].next;
		r->paths.v[index].next = r->paths.v[parent].first_child;
		r->paths.v[parent].first_child = index;
		return index;
	}
	index = (uint32_t)r->paths.n;
	path = VEC_PUSH(&r->paths);
	if (!path) {
		r->failed = true;
		return 0;
	}
	*path = (struct path){
		.key = key, .call = call, .parent = parent, .next = r->paths.v[parent].first_child};
	r->paths.v[parent].first_child = index;
	return index;
}

void report__sum_paths(struct report *r)
{
	/* A path comes after its caller's. */
	for (size_t i = r->paths.n; i-- > 1;) {
		const struct path *path = &r->paths.v[i];
		struct path *parent = &r->paths.v[path->parent];

		parent->slow_ns += path->slow_ns;
		parent->ordinary_ns += path->ordinary_ns;
		parent->slow_cpu_ns += path->slow_cpu_ns;
		parent->ordinary_cpu_ns += path->ordinary_cpu_ns;
	}
}

void report__print_path(FILE *out, const struct report *r, uint32_t path)
{
	const char *names[NAMES_MAX];
	char name[SHORT_NAME_SIZE];
	size_t n = 0;

	for (; path && n < NAMES_MAX; path = r->paths.v[path].parent)
		names[n++] = call__name(r->paths.v[path].call);
	while (n-- > 0)
		fprintf(out, "%s%s", short_name(name, names[n]), n ? " > " : "");
}

/* The next child by size after `last`; of the same size, by index; 0: none. */
static uint32_t next_child(const struct report *r, uint32_t parent, uint32_t last)
{
	const struct path *paths = r->paths.v;
	uint32_t found = 0;

	for (uint32_t i = paths[parent].first_child; i; i = paths[i].next) {
		bool is_behind = !last || paths[i].slow_ns < paths[last].slow_ns ||
				 (paths[i].slow_ns == paths[last].slow_ns && i > last);

		if (is_behind && (!found || paths[i].slow_ns > paths[found].slow_ns ||
				  (paths[i].slow_ns == paths[found].slow_ns && i < found)))
			found = i;
	}
	return found;
}

static void print_line(FILE *out, const struct report *r, uint32_t first, uint32_t last,
		       uint32_t depth)
{
	char slow[UNITS_TEXT_SIZE], usual[UNITS_TEXT_SIZE], name[SHORT_NAME_SIZE];
	uint32_t chain[NAMES_MAX];
	size_t n = 0;

	fprintf(out, "  %10s ", units__format_duration(slow, r->paths.v[first].slow_ns));
	if (r->periods.n > 1)
		fprintf(out, "%10s ",
			units__format_duration(usual,
					       report__mean(r, r->paths.v[first].ordinary_ns)));
	fprintf(out, " %*s", (int)(2 * depth), "");
	for (uint32_t i = last; n < NAMES_MAX; i = r->paths.v[i].parent) {
		chain[n++] = i;
		if (i == first)
			break;
	}
	if (chain[n - 1] != first)
		fprintf(out, "... > ");
	while (n-- > 0)
		fprintf(out, "%s%s", short_name(name, call__name(r->paths.v[chain[n]].call)),
			n ? " > " : "");
	fputc('\n', out);
}

static bool is_shown(const struct report *r, uint32_t path)
{
	return path && r->paths.v[path].slow_ns >= report__slow_ns(r) / SHOWN_SHARE;
}

/* Follows the largest child while it has nearly all of the path's time. */
static uint32_t end_of_chain(const struct report *r, uint32_t path)
{
	uint32_t child = next_child(r, path, 0);

	while (child &&
	       r->paths.v[child].slow_ns * 100 >= r->paths.v[path].slow_ns * CHAIN_PERCENT) {
		path = child;
		child = next_child(r, path, 0);
	}
	return path;
}

void report__print_paths(FILE *out, const struct report *r)
{
	/* Lines with callees left to show, and the callee shown last. */
	struct {
		uint32_t end, shown;
	} open[LINES_MAX + 1] = {{0, 0}};
	uint32_t n = 1;

	if (!is_shown(r, next_child(r, 0, 0)))
		return;
	fprintf(out, "  %10s ", "inclusive");
	if (r->periods.n > 1)
		fprintf(out, "%10s ", "ordinary");
	fprintf(out, " path\n");
	for (int lines = 0; n && lines < LINES_MAX;) {
		uint32_t child = next_child(r, open[n - 1].end, open[n - 1].shown), end;

		if (!is_shown(r, child)) {
			n--;
			continue;
		}
		open[n - 1].shown = child;
		end = end_of_chain(r, child);
		print_line(out, r, child, end, n - 1);
		lines++;
		open[n].end = end;
		open[n++].shown = 0;
	}
}
