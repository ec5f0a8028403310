// SPDX-License-Identifier: MIT
/* run: starts a program and records it from its first instruction. */
#include <limits.h>

#include "capture_command.h"
#include "child.h"
#include "cmd.h"
#include "util/log.h"

/* clang-format off */
static const struct option_spec specs[] = {
	OPTION_CHILDREN("what the program forks as well"),
	OPTION_SYMBOL,
	OPTIONS_REGION,
	OPTION_REQUESTS,
	OPTION_DELAY,
	OPTION_DURATION,
	OPTIONS_CPU,
	OPTION_IF,
	OPTION_KEY,
	OPTION_PRINT,
	OPTION_STALL,
	OPTIONS_LIMITS,
	OPTION_FULL,
	OPTION_OUTPUT(OUTPUT_HELP),
	OPTIONS_CAPTURE,
	OPTIONS_SAMPLE,
	OPTION_STRICT,
	OPTIONS_LOG,
	OPTION_NO_INLINE,
	OPTION_VIEW,
};
/* clang-format on */

const struct option_table run_table = {
	.command = "run",
	.examples =
		(const char *const[]){
			"mtbpf run -symbol one_iter -delay-thresh 10ms -- ./service --port 8080",
			"mtbpf run -- ./short-lived", "mtbpf run -full-execution -- ./batch-job",
			NULL},
	.usage = "run [-symbol NAME] [-delay-thresh D | -duration-thresh D] [options] -- CMD ARGS",
	.summary = "Starts a program and traces it from its first instruction on.",
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

static int run_program(const struct capture_options *options, const char *path, char **argv)
{
	struct child child;
	struct session_start start = {.exec_path = path};
	int code;

	if (child__fork(&child, path, argv))
		return EXIT_FAILED;
	start.pid = child.pid;
	start.go_fd = child.go_fd;
	code = capture_command__run(options, &start, CAPTURE_TRACE);
	child__wait(&child);
	return code;
}

int cmd_run(int argc, char **argv)
{
	struct capture_options options = CAPTURE_DEFAULTS;
	char path[PATH_MAX];
	int rest, err;

	err = options__parse(&run_table, &options, argc, argv, &rest);
	if (err)
		return exit_code_for_options(err);
	if (capture_options__check(&options, run_table.command))
		return EXIT_USAGE;
	if (rest >= argc) {
		log__error("run: no program given");
		log__hint("usage: mtbpf %s", run_table.usage);
		return EXIT_USAGE;
	}
	if (child__find_program(argv[rest], path))
		return EXIT_USAGE;
	return run_program(&options, path, argv + rest);
}
