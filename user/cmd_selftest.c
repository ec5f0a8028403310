// SPDX-License-Identifier: MIT
/* selftest: tests on this machine that traces are right, with mtbpf's own programs. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "cmd.h"
#include "selftest/selftest.h"
#include "util/log.h"

struct selftest_command {
	struct option_list sources, only;
	const char *keep, *bundle, *replay;
	bool json;
};

static const struct option_spec specs[] = {
	{"source", NULL, 0, OPT_LIST, "SOURCE",
	 "pt, sample or soft; may be given several times (default: all that work here)",
	 offsetof(struct selftest_command, sources), NULL},
	{"only", NULL, 0, OPT_LIST, "CHECK",
	 "only this check, or the checks of this recording (-keep shows the names of recordings): "
	 "longjmp, pt-pause, sample-fp, ...; may be given several times",
	 offsetof(struct selftest_command, only), NULL},
	{"keep", NULL, 0, OPT_STRING, "DIR", "keep the recordings in this folder",
	 offsetof(struct selftest_command, keep), NULL},
	{"bundle", NULL, 0, OPT_STRING, "FILE.tar.zst",
	 "write the recordings, the results and facts about CPU and kernel to a file for a bug "
	 "report",
	 offsetof(struct selftest_command, bundle), NULL},
	{"replay", NULL, 0, OPT_STRING, "FILE.tar.zst",
	 "judge the recordings of a bundle, which may come from another machine",
	 offsetof(struct selftest_command, replay), NULL},
	{"json", NULL, 0, OPT_FLAG, NULL,
	 "print a JSON array of objects: source, name, verdict, found, loss, meanwhile",
	 offsetof(struct selftest_command, json), NULL},
};

const struct option_table selftest_table = {
	.command = "selftest",
	.examples = (const char *const[]){"sudo mtbpf selftest", "sudo mtbpf selftest -source pt",
					  "sudo mtbpf selftest -bundle selftest.tar.zst",
					  "mtbpf selftest -replay selftest.tar.zst", NULL},
	.usage =
		"selftest [-source SOURCE]... [-only CHECK]... [-keep DIR] [-bundle FILE | -replay "
		"FILE] [-json]",
	.summary = "Records its own test programs, whose calls and times are known exactly, "
		   "and\ncompares the decoded traces with them: one line per check. Only its own "
		   "child\nprocesses are touched. Status 0 if no check failed, 1 if one did or "
		   "none was "
		   "made.",
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

static bool choose(struct selftest_options *options, const char *word)
{
	for (int i = 0; selftest_source_names[i]; i++)
		if (!strcmp(selftest_source_names[i], word))
			return options->sources[i] = true;
	log__error("-source: '%s' is not pt, sample or soft", word);
	log__hint("without -source all sources that work here are tested");
	return false;
}

static int run(const struct selftest_options *options, bool json)
{
	unsigned int n[SELFTEST_VERDICTS];
	int err = selftest__run(options, json, n);

	if (err)
		return exit_code_for(err);
	if (!n[SELFTEST_PASSED] && !n[SELFTEST_FAILED] && options->n_only) {
		log__error("nothing was tested: -only leaves out every check that works here");
		log__hint("without -only, selftest prints the names of the checks that work here");
		return EXIT_FAILED;
	}
	if (!n[SELFTEST_PASSED] && !n[SELFTEST_FAILED]) {
		log__error("nothing was tested");
		log__hint(options->replay ? "the bundle contains no recording of these sources"
					  : "'mtbpf check' says what is missing for each source");
		return EXIT_FAILED;
	}
	return n[SELFTEST_FAILED] ? EXIT_FAILED : EXIT_OK;
}

int cmd_selftest(int argc, char **argv)
{
	struct selftest_command command = {0};
	struct selftest_options options = {0};
	int rest, err = options__parse(&selftest_table, &command, argc, argv, &rest);

	if (err)
		return exit_code_for_options(err);
	if (rest < argc)
		return refuse_word(&selftest_table, argv[rest]);
	for (size_t i = 0; i < command.sources.n; i++)
		if (!choose(&options, command.sources.v[i]))
			return EXIT_USAGE;
	for (int i = 0; i < SELFTEST_SOURCES && !command.sources.n; i++)
		options.sources[i] = true;
	if (command.bundle && command.replay) {
		log__error("-bundle and -replay cannot both be given");
		log__hint("-replay reads a bundle, -bundle writes one: choose one");
		return EXIT_USAGE;
	}
	options.only = command.only.v;
	options.n_only = command.only.n;
	options.keep = command.keep;
	options.bundle = command.bundle;
	options.replay = command.replay;
	log__set_level(LOG_QUIET);
	return run(&options, command.json);
}
