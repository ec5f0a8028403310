// SPDX-License-Identifier: MIT
/* Of several functions the user picks one, where there is a terminal. */
#include "target/symbols/symbols_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/log.h"
#include "cli/picker.h"

/* "name+0x12  module  0x1234" */
static char *line_of(const struct symbol_match *match)
{
	char offset[32] = "", *line;

	if (match->offset)
		snprintf(offset, sizeof(offset), "+0x%" PRIx64, match->offset);
	if (asprintf(&line, "%s%s  %s  0x%" PRIx64, match->function->name, offset,
		     module__name(match->module), match->function->vaddr + match->offset) < 0)
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
		lines[i] = line_of(&found->v[i]);
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
	if (err == -ECANCELED)
		log__error("no function was picked");
	return err;
}
