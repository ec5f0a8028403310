// SPDX-License-Identifier: MIT
/* attach and record: capture a running process. */
#include <errno.h>
#include <string.h>

#include "capture_command.h"
#include "captures.h"
#include "child.h"
#include "cmd.h"
#include "keep/keeper.h"
#include "util/log.h"

/* clang-format off */
#define OPTIONS_RUNNING(output_help) \
	OPTIONS_TARGET,  \
	OPTION_CHILDREN(CHILDREN_HELP), \
	OPTION_SYMBOL,   \
	OPTIONS_REGION,  \
	OPTION_REQUESTS, \
	OPTION_DELAY,    \
	OPTION_DURATION, \
	OPTIONS_CPU,     \
	OPTION_IF,       \
	OPTION_KEY,      \
	OPTION_PRINT,    \
	OPTION_STALL,    \
	OPTIONS_LIMITS,  \
	OPTION_OUTPUT(output_help), \
	OPTIONS_CAPTURE, \
	OPTIONS_SAMPLE,  \
	OPTION_STRICT,   \
	OPTIONS_LOG
/* clang-format on */

static const struct option_spec attach_specs[] = {OPTIONS_RUNNING(OUTPUT_HELP), OPTION_NO_INLINE,
						  OPTION_VIEW};
static const struct option_spec record_specs[] = {
	OPTIONS_RUNNING("the recording: NAME.mtbpf (default trace.mtbpf)"), OPTIONS_KEEP};

const struct option_table attach_table = {
	.command = "attach",
	.examples =
		(const char *const[]){
			"mtbpf attach -pid 1234 -symbol one_iter -delay-thresh 10ms",
			"mtbpf attach -pid 1234 -symbol libm.so.6:exp "
			"-duration-thresh 50us -o slow.fxt.gz",
			"mtbpf attach -name 'web-*' -symbol one_iter -delay-thresh 10ms",
			"mtbpf attach -pid 1234 -start request_begin -stop request_end "
			"-duration-thresh 10ms",
			"mtbpf attach -container web -symbol one_iter -delay-thresh 10ms",
			"mtbpf attach -cgroup system.slice/web.service -symbol "
			"one_iter -delay-thresh 10ms",
			"mtbpf attach -pid 1234 -symbol one_iter -delay-thresh 10ms -- sleep 10",
			NULL},
	.usage = "attach -pid PID | -name GLOB | -container NAME | ... [-symbol NAME] "
		 "[-delay-thresh D | "
		 "-duration-thresh D] [options] [-- CMD ARGS]",
	.summary = "Waits for the slow call, freezes the trace at it, and decodes it. With CMD, "
		   "starts it and records while it runs. With no process given, at a terminal, you "
		   "pick one. Without -symbol the program's own mtbpf_take_snapshot() triggers; if "
		   "it does not contain that, Ctrl-C ends the recording.",
	.specs = attach_specs,
	.count = sizeof(attach_specs) / sizeof(attach_specs[0]),
};

const struct option_table record_table = {
	.command = "record",
	.examples =
		(const char *const[]){
			"mtbpf record -pid 1234 -symbol one_iter -delay-thresh 10ms -o slow.mtbpf",
			"mtbpf decode slow.mtbpf",
			"mtbpf record -pid 1234 -symbol one_iter -delay-thresh 50ms -dir "
			"/var/lib/mtbpf -keep 50 -max-per-hour 10",
			NULL},
	.usage = "record -pid PID | -name GLOB | -container NAME | ... [-symbol NAME] "
		 "[-delay-thresh D | "
		 "-duration-thresh D] [options] [-- CMD ARGS]",
	.summary = "Captures like attach, but does not decode: 'mtbpf decode NAME.mtbpf' does that "
		   "later.",
	.specs = record_specs,
	.count = sizeof(record_specs) / sizeof(record_specs[0]),
};

static int refuse_no_target(const struct option_table *table)
{
	log__error("%s: no process given", table->command);
	log__hint("add -pid PID ('pgrep -a NAME' lists pids), -name NAME, -container NAME or "
		  "-cgroup PATH, or start a program: 'mtbpf run -- CMD'");
	return EXIT_USAGE;
}

/* command NULL: none, and until Ctrl-C; otherwise as long as that runs, which is started here. */
static int capture_while(const struct capture_options *options, struct target *target,
			 char **command, enum capture_result result)
{
	struct session_start start = {.target = target};
	char path[PATH_MAX];
	struct child child;
	int code;

	if (!command)
		return capture_command__run(options, &start, result);
	if (child__find_program(*command, path))
		return EXIT_USAGE;
	if (child__fork(&child, path, command))
		return EXIT_FAILED;
	start.command = child.pid;
	start.go_fd = child.go_fd;
	code = capture_command__run(options, &start, result);
	return child__wait(&child) && !code ? EXIT_FAILED : code;
}

static int capture_target(const struct option_table *table, const struct capture_options *options,
			  char **command, enum capture_result result)
{
	struct target target;
	int code, err = target__choose(&target, &options->target);

	if (err == -ENODATA)
		code = refuse_no_target(table);
	else if (err)
		code = exit_code_for(err);
	else if (target__is_cgroup(&target) && !cgroup__populated(&target.cgroup))
		code = exit_code_for(target__refuse_empty(&target));
	else
		code = capture_while(options, &target, command, result);
	target__close(&target);
	return code;
}

static int refuse_command_for_weeks(const struct option_table *table)
{
	log__error("%s: -dir records for weeks, and not while a command runs", table->command);
	log__hint("leave -dir out, or the command behind '--'");
	return EXIT_USAGE;
}

static int capture_running(const struct option_table *table, int argc, char **argv,
			   enum capture_result result)
{
	struct record_options all = {.capture = CAPTURE_DEFAULTS, .keep = KEEP_DEFAULTS};
	struct capture_options *options = &all.capture;
	char **command = NULL;
	int rest, err;

	err = options__parse(table, &all, argc, argv, &rest);
	if (err)
		return exit_code_for_options(err);
	if (rest < argc && !strcmp(argv[rest - 1], "--"))
		command = argv + rest;
	else if (rest < argc)
		return refuse_word(table, argv[rest]);
	all.keep.summarise = captures__summarise_kept;
	if (capture_options__check(options, table->command) ||
	    keep_options__check(&all, table->command))
		return EXIT_USAGE;
	if (!all.keep.dir)
		return capture_target(table, options, command,
				      all.keep.no_summary ? CAPTURE_RECORDING : result);
	if (command)
		return refuse_command_for_weeks(table);
	if (!target_options__any(&options->target))
		return refuse_no_target(table);
	return exit_code_for(keeper__run(&all));
}

int cmd_attach(int argc, char **argv)
{
	return capture_running(&attach_table, argc, argv, CAPTURE_TRACE);
}

int cmd_record(int argc, char **argv)
{
	return capture_running(&record_table, argc, argv, CAPTURE_SUMMARY);
}
