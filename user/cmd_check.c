// SPDX-License-Identifier: MIT
/* check: what this machine can do, one line per need. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

#include "check/check.h"
#include "cmd.h"
#include "util/cleanup.h"
#include "cli/options.h"

struct check_options {
	bool json;
};

static const struct option_spec specs[] = {
	{"json", NULL, 0, OPT_FLAG, NULL,
	 "print a JSON array of objects: name, state, reason, remedy, needed, facts",
	 offsetof(struct check_options, json), NULL},
};

const struct option_table check_table = {
	.command = "check",
	.examples = (const char *const[]){"mtbpf check", "sudo mtbpf check",
					  "sudo mtbpf check -json", NULL},
	.usage = "check [-json]",
	.summary = "Tests each requirement and prints one line for it, with a remedy if it is "
		   "missing.\nAll tests use mtbpf's own process; no other process is "
		   "touched.\nWithout Intel PT, attach uses samples, and its line says "
		   "\"limited\".\nStatus 0 if attach "
		   "would work with Intel PT, 1 if not.",
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

int cmd_check(int argc, char **argv)
{
	struct check_options options = {0};
	_cleanup_free_ char *text = NULL;
	struct check_report *report;
	int rest, err = options__parse(&check_table, &options, argc, argv, &rest);
	bool good;

	if (err)
		return exit_code_for_options(err);
	if (rest < argc)
		return refuse_word(&check_table, argv[rest]);
	report = check_report__new();
	if (!report)
		return exit_code_for(-ENOMEM);
	if (options.json) {
		text = check_report__json(report);
		err = text && puts(text) >= 0 ? 0 : -ENOMEM;
	} else {
		check_report__print(report, stdout);
		for (size_t i = 0; i < report->n; i++)
			if (!strcmp(report->results[i].name, "intel_pt") &&
			    report->results[i].state != CHECK_MISSING)
				puts("next: 'mtbpf selftest' checks whether traces are right on "
				     "this machine");
	}
	good = check_report__good(report);
	check_report__free(report);
	if (err)
		return exit_code_for(err);
	return good ? EXIT_OK : EXIT_FAILED;
}
