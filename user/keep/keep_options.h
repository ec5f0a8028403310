/* SPDX-License-Identifier: MIT */
/* The options of record -dir, which captures for weeks. */
#ifndef MTBPF_KEEP_KEEP_OPTIONS_H
#define MTBPF_KEEP_KEEP_OPTIONS_H

#include <stdint.h>

#include "metrics/metrics.h"
#include "session/capture_options.h"

/* Maximum number of causes per capture. */
#define KEEP_CAUSES_MAX 4

struct keep_options {
	const char *dir; /* NULL: a single capture; the other members are not used */
	int keep;	 /* the most recordings to keep; KEEP_UNSET: not given */
	int max_per_hour;
	uint64_t max_size; /* 0: not given */
	const char *metrics;
	uint64_t timeout_ns;	/* taken from capture.timeout_ns; 0: none */
	const char *on_capture; /* a program that is run with each recording's path, or NULL */
	uint64_t on_capture_timeout_ns;
	bool no_summary;
	/*
	 * Writes the recording's summary, and stores its causes, largest first. Returns their
	 * number, or -errno. Called in a child process that then ends. NULL: write no summary.
	 */
	int (*summarise)(const char *path, struct metrics_cause causes[static KEEP_CAUSES_MAX]);
};

struct record_options {
	struct capture_options capture;
	struct keep_options keep;
};

#define KEEP_UNSET		  (-1)
#define KEEP_DEFAULT		  20
#define KEEP_MAX_SIZE_DEFAULT	  (1ull << 30)
#define KEEP_MAX_PER_HOUR_DEFAULT 60
#define KEEP_MAX_PER_HOUR_MAX	  1000000
/* The limit for the summary and the command together. */
#define KEEP_ON_CAPTURE_TIMEOUT_DEFAULT_NS 60000000000ull

#define KEEP_DEFAULTS                                                                              \
	{                                                                                          \
		.keep = KEEP_UNSET, .max_per_hour = KEEP_UNSET                                     \
	}

#define KEEP_OPTION(name, kind, arg, member, help)                                                 \
	{                                                                                          \
		name, NULL, 0, kind, arg, help, offsetof(struct record_options, keep.member), NULL \
	}

#define OPTIONS_KEEP                                                                               \
	KEEP_OPTION("dir", OPT_STRING, "DIR", dir,                                                 \
		    "continue after each capture and keep the newest recordings in DIR, as "       \
		    "NAME-TIME.mtbpf; SIGUSR1 takes one now"),                                     \
		KEEP_OPTION("keep", OPT_INT, "N", keep,                                            \
			    "with -dir: keep at most N recordings (default 20)"),                  \
		KEEP_OPTION("max-size", OPT_SIZE, "SIZE", max_size,                                \
			    "with -dir: keep at most SIZE of recordings (default 1G)"),            \
		KEEP_OPTION("max-per-hour", OPT_INT, "M", max_per_hour,                            \
			    "with -dir: capture at most M times in any hour (default 60; 0: no "   \
			    "limit)"),                                                             \
		KEEP_OPTION("on-capture", OPT_STRING, "CMD", on_capture,                           \
			    "with -dir: run this program with the path of each recording, once "   \
			    "the recording is complete"),                                          \
		KEEP_OPTION("on-capture-timeout", OPT_DURATION, "D", on_capture_timeout_ns,        \
			    "end the -on-capture program, or the making of a summary, after this " \
			    "long (default 60s)"),                                                 \
		KEEP_OPTION("no-summary", OPT_FLAG, NULL, no_summary,                              \
			    "do not decode recordings here; 'mtbpf report DIR' does it later"),    \
		KEEP_OPTION(                                                                       \
			"metrics", OPT_STRING, "ADDRESS", metrics,                                 \
			"with -dir: Prometheus metrics at 127.0.0.1:9464 or unix:/run/mtbpf.sock")

#endif
