// SPDX-License-Identifier: MIT
#include "cmd_table.h"

#include <string.h>

#include "cmd.h"

const struct command commands[] = {
	{"attach", cmd_attach, "wait for a slow call in a running process, capture and decode it",
	 &attach_table},
	{"run", cmd_run, "the same for a program started here: run [options] -- CMD ARGS",
	 &run_table},
	{"record", cmd_record, "capture only, without decoding", &record_table},
	{"decode", cmd_decode, "turn a recording into a trace", &decode_table},
	{"report", cmd_report, "what made the slow iteration slow, from a recording or a trace",
	 &report_table},
	{"diff", cmd_diff, "what one slow iteration did that another did not", &diff_table},
	{"view", cmd_view, "open a trace in Perfetto, at the hit", &view_table},
	{"watch", cmd_watch, "hits and the time between them, to choose a threshold", &watch_table},
	{"list", cmd_list, "list the functions of a process that can be triggers", &list_table},
	{"check", cmd_check, "what this machine can do, and what is missing", &check_table},
	{"selftest", cmd_selftest, "check on this machine that traces are right", &selftest_table},
	{"help", cmd_help, "this, or help CMD", NULL},
	{"version", cmd_version, "versions of mtbpf and its libraries, and features found here",
	 &version_table},
	{NULL, NULL, NULL, NULL},
};

const struct command *command__find(const char *name)
{
	for (size_t i = 0; commands[i].name; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}
