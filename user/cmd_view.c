// SPDX-License-Identifier: MIT
/* view: shows a trace in the browser. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "captures.h"
#include "cli/options.h"
#include "cmd.h"
#include "cmd_decode.h"
#include "pipeline/output_name.h"
#include "serve/deep_link.h"
#include "serve/show.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "view/page.h"

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
	.examples = (const char *const[]){"mtbpf view slow.fxt.gz", "mtbpf view slow.mtbpf",
					  "mtbpf view /var/lib/mtbpf",
					  "mtbpf view -ui ~/perfetto-ui slow.fxt.gz", NULL},
	.usage = "view TRACE|RECORDING|DIR... [options]",
	.summary =
		"Serves a trace on 127.0.0.1 until Ctrl-C, and opens it in Perfetto with the "
		"slowest\nhit in view and its thread pinned. A recording is decoded first, unless "
		"its trace is newer.\nFor folders it serves the page of 'report -html', whose "
		"links open the captures in Perfetto.\nOnly the printed address gives access to "
		"it.",
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

/* One recording: what 'decode -view' does. */

static int view_recording(const char *path, const struct show_options *options)
{
	const struct decode_options how = {.print = PRINT_NOTHING, .format = FORMAT_BY_NAME};
	const struct ocaml_traps traps = {0};
	const struct trace_filter filter = {0};
	struct decode_output output;
	struct decoding decoding = {&how, path, &output, &traps, &filter};
	struct stat trace, recording;
	int err = decode_output__name(&output, &how, path);

	if (!err && (stat(output.names.trace, &trace) || stat(path, &recording) ||
		     trace.st_mtime < recording.st_mtime))
		err = decoding__run_apart(&decoding);
	/* A positive result: losses, which have been reported. */
	return err < 0 ? err : show__trace(output.names.trace, options);
}

/* Many captures. */

struct viewed {
	struct summaries summaries;
	char folder[PATH_MAX - 64]; /* for traces that are decoded for the page */
	char link[32];
};

static const char *link_of(void *ctx, size_t i)
{
	struct viewed *viewed = ctx;

	snprintf(viewed->link, sizeof(viewed->link), "open/%zu", i);
	return viewed->link;
}

/* Decodes in a separate process, because the file may come from someone else. */
static int decode_to(const char *path, const char *trace)
{
	char *const words[] = {"mtbpf", "decode", "-q", (char *)path, "-o", (char *)trace, NULL};
	posix_spawn_file_actions_t files;
	int status = 0, err;
	pid_t pid;

	posix_spawn_file_actions_init(&files);
	/* The report is on the page. */
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	err = posix_spawn(&pid, "/proc/self/exe", &files, NULL, words, environ);
	posix_spawn_file_actions_destroy(&files);
	if (err)
		return -err;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status ? -EIO : 0;
}

static int open_capture(void *ctx, size_t i, struct shown_hit *hit)
{
	struct viewed *viewed = ctx;
	char trace[PATH_MAX];
	const char *path;
	int err;

	if (i >= viewed->summaries.all.n)
		return -ENOENT;
	path = viewed->summaries.all.v[i].path;
	if (is_trace_name(path))
		return show__open_trace(path, hit);
	snprintf(trace, sizeof(trace), "%s/%zu.fxt.gz", viewed->folder, i);
	err = decode_to(path, trace);
	return err ? err : show__open_trace(trace, hit);
}

static int print_page(struct viewed *viewed, char **text, size_t *size)
{
	const struct page_options options = {.link = link_of, .ctx = viewed};
	struct patterns patterns;
	FILE *out = open_memstream(text, size);
	int err = out ? patterns__find(&patterns, viewed->summaries.all.v, viewed->summaries.all.n)
		      : -ENOMEM;

	if (!out)
		return err;
	if (!err)
		err = page__print(out, &patterns, &options);
	patterns__fini(&patterns);
	if (fclose(out) && !err)
		err = -ENOMEM;
	return err;
}

static int serve_captures(struct viewed *viewed, const struct show_options *options)
{
	_cleanup_free_ char *text = NULL;
	struct trace_pages pages = {.open = open_capture, .ctx = viewed};
	int err = print_page(viewed, &text, &pages.size);

	if (err)
		return err;
	snprintf(viewed->folder, sizeof(viewed->folder), "%s/mtbpf-view-XXXXXX",
		 getenv("TMPDIR") ?: "/tmp");
	if (!mkdtemp(viewed->folder))
		return -errno;
	/* The server runs as the user of sudo and writes traces there. */
	if (!geteuid() && getenv("SUDO_UID") && getenv("SUDO_GID") &&
	    chown(viewed->folder, (uid_t)strtoul(getenv("SUDO_UID"), NULL, 10),
		  (gid_t)strtoul(getenv("SUDO_GID"), NULL, 10)))
		log__debug("%s: %s", viewed->folder, strerror(errno));
	pages.page = text;
	err = show__pages(&pages, options);
	fs__remove_dir(viewed->folder);
	return err;
}

static int view_many(const char *const *words, size_t n, const struct show_options *options)
{
	const struct summarise_options how = {0};
	struct capture_paths paths = {0};
	struct viewed viewed = {.folder = ""};
	int err = captures__find(&paths, words, n);

	if (!err)
		err = captures__summarise(&viewed.summaries, &paths, &how);
	if (!err && !viewed.summaries.all.n) {
		log__error("%s%s: found no recording or trace that can be shown", words[0],
			   n > 1 ? " and others" : "");

		log__hint("'mtbpf record -dir DIR' fills a folder with recordings");
		err = -ENODATA;
	}
	if (!err)
		err = serve_captures(&viewed, options);
	summaries__fini(&viewed.summaries);
	capture_paths__fini(&paths);
	return err;
}

int cmd_view(int argc, char **argv)
{
	struct view_options options = {0};
	_cleanup_free_ const char **words = calloc((size_t)argc + 1, sizeof(*words));
	char meta[PATH_MAX];
	int n = 0, err = -ENOMEM;

	if (words)
		err = parse_around_words(&view_table, &options, argc, argv, words, argc, &n);
	if (err)
		return exit_code_for_options(err);
	if (!n) {
		log__error("view: which trace?");
		log__hint("usage: mtbpf %s", view_table.usage);
		return EXIT_USAGE;
	}
	if (options.quiet)
		log__set_level(LOG_QUIET);
	if (options.show.port > UINT16_MAX) {
		log__error("view: port %d is out of range", options.show.port);
		log__hint("ports go up to 65535");
		return EXIT_USAGE;
	}
	if (n > 1 || captures__is_folder(words[0]))
		err = view_many(words, (size_t)n, &options.show);
	else if (snprintf(meta, sizeof(meta), "%s/meta.json", words[0]) < PATH_MAX &&
		 !access(meta, F_OK))
		err = view_recording(words[0], &options.show);
	else
		err = show__trace(words[0], &options.show);
	return exit_code_for(err);
}
