// SPDX-License-Identifier: MIT
/*
 * Copies a template from stdin to stdout. A line "@PART@" or "@PART COMMAND@" in it becomes what
 * the option tables say.
 */
#include "manual/manual.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "util/cleanup.h"
#include "util/log.h"

static const struct part {
	const char *name;
	void (*write)(FILE *out, const struct command *command);
	bool of_command; /* without one there is none */
} parts[] = {
	{"title", man__title, false},	    {"name", man__name, true},
	{"synopsis", man__synopsis, true},  {"options", man__options, true},
	{"examples", man__examples, true},  {"see-also", man__see_also, false},
	{"commands", man__commands, false}, {"bash-tables", bash__tables, false},
	{"zsh-tables", zsh__tables, false}, {"fish-tables", fish__tables, false},
};

static const struct part *find_part(const char *name)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strcmp(parts[i].name, name))
			return &parts[i];
	return NULL;
}

/* The line without its newline and its second "@"; its first word ends where the other begins. */
static int write_part(char *line, FILE *out)
{
	char *name = strtok(line, "@ "), *of = strtok(NULL, "@ ");
	const struct part *part = name ? find_part(name) : NULL;
	const struct command *command = of ? command__find(of) : NULL;

	if (!part || (of ? !command || !command->options : part->of_command))
		return -1;
	part->write(out, command);
	return 0;
}

static bool is_part(const char *line, size_t len)
{
	return len > 2 && line[0] == '@' && line[len - 1] == '@';
}

int main(void)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	ssize_t len;

	for (int n = 1; (len = getline(&line, &size, stdin)) > 0; n++) {
		if (line[len - 1] == '\n')
			line[--len] = '\0';
		if (!is_part(line, (size_t)len)) {
			puts(line);
		} else if (write_part(line, stdout)) {
			log__error("line %d of the template: there is no such part", n);
			return EXIT_FAILED;
		}
	}
	return fflush(stdout) || ferror(stdout) ? EXIT_FAILED : EXIT_OK;
}
