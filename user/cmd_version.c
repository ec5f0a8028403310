// SPDX-License-Identifier: MIT
/* version: versions of mtbpf, libraries and kernel, for bug reports. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/options.h"
#include "cmd.h"
#include "util/cleanup.h"
#include "version/version.h"

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

void print_version(void)
{
	version__print_title(stdout);
}

int cmd_version(int argc, char **argv)
{
	struct version_options options = {0};
	struct version version;
	_cleanup_free_ char *json = NULL;
	int rest, err = options__parse(&version_table, &options, argc, argv, &rest);

	if (err)
		return exit_code_for_options(err);
	if (rest < argc)
		return refuse_word(&version_table, argv[rest]);
	version__init(&version);
	if (!options.json) {
		version__print(&version, stdout);
		return EXIT_OK;
	}
	json = version__json(&version);
	if (json && puts(json) >= 0)
		return EXIT_OK;
	return exit_code_for(-ENOMEM);
}
