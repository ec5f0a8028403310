// SPDX-License-Identifier: MIT
/* version: versions of mtbpf, libraries and kernel, for bug reports. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/options.h"
#include "check/check.h"
#include "cmd.h"
#include "commit.h"
#include "decode/decode.h"
#include "http/http.h"
#include "serve/show.h"
#include "target/elf/elf_image.h"
#include "trace/codec.h"
#include "trigger/trigger.h"
#include "util/cleanup.h"
#include "util/insn.h"
#include "util/json.h"

/* The most rows of a kind. */
#define VERSION_ROWS 8

struct version_row {
	const char *name; /* static */
	char text[PATH_MAX];
	bool there;
};

static void add_row(struct version_row **next, const char *name, const char *text)
{
	struct version_row *row = (*next)++;

	row->name = name;
	row->there = text;
	snprintf(row->text, sizeof(row->text), "%s", text ? text : "none");
}

/* Asks the libraries for their versions. Returns the number of rows. */
static size_t list_libraries(struct version_row *rows)
{
	struct version_row *next = rows;
	const char *libbpf = trigger__library_version();
	char text[32];

	add_row(&next, "libbpf", libbpf + (*libbpf == 'v'));
	decode__library_version(text, sizeof(text));
	add_row(&next, "libipt", text);
	add_row(&next, "elfutils", elf_image__library_version());
	insn__library_version(text, sizeof(text));
	add_row(&next, "Zydis", text);
	add_row(&next, "cJSON", cJSON_Version());
	add_row(&next, "libmicrohttpd", http_server__library_version());
	add_row(&next, "zlib", codec__zlib_version());
	add_row(&next, "zstd", codec__zstd_version());
	return (size_t)(next - rows);
}

/* Tries the features. Returns the number of rows. */
static size_t list_features(struct version_row *rows)
{
	static const char *const checks[] = {"kernel", "btf", "intel_pt", NULL, "fzf"};
	struct version_row *next = rows;
	struct check_result result;

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		if (!checks[i]) {
			add_row(&next, "perfetto_ui", show__ui_folder());
		} else if (check__one(checks[i], &result)) {
			add_row(&next, checks[i], result.reason);
			next[-1].there = result.state == CHECK_OK;
		}
	}
	return (size_t)(next - rows);
}

void print_version(void)
{
	printf("mtbpf " MTBPF_VERSION "%s%s%s\n", *MTBPF_COMMIT ? " (commit " : "", MTBPF_COMMIT,
	       *MTBPF_COMMIT ? ")" : "");
}

static void print_rows(const struct version_row *rows, size_t n)
{
	putchar('\n');
	for (size_t i = 0; i < n; i++)
		printf("%-13s  %s\n", rows[i].name, rows[i].text);
}

static void add_rows(cJSON *parent, const char *name, const struct version_row *rows, size_t n)
{
	cJSON *object = cJSON_AddObjectToObject(parent, name);

	for (size_t i = 0; i < n; i++)
		json__add_text_or_null(object, rows[i].name, rows[i].there ? rows[i].text : NULL);
}

struct version_options {
	bool json;
};

static const struct option_spec specs[] = {
	{"json", NULL, 0, OPT_FLAG, NULL,
	 "print a JSON object: version, commit, libraries, features",
	 offsetof(struct version_options, json), NULL},
};

const struct option_table version_table = {
	.command = "version",
	.examples = (const char *const[]){"mtbpf version", "mtbpf version -json | jq .libraries",
					  "mtbpf -version", NULL},
	.usage = "version [-json]",
	.summary = "Prints the version, the libraries that it runs with, and the features found "
		   "here.\n'mtbpf -version' prints only the first line.",
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

int cmd_version(int argc, char **argv)
{
	struct version_row libraries[VERSION_ROWS], features[VERSION_ROWS];
	struct version_options options = {0};
	_cleanup_free_ char *json = NULL;
	size_t n_libraries, n_features;
	cJSON *object;
	int rest, err = options__parse(&version_table, &options, argc, argv, &rest);

	if (err)
		return exit_code_for_options(err);
	if (rest < argc)
		return refuse_word(&version_table, argv[rest]);
	n_libraries = list_libraries(libraries);
	n_features = list_features(features);
	if (!options.json) {
		print_version();
		print_rows(libraries, n_libraries);
		print_rows(features, n_features);
		return EXIT_OK;
	}
	/* Missing values are null. */
	object = cJSON_CreateObject();
	json__add_text(object, "version", MTBPF_VERSION);
	json__add_text_or_null(object, "commit", *MTBPF_COMMIT ? MTBPF_COMMIT : NULL);
	add_rows(object, "libraries", libraries, n_libraries);
	add_rows(object, "features", features, n_features);
	json = json__finish(object);
	if (json && puts(json) >= 0)
		return EXIT_OK;
	return exit_code_for(-ENOMEM);
}
