// SPDX-License-Identifier: MIT
#include "serve/deep_link.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/fxt_read.h"
#include "util/cleanup.h"
#include "util/meter.h"
#include "util/units.h"

/* Margin on both sides of the hit's slice: 1/MARGIN_SHARE of it, or MARGIN_NS without length. */
#define MARGIN_SHARE 8
#define MARGIN_NS    500000

static bool is_hit(const struct fxt_read *read)
{
	return read->kind == FXT_READ_EVENT && read->event == FXT_EVENT_COMPLETE &&
	       !strcmp(read->category, "hit") && read->end_ns >= read->time_ns;
}

static void look_at(struct sight *sight, const struct fxt_read *hit)
{
	const struct fxt_read_arg *tid = fxt_read__arg(hit, "tid");

	sight->found = true;
	sight->begin_ns = hit->time_ns;
	sight->end_ns = hit->end_ns;
	sight->tid = tid ? tid->number : 0;
	snprintf(sight->name, sizeof(sight->name), "%s", hit->name);
}

static int find(struct sight *sight, struct fxt_reader *reader)
{
	struct fxt_read read;
	int err;

	while ((err = fxt_reader__next(reader, &read)) == 1) {
		if (!is_hit(&read))
			continue;
		sight->n_hits++;
		if (!sight->found || read.end_ns - read.time_ns > sight->end_ns - sight->begin_ns)
			look_at(sight, &read);
	}
	return sight->found ? 0 : err;
}

int sight__find(struct sight *sight, int trace_fd)
{
	struct fxt_reader *reader = fxt_reader__open(trace_fd);
	struct meter meter;
	int err;

	*sight = (struct sight){0};
	if (!reader)
		return -errno;
	meter__begin_file(&meter, "reading", trace_fd);
	fxt_reader__count(reader, &meter);
	err = find(sight, reader);
	meter__end(&meter);
	fxt_reader__free(reader);
	return err;
}

static cJSON *add_command(cJSON *commands, const char *id)
{
	cJSON *command = cJSON_CreateObject(), *args;

	cJSON_AddItemToArray(commands, command);
	cJSON_AddStringToObject(command, "id", id);
	args = cJSON_AddArrayToObject(command, "args");
	return args;
}

static void add_string(cJSON *args, const char *text)
{
	cJSON_AddItemToArray(args, cJSON_CreateString(text));
}

/* Perfetto titles a thread's track with its name and its id. */
static void add_pin(cJSON *commands, const struct sight *sight)
{
	char regex[32];

	/* The hits' track is the last one of its process: pin it first. */
	add_string(add_command(commands, "dev.perfetto.PinTracksByRegex"), "^mtbpf hits ");
	snprintf(regex, sizeof(regex), " %" PRIu64 "$", sight->tid);
	add_string(add_command(commands, "dev.perfetto.PinTracksByRegex"), regex);
	add_string(add_command(commands, "dev.perfetto.ExpandTracksByRegex"), regex);
}

static void add_note(cJSON *commands, const struct sight *sight)
{
	cJSON *args = add_command(commands, "dev.perfetto.AddNoteAtTimestamp");
	char time[24], text[sizeof(sight->name) + 48], took[UNITS_TEXT_SIZE];

	snprintf(time, sizeof(time), "%" PRIu64, sight->end_ns);
	units__format_duration(took, sight->end_ns - sight->begin_ns);
	if (sight->end_ns > sight->begin_ns)
		snprintf(text, sizeof(text), "%s after %s", sight->name, took);
	else
		snprintf(text, sizeof(text), "%s", sight->name);
	add_string(args, time);
	add_string(args, text);
}

static char *commands_of(const struct sight *sight)
{
	cJSON *commands = cJSON_CreateArray();
	char *text;

	if (sight->tid)
		add_pin(commands, sight);
	add_note(commands, sight);
	text = cJSON_PrintUnformatted(commands);
	cJSON_Delete(commands);
	return text;
}

/* Characters that need no escape: RFC 3986, 2.3. */
static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~", c));
}

static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (is_unreserved(*text))
			fputc(*text, out);
		else
			fprintf(out, "%%%02X", (unsigned char)*text);
	}
}

static bool put_sight(FILE *out, const struct sight *sight)
{
	uint64_t margin_ns = (sight->end_ns - sight->begin_ns) / MARGIN_SHARE ?: MARGIN_NS;
	_cleanup_free_ char *commands = commands_of(sight);

	if (!commands)
		return false;
	fprintf(out, "&visStart=%" PRIu64 "&visEnd=%" PRIu64 "&startupCommands=",
		sight->begin_ns > margin_ns ? sight->begin_ns - margin_ns : 0,
		sight->end_ns + margin_ns);
	put_escaped(out, commands);
	return true;
}

char *deep_link(const char *ui, const char *url, const struct sight *sight)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool ok = true;

	if (!out)
		return NULL;
	fprintf(out, "%s#!/?url=", ui);
	put_escaped(out, url);
	if (sight->found)
		ok = put_sight(out, sight);
	if (fclose(out) || !ok) {
		free(text);
		return NULL;
	}
	return text;
}
