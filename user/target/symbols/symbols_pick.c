// SPDX-License-Identifier: MIT
/* Of several functions the user picks one, where there is a terminal. */
#include "target/symbols/symbols_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/log.h"
#include "cli/picker.h"

/* Of more functions than these nobody waits for the files and lines. */
#define SOURCES_MAX 20000

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "name+0x12  module  0x1234  file.c:12" */
static char *line_of(const struct symbol_match *match, bool with_source)
{
	char offset[32] = "", number[16] = "", *line;
	struct source_place place = {0};

	if (match->offset)
		snprintf(offset, sizeof(offset), "+0x%" PRIx64, match->offset);
	if (with_source && function__source(match->function, &place))
		snprintf(number, sizeof(number), ":%u", place.line);
	if (asprintf(&line, "%s%s  %s  0x%" PRIx64 "%s%s%s", match->function->name, offset,
		     module__name(match->module), match->function->vaddr + match->offset,
		     *number ? "  " : "", *number ? base_name(place.file) : "", number) < 0)
		return NULL;
	return line;
}

/* So that nobody need pick it again. */
static void say_picked(const struct symbol_match *match)
{
	char offset[32] = "";

	if (match->offset)
		snprintf(offset, sizeof(offset), "+0x%" PRIx64, match->offset);
	log__info("picked %s: -symbol '%s:0x%" PRIx64 "%s'", match->function->name,
		  module__name(match->module), match->function->vaddr, offset);
}

static int pick(const match_vec *found, char **lines, struct symbol_match *match)
{
	int picked;

	for (size_t i = 0; i < found->n; i++) {
		lines[i] = line_of(&found->v[i], found->n <= SOURCES_MAX);
		if (!lines[i])
			return -ENOMEM;
	}
	picked = picker__pick("function", (const char *const *)lines, found->n);
	if (picked < 0)
		return picked;
	*match = found->v[picked];
	say_picked(match);
	return 0;
}

bool symbols__can_pick(void)
{
	return log__level() != LOG_SILENT && picker__is_possible();
}

int symbols__pick(const match_vec *found, struct symbol_match *match)
{
	char **lines = calloc(found->n, sizeof(*lines));
	int err = lines ? pick(found, lines, match) : -ENOMEM;

	for (size_t i = 0; lines && i < found->n; i++)
		free(lines[i]);
	free(lines);
	if (err == -ECANCELED) {
		err = -EINVAL;
		log__error("no function was picked");
		log__hint("name one with -symbol NAME; 'mtbpf list' shows them");
	}
	return err;
}
