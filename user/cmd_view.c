// SPDX-License-Identifier: MIT
/* view: a trace in the browser. */
#include <stddef.h>
#include <stdint.h>

#include "cmd.h"
#include "cmd_table.h"
#include "serve/show.h"
#include "util/log.h"
#include "cli/options.h"

struct view_options {
	struct show_options show;
	bool quiet;
};

static const struct option_spec specs[] = {
	{"ui", NULL, 0, OPT_STRING, "DIR",
	 "folder with Perfetto's UI, so that nothing comes from the internet (default: "
	 "$MTBPF_PERFETTO_UI or /usr/share/mtbpf/perfetto-ui, if present)",
	 offsetof(struct view_options, show.ui), NULL},
	{"port", NULL, 0, OPT_INT, "N",
	 "port on 127.0.0.1 (default: any; 9001 without a local UI, because ui.perfetto.dev needs "
	 "that)",
	 offsetof(struct view_options, show.port), NULL},
	{"no-open", NULL, 0, OPT_FLAG, NULL, "print the address and start no browser",
	 offsetof(struct view_options, show.no_open), NULL},
	{"q", "quiet", 0, OPT_FLAG, NULL, "print nothing but the address",
	 offsetof(struct view_options, quiet), NULL},
};

const struct option_table view_table = {
	.command = "view",
	.examples = (const char *const[]){"mtbpf view slow.fxt.gz",
					  "mtbpf view -ui ~/perfetto-ui slow.fxt.gz", NULL},
	.usage = "view TRACE [options]",
	.summary = "Serves a trace on 127.0.0.1 until Ctrl-C, and opens it in Perfetto with the "
		   "slowest\nhit in view and its thread pinned. Only the printed address gives "
		   "access to it.",
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

int cmd_view(int argc, char **argv)
{
	struct view_options options = {0};
	const char *trace;
	int err = parse_with_words(&view_table, &options, argc, argv, "trace", &trace, 1);

	if (err)
		return exit_code_for_options(err);
	if (options.quiet)
		log__set_level(LOG_QUIET);
	if (options.show.port > UINT16_MAX) {
		log__error("view: there is no port %d", options.show.port);
		log__hint("ports go up to 65535");
		return EXIT_USAGE;
	}
	err = show__trace(trace, &options.show);
	return err ? exit_code_for(err) : EXIT_OK;
}
