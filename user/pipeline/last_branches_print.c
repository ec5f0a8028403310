// SPDX-License-Identifier: MIT
#include "pipeline/last_branches_print.h"

#include <errno.h>
#include <inttypes.h>

#include "target/code_map.h"

static void print_place(FILE *out, struct code_map *map, uint64_t ip)
{
	struct code_place place;

	if (code_map__find(map, ip, &place))
		fprintf(out, "%s+0x%" PRIx64, place.function->name, ip - place.entry);
	else
		fprintf(out, "%#" PRIx64, ip);
}

int last_branches__print(FILE *out, const struct mt_hit *hit, struct images *images)
{
	struct code_map *map = hit->n_branches ? code_map__new() : NULL;
	size_t next = 0;
	int err = 0;

	if (!hit->n_branches)
		return 0;
	err = map ? images__apply(images, (pid_t)hit->tgid, hit->time_ns, &next, map) : -ENOMEM;
	if (!err)
		fprintf(out, "the last branches before it (LBR), the newest first:\n");
	for (size_t i = 0; i < hit->n_branches && i < MT_BRANCHES_MAX && !err; i++) {
		fprintf(out, "  ");
		print_place(out, map, hit->branches[i].from);
		fprintf(out, " -> ");
		print_place(out, map, hit->branches[i].to);
		fputc('\n', out);
	}
	code_map__free(map);
	return err;
}
