// SPDX-License-Identifier: MIT
#include "serve/show.h"
#include "capture_command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apart.h"
#include "captures.h"
#include "cmd.h"
#include "util/signals.h"
#include "session/labels.h"
#include "session/session.h"
#include "pipeline/output_name.h"
#include "pipeline/pipeline.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/vec.h"
#include "util/units.h"
#include "view/phases.h"

static void say_full_end(enum session_end end, const struct recording *rec)
{
	uint64_t drops[DROPS];

	if (end == SESSION_EXITED && recording__drops(rec, drops))
		log__info("the program has ended: all of it is recorded, except what was lost");
	else if (end == SESSION_EXITED)
		log__info("the program has ended: all of it is recorded");
	else
		log__info("%s: the run until now is recorded, and the program runs on",
			  end == SESSION_TIMED_OUT ? "-timeout reached" : "interrupted");
}

static void say_end(enum session_end end, bool has_trigger)
{
	switch (end) {
	case SESSION_TRIGGERED:
		log__info("triggered: the trace is frozen, the target runs on");
		break;
	case SESSION_INTERRUPTED:
		log__info("%s: the snapshot was taken now, the target runs on",
			  has_trigger ? "interrupted before a trigger" : "interrupted");
		break;
	case SESSION_TIMED_OUT:
		log__info("%s: the snapshot was taken now, the target runs on",
			  has_trigger ? "no trigger before -timeout" : "-timeout reached");
		break;
	case SESSION_COMMAND_ENDED:
		log__info("the command has ended%s: the snapshot was taken now, the target runs on",
			  has_trigger ? " before a trigger" : "");
		break;
	case SESSION_ASKED: /* only with an observer */
		break;
	case SESSION_HITS_OVER:
		log__info("no trigger within -max-hits: the snapshot was taken at the last hit, "
			  "the target runs on");
		break;
	case SESSION_EXITED:
		log__info("the target has exited: the snapshot shows its last moments");
		break;
	}
}

/*
 * Checks that the output can be written before the target is touched. Leaves nothing there, and
 * does not move an existing file, which may be the user's only copy of an earlier capture.
 */
static int check_place(const char *path)
{
	char probe[PATH_MAX + sizeof(".XXXXXX")];
	int err;

	snprintf(probe, sizeof(probe), "%s.XXXXXX", path);
	if (mkdtemp(probe) && !rmdir(probe))
		return 0;
	err = -errno;
	log__error("cannot create the recording %s: %s", path, strerror(-err));
	log__hint(err == -ENOENT ? "the folder must exist; choose another with -o"
				 : "choose another path with -o");
	return err;
}

static int check_trace_name(const char *path)
{
	struct stat st;

	if (stat(path, &st) || S_ISREG(st.st_mode))
		return 0;
	log__error("cannot write %s: it exists and is not a regular file", path);
	log__hint("choose another name with -o");
	return -EINVAL;
}

static int check_output(const struct output_names *names, bool decode)
{
	int err = decode ? check_trace_name(names->trace) : 0;

	return err ? err : check_place(names->recording);
}

/* A very short region may not contain a sample. */
static int refuse_no_region(void)
{
	log__error("nothing was recorded: no thread ran between -start and -stop");
	log__hint("check with 'mtbpf watch' that both are hit; -source sample may miss short "
		  "regions: raise -sample-rate, or use -duration-thresh");
	return -ENOMSG;
}

static int refuse_nothing(const struct capture_options *options, const struct session_start *start,
			  const struct recording *rec)
{
	bool is_one = !start->exec_path && !target__is_cgroup(start->target) &&
		      start->target->pids.n == 1;

	if (options->start)
		return refuse_no_region();
	/* `run`: the program did not start; the reason has been printed. */
	if (start->exec_path)
		return -ENOMSG;
	return empty_snapshot__refuse(rec, is_one ? start->target->pids.v[0] : 0);
}

static int write_recording(struct recording *rec, const struct option_list *labels,
			   const char *path)
{
	char size[UNITS_TEXT_SIZE];
	uint64_t bytes = 0;
	int err = recording_dir__create(path);

	if (!err)
		err = labels__add(rec, "", labels);
	if (!err)
		err = recording__write(rec, path);
	/* check_place() has found the place writable: any later error is -EIO. */
	if (err)
		return -EIO;
	fs__tree_size(path, &bytes);
	log__info("recording: %s, %s ('perf script -i' reads it too)", path,
		  units__format_size(size, bytes));
	return 0;
}

struct decoding {
	const struct capture_options *options;
	struct recording *rec;
	const struct output_names *names;
	struct phases *phases;
};

static int decode_into(struct decoded *decoded, const struct decoding *d)
{
	const char *path = d->names->trace;
	int err = decoded__make(
		decoded, d->rec,
		&(struct tree_options){.no_inline = d->options->no_inline, .trace = path});

	phases__end(d->phases, "decoding");
	if (!err)
		err = decoded__write_trace(decoded, d->rec, path);
	phases__end(d->phases, "writing the trace");
	return err;
}

/* Without one, or without inlined functions here, 'report' of many decodes the recording. */
static void keep_summary(const struct decoded *decoded, const struct decoding *d)
{
	const char *path = d->names->recording;
	int err = d->options->no_inline ? 0 : captures__keep_summary(decoded, d->rec, path);

	if (err)
		log__debug("%s: no summary was written: %s", path, strerror(-err));
}

/*
 * Decodes the recording; Ctrl-C may interrupt it, since the recording is safe. Returns -errno, or 1
 * if something was lost, otherwise 0.
 */
static int make_trace(void *context)
{
	const struct decoding *d = (const struct decoding *)context;
	_cleanup_free_ char *stopped = stopped__format(d->names->recording, d->names->trace);
	const struct recording *rec = d->rec;
	struct decoded decoded;
	int err;

	/* All files of the recording are open; only the trace is written. */
	confine__decoding(d->names->trace, false, &rec, 1);
	memory_limit__set(d->options->max_memory);
	stop__begin(stopped ?: "");
	interrupts__release();
	log__info("decoding; Ctrl-C stops decoding and keeps the recording");
	err = decode_into(&decoded, d);
	interrupts__hold();
	stop__end();
	if (!err) {
		phases__say(d->phases);
		decoded__summarise(&decoded, d->rec, stdout, REPORT_ROWS);
		keep_summary(&decoded, d);
		err = !decoded__is_whole(&decoded, d->rec);
	}
	decoded__fini(&decoded);
	/* Keeps the order with later lines on stderr, also in a pipe. */
	fflush(stdout);
	if (err >= 0 && !d->options->view)
		next_step__say("view", d->names->trace);
	return err;
}

/* Decodes in a child process. A Ctrl-C from before is ignored. */
static int make_trace_apart(const struct capture_options *options, struct recording *rec,
			    const struct output_names *names, struct phases *phases, bool *is_whole)
{
	struct decoding decoding = {options, rec, names, phases};
	int result;

	interrupts__release();
	interrupts__hold();
	result = apart__run(make_trace, &decoding, "decoding");
	*is_whole = !result;
	return result < 0 ? result : 0;
}

/* The target runs on already, and all has been said. */
static int make_summary(void *context)
{
	const struct decoding *d = context;
	const struct recording *rec = d->rec;
	struct decoded decoded;

	confine__decoding(d->names->recording, false, &rec, 1);
	memory_limit__set(d->options->max_memory);
	setpriority(PRIO_PROCESS, 0, 19);
	log__set_level(LOG_SILENT);
	interrupts__release();
	if (!decoded__make(&decoded, d->rec, &(struct tree_options){0}))
		keep_summary(&decoded, d);
	decoded__fini(&decoded);
	return 0;
}

/*
 * Decoding samples takes milliseconds, Intel PT minutes: whoever wants the recording only would
 * wait for it.
 */
static void make_summary_apart(const struct capture_options *options, struct recording *rec,
			       const struct output_names *names)
{
	struct decoding decoding = {options, rec, names, NULL};

	if (!options->full && rec->hits.n && rec->sample_period_ns && !recording__hold_roots(rec))
		apart__run(make_summary, &decoding, "the summary");
}

/* Prints what was lost. True if nothing was. */
static bool say_drops(const struct recording *rec)
{
	char text[DROP_TEXT_SIZE];
	uint64_t drops[DROPS];

	if (!recording__drops(rec, drops))
		return true;
	for (int i = 0; i < DROPS; i++)
		if (drops[i])
			log__warn("lost: %s", drop__format(text, (enum drop)i, drops[i]));
	return false;
}

/* Prints the summary of a recording. True if nothing was lost. */
static bool say_recorded(const struct recording *rec, const char *path, const struct phases *phases)
{
	bool is_whole = say_drops(rec);

	phases__say(phases);
	next_step__say("report", path);
	next_step__say("decode", path);
	return is_whole;
}

struct outcome {
	bool is_untriggered; /* what was waited for did not come */
	bool is_whole;	     /* nothing was lost */
};

static bool is_untriggered(enum session_end end, const struct recording *rec)
{
	return end == SESSION_TIMED_OUT || end == SESSION_HITS_OVER ||
	       (end == SESSION_COMMAND_ENDED && *rec->trigger && !rec->hits.n);
}

static int capture_and_write(const struct capture_options *options, struct session_start *start,
			     const struct output_names *names, enum capture_result result,
			     struct outcome *outcome)
{
	enum session_end end = SESSION_INTERRUPTED;
	struct recording rec;
	struct phases phases;
	int err;

	recording__init(&rec);
	phases__begin(&phases);
	err = session__capture_again(options, start, &rec, &end);
	if (!err && !recording__traced_bytes(&rec))
		err = refuse_nothing(options, start, &rec);
	phases__end(&phases, "capturing");
	if (!err) {
		outcome->is_untriggered = is_untriggered(end, &rec);
		if (options->full)
			say_full_end(end, &rec);
		else
			say_end(end, *rec.trigger);
		err = write_recording(&rec, &options->labels, names->recording);
	}
	phases__end(&phases, "writing the recording");
	if (!err && result == CAPTURE_TRACE)
		err = recording__hold_roots(&rec);
	if (!err && result == CAPTURE_TRACE)
		err = make_trace_apart(options, &rec, names, &phases, &outcome->is_whole);
	else if (!err)
		outcome->is_whole = say_recorded(&rec, names->recording, &phases);
	if (!err && result == CAPTURE_SUMMARY)
		make_summary_apart(options, &rec, names);
	recording__fini(&rec);
	return err;
}

static void name_folder(char folder[static PATH_MAX], const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		strcpy(folder, ".");
	else
		snprintf(folder, PATH_MAX, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

int capture_command__run(const struct capture_options *options, struct session_start *start,
			 enum capture_result result)
{
	struct outcome outcome = {0};
	struct output_names names;
	char folder[PATH_MAX];
	int err = output_names__from(&names, options->output);

	if (!err)
		err = check_output(&names, result == CAPTURE_TRACE);
	if (err)
		return exit_code_for(err);
	if (options->full) {
		name_folder(folder, names.recording);
		start->spool_dir = folder;
	}
	interrupts__hold();
	err = capture_and_write(options, start, &names, result, &outcome);
	interrupts__release();
	if (!err && options->view)
		err = show__trace(names.trace, &(struct show_options){0});
	if (!err && options->strict && !outcome.is_whole)
		return refuse_lost(start->exec_path	     ? "run"
				   : result == CAPTURE_TRACE ? "attach"
							     : "record");
	if (!err && outcome.is_untriggered)
		return EXIT_NO_TRIGGER;
	return exit_code_for(err);
}
