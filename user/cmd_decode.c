// SPDX-License-Identifier: MIT
/* decode: makes a trace of a recording from any machine. */
#include <errno.h>
#include <stddef.h>

#include "cli/options.h"
#include "cmd.h"
#include "decode_command.h"
#include "serve/show.h"
#include "session/capture_options.h"
#include "util/log.h"
#include "util/vec.h"
#include "view/phases.h"

static const char *const print_names[] = {"calls", "branches", NULL};
#define FORMAT_NAME(name) #name,
static const char *const format_names[] = {"fxt", TEXT_FORMATS(FORMAT_NAME) NULL};

static const struct option_spec specs[] = {
	{"output", NULL, 'o', OPT_STRING, "FILE",
	 "the trace: NAME.fxt.gz, .fxt, .fxt.zst, or NAME.txt (default: the recording's name with "
	 ".fxt.gz)",
	 offsetof(struct decode_options, output), NULL},
	{"format", NULL, 0, OPT_CHOICE, "FORMAT",
	 "fxt, or text: one line per slice (tid depth start end name), on stdout without -o",
	 offsetof(struct decode_options, format), format_names},
	{"filter", NULL, 0, OPT_LIST, "FROM..TO", FILTER_HELP,
	 offsetof(struct decode_options, filters), NULL},
	{"no-inline", NULL, 0, OPT_FLAG, NULL, NO_INLINE_HELP,
	 offsetof(struct decode_options, no_inline), NULL},
	{"print", NULL, 0, OPT_CHOICE, "WHAT",
	 "print lines on stdout instead of a trace: calls (as -format text) or branches (tid time "
	 "kind from to)",
	 offsetof(struct decode_options, print), print_names},
	{"ocaml-traps", NULL, 0, OPT_STRING, "FILE",
	 "addresses of OCaml exception handlers in code that is in no ELF file: one hexadecimal "
	 "address per line",
	 offsetof(struct decode_options, ocaml_traps), NULL},
	{"max-memory", NULL, 0, OPT_SIZE, "SIZE", MAX_MEMORY_HELP,
	 offsetof(struct decode_options, max_memory), NULL},
	{"portable", NULL, 0, OPT_FLAG, NULL,
	 "write NAME.mtbpf instead of a trace: the recording with all programs and libraries, "
	 "which decodes on any machine",
	 offsetof(struct decode_options, portable), NULL},
	{"view", NULL, 0, OPT_FLAG, NULL, VIEW_HELP, offsetof(struct decode_options, view), NULL},
	{"strict", NULL, 0, OPT_FLAG, NULL, STRICT_HELP, offsetof(struct decode_options, strict),
	 NULL},
	{"v", "verbose", 0, OPT_FLAG, NULL, "print more", offsetof(struct decode_options, verbose),
	 NULL},
	{"q", "quiet", 0, OPT_FLAG, NULL, "print only errors and the report",
	 offsetof(struct decode_options, quiet), NULL},
};

const struct option_table decode_table = {
	.command = "decode",
	.examples =
		(const char *const[]){
			"mtbpf decode trace.mtbpf", "mtbpf decode trace.mtbpf -o trace.fxt.zst",
			"mtbpf decode trace.mtbpf -format text",
			"mtbpf decode trace.mtbpf -filter -20ms..",
			"mtbpf decode trace.mtbpf -filter parse..render",
			"mtbpf decode -portable perf.data -o all.mtbpf",
			"perf script --itrace=be -F "
			"pid,tid,time,event,ip,sym,symoff,addr,dso,flags --ns "
			"| mtbpf decode -",
			"perf script --show-switch-events -F +pid | mtbpf decode -", NULL},
	.usage = "decode RECORDING|TEXT|- [-o NAME.fxt.gz]",
	.summary = "Decodes a recording, a perf.data of 'perf record -e intel_pt//u' or -g, or "
		   "the\noutput of perf script for these (- is stdin): branches that perf can "
		   "decode,\nor samples with stacks and context switches.",
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

static int decode(const struct decode_options *options, const char *input,
		  const struct ocaml_traps *traps, const struct trace_filter *filter)
{
	struct decode_output output;
	struct decoding decoding = {options, input, &output, traps, filter};
	bool is_whole;
	int code, err;

	if (decode_output__name(&output, options, input))
		return EXIT_USAGE;
	err = options->view ? decoding__run_apart(&decoding) : decoding__run(&decoding);
	is_whole = !err;
	if (err > 0)
		err = 0;
	if (!err && options->view)
		err = show__trace(output.names.trace, &(struct show_options){0});
	else if (!err && decode_options__want_trace(options))
		next_step__say("view", output.names.trace);
	if (!err && options->strict && !is_whole)
		return refuse_lost(decode_table.command);
	code = exit_code_for(err);
	return err && err != -ENOENT ? EXIT_FAILED : code;
}

int cmd_decode(int argc, char **argv)
{
	struct decode_options options = {.print = PRINT_NOTHING, .format = FORMAT_BY_NAME};
	struct ocaml_traps traps = {0};
	struct trace_filter filter = {0};
	const char *input = NULL;
	int err = parse_with_words(&decode_table, &options, argc, argv, "recording", &input, 1);

	if (err)
		return exit_code_for_options(err);
	memory_limit__set(options.max_memory);
	log__set_level(options.verbose ? LOG_VERBOSE : options.quiet ? LOG_QUIET : LOG_NORMAL);
	if (options.portable && options.print != PRINT_NOTHING) {
		log__error("decode: -portable and -print cannot both be given");
		log__hint("leave out one of the two");
		return EXIT_USAGE;
	}
	if (options.view && !decode_options__want_trace(&options)) {
		log__error("decode: -view needs a trace, and this writes a different output");
		log__hint("leave out -view, or the option that selects text or a recording");
		return EXIT_USAGE;
	}
	if (options.portable && options.filters.n) {
		log__error("decode: -portable and -filter cannot both be given");
		log__hint("leave one of them out; the portable recording can be filtered later");
		return EXIT_USAGE;
	}
	err = trace_filter__parse(&filter, options.filters.v, options.filters.n);
	if (err)
		err = exit_code_for(err);
	else if (options.ocaml_traps && ocaml_traps__read(&traps, options.ocaml_traps))
		err = EXIT_USAGE;
	else
		err = decode(&options, input, &traps, &filter);
	ocaml_traps__fini(&traps);
	trace_filter__fini(&filter);
	return err;
}
