// SPDX-License-Identifier: MIT
#include "keep/keep_options.h"

#include <errno.h>

#include "util/log.h"

/* Refuses options for a single capture. */
static int check_capture(const struct capture_options *capture, const char *command)
{
	if (capture->output) {
		log__error("%s: -o and -dir cannot both be given", command);
		log__hint("leave out -o: recordings in a folder are named after the process and "
			  "the time");
		return -EINVAL;
	}
	if (capture->multi_snapshot != 1) {
		log__error("%s: -multi-snapshot and -dir cannot both be given", command);
		log__hint("with -dir each trigger makes its own recording; Ctrl-C, SIGTERM or "
			  "-timeout ends mtbpf");
		return -EINVAL;
	}
	if (capture->strict) {
		log__error("%s: -strict and -dir cannot both be given", command);
		log__hint("-metrics counts losses; 'mtbpf decode -strict' checks one recording");
		return -EINVAL;
	}
	return 0;
}

int keep_options__check(struct record_options *options, const char *command)
{
	struct keep_options *keep = &options->keep;

	if (!keep->dir && keep->keep == KEEP_UNSET && keep->max_per_hour == KEEP_UNSET &&
	    !keep->max_size && !keep->metrics && !keep->on_capture && !keep->on_capture_timeout_ns)
		return 0;
	if (!keep->dir) {
		log__error("%s: -keep, -max-size, -max-per-hour, -metrics and -on-capture need "
			   "a folder",
			   command);
		log__hint("add -dir DIR, which continues after each capture and keeps recordings "
			  "there");
		return -EINVAL;
	}
	if (check_capture(&options->capture, command))
		return -EINVAL;
	if (!keep->keep) {
		log__error("%s: -keep must be at least 1", command);
		log__hint("without -keep the newest %d recordings stay", KEEP_DEFAULT);
		return -EINVAL;
	}
	if (keep->max_per_hour > KEEP_MAX_PER_HOUR_MAX) {
		log__error("%s: -max-per-hour must be at most %d", command, KEEP_MAX_PER_HOUR_MAX);

		log__hint("-max-per-hour 0 sets no limit");
		return -EINVAL;
	}
	if (keep->keep == KEEP_UNSET)
		keep->keep = KEEP_DEFAULT;
	if (keep->max_per_hour == KEEP_UNSET)
		keep->max_per_hour = KEEP_MAX_PER_HOUR_DEFAULT;
	if (!keep->max_size)
		keep->max_size = KEEP_MAX_SIZE_DEFAULT;
	if (!keep->on_capture_timeout_ns)
		keep->on_capture_timeout_ns = KEEP_ON_CAPTURE_TIMEOUT_DEFAULT_NS;
	if (keep->no_summary)
		keep->summarise = NULL;
	/* -timeout is for all captures together. */
	keep->timeout_ns = options->capture.timeout_ns;
	options->capture.timeout_ns = 0;
	return 0;
}
