// SPDX-License-Identifier: MIT
/* version: what a report of a bug begins with. */
#include <cjson/cJSON.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check/check.h"
#include "cmd.h"
#include "cmd_table.h"
#include "commit.h"
#include "decode/decode.h"
#include "serve/show.h"
#include "serve/trace_server.h"
#include "target/elf/elf_image.h"
#include "trace/sink/codec.h"
#include "trigger/trigger.h"
#include "util/cleanup.h"
#include "util/insn.h"
#include "util/log.h"
#include "util/options.h"

struct version_options {
	bool json;
};

static const struct option_spec specs[] = {
	{"json", NULL, 0, OPT_FLAG, NULL, "an object: version, commit, libraries, features",
	 offsetof(struct version_options, json), NULL},
};

const struct option_table version_table = {
	.command = "version",
	.examples = (const char *const[]){"mtbpf version", "mtbpf version -json | jq .libraries",
					  "mtbpf -version", NULL},
	.usage = "version [-json]",
	.summary = "The version, the libraries that it runs with, and what it finds here.\n"
		   "'mtbpf -version' is the first line alone.",
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

/* A line: what it is called, and what there is to say; there: whether it is there. */
struct row {
	const char *name;
	char text[PATH_MAX];
	bool there;
};

#define N_LIBRARIES 8
#define N_FEATURES  6

static struct row *add_row(struct row **next, const char *name, const char *text)
{
	struct row *row = (*next)++;

	row->name = name;
	row->there = text;
	snprintf(row->text, sizeof(row->text), "%s", text ? text : "none");
	return row;
}

static void list_libraries(struct row *next)
{
	const char *libbpf = trigger__library_version();
	char text[32];

	add_row(&next, "libbpf", libbpf + (*libbpf == 'v'));
	decode__library_version(text, sizeof(text));
	add_row(&next, "libipt", text);
	add_row(&next, "elfutils", elf_image__library_version());
	insn__library_version(text, sizeof(text));
	add_row(&next, "Zydis", text);
	add_row(&next, "cJSON", cJSON_Version());
	add_row(&next, "libmicrohttpd", trace_server__library_version());
	add_row(&next, "zlib", codec__zlib_version());
	add_row(&next, "zstd", codec__zstd_version());
}

static void add_check(struct row **next, const char *name)
{
	struct check_result result;

	if (!check__one(name, &result))
		return;
	add_row(next, name, result.reason)->there = result.state == CHECK_OK;
}

/* Beside the program as it was built, or where make install puts it; NULL: in neither place. */
static const char *find_dlfilter(char path[static PATH_MAX])
{
	static const char *const places[] = {"mtbpf-dlfilter.so", "../lib/mtbpf/mtbpf-dlfilter.so"};
	char exe[PATH_MAX], place[PATH_MAX + 64];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe));

	while (len > 0 && exe[len - 1] != '/')
		len--;
	for (size_t i = 0; len > 0 && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(place, sizeof(place), "%.*s%s", (int)len, exe, places[i]);
		if (realpath(place, path))
			return path;
	}
	return NULL;
}

static void list_features(struct row *next)
{
	char path[PATH_MAX];

	add_check(&next, "kernel");
	add_check(&next, "btf");
	add_check(&next, "intel_pt");
	add_row(&next, "dlfilter", find_dlfilter(path));
	add_row(&next, "perfetto_ui", show__ui_folder());
	add_check(&next, "fzf");
}

static void print_rows(const struct row *rows, size_t n)
{
	putchar('\n');
	for (size_t i = 0; i < n; i++)
		printf("%-13s  %s\n", rows[i].name, rows[i].text);
}

void print_version(void)
{
	printf("mtbpf " MTBPF_VERSION "%s%s%s\n", *MTBPF_COMMIT ? " (commit " : "", MTBPF_COMMIT,
	       *MTBPF_COMMIT ? ")" : "");
}

/* What is not there is null. */
static void add_rows(cJSON *parent, const char *name, const struct row *rows, size_t n)
{
	cJSON *object = cJSON_AddObjectToObject(parent, name);

	for (size_t i = 0; i < n; i++) {
		if (rows[i].there)
			cJSON_AddStringToObject(object, rows[i].name, rows[i].text);
		else
			cJSON_AddNullToObject(object, rows[i].name);
	}
}

static int print_json(const struct row *libraries, const struct row *features)
{
	cJSON *object = cJSON_CreateObject();
	_cleanup_free_ char *text = NULL;

	cJSON_AddStringToObject(object, "version", MTBPF_VERSION);
	if (*MTBPF_COMMIT)
		cJSON_AddStringToObject(object, "commit", MTBPF_COMMIT);
	else
		cJSON_AddNullToObject(object, "commit");
	add_rows(object, "libraries", libraries, N_LIBRARIES);
	add_rows(object, "features", features, N_FEATURES);
	text = cJSON_Print(object);
	cJSON_Delete(object);
	return text && puts(text) >= 0 ? EXIT_OK : EXIT_FAILED;
}

int cmd_version(int argc, char **argv)
{
	struct version_options options = {0};
	struct row libraries[N_LIBRARIES], features[N_FEATURES];
	int rest, err = options__parse(&version_table, &options, argc, argv, &rest);

	if (err)
		return exit_code_for_options(err);
	if (rest < argc)
		return refuse_word(&version_table, argv[rest]);
	list_libraries(libraries);
	list_features(features);
	if (options.json)
		return print_json(libraries, features);
	print_version();
	print_rows(libraries, N_LIBRARIES);
	print_rows(features, N_FEATURES);
	return EXIT_OK;
}
