// SPDX-License-Identifier: MIT
/* attach and record: a process that runs already. */
#include <errno.h>

#include "session/capture_command.h"
#include "cmd.h"
#include "util/log.h"

static const struct option_spec specs[] = {
	OPTION_PID,    OPTION_CGROUP,	OPTION_SYMBOL,	OPTION_DELAY, OPTION_DURATION,
	OPTION_OUTPUT, OPTIONS_CAPTURE, OPTIONS_SAMPLE, OPTIONS_LOG,  OPTION_NO_INLINE,
};

/* The last is of decoding, which record does not do. */
#define N_SPECS	       (sizeof(specs) / sizeof(specs[0]))
#define N_RECORD_SPECS (N_SPECS - 1)

static const struct option_table attach_table = {
	.command = "attach",
	.examples =
		(const char *const[]){"mtbpf attach -pid 1234 -symbol one_iter -delay-thresh 10ms",
				      "mtbpf attach -pid 1234 -symbol libm.so.6:exp "
				      "-duration-thresh 50us -o slow.fxt.gz",
				      "mtbpf attach -cgroup system.slice/web.service -symbol "
				      "one_iter -delay-thresh 10ms",
				      NULL},
	.usage = "attach -pid PID | -cgroup PATH [-symbol NAME] [-delay-thresh D | "
		 "-duration-thresh D] [options]",
	.summary = "Waits for the slow call, freezes the trace at it, and decodes it. Without "
		   "-symbol it "
		   "records until Ctrl-C.",
	.specs = specs,
	.count = N_SPECS,
};

static const struct option_table record_table = {
	.command = "record",
	.examples =
		(const char *const[]){
			"mtbpf record -pid 1234 -symbol one_iter -delay-thresh 10ms -o slow.mtbpf",
			"mtbpf decode slow.mtbpf", NULL},
	.usage = "record -pid PID | -cgroup PATH [-symbol NAME] [-delay-thresh D | "
		 "-duration-thresh D] [options]",
	.summary = "What attach does, but for the decoding: 'mtbpf decode NAME.mtbpf' does that "
		   "later.",
	.specs = specs,
	.count = N_RECORD_SPECS,
};

static int refuse_empty(const struct cgroup *cgroup)
{
	log__error("no process is in the cgroup %s", cgroup->path);
	log__hint("start the service first; /proc/PID/cgroup shows where a process is");
	return EXIT_USAGE;
}

static int capture_cgroup(const struct capture_options *options, bool decode)
{
	struct cgroup cgroup;
	struct session_start start = {.cgroup = &cgroup};
	int code, err = cgroup__open(&cgroup, options->cgroup);

	if (err)
		return exit_code_for(err);
	if (cgroup__populated(&cgroup))
		code = capture_command__run(options, &start, decode);
	else
		code = refuse_empty(&cgroup);
	cgroup__close(&cgroup);
	return code;
}

static int capture_running(const struct option_table *table, int argc, char **argv, bool decode)
{
	struct capture_options options = CAPTURE_DEFAULTS;
	struct session_start start = {0};
	int rest, err;

	err = options__parse(table, &options, argc, argv, &rest);
	if (err)
		return exit_code_for_options(err);
	if (rest < argc)
		return refuse_word(table, argv[rest]);
	if (capture_options__check(&options, table->command))
		return EXIT_USAGE;
	if (options.cgroup)
		return capture_cgroup(&options, decode);
	if (!options.pid) {
		log__error("%s: which process?", table->command);
		log__hint("add -pid PID ('pgrep -a NAME' lists them), or -cgroup PATH, or start "
			  "one: 'mtbpf run -- CMD'");
		return EXIT_USAGE;
	}
	start.pid = options.pid;
	return capture_command__run(&options, &start, decode);
}

int cmd_attach(int argc, char **argv)
{
	return capture_running(&attach_table, argc, argv, true);
}

int cmd_record(int argc, char **argv)
{
	return capture_running(&record_table, argc, argv, false);
}
