// SPDX-License-Identifier: MIT
#include "serve/show.h"
#include "capture_command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "util/interrupts.h"
#include "session/session_again.h"
#include "pipeline/output_name.h"
#include "pipeline/pipeline.h"
#include "target/process.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/units.h"
#include "view/closing.h"

static void say_end(enum session_end end, bool has_trigger)
{
	switch (end) {
	case SESSION_TRIGGERED:
		log__info("triggered: the trace is frozen, the target runs on");
		break;
	case SESSION_INTERRUPTED:
		log__info("%s: the snapshot is of now, the target runs on",
			  has_trigger ? "interrupted before a trigger" : "interrupted");
		break;
	case SESSION_TIMED_OUT:
		log__info("%s: the snapshot is of now, the target runs on",
			  has_trigger ? "no trigger within the timeout" : "the time is over");
		break;
	case SESSION_ASKED: /* of a session with an observer only */
		break;
	case SESSION_HITS_OVER:
		log__info("no trigger within -max-hits: the snapshot is of the last, the target "
			  "runs on");
		break;
	case SESSION_EXITED:
		log__info("the target has exited: the snapshot is of its last moments");
		break;
	}
}

/*
 * A place that cannot be written is no reason to have touched the target. Nothing is left there,
 * nor moved: what lies there may be all that the user has of an earlier one.
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
	log__hint(err == -ENOENT ? "the folder has to exist; -o chooses another"
				 : "choose another place with -o");
	return err;
}

static int check_trace_name(const char *path)
{
	struct stat st;

	if (stat(path, &st) || S_ISREG(st.st_mode))
		return 0;
	log__error("cannot write %s: it exists, and is no file", path);
	log__hint("choose another name with -o");
	return -EINVAL;
}

static int check_output(const struct output_names *names, bool decode)
{
	int err = decode ? check_trace_name(names->trace) : 0;

	return err ? err : check_place(names->recording);
}

static int refuse_nothing(const struct session_start *start)
{
	pid_t pid;

	/* `run`: its program has not started, and has said why. */
	if (start->exec_path)
		return -ENOMSG;
	if (target__is_cgroup(start->target) || start->target->pids.n > 1) {
		log__error("nothing was recorded: none of the processes ran an instruction");
		log__hint("were they asleep all the time? record again while they work");
		return -ENOMSG;
	}
	pid = start->target->pids.v[0];
	log__error("nothing was recorded: process %d ran no instruction", pid);
	if (process__stopped(pid))
		log__hint("it is stopped: 'kill -CONT %d' lets it run", pid);
	else
		log__hint("was it asleep all the time? record again while it works");
	return -ENOMSG;
}

static int write_recording(struct recording *rec, const char *path)
{
	char size[UNITS_TEXT_SIZE];
	uint64_t bytes = 0;
	int err = recording_dir__create(path);

	if (!err)
		err = recording__write(rec, path);
	if (err)
		return err;
	fs__tree_size(path, &bytes);
	log__info("%s: the recording; %s, 'perf script -i' reads it too", path,
		  units__format_size(size, bytes));
	return 0;
}

/* Decoding may take long, and the recording is safe: it may be interrupted. Half a trace is none.
 */
static int make_trace(const struct capture_options *options, const struct recording *rec,
		      const char *path, struct phases *phases)
{
	struct decoded decoded;
	int err;

	interrupts__release();
	log__info("decoding it; Ctrl-C stops that, and leaves the recording");
	err = decoded__make(&decoded, rec,
			    &(struct tree_options){.no_inline = options->no_inline, .trace = path});
	interrupts__hold();
	phases__end(phases, "decoding");
	if (!err)
		err = decoded__write_trace(&decoded, rec, path);
	phases__end(phases, "writing the trace");
	if (!err) {
		phases__say(phases);
		decoded__summarise(&decoded, rec, stdout, REPORT_ROWS);
	}
	decoded__fini(&decoded);
	/* What comes after it on stderr is read after it, in a pipe as well. */
	fflush(stdout);
	if (!err && !options->view)
		next_step__say("view", path);
	return err;
}

static void say_recorded(const char *path, const struct phases *phases)
{
	phases__say(phases);
	next_step__say("report", path);
	next_step__say("decode", path);
}

static int capture_and_write(const struct capture_options *options, struct session_start *start,
			     const struct output_names *names, bool decode, enum session_end *end)
{
	struct recording rec;
	struct phases phases;
	int err;

	recording__init(&rec);
	phases__begin(&phases);
	err = session__capture_again(options, start, &rec, end);
	if (!err && !recording__traced_bytes(&rec))
		err = refuse_nothing(start);
	phases__end(&phases, "capturing");
	if (!err) {
		say_end(*end, *rec.trigger);
		err = write_recording(&rec, names->recording);
	}
	phases__end(&phases, "writing the recording");
	if (!err && decode)
		err = make_trace(options, &rec, names->trace, &phases);
	else if (!err)
		say_recorded(names->recording, &phases);
	recording__fini(&rec);
	return err;
}

int capture_command__run(const struct capture_options *options, struct session_start *start,
			 bool decode)
{
	enum session_end end = SESSION_INTERRUPTED;
	struct output_names names;
	int err = output_names__from(&names, options->output);

	if (!err)
		err = check_output(&names, decode);
	if (err)
		return exit_code_for(err);
	interrupts__hold();
	err = capture_and_write(options, start, &names, decode, &end);
	interrupts__release();
	if (!err && options->view)
		err = show__trace(names.trace, &(struct show_options){0});
	if (!err && (end == SESSION_TIMED_OUT || end == SESSION_HITS_OVER))
		return EXIT_NO_TRIGGER;
	return exit_code_for(err);
}
