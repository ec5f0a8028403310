// SPDX-License-Identifier: MIT
#include "view/closing.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/units.h"

/* What no shell sees anything in. */
#define PLAIN                                                                                      \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"                                     \
	"0123456789_./:=@%+,-"

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
	char text[256] = "", duration[UNITS_TEXT_SIZE];
	uint64_t total_ns = 0;

	for (size_t i = 0, at = 0; i < phases->n && at < sizeof(text); i++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s %s", i ? ", " : "",
				       phases->v[i].name,
				       units__format_duration(duration, phases->v[i].ns));
		total_ns += phases->v[i].ns;
	}
	log__info("took %s: %s", units__format_duration(duration, total_ns), text);
}

static void put_word(FILE *out, const char *word)
{
	if (*word && !word[strspn(word, PLAIN)]) {
		fputs(word, out);
		return;
	}
	fputc('\'', out);
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", out);
		else
			fputc(*word, out);
	}
	fputc('\'', out);
}

/* What it makes is root's then. */
static bool is_by_sudo(void)
{
	return !geteuid() && getenv("SUDO_UID");
}

void next_step__say(const char *command, const char *file)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	if (is_by_sudo())
		fputs("sudo ", out);
	put_word(out, program_invocation_name);
	fprintf(out, " %s ", command);
	put_word(out, file);
	if (!fclose(out))
		log__info("next: %s", text);
}
