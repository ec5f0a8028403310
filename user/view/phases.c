// SPDX-License-Identifier: MIT
#include "view/phases.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/names.h"
#include "util/log.h"
#include "util/text.h"
#include "util/units.h"

void phases__begin(struct phases *phases)
{
	*phases = (struct phases){.began_ns = clock__now_ns()};
}

void phases__end(struct phases *phases, const char *name)
{
	uint64_t now_ns = clock__now_ns();

	if (phases->n == PHASES_MAX)
		return;
	phases->v[phases->n].name = name;
	phases->v[phases->n++].ns = now_ns - phases->began_ns;
	phases->began_ns = now_ns;
}

void phases__say(const struct phases *phases)
{
	char text[256] = "";
	uint64_t total_ns = 0;

	for (size_t i = 0, at = 0; i < phases->n && at < sizeof(text); i++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s %s", i ? ", " : "",
				       phases->v[i].name, DURATION(phases->v[i].ns));
		total_ns += phases->v[i].ns;
	}
	log__info("took %s: %s", DURATION(total_ns), text);
}

static void print_command(FILE *out, const char *command, const char *file, const char *output)
{
	/* Under sudo, root owns the files. */
	if (!geteuid() && getenv("SUDO_UID"))
		fputs("sudo ", out);
	shell__print_word(out, program_invocation_name);
	fprintf(out, " %s ", command);
	shell__print_word(out, file);
	if (output) {
		fputs(" -o ", out);
		shell__print_word(out, output);
	}
}

/* The command quoted for a shell; under sudo it starts with sudo, since root owns the file. */
static char *format_command(const char *command, const char *file, const char *output)
{
	return TEXT_OF(out, print_command(out, command, file, output));
}

void next_step__say(const char *command, const char *file)
{
	_cleanup_free_ char *text = format_command(command, file, NULL);

	if (text)
		log__info("next: %s", text);
}

/* A signal handler writes this text, so names are cleaned for the terminal here. */
char *stopped__format(const char *recording, const char *output)
{
	_cleanup_free_ char *next = recording ? format_command("decode", recording, output) : NULL;
	_cleanup_free_ char *file = strdup(output);
	char *text = NULL;
	int n;

	if (!file)
		return NULL;
	label__clean_in_place(file);
	if (next) {
		label__clean_in_place(next);
		n = asprintf(&text,
			     "stopped: %s is not written; the recording is whole\nnext: %s\n", file,
			     next);
	} else {
		n = asprintf(&text, "stopped: %s is not written\n", file);
	}
	return n < 0 ? NULL : text;
}
